package front

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// pipe is a listener with one connection.
type pipe struct{ net.Conn }

func (p pipe) Accept() (net.Conn, error) { return p.Conn, nil }
func (p pipe) Addr() net.Addr            { return p.LocalAddr() }

// TestDeadlinesOfConnections: what is noted holds, what is moved or cleared does not,
// and what is in the past acts at once, on both ends of a connection.
func TestDeadlinesOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		ln := pipe{there}
		c, err := newListener(ln, nil).Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		defer c.Close()
		read := func() (time.Duration, error) {
			began := time.Now()
			_, err := c.Read(make([]byte, 1))
			return time.Since(began), err
		}
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if took, err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || took < 5*time.Second || took > 5*time.Second+Late {
			t.Errorf("a deadline of 5 s: %v after %v", err, took)
		}
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		time.AfterFunc(4*time.Second, func() { c.SetReadDeadline(time.Now().Add(20 * time.Second)) })
		if took, err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || took < 24*time.Second || took > 24*time.Second+Late {
			t.Errorf("a deadline moved to 24 s: %v after %v", err, took)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Hour, func() { c.SetReadDeadline(time.Unix(1, 0)) })
		if took, err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || took != time.Hour {
			t.Errorf("a deadline taken back, and broken off after an hour: %v after %v", err, took)
		}
		c.SetDeadline(time.Time{})
		go here.Write([]byte("x"))
		if _, err := read(); err != nil {
			t.Errorf("after all of it: %v", err)
		}
		c.SetWriteDeadline(time.Now().Add(3 * time.Second))
		began := time.Now()
		if _, err := c.Write([]byte("nobody reads this")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 3*time.Second+Late {
			t.Errorf("a write that nobody takes: %v after %v", err, time.Since(began))
		}
	})
}
