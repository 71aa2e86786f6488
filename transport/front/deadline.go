package front

import (
	"sync"
	"sync/atomic"
	"time"
)

func (c *conn) SetReadDeadline(t time.Time) error {
	if c.read.note(t, c.l.began) {
		return nil
	}
	return c.read.act(c.Conn.SetReadDeadline)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	if c.write.note(t, c.l.began) {
		return nil
	}
	return c.write.act(c.Conn.SetWriteDeadline)
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// deadline is one direction's. at counts from the listener's beginning: 0 = none, less
// = it is over.
type deadline struct {
	at atomic.Int64

	mu    sync.Mutex
	acted atomic.Bool // the connection itself has a deadline, in the past
}

var past = time.Unix(1, 0)

// note takes a deadline down and reports whether that is all there is to do.
func (d *deadline) note(t, began time.Time) bool {
	at := int64(0)
	if !t.IsZero() {
		if at = int64(t.Sub(began)); at <= 0 {
			at = -1
		}
	}
	d.at.Store(at)
	return at >= 0 && !d.acted.Load()
}

// act brings the connection to what was noted.
func (d *deadline) act(set func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	over := d.at.Load() < 0
	d.acted.Store(over)
	if over {
		return set(past)
	}
	return set(time.Time{})
}

// expire acts when the deadline has come. It says so first, and looks again then: who
// notes a new deadline meanwhile either is seen, or sees that there is something to undo.
func (d *deadline) expire(now int64, set func(time.Time) error) {
	if at := d.at.Load(); at <= 0 || at > now {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.acted.Load() {
		return
	}
	d.acted.Store(true)
	if at := d.at.Load(); at <= 0 || at > now {
		d.acted.Store(false)
		return
	}
	_ = set(past) // it fails only on a connection that is closed
}
