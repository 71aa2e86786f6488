package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrNotReady is wrapped by every refusal of a server that is not up.
var ErrNotReady = errors.New("server is not ready")

// Downstream is one server behind the gateway.
type Downstream struct {
	ref[downstreamMsg]
	name string
	desk *atomic.Pointer[counter] // published while the server is ready
	subs *subscriptions
}

// lease returns the live connection for one call, and what ends the lease. While
// the server is ready that costs no message: its connection is published. Else the
// actor is asked, and while it connects the call waits, at most until ctx is over.
func (d Downstream) lease(ctx context.Context) (Conn, func(), error) {
	c, err := d.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.conn, c.leave, nil
}

// enter is lease for who wants to know more of the connection than what it can do.
func (d Downstream) enter(ctx context.Context) (*counter, error) {
	if c := d.desk.Load(); c.enter() {
		return c, nil
	}
	c, err := ask[*counter, downstreamMsg](ctx, d.ref, lease{})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("server %s is still connecting: %w", d.name, context.Cause(ctx))
	case err != nil:
		return nil, err
	case !c.enter():
		return nil, fmt.Errorf("server %s: %w: it is being stopped", d.name, ErrNotReady)
	}
	return c, nil
}

// InFlight is the number of calls that hold a lease.
func (d Downstream) InFlight() int64 {
	if d.desk == nil {
		return 0
	}
	if c := d.desk.Load(); c != nil {
		return c.calls.Load()
	}
	return 0
}

// counter is where calls take and give back their leases of one connection, without
// a message. Once it is shut nobody enters, and the last who leaves says so.
type counter struct {
	conn   Conn
	starts int // how often the server was started for it
	calls  atomic.Int64
	shut   atomic.Bool
	empty  func() // tells the actor that the last call left after the counter was shut
}

func (c *counter) enter() bool {
	if c == nil {
		return false
	}
	c.calls.Add(1)
	if c.shut.Load() {
		c.leave()
		return false
	}
	return true
}

func (c *counter) leave() {
	if c.calls.Add(-1) == 0 && c.shut.Load() {
		c.empty()
	}
}

// Retire refuses new calls, waits for those in flight for at most grace, ends the
// server, which may take closing to go by itself, and returns when it is gone.
func (d Downstream) Retire(ctx context.Context, grace, closing time.Duration) error {
	_, err := ask[struct{}, downstreamMsg](ctx, d.ref, retire{grace, closing})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
