package debug

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	// feedEvery is the least time between two events.
	feedEvery = 500 * time.Millisecond
	// feedWrite is how long one event may take to be taken.
	feedWrite = 10 * time.Second
)

// feed sends the state to whoever looks. One goroutine takes and encodes it for all
// of them, and it runs only while there is one. Whoever is slow misses states, and
// never holds up others.
type feed struct {
	state  func() any
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	watchers map[chan []byte]struct{}
	running  bool
}

func (f *feed) close() { f.once.Do(func() { close(f.closed) }) }

func (f *feed) serve(w http.ResponseWriter, r *http.Request) {
	mine := f.enter()
	defer f.leave(mine)
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	for {
		select {
		case b := <-mine:
			c.SetWriteDeadline(time.Now().Add(feedWrite))
			if _, err := w.Write(b); err != nil || c.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-f.closed:
			return
		}
	}
}

func (f *feed) enter() chan []byte {
	mine := make(chan []byte, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers == nil {
		f.watchers = map[chan []byte]struct{}{}
	}
	f.watchers[mine] = struct{}{}
	if !f.running {
		f.running = true
		go f.run()
	}
	return mine
}

func (f *feed) leave(mine chan []byte) {
	f.mu.Lock()
	delete(f.watchers, mine)
	f.mu.Unlock()
}

// run sends until nobody looks.
func (f *feed) run() {
	for f.watched() {
		f.send()
		select {
		case <-time.After(feedEvery):
		case <-f.closed:
			return
		}
	}
}

// watched reports whether anybody looks. Once it said no, the next who comes starts a
// new run.
func (f *feed) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = len(f.watchers) > 0
	return f.running
}

// send gives the state to all.
func (f *feed) send() {
	b, err := json.Marshal(f.state())
	if err != nil {
		b = []byte("{}")
	}
	event := append(append([]byte("event: state\ndata: "), b...), "\n\n"...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		select {
		case <-w: // what it did not take is old now
		default:
		}
		w <- event // it has room, and nobody else fills it
	}
}
