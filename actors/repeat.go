package actors

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// comeback is how long a call waits for its server to come back, before it is made again.
const comeback = 10 * time.Second

// carry takes the call to the server and brings the answer. When the connection dies on
// the way, the call is made once more, if that can do no harm (case C08): it is proven
// that nothing was sent, or the tool is marked as read-only or idempotent. Where the
// server has asked something in between it is not. release ends the lease, and is never nil.
func (w *walk) carry(ctx context.Context) (answer Answer, release func(), err error) {
	c, err := w.ticket.server.enter(ctx)
	if err != nil {
		return Answer{}, func() {}, err
	}
	w.heedQuestions()
	answer, err = w.converse(ctx, c.conn, w.request())
	if err == nil || ctx.Err() != nil || !w.harmless(err) {
		return answer, c.leave, err
	}
	c.leave()
	conn, release, e := w.leaseNext(ctx, c.conn, c.starts)
	if e != nil {
		return Answer{}, func() {}, fmt.Errorf("%w; it did not come back to be called again: %w", err, e)
	}
	w.hub.sys.log.Info().Str("agent", w.agent).Str("server", w.row.Server).Str("tool", w.row.Tool).AnErr("cause", err).Msg("call repeated")
	if answer, err = w.converse(ctx, conn, w.request()); err != nil {
		err = fmt.Errorf("in the second attempt, after a connection that was lost: %w", err)
	}
	return answer, release, err
}

// harmless reports whether a call that ended with err may be made again.
func (w *walk) harmless(err error) bool {
	return !w.asked.Load() && (errors.Is(err, ErrNotSent) || errors.Is(err, ErrLost) && w.marked())
}

// marked reports whether the tool says of itself that calling it twice does no harm.
func (w *walk) marked() bool { return w.ticket.entry.ReadOnly || w.ticket.entry.Idempotent }

// heedQuestions notes whether the agent is asked something during the call: a user who
// has answered once should not have to a second time.
func (w *walk) heedQuestions() {
	ask := w.call.Ask
	if ask == nil || !w.marked() {
		return
	}
	w.call.Ask = func(ctx context.Context, method string, params []byte) ([]byte, error) {
		w.asked.Store(true)
		return ask(ctx, method, params)
	}
}

// leaseNext returns the connection that follows old: the same if it lives on, else that
// of the next connect. It does not wait for a second one.
func (w *walk) leaseNext(ctx context.Context, old Conn, starts int) (Conn, func(), error) {
	if old.Err() == nil {
		return w.ticket.server.lease(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, comeback, fmt.Errorf("not within %s", comeback))
	defer cancel()
	if _, err := w.hub.await(ctx, func(v *View) bool { return w.follows(v, old, starts) }); err != nil {
		return nil, nil, err
	}
	return w.ticket.server.lease(ctx)
}

// factsIn is what v says of the server of the call; there is none when another one took its
// place.
func (w *walk) factsIn(v *View) (ServerFacts, bool) {
	if w.instance != (owner{}) {
		i, ok := v.instances[w.instance]
		return i.ServerFacts, ok && i.handle.desk == w.ticket.server.desk
	}
	s, ok := v.Servers[w.row.Server]
	return s.ServerFacts, ok && s.Handle.desk == w.ticket.server.desk
}

// follows reports whether the server is on its way to a connection after old, which took
// that many starts, has one, or will get none.
func (w *walk) follows(v *View, old Conn, starts int) bool {
	s, ok := w.factsIn(v)
	if !ok || v.Stopping {
		return true
	}
	switch s.State {
	case Ready:
		c := w.ticket.server.desk.Load()
		return c != nil && c.conn != old
	case Connecting, BackingOff:
		return s.Starts > starts // it tries, or has tried; else the View is from before
	case Draining, Stopped:
	}
	return true
}
