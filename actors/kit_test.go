package actors

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// trapMsg is the language of the actors of this test.
type trapMsg interface{ isTrapMsg() }
type (
	boom   struct{}
	answer struct{ n int }
	stick  struct{ until chan struct{} }
)

func (boom) isTrapMsg()   {}
func (answer) isTrapMsg() {}
func (stick) isTrapMsg()  {}

type trap struct {
	onStart, onStop func()
}

func (a *trap) start(ref[trapMsg]) {
	if a.onStart != nil {
		a.onStart()
	}
}

func (a *trap) stop() {
	if a.onStop != nil {
		a.onStop()
	}
}

func (a *trap) handle(from asker, m trapMsg) {
	switch m := m.(type) {
	case boom:
		panic("boom")
	case answer:
		from.answer(m.n, nil)
		from.answer(-1, nil) // a second answer is dropped
	case stick:
		<-m.until
		from.answer(0, nil)
	}
}

func newSystem(t *testing.T, log *strings.Builder) *System {
	t.Helper()
	l := zerolog.Nop()
	if log != nil {
		l = zerolog.New(log)
	}
	s, err := NewSystem(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func line(t *testing.T, b *Board, id string) Vitals {
	t.Helper()
	for _, v := range b.Read() {
		if v.ID == id {
			return v
		}
	}
	t.Fatalf("%s is not on the board", id)
	return Vitals{}
}

// The engine ends the process when an actor exceeds its restarts, and forgets who
// waited for a message that panicked.
func TestAnActorThatPanicsOnEveryMessageNeverEndsTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuilder
		s, err := NewSystem(zerolog.New(&log))
		if err != nil {
			t.Fatal(err)
		}
		r := spawn(s, "trap", "1", "", func() behaviour[trapMsg] { return &trap{} })
		for range 50 {
			before := time.Now()
			if _, err := ask[int](t.Context(), r, trapMsg(boom{})); !errors.Is(err, ErrCrashed) {
				t.Fatal("asker got", err)
			}
			if waited := time.Since(before); waited > 0 {
				t.Fatal("asker waited", waited)
			}
			time.Sleep(time.Second)
		}
		if n, err := ask[int](t.Context(), r, trapMsg(answer{7})); n != 7 || err != nil {
			t.Fatal("after the crashes:", n, err)
		}
		if v := line(t, s.Board(), "trap/1"); v.Crashes != 50 || !strings.Contains(v.LastError, "boom") {
			t.Errorf("board shows %d crashes, last %q", v.Crashes, v.LastError)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "actor crashed and is restarted"); n != 50 {
			t.Errorf("log shows %d crashes", n)
		}
		if err := stopActor(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
}

func TestACrashLosesOnlyItsOwnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, nil)
		r := spawn(s, "trap", "1", "", func() behaviour[trapMsg] { return &trap{} })
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if i%3 == 0 {
					if _, err := ask[int](t.Context(), r, trapMsg(boom{})); !errors.Is(err, ErrCrashed) {
						t.Error(err)
					}
					return
				}
				if n, err := ask[int](t.Context(), r, trapMsg(answer{i})); n != i || err != nil {
					t.Error(i, n, err)
				}
			})
		}
		wg.Wait()
		stopActor(t.Context(), r)
	})
}

func TestAPanicInStartOrStopStaysInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, nil)
		r := spawn(s, "trap", "start", "", func() behaviour[trapMsg] { return &trap{onStart: func() { panic("in start") }} })
		if _, err := ask[int](t.Context(), r, trapMsg(answer{1})); !errors.Is(err, ErrCrashed) {
			t.Error("an actor that did not start answered", err)
		}
		if err := stopActor(t.Context(), r); err != nil {
			t.Error(err)
		}
		r = spawn(s, "trap", "stop", "", func() behaviour[trapMsg] { return &trap{onStop: func() { panic("in stop") }} })
		if _, err := ask[int](t.Context(), r, trapMsg(boom{})); !errors.Is(err, ErrCrashed) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if n, err := ask[int](t.Context(), r, trapMsg(answer{1})); n != 1 || err != nil {
			t.Error("after a crash whose stop crashed too:", n, err)
		}
		if err := stopActor(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
}

func TestAStopWithADeadlineAlwaysReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, nil)
		r := spawn(s, "trap", "1", "", func() behaviour[trapMsg] { return &trap{} })
		until := make(chan struct{})
		r.tell(stick{until})
		r.tell(answer{1})
		for range 3 { // a second stop is as good as the first
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			before := time.Now()
			if err := stopActor(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
				t.Error("stop of a stuck actor:", err)
			}
			if waited := time.Since(before); waited != 5*time.Second {
				t.Error("stop took", waited)
			}
			cancel()
		}
		v := line(t, s.Board(), "trap/1")
		if v.Doing != "stick" || v.For != 15*time.Second || v.Depth != 1 || v.Oldest != 15*time.Second {
			t.Errorf("a stuck actor looks like %+v", v)
		}
		close(until)
		if err := stopActor(t.Context(), r); err != nil {
			t.Error(err)
		}
		if err := stopActor(t.Context(), r); err != nil {
			t.Error("stop of a stopped actor:", err)
		}
	})
}

func TestAnActorThatIsGoneAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, nil)
		r := spawn(s, "trap", "1", "", func() behaviour[trapMsg] { return &trap{} })
		until := make(chan struct{})
		r.tell(stick{until})
		waiting := make(chan error, 1)
		go func() {
			time.Sleep(time.Second)
			r.engine.Stop(r.pid) // not gracefully: the mailbox is thrown away
			close(until)
		}()
		go func() {
			_, err := ask[int](t.Context(), r, trapMsg(answer{1}))
			waiting <- err
		}()
		if err := <-waiting; err != nil && !errors.Is(err, ErrGone) {
			t.Error("who waited when the actor went got", err)
		}
		before := time.Now()
		if _, err := ask[int](t.Context(), r, trapMsg(answer{1})); !errors.Is(err, ErrGone) || time.Since(before) > 0 {
			t.Error("who comes later got", err, "after", time.Since(before))
		}
	})
}

func TestAnAskHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, nil)
		r := spawn(s, "trap", "1", "", func() behaviour[trapMsg] { return &trap{} })
		until := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := ask[int](ctx, r, trapMsg(stick{until})); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(until)
		stopActor(t.Context(), r)
	})
}

func TestWorkTurnsAPanicIntoItsError(t *testing.T) {
	got := make(chan error)
	work(func() (int, error) { panic("boom") }, func(_ int, err error) { got <- err })
	if err := <-got; !errors.Is(err, ErrCrashed) || !strings.Contains(err.Error(), "boom") {
		t.Error(err)
	}
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func BenchmarkAsk(b *testing.B) {
	s, err := NewSystem(zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	r := spawn(s, "trap", "1", "", func() behaviour[trapMsg] { return &trap{} })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ask[int](b.Context(), r, trapMsg(answer{1})); err != nil {
			b.Fatal(err)
		}
	}
}
