package agent

import (
	"context"
	"sync"
	"time"
)

// standing is the standing stream of a session. A client that opens another one has
// lost this one, whether or not its connection is known to be gone: the new one takes
// over, so that each piece of news is told once, where it is heard.
type standing struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the SDK let go of it

	mu   sync.Mutex
	to   *tapped
	over bool
}

// stand makes room for a new standing stream: it ends the one before, and waits until
// that is gone; for farewell it may end in good order. It fails when in the meantime yet
// another took over, or ctx ended.
func (s *session) stand(ctx context.Context, farewell time.Duration) (_ context.Context, mine *standing, ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	mine = &standing{cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	before := s.standing
	s.standing = mine
	s.mu.Unlock()
	if before == nil {
		return ctx, mine, true
	}
	before.cancel()
	select {
	case <-before.done:
	case <-time.After(farewell): // it is in the midst of a write that nobody takes
		before.breakOff()
		<-before.done
	}
	return ctx, mine, ctx.Err() == nil
}

// leave says that the stream is gone.
func (s *session) leave(mine *standing) {
	mine.cancel()
	s.mu.Lock()
	if s.standing == mine {
		s.standing = nil
	}
	s.mu.Unlock()
	close(mine.done)
}

// through notes the way by which the stream goes out.
func (t *standing) through(to *tapped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to = to; t.over {
		to.breakOff()
	}
}

// breakOff ends the write that the stream is in, and all that would follow.
func (t *standing) breakOff() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.to != nil {
		t.to.breakOff()
	}
}

// breakOff lets no write wait any more.
func (t *tapped) breakOff() {
	t.deadline.Lock()
	defer t.deadline.Unlock()
	t.broken = true
	t.rc.SetWriteDeadline(time.Unix(1, 0)) // in the past
}

// arm bounds the next write.
func (t *tapped) arm() {
	t.deadline.Lock()
	defer t.deadline.Unlock()
	if !t.broken {
		t.rc.SetWriteDeadline(time.Now().Add(t.patience))
	}
}
