package agent

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// stream is a standing event stream of the SDK. What we have to say goes between its
// events, and a comment where nothing was said for a while, so that nothing on the way
// takes the connection for dead. Whoever has news never waits for the agent to read it.
type stream struct {
	t    *tapped
	beat time.Duration
	feed queue
	wake chan struct{}
	quit chan struct{}
	done chan struct{}
}

// stream begins one for an answer of the SDK, if it is one.
func (t *tapped) stream() *stream {
	if !strings.HasPrefix(t.Header().Get("Content-Type"), "text/event-stream") {
		return nil
	}
	h := t.Header()
	h["Cache-Control"], h["X-Accel-Buffering"] = noCache, noBuffer
	return &stream{t: t, beat: t.beat, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// say queues an event.
func (s *stream) say(event []byte) {
	s.feed.put(news{event, false})
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes what was said until end. A first comment lets the client see that the
// stream is there.
func (s *stream) run() {
	defer close(s.done)
	s.t.event([]byte(": open\n\n"))
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	for {
		select {
		case <-s.wake:
			for _, n := range s.feed.take() {
				s.t.event(n.event)
			}
		case <-beat.C:
			s.t.event([]byte(": still open\n\n"))
		case <-s.quit:
			return
		}
	}
}

func (s *stream) end() {
	close(s.quit)
	<-s.done
}

// news is an event on its way to an agent. What is vital is never left out.
type news struct {
	event []byte
	vital bool
}

const (
	// What waits for an agent that does not read, in events and in bytes.
	maxNews      = 64
	maxNewsBytes = 1 << 20
)

// queue keeps the latest news for an agent. The oldest give way.
type queue struct {
	mu    sync.Mutex
	all   []news
	bytes int
}

func (q *queue) put(n news) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.all) > 0 && (len(q.all) >= maxNews || q.bytes+len(n.event) > maxNewsBytes) && q.drop() {
	}
	q.all = append(q.all, n)
	q.bytes += len(n.event)
}

// drop leaves out the oldest that is not vital.
func (q *queue) drop() bool {
	for i, n := range q.all {
		if !n.vital {
			q.bytes -= len(n.event)
			q.all = append(q.all[:i:i], q.all[i+1:]...)
			return true
		}
	}
	return false
}

func (q *queue) take() []news {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all, q.bytes = nil, 0
	return all
}

// tapped is the way out of an SDK handler. It bounds how long one write may take,
// so that an absent reader of a stream holds nobody up for long.
type tapped struct {
	http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	beat     time.Duration // between signs of life on a stream
	seen     func(http.Header, int)
	begun    bool
	opened   func(*stream) // told of a stream before its first byte; may be nil
	live     *stream

	mu sync.Mutex // one event at a time

	deadline sync.Mutex
	broken   bool // no write may wait any more
}

func (t *tapped) WriteHeader(status int) {
	if !t.begun {
		t.begun = true
		if t.seen != nil {
			t.seen(t.Header(), status)
		}
		t.live = t.stream()
	}
	t.mu.Lock()
	t.ResponseWriter.WriteHeader(status)
	t.mu.Unlock()
	if t.live != nil {
		if t.opened != nil {
			t.opened(t.live)
		}
		go t.live.run()
	}
}

func (t *tapped) Write(p []byte) (int, error) {
	if !t.begun {
		t.WriteHeader(http.StatusOK)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arm()
	return t.ResponseWriter.Write(p)
}

// event writes one of ours.
func (t *tapped) event(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arm()
	if _, err := t.ResponseWriter.Write(b); err == nil {
		t.rc.Flush()
	}
}

// FlushError keeps the SDK's flushing out of our writes.
func (t *tapped) FlushError() error {
	if !t.begun {
		t.WriteHeader(http.StatusOK)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rc.Flush()
}

// end follows the return of the handler.
func (t *tapped) end() {
	if t.live != nil {
		t.live.end()
	}
	t.arm()
}

func (t *tapped) Unwrap() http.ResponseWriter { return t.ResponseWriter }
