package downstream

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// frame is one message on its way into the pipe. Its bytes belong to the sender,
// who takes the frame back with detach before it reuses them. The list of them is
// used up, and holds no empty ones.
type frame struct {
	bufs    [][]byte
	queued  bool // not all of it is written
	started bool // some of it is
}

// writer owns the stdin of a child. Frames go out whole, one after the other. All
// writing is done without blocking and under mu: by the sender while the pipe takes
// the bytes, by a pump that waits for the pipe when it does not. The queue needs no
// bound of its own: apart from short control messages, each frame in it belongs to
// a caller that still waits, and its bytes to that caller.
type writer struct {
	f     *os.File
	fd    int // of f; used under mu while err is nil
	raw   syscall.RawConn
	stall time.Duration
	life  func() time.Time // when the child was last seen to do something
	dead  func(error)      // told once, in a goroutine of its own, when the pipe is of no more use

	mu      sync.Mutex
	queue   []*frame
	room    [8]*frame // what a short queue is made of
	pumping bool
	sent    atomic.Int64 // frames that are written
	since   time.Time    // when the pipe last took bytes; only while pumping
	err     error
}

// errClosed is what writing fails with once the connection is being closed.
var errClosed = errors.New("stdin is closed")

func newWriter(f *os.File, stall time.Duration) (*writer, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &writer{f: f, raw: raw, stall: stall}
	err = raw.Control(func(fd uintptr) { w.fd = int(fd) })
	return w, err
}

// send writes fr, or leaves the rest of it to the pump. It never waits for the child.
func (w *writer) send(fr *frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	fr.queued = true
	w.queue = append(w.queue, fr)
	if w.pumping {
		return nil
	}
	w.flush()
	if w.err != nil {
		return w.err
	}
	if len(w.queue) > 0 {
		w.pumping, w.since = true, time.Now()
		go w.pump()
	}
	return nil
}

// detach takes fr back from its sender and reports whether any of it was written. What
// was begun must still be finished, for the sake of the next message: the rest is copied.
func (w *writer) detach(fr *frame) (sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !fr.queued {
		return fr.started
	}
	at := slices.Index(w.queue, fr)
	fr.queued = false
	switch {
	case at < 0:
	case fr.started:
		w.queue[at] = &frame{bufs: [][]byte{slices.Concat(fr.bufs...)}, queued: true, started: true}
	default:
		w.queue = slices.Delete(w.queue, at, at+1)
	}
	return fr.started
}

// flush writes frames until the pipe is full, and reports whether it took any bytes.
func (w *writer) flush() (progress bool) {
	for len(w.queue) > 0 {
		n, err := w.write()
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return progress
		case err != nil:
			w.fail(fmt.Errorf("write to its stdin: %w", err))
			return progress
		default:
			progress = true
			w.wrote(n)
		}
	}
	return progress
}

// write tries to write what is queued in one system call.
func (w *writer) write() (int, error) {
	head := w.queue[0]
	if len(w.queue) == 1 && len(head.bufs) == 1 {
		return unix.Write(w.fd, head.bufs[0])
	}
	var iov [64][]byte
	all := iov[:0]
	for _, fr := range w.queue {
		if len(all)+len(fr.bufs) > len(iov) && len(all) > 0 {
			break
		}
		all = append(all, fr.bufs[:min(len(fr.bufs), len(iov))]...)
		if len(fr.bufs) > len(iov) {
			break
		}
	}
	return unix.Writev(w.fd, all)
}

// wrote takes n written bytes off the queue.
func (w *writer) wrote(n int) {
	for n > 0 {
		fr := w.queue[0]
		fr.started = true
		for n > 0 && len(fr.bufs) > 0 {
			if k := len(fr.bufs[0]); n >= k {
				n -= k
				fr.bufs = fr.bufs[1:]
			} else {
				fr.bufs[0] = fr.bufs[0][n:]
				n = 0
			}
		}
		if len(fr.bufs) > 0 {
			return
		}
		fr.queued = false
		w.sent.Add(1)
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
	if len(w.queue) == 0 {
		w.queue = w.room[:0]
	}
}

// pump writes what is queued whenever the pipe has room again.
func (w *writer) pump() {
	for {
		_ = w.f.SetWriteDeadline(w.patience())
		empty := false
		err := w.raw.Write(func(uintptr) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			progress := w.err == nil && w.flush()
			if progress {
				w.since = time.Now()
			}
			empty = w.err != nil || len(w.queue) == 0
			w.pumping = !empty
			return empty || progress // after progress the deadline is set anew
		})
		switch {
		case empty:
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			if time.Now().Before(w.patience()) {
				continue
			}
			err = fmt.Errorf("it has read nothing from its stdin for %v", w.stall)
		case err == nil:
			continue
		}
		w.mu.Lock()
		w.fail(err)
		w.mu.Unlock()
		return
	}
}

// patience is until when a child that reads nothing is left alone: one that still
// writes is only busy.
func (w *writer) patience() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if life := w.life(); life.After(w.since) {
		return life.Add(w.stall)
	}
	return w.since.Add(w.stall)
}

// fail ends all writing; mu is held.
func (w *writer) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	w.pumping = false
	for _, fr := range w.queue {
		fr.queued = false
	}
	w.queue = nil
	if err != errClosed {
		go w.dead(err)
	}
}

// close gives the child the end of its stdin.
func (w *writer) close() {
	w.mu.Lock()
	w.fail(errClosed)
	w.mu.Unlock()
	w.f.Close() // not under mu: it waits for the pump to let go of the file
}
