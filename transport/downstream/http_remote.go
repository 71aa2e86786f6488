package downstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mcphubd/actors"
)

// Remote is a server over streamable HTTP. A call is a POST of its own, so nothing that
// happens to one touches another. The session behind them may be lost and is then made
// anew, once for all calls that were refused for it. The connection as a whole is lost
// when that fails, when nobody listens at the address any more, or when maxStrikes calls
// in a row found the server out of order; calls that are under way then still end by
// themselves.
type Remote struct {
	h       *HTTP
	link    *link
	events  actors.Events
	noise   *noise
	session atomic.Pointer[session]

	mu       sync.Mutex
	renewing *renewal // nil when nobody makes a new session
	strikes  int
	err      error
	done     chan struct{}
}

const maxStrikes = 3

// renewal is a new session in the making.
type renewal struct {
	done chan struct{}
	s    *session
	err  error
}

// Call sends req and waits for its answer.
func (r *Remote) Call(ctx context.Context, req actors.Request) (actors.Answer, error) {
	s, a, err := r.try(ctx, req)
	if f := faultOf(err); f != nil && f.gone {
		if _, e := r.renew(ctx, s); e != nil {
			return actors.Answer{}, fmt.Errorf("%w; before that: %w", e, err)
		}
		if s, a, err = r.try(ctx, req); faultOf(err) != nil && faultOf(err).gone {
			again := faultOf(err)
			again.text = "it refuses the session that it has just given: " + again.text
			again.strike = true
		}
	}
	r.judge(err)
	if err == nil && a.Result != nil && req.Method == "tools/list" && s.modern() {
		var b bytes.Buffer
		if _, e := a.Result.WriteTo(&b); e == nil {
			s.learn(b.Bytes())
		}
	}
	return a, err
}

// try sends req once, in the session of the moment.
func (r *Remote) try(ctx context.Context, req actors.Request) (*session, actors.Answer, error) {
	for {
		switch {
		case ctx.Err() != nil:
			return nil, actors.Answer{}, context.Cause(ctx)
		case r.Err() != nil:
			return nil, actors.Answer{}, fmt.Errorf("%w; %w", r.Err(), actors.ErrNotSent)
		}
		s := r.session.Load()
		if a, err := s.call(ctx, req); err != errRetired {
			return s, a, err
		}
	}
}

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	var f *fault
	errors.As(err, &f)
	return f
}

// judge counts failures of the server in a row. An answer proves that it is there; a call
// that its caller gave up says nothing.
func (r *Remote) judge(err error) {
	f := faultOf(err)
	if err != nil && f == nil {
		return
	}
	r.mu.Lock()
	out := false
	switch {
	case f != nil && f.down:
		out = true
	case f != nil && f.strike:
		r.strikes++
		out = r.strikes >= maxStrikes
	default:
		r.strikes = 0
	}
	r.mu.Unlock()
	if out {
		if f.era {
			r.h.era.Store(nil)
		}
		r.lose(lostFor(r.h.Server.Name, f.cause()))
	}
}

// renew returns a session that is not old, which the server has lost. Whoever comes first
// has it made; all get the same.
func (r *Remote) renew(ctx context.Context, old *session) (*session, error) {
	r.mu.Lock()
	if s := r.session.Load(); s != old {
		r.mu.Unlock()
		return s, nil
	}
	w := r.renewing
	if w == nil {
		w = &renewal{done: make(chan struct{})}
		r.renewing = w
		go r.make(w, old)
	}
	r.mu.Unlock()
	select {
	case <-w.done:
		return w.s, w.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *Remote) make(w *renewal, old *session) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), orElse(r.h.Server.ConnectTimeout, 30*time.Second),
		fmt.Errorf("no answer within %s (connect_timeout)", r.h.Server.ConnectTimeout))
	defer cancel()
	go func() { // a connection that is closed needs no session
		select {
		case <-r.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	s, err := r.h.handshake(ctx, r.link, r.noise, r.events)
	if err != nil {
		err = lostFor(r.h.Server.Name, fmt.Errorf("it has lost the session, and gives no new one: %w", err))
	}
	r.mu.Lock()
	r.renewing = nil
	switch {
	case err == nil && r.err != nil:
		err = r.err
		defer s.retire(true)
	case err == nil:
		r.session.Store(s)
		w.s = s
	}
	r.mu.Unlock()
	w.err = err
	if err != nil {
		r.lose(err)
	}
	old.retire(false)
	if err == nil {
		const lost = "lost its session; a new one was made, and what the server kept in the old one is gone"
		s.log.Warn().Msg("the server " + lost)
		if r.events.Log != nil {
			r.events.Log([]byte(`{"level":"warning","logger":"mcphubd","data":` + quote("server "+r.h.Server.Name+" "+lost) + `}`))
		}
		if r.events.Renewed != nil {
			r.events.Renewed()
		}
	}
	close(w.done)
}

// lose declares the connection dead. Calls under way may still end well.
func (r *Remote) lose(err error) (first bool) {
	r.mu.Lock()
	if first = r.err == nil; first {
		r.err = err
	}
	r.mu.Unlock()
	if first {
		close(r.done)
	}
	return first
}

// Info says what the newest handshake found.
func (r *Remote) Info() actors.ConnInfo { return r.session.Load().info }

// Done is closed when the connection is dead.
func (r *Remote) Done() <-chan struct{} { return r.done }

// Err says why, once it is.
func (r *Remote) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stderr is empty: that of a server elsewhere is not seen.
func (r *Remote) Stderr() string { return "" }

// Standing says how the stream is on which the server speaks unasked.
func (r *Remote) Standing() string {
	s := r.session.Load()
	s.state.Lock()
	defer s.state.Unlock()
	return s.standing
}

// Noise and Unwanted are those of the newest session.
func (r *Remote) Noise() (count int64, samples []string) { return r.session.Load().Noise() }

func (r *Remote) Unwanted() int64 { return r.session.Load().Unwanted() }

// Close ends the session. Calls in flight fail at once, unless the connection was lost
// before: then they are left to end.
func (r *Remote) Close(ctx context.Context) error {
	first := r.lose(lost(r.h.Server.Name, errStopped.Error()))
	s := r.session.Load()
	if first {
		s.shut(r.Err())
		s.goodbye(ctx)
		s.stop(r.Err())
	} else {
		go s.retire(true)
	}
	r.link.close()
	return nil
}
