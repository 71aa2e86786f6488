package agent

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{"text/event-stream"}
	noCache    = []string{"no-cache, no-transform"}
	noBuffer   = []string{"no"} // a proxy is to pass events on at once
)

// exchange is the way back to one request. It ends in one JSON body, unless there was
// something to say before: then it became an event stream, and the answer is its last
// event.
type exchange struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	pace   pace
	id     []byte
	modern bool
	lacks  string // members that a result gets which was not made for 2026-07-28
	token  []byte // the agent's progress token, as sent
	level  logLevel
	keep   func() // of the reply that is sent

	run      running // of a call that belongs to a session
	silences *actors.Line
	silence  actors.Turn
	feed     feed
}

func (v visit) exchange(id []byte, modern bool) *exchange {
	return &exchange{w: v.w, rc: http.NewResponseController(v.w), pace: v.s.pace, id: id, modern: modern, lacks: resultType, silences: &v.s.silence}
}

// feed is what is to be said before the answer. Whoever has news never waits for the
// agent to read it: the oldest news gives way.
type feed struct {
	mu      sync.Mutex
	queue   queue
	running bool // a goroutine writes to the agent
	ended   bool
	wake    chan struct{}
	quit    chan struct{}
	done    chan struct{}
}

// expect makes a stream of the exchange when the answer takes long after came, so that
// nothing on the way takes the connection for dead.
func (x *exchange) expect(came time.Time) { x.silences.Join(&x.silence, x, came) }

// Due begins the stream.
func (x *exchange) Due() { x.say(nil) }

// progress passes a progress notification on under the agent's own token.
func (x *exchange) progress(params []byte, token actors.Range) {
	const head = `{"jsonrpc":"2.0","method":"notifications/progress","params":`
	b := make([]byte, 0, len(eventHead)+len(head)+len(params)+len(x.token)+8)
	b = append(append(b, eventHead...), head...)
	b = wire.Flatten(b, params[:token.A])
	b = append(b, x.token...)
	b = wire.Flatten(b, params[token.B:])
	x.say(append(b, "}\n\n"...))
}

// say queues an event; nil only starts the stream.
func (x *exchange) say(event []byte) { x.put(news{event, false}) }

func (x *exchange) put(n news) {
	f := &x.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if !f.running {
		f.running = true
		f.wake, f.quit, f.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		go x.pump()
	}
	if n.event == nil {
		return
	}
	f.queue.put(n)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// settle ends the feed: what was said is written, and afterwards the caller alone
// writes. It may be called twice.
func (x *exchange) settle() {
	f := &x.feed
	f.mu.Lock()
	first := !f.ended
	f.ended = true
	f.mu.Unlock()
	if first {
		x.silences.Leave(&x.silence)
	}
	if !f.running {
		return
	}
	if first {
		close(f.quit)
	}
	<-f.done
}

// pump writes the events, and a comment now and then as a sign of life.
func (x *exchange) pump() {
	f := &x.feed
	defer close(f.done)
	x.beginStream()
	x.write([]byte(": working\n\n"))
	beat := time.NewTicker(x.pace.beat)
	defer beat.Stop()
	for {
		select {
		case <-f.wake:
			x.drain()
		case <-beat.C:
			x.write([]byte(": still working\n\n"))
		case <-f.quit:
			x.drain()
			return
		}
	}
}

func (x *exchange) drain() {
	for _, n := range x.feed.queue.take() {
		x.write(n.event)
	}
}

func (x *exchange) beginStream() {
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = typeStream, noCache, noBuffer
}

// write sends b now. A reader that is gone is found out later.
func (x *exchange) write(b []byte) {
	if _, err := (bounded{x}).Write(b); err == nil {
		x.rc.Flush()
	}
}

// nothing ends the exchange without an answer. The agent cancelled, so it does not
// wait for one and must not get one late; an event stream without an event says so
// in a way that every client bears.
func (x *exchange) nothing() {
	x.settle()
	if !x.feed.running {
		x.beginStream()
	}
	x.write([]byte(": cancelled\n\n"))
}

// fail sends an error of ours.
func (x *exchange) fail(code int, text string) {
	x.error(appendError(nil, code, text), code)
}

// rawError sends a server's error as it is.
func (x *exchange) rawError(raw []byte) {
	code, _ := strconv.Atoi(string(pickOne(raw, "code").Of(raw)))
	x.error(raw, code)
}

func (x *exchange) error(raw []byte, code int) {
	x.send(envelope{key: `,"error":`, status: statusOf(code, x.modern)}, actors.HeldBody(raw, nil))
}

func (x *exchange) result(b *actors.Body) {
	e := envelope{key: `,"result":`, status: http.StatusOK}
	if x.modern && lacksType(b) {
		e.put = x.lacks
	}
	x.send(e, b)
}

// lacksType reports whether a 2026-07-28 agent would miss resultType in this result.
func lacksType(b *actors.Body) bool {
	held, ok := b.Held()
	if !ok {
		return b.Facts().ResultType == ""
	}
	found := false
	err := wire.ScanObject(held, func(key []byte, _ wire.Span) bool {
		found = isKey(key, "resultType")
		return !found
	})
	return err == nil && !found
}
