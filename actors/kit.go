package actors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/anthdm/hollywood/actor"
)

var (
	// ErrGone reports that the actor asked no longer exists.
	ErrGone = errors.New("actor is gone")
	// ErrCrashed reports that the actor panicked while it served the request.
	ErrCrashed = errors.New("actor crashed")
)

// A behaviour is what an actor's file implements; the kit does the rest.
type behaviour[M any] interface {
	// start sets fields and begins work. It never waits and never dials.
	start(self ref[M])
	// handle serves one message. Only a message that was asked has an asker that
	// listens; answering any other is harmless.
	handle(from asker, m M)
	// stop releases. It follows a crash as well as a stop, and may run twice.
	stop()
}

// A ref addresses one actor and fixes, at compile time, what may be said to it.
type ref[M any] struct {
	engine *actor.Engine
	pid    *actor.PID
	line   *vitals
}

// spawn starts an actor under the house rules: a crash restarts it for ever, a
// crash is never an exit, whoever waited for the crashed message hears of it at
// once. make builds a fresh behaviour for the start and for every restart.
func spawn[M any](s *System, kind, id, parent string, make func() behaviour[M]) ref[M] {
	r := ref[M]{s.engine, actor.NewPID(s.engine.Address(), kind+"/"+id), newVitals(kind, id, parent)}
	s.board.add(r.line)
	labels := pprof.WithLabels(context.Background(), pprof.Labels("actor", r.line.id))
	s.engine.Spawn(func() actor.Receiver { return &guard[M]{board: s.board, self: r, inner: make(), labels: labels} }, kind,
		actor.WithID(id),
		actor.WithMaxRestarts(math.MaxInt32), // to exceed it would end the process
		actor.WithRestartDelay(10*time.Millisecond),
		actor.WithInboxSize(64)) // a first capacity: mailboxes grow
	return r
}

// tell sends m and does not wait.
func (r ref[M]) tell(m M) { r.send(letter[M]{msg: m}) }

func (r ref[M]) send(l letter[M]) {
	r.line.posted()
	r.engine.Send(r.pid, l)
}

// ask sends m and waits for its one answer, or for ctx. It may only be called
// outside mailboxes: an actor that asks can deadlock with the one it asks.
func ask[R, M any](ctx context.Context, to ref[M], m M) (R, error) {
	return post[R](to, m).wait(ctx)
}

// post sends m; whoever asks so waits for the answer later.
func post[R, M any](to ref[M], m M) reply[R] {
	r := reply[R]{to: to.line}
	select {
	case <-to.line.gone:
	default:
		r.from = asker{make(chan outcome, 1)}
		to.send(letter[M]{m, r.from})
	}
	return r
}

// A reply is the answer to come of one message. It is waited for once.
type reply[R any] struct {
	from asker
	to   *vitals
}

func (r reply[R]) wait(ctx context.Context) (R, error) {
	var zero R
	select {
	case out := <-r.from.out:
		return unwrap[R](out)
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-r.to.gone:
	}
	select {
	case out := <-r.from.out: // answered with its last breath
		return unwrap[R](out)
	default:
		return zero, fmt.Errorf("%s: %w", r.to.id, ErrGone)
	}
}

// here reports whether to wait would not take time.
func (r reply[R]) here() bool {
	select {
	case <-r.to.gone:
		return true
	default:
		return len(r.from.out) > 0
	}
}

func unwrap[R any](out outcome) (R, error) {
	v, ok := out.value.(R)
	if !ok && out.err == nil {
		return v, fmt.Errorf("answered with %T, want %T", out.value, v)
	}
	return v, out.err
}

// stopActor ends an actor after the messages already in its mailbox, and returns
// when it is gone or ctx is over, also when the actor is stuck.
func stopActor[M any](ctx context.Context, r ref[M]) error {
	r.engine.Poison(r.pid)
	select {
	case <-r.line.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", r.line.id, context.Cause(ctx))
	}
}

// A letter is how a message travels: with whoever waits for its answer.
type letter[M any] struct {
	msg  M
	from asker
}

// undeliverable is told to a letter that reached nobody.
func (l letter[M]) undeliverable() { l.from.answer(nil, ErrGone) }

// An asker is whoever waits for the current message's answer.
type asker struct{ out chan outcome }

type outcome struct {
	value any
	err   error
}

// answer gives the one answer; later ones are dropped.
func (a asker) answer(v any, err error) {
	if a.out == nil {
		return
	}
	select {
	case a.out <- outcome{v, err}:
	default:
	}
}

// guard stands between the engine and a behaviour: it keeps the vitals, answers
// for a crashed handler, and lets no panic past that would end the process.
type guard[M any] struct {
	board  *Board
	self   ref[M]
	inner  behaviour[M]
	labels context.Context // mark the goroutine in profiles
	broken bool            // start panicked: nothing may be handled
}

// Receive implements actor.Receiver.
func (g *guard[M]) Receive(c *actor.Context) {
	pprof.SetGoroutineLabels(g.labels) // the engine's goroutine serves whoever has mail
	switch m := c.Message().(type) {
	case actor.Started:
		g.broken = g.protect("start", func() { g.inner.start(g.self) })
	case letter[M]:
		g.handle(m)
	case actor.Stopped:
		g.protect("stop", g.inner.stop)
		// After a crash the engine sends Stopped too, and Started again later; only
		// an actor that left the registry is gone.
		if c.Engine().Registry.GetPID(g.self.line.kind, g.self.line.name) == nil {
			g.board.remove(g.self.line)
		}
	default:
		if e, ok := g.inner.(interface{ event(*actor.Context) }); ok {
			g.protect("event", func() { e.event(c) })
		}
	}
}

func (g *guard[M]) handle(l letter[M]) {
	g.self.line.begin(l.msg)
	defer g.self.line.end()
	if g.broken {
		l.from.answer(nil, ErrCrashed)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			g.board.crashed(g.self.line, p, debug.Stack())
			l.from.answer(nil, fmt.Errorf("%s: %w: %v", g.self.line.id, ErrCrashed, p))
			panic(p) // the engine restarts the actor
		}
	}()
	g.inner.handle(l.from, l.msg)
}

// protect runs f and keeps its panic in; it reports whether there was one.
func (g *guard[M]) protect(what string, f func()) (panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			g.board.crashed(g.self.line, fmt.Sprintf("%s: %v", what, p), debug.Stack())
			panicked = true
		}
	}()
	f()
	return false
}

// work runs f outside every mailbox and hands its outcome to done, which tells
// it to an actor as a fact. A panic in f becomes its error.
func work[R any](f func() (R, error), done func(R, error)) {
	go func() {
		var v R
		err := fmt.Errorf("work: %w", ErrCrashed)
		defer func() { done(v, err) }()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %v", ErrCrashed, p)
			}
		}()
		v, err = f()
	}()
}

// after tells m to self once, after d.
func after[M any](self ref[M], d time.Duration, m M) *time.Timer {
	return time.AfterFunc(d, func() { self.tell(m) })
}
