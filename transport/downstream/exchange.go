package downstream

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"mcphubd/actors"
)

// exchange knows who waits for which answer of one server. Messages come in whole
// by route, or in pieces by a sieve; they go to the calls that wait, or to the SDK.
type exchange struct {
	server   string
	spool    actors.Spool
	maxFrame int64
	log      zerolog.Logger
	mask     masker
	login    string // what helps when the server refuses us
	permit   string // and when it refuses a request
	oauth    bool   // logins do
	control  *control
	noise    *noise
	dropped  *Dropped
	events   actors.Events

	mu      sync.Mutex
	calls   map[uint64]*call // nil once the connection is dead
	inquiry inquiry
	next    uint64
	err     error
}

// Dropped counts messages of a server that nobody waited for.
type Dropped struct {
	Answers  atomic.Int64 // late, sent twice, or to an id that was never used
	Progress atomic.Int64 // late, of an unknown call, or too fast for the agent
	News     atomic.Int64 // log messages beyond the rate of one server, ends of what no agent was asked
	Control  atomic.Int64 // requests beyond what one server may have open, answers to nothing
}

// Dropped returns the counters of this connection.
func (x *exchange) Dropped() *Dropped { return x.dropped }

// Unwanted is how many messages of the server were dropped, of all kinds.
func (x *exchange) Unwanted() int64 {
	d := x.dropped
	return d.Answers.Load() + d.Progress.Load() + d.News.Load() + d.Control.Load()
}

// open registers p under a new id.
func (x *exchange) open(p *call) (uint64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.calls == nil {
		return 0, x.err
	}
	id := x.next
	x.next++
	p.id = id
	x.calls[id] = p
	return id, nil
}

// claim takes the call that waits for id out of the map: who gets it sends its answer.
func (x *exchange) claim(id uint64) *call {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.calls[id]
	if p == nil {
		x.inquiry.laid(id)
		return nil
	}
	delete(x.calls, id)
	x.inquiry.over(id)
	return p
}

// deliver ends the call that waits for id. If nobody waits for it the answer is counted
// and its body closed.
func (x *exchange) deliver(id uint64, a answer) {
	p := x.claim(id)
	if p != nil && a.Error != nil {
		x.mu.Lock()
		for _, page := range actors.PagesIn(a.Error) {
			x.inquiry.sent(actors.PageOf(page), p)
		}
		x.mu.Unlock()
	}
	if p == nil {
		x.dropped.Answers.Add(1)
		if a.Result != nil {
			a.Result.Close()
		}
		return
	}
	p.answer <- a
}

// shut ends the exchange: every waiting call gets err, and no new one comes in. Only
// the first reason counts; shut reports whether this is it.
func (x *exchange) shut(err error) (first bool) {
	x.mu.Lock()
	waiting := x.calls
	for id := range waiting {
		x.inquiry.over(id)
	}
	if first = x.err == nil; first {
		x.err = err
	}
	x.calls = nil
	x.mu.Unlock()
	for _, p := range waiting {
		abort := p.abort // p is not ours any more once it has its answer
		p.answer <- answer{err: err}
		if abort != nil {
			abort(err)
		}
	}
	return first
}

// Err says why the connection is dead, once it is.
func (x *exchange) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// waiting is the number of calls without an answer.
func (x *exchange) waiting() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.calls)
}

// hold is how much of a result of unknown owner stays in memory.
func (x *exchange) hold() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	most := int64(0)
	for _, p := range x.calls {
		most = max(most, p.hold)
	}
	return min(most, maxHold)
}

// tooLong is the error of an answer over max_frame.
func (x *exchange) tooLong() error {
	return fmt.Errorf("%s: the answer is longer than max_frame = %s; ask for less, or raise max_frame", x.server, sizeText(x.maxFrame))
}

// sizeText is a size as a user would write it.
func sizeText(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
