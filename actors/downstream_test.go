package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const oneServer = `
[servers.d]
command = "d"
connect_timeout = "2m"
call_timeout = "1m"
`

// Calls before the first connect wait for it, also when the tool was never listed.
func TestCallsWaitForTheFirstConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{connect: func(int) error { time.Sleep(3 * time.Second); return nil }}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		before := time.Now()
		got, err := r.call(t.Context(), "a", "d__echo", `{}`)
		if err != nil || got != text(10) {
			t.Fatal(got, err)
		}
		if waited := time.Since(before); waited != 3*time.Second {
			t.Error("waited", waited)
		}
	})
}

func TestWaitingForAConnectIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{connect: func(int) error { time.Sleep(4 * time.Second); return nil }}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := r.call(ctx, "a", "d__echo", `{}`); err == nil || !strings.Contains(err.Error(), "server d is still connecting") {
			t.Error(err)
		}
		r.ready("d")
		if n := r.Hub.View().Servers["d"].Handle.InFlight(); n != 0 {
			t.Error("the call that went away still holds a lease")
		}
	})
}

// Unknown, disabled, connecting and failed are four different messages.
func TestFourWaysOfNotBeingThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &fakeServer{connect: func(int) error { return errors.New("exit status 3: boom: config missing") }}
		slow := &fakeServer{connect: func(int) error { time.Sleep(4 * time.Second); return nil }}
		r := newRig(t, `
[servers.down]
command = "x"
[servers.slow]
command = "x"
[servers.off]
command = "x"
enabled = false
`, map[string]*fakeServer{"down": down, "slow": slow})
		time.Sleep(time.Second)
		for name, want := range map[string]string{
			"nope__x":  "unknown tool: nope__x",
			"off__x":   "server off is disabled in the configuration",
			"slow__x":  "server slow is still connecting",
			"down__x":  "exit status 3: boom: config missing; next try in ",
			"d__s__x_": "unknown tool: d__s__x_",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if _, err := r.call(ctx, "a", name, `{}`); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			cancel()
		}
		r.ready("slow")
	})
}

// TestC30BackoffKeepsSpawnsFew: a server that dies at start, and one that dies soon
// after, for ten minutes with calls every second.
func TestC30BackoffKeepsSpawnsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d1 := &fakeServer{connect: func(int) error { return errors.New("exit status 1") }}
		d2 := &fakeServer{}
		d2.connect = func(int) error {
			// A timer, and no goroutine that sleeps: the last of these lives when the test ends.
			time.AfterFunc(500*time.Millisecond, func() {
				if c := d2.last.Load(); c != nil {
					c.die(errors.New("exit status 0"))
				}
			})
			return nil
		}
		d3 := &fakeServer{connect: func(int) error { time.Sleep(8 * time.Second); return nil }}
		r := newRig(t, `
[servers.d1]
command = "x"
[servers.d2]
command = "x"
[servers.d3]
command = "x"
connect_timeout = "10s"
`, map[string]*fakeServer{"d1": d1, "d2": d2, "d3": d3})
		for range 600 {
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			before := time.Now()
			_, err := r.call(ctx, "a", "d1__echo", `{}`)
			if err == nil {
				t.Fatal("a dead server answered")
			}
			if r.Hub.View().Servers["d1"].State == BackingOff && time.Since(before) > 0 {
				t.Fatal("a call to a server that backs off took", time.Since(before))
			}
			r.call(ctx, "a", "d2__echo", `{}`)
			cancel()
		}
		for name, f := range map[string]*fakeServer{"d1": d1, "d2": d2} {
			if n := len(f.started()); n > 30 {
				t.Errorf("%s was started %d times in ten minutes", name, n)
			}
		}
		if n := len(d3.started()); n != 1 {
			t.Errorf("d3 was started %d times", n)
		}
		starts := d1.started()
		for i := 2; i < len(starts)-1; i++ {
			gap, next := starts[i].Sub(starts[i-1]), starts[i+1].Sub(starts[i])
			if next < gap*3/2 && next < maxBackoff {
				t.Errorf("backoff %d: %s then %s", i, gap, next)
			}
		}
	})
}

func TestBackoffIsForgottenOnlyAfterSustainedUptime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		back := func() time.Duration { // kills the server and says how long it stayed away
			r.ready("d")
			f.last.Load().die(errors.New("exit status 1"))
			before := time.Now()
			synctest.Wait()
			r.ready("d")
			return time.Since(before)
		}
		r.ready("d")
		time.Sleep(time.Minute)
		first := back()
		for range 5 {
			time.Sleep(sustained - time.Second)
			back()
		}
		time.Sleep(sustained - time.Second)
		if d := back(); d < 16*first {
			t.Error("after six short lives it was back in", d)
		}
		time.Sleep(sustained)
		if d := back(); d > 2*first {
			t.Error("after a sustained life it was back in", d)
		}
	})
}

// A dead server fails its waiting calls at once; nothing is repeated.
func TestC09ADeadServerFailsItsWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ran := 0
		f := &fakeServer{answer: func(ctx context.Context, _ string, _ []byte) (string, error) {
			mu.Lock()
			ran++
			mu.Unlock()
			<-ctx.Done()
			return "", ctx.Err()
		}}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		r.ready("d")
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := r.call(t.Context(), "a", "d__echo", `{}`)
				errs <- err
			}()
		}
		synctest.Wait()
		before := time.Now()
		f.last.Load().die(fmt.Errorf("exit status 3: boom: config missing"))
		for range 3 {
			if err := <-errs; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "boom: config missing") {
				t.Error(err)
			}
		}
		if d := time.Since(before); d > 0 {
			t.Error("calls waited", d)
		}
		time.Sleep(time.Minute)
		if ran != 3 {
			t.Error("the tool ran", ran, "times for 3 calls")
		}
		if n := r.Hub.View().Servers["d"].Handle.InFlight(); n != 0 {
			t.Error("calls left in flight:", n)
		}
	})
}

// One caller's deadline or cancel leaves the connection alone.
func TestACallersEndLeavesTheConnectionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: func(ctx context.Context, _ string, p []byte) (string, error) {
			if strings.Contains(string(p), "hang") {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return text(1), nil
		}}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		r.ready("d")
		before := time.Now()
		_, err := r.call(t.Context(), "a", "d__echo", `{"hang":1}`)
		if err == nil || !strings.Contains(err.Error(), "no answer within 1m0s (call_timeout of server d)") {
			t.Error(err)
		}
		if d := time.Since(before); d != time.Minute {
			t.Error("deadline after", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Second); cancel() }()
		if _, err := r.call(ctx, "a", "d__echo", `{"hang":1}`); err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Error(err)
		}
		if got, err := r.call(t.Context(), "b", "d__echo", `{}`); err != nil || got != text(1) {
			t.Error(got, err)
		}
		if n := len(f.started()); n != 1 {
			t.Error("the server was started", n, "times")
		}
	})
}

func TestRetireLetsCallsFinishAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: func(ctx context.Context, _ string, _ []byte) (string, error) {
			time.Sleep(3 * time.Second)
			return text(1), nil
		}}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		r.ready("d")
		got := make(chan error, 1)
		go func() {
			_, err := r.call(t.Context(), "a", "d__echo", `{}`)
			got <- err
		}()
		synctest.Wait()
		d := r.Hub.View().Servers["d"].Handle
		gone := make(chan time.Time, 1)
		go func() {
			if err := d.Retire(t.Context(), 8*time.Second, closeGrace); err != nil {
				t.Error(err)
			}
			gone <- time.Now()
		}()
		synctest.Wait()
		if _, err := r.call(t.Context(), "a", "d__echo", `{}`); !errors.Is(err, ErrNotReady) {
			t.Error("a call while draining:", err)
		}
		before := time.Now()
		if err := <-got; err != nil {
			t.Error("the call in flight:", err)
		}
		if at := <-gone; at.Sub(before) > 4*time.Second {
			t.Error("retired after", at.Sub(before))
		}
		if !f.last.Load().closed.Load() {
			t.Error("the connection was not closed")
		}
	})
}

func TestC15ListsAreReadToTheLastPage(t *testing.T) {
	for _, c := range []struct {
		name  string
		pages map[string]string
		want  int
		fault string
	}{
		{"two pages", map[string]string{`{}`: page(0, 8, `"8"`), `{"cursor":"8"}`: page(8, 6, "")}, 14, ""},
		{"a cursor that comes twice", map[string]string{`{}`: page(0, 3, `"x"`), `{"cursor":"x"}`: page(0, 3, `"x"`)}, 3, "came twice"},
		{"an empty cursor is the end", map[string]string{`{}`: page(0, 3, `""`)}, 3, ""},
		{"an error on page 2", map[string]string{`{}`: page(0, 3, `"2"`)}, 3, "page 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listTools(t.Context(), pagesConn(c.pages))
			if len(l.tools) != c.want {
				t.Errorf("%d tools, want %d", len(l.tools), c.want)
			}
			if (l.err != nil) != (c.fault != "") || l.err != nil && !strings.Contains(l.err.Error(), c.fault) {
				t.Errorf("fault %v, want %q", l.err, c.fault)
			}
		})
	}
}

func page(from, n int, next string) string {
	var b strings.Builder
	b.WriteString(`{"tools":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"t%d","inputSchema":{"type":"object"}}`, from+i)
	}
	b.WriteString(`]`)
	if next != "" {
		b.WriteString(`,"nextCursor":` + next)
	}
	return b.String() + `}`
}

// pagesConn answers tools/list by its params.
type pagesConn map[string]string

func (p pagesConn) Call(_ context.Context, r Request) (Answer, error) {
	if b, ok := p[string(r.Params[0])]; ok {
		return Answer{Result: HeldBody([]byte(b), nil)}, nil
	}
	return Answer{Error: []byte(`{"code":-32603,"message":"no such page"}`)}, nil
}
func (pagesConn) Info() ConnInfo              { return ConnInfo{} }
func (pagesConn) Done() <-chan struct{}       { return nil }
func (pagesConn) Err() error                  { return nil }
func (pagesConn) Close(context.Context) error { return nil }
func (pagesConn) Stderr() string              { return "" }

func TestEveryDeathOfAServerIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		const deaths = 5
		for range deaths {
			r.ready("d")
			f.last.Load().die(errors.New("exit status 1"))
			synctest.Wait()
		}
		if n := len(r.warned("exit status 1")); n != deaths {
			t.Errorf("%d lines, want %d", n, deaths)
		}
	})
}

func TestAFaultThatRepeatsIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRig(t, oneServer, map[string]*fakeServer{"d": {connect: func(int) error {
			if time.Since(began) < 10*time.Minute {
				return errors.New("exit status 1")
			}
			return errors.New("exit status 2")
		}}})
		time.Sleep(10 * time.Minute)
		lines := r.warned(`"server":"d"`)
		if n := len(lines); n < 8 || n > 12 {
			t.Errorf("%d lines in ten minutes:\n%s", n, strings.Join(lines, "\n"))
		}
		time.Sleep(2 * time.Minute) // another fault is told at once
		if all := r.warned("exit status 2"); len(all) == 0 {
			t.Error("the new fault was not told")
		}
	})
}

// TestC95AServerThatRefusesUsIsAProblemOfItsOwnAndIsTriedSeldom until its owner has helped.
func TestC95AServerThatRefusesUsIsAProblemOfItsOwnAndIsTriedSeldom(t *testing.T) {
	for headers, fix := range map[string]string{
		"": "mcphubd server login d",
		`headers = { authorization = "Bearer token-of-a-test" }`: "put a valid credential into headers of [servers.d]",
	} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Bool
			f := &fakeServer{tools: `[]`, connect: func(int) error {
				if open.Load() {
					return nil
				}
				return fmt.Errorf("initialize d: %w: HTTP 401", ErrSignIn)
			}}
			r := newRig(t, "[servers.d]\nurl = \"http://127.0.0.1:1/mcp\"\n"+headers+"\n", map[string]*fakeServer{"d": f})
			time.Sleep(time.Minute)
			synctest.Wait()
			problems := r.Sys.Problems().Read()
			if len(problems) != 1 || problems[0].Code != "server-unauthorized" || problems[0].Fix != fix || !strings.Contains(problems[0].Text, "HTTP 401") {
				t.Errorf("%+v", problems)
			}
			if n := len(f.started()); n < 2 || n > 15 {
				t.Errorf("it was tried %d times in a minute", n)
			}
			open.Store(true)
			time.Sleep(2 * maxBackoff)
			synctest.Wait()
			if problems := r.Sys.Problems().Read(); len(problems) > 0 {
				t.Errorf("when it lets us in: %+v", problems)
			}
		})
	}
}
