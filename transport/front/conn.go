package front

import (
	"context"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Late is how late a deadline of a connection may be noticed.
const Late = time.Second

// listener makes the deadlines of l's connections cheap: a request sets and clears half
// a dozen of them, of which hardly one ever comes, and the runtime's timers for them
// cost more than a small call may. Setting one only notes it; one goroutine looks at
// all connections now and then, so a deadline is kept up to a second late. A deadline
// in the past, which is how a read or write is broken off, acts at once.
type listener struct {
	net.Listener
	s     *Server
	began time.Time // what deadlines are counted from

	mu    sync.Mutex
	conns map[*conn]struct{}
	last  chan struct{} // closed with the last connection; closed while there is none
}

func newListener(l net.Listener, s *Server) *listener {
	own := &listener{Listener: l, s: s, began: time.Now(), conns: map[*conn]struct{}{}, last: make(chan struct{})}
	close(own.last)
	return own
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	own := &conn{Conn: c, l: l}
	if s, ok := c.(syscall.Conn); ok {
		own.raw, err = s.SyscallConn()
		own.lane.open = err == nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) == 0 {
		l.last = make(chan struct{})
		go l.sweep(l.last)
	}
	l.conns[own] = struct{}{}
	return own, nil
}

// forget drops a connection, and ends the sweep with the last one.
func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.conns[c]; !ok {
		return
	}
	delete(l.conns, c)
	if len(l.conns) == 0 {
		close(l.last)
	}
}

// empty is closed once there are no connections.
func (l *listener) empty() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// sweep ends what is over, for as long as there are connections.
func (l *listener) sweep(last <-chan struct{}) {
	tick := time.NewTicker(Late)
	defer tick.Stop()
	for {
		select {
		case <-last:
			return
		case <-tick.C:
		}
		now := int64(time.Since(l.began))
		for _, c := range l.all() {
			c.read.expire(now, c.Conn.SetReadDeadline)
			c.write.expire(now, c.Conn.SetWriteDeadline)
		}
	}
}

func (l *listener) all() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
}

// conn is a connection of an agent.
type conn struct {
	net.Conn
	l           *listener
	ctx         context.Context // what the contexts of requests in the lane come from
	raw         syscall.RawConn // nil where there is none: such a connection has no lane
	read, write deadline        // kept by the sweep of its listener
	lane        lane

	mu    sync.Mutex
	busy  bool // a request in the lane is under way
	ended bool // to be closed once it is not
}

// begin reports whether a request may begin in the lane. Until end, Close waits for it.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.ended
	return c.busy
}

func (c *conn) end() {
	c.mu.Lock()
	c.busy = false
	ended := c.ended
	c.mu.Unlock()
	if ended {
		_ = c.cut() // the answer is written
	}
}

// ending reports whether the connection is closed after the request under way.
func (c *conn) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Close closes the connection, after the answer to a request in the lane: net/http does
// not know of that, and takes the connection for idle.
func (c *conn) Close() error {
	c.mu.Lock()
	c.ended = true
	busy := c.busy
	c.mu.Unlock()
	if busy {
		return nil
	}
	return c.cut()
}

// cut closes the connection at once.
func (c *conn) cut() error {
	c.l.forget(c)
	return c.Conn.Close()
}

// gone waits until the client is gone, or for the deadline of reads. What the client sends
// meanwhile stays where it is.
func (c *conn) gone() error {
	var cause error
	err := c.raw.Read(func(fd uintptr) bool {
		cause = ended(fd)
		return cause != nil // else until something happens
	})
	if err != nil {
		return err
	}
	return cause
}

// there reports whether the client is not known to be gone.
func (c *conn) there() bool {
	var cause error
	err := c.raw.Control(func(fd uintptr) { cause = ended(fd) })
	return err == nil && cause == nil
}

// ended is why nothing more comes from a socket; nil as long as something may.
func ended(fd uintptr) error {
	var b [1]byte
	switch n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); {
	case n > 0 || err == unix.EAGAIN || err == unix.EINTR:
		return nil
	case err != nil:
		return os.NewSyscallError("recvfrom", err)
	}
	return io.EOF
}
