package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// What a server asks its client is meant for the user behind one of its calls. The
// older revisions do not say which; so an agent is asked only when there is no doubt:
// the question came on the stream of its call, or its call is the only one that the
// server can be working on. Else the answer is no, at once.

const (
	// maxQuestions bounds what one server may have asked at the same time.
	maxQuestions = 64
	// haunting is how long a call that was given up may still be running in the server.
	haunting = 10 * time.Minute
	// maxPages bounds the pages of one server that agents may be at, opening how long one may be.
	maxPages = 256
	opening  = time.Hour
)

// inquiry is what one server asked, and whom it might have meant. It is guarded by the
// mutex of its exchange.
type inquiry struct {
	open   map[string]*question // by the server's own id, as sent
	pages  map[string]page      // by their elicitationId
	ghosts []ghost
	rate   bucket // of notifications
}

// question is a request of the server that waits for an agent.
type question struct {
	call   uint64 // in which it was asked
	cancel context.CancelCauseFunc
}

// page is a place to which an agent was sent. The server says when all is done there, which
// may be long after the call.
type page struct {
	call  uint64
	to    actors.Listener
	until time.Time
}

// ghost is a call that nobody waits for and the server has not answered.
type ghost struct {
	id    uint64
	agent string
	until time.Time
}

var (
	errWithdrawn = errors.New("the server withdrew the question")
	errCallOver  = errors.New("the call in which this was asked is over")
	errWhose     = fmt.Errorf("%w: it cannot be told whose call this is about", actors.ErrCannot)
)

// mayAsk reports whether a server may ask something while it works on a request of
// this method.
func mayAsk(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// caller returns the call that a message is about; mu is held. owner is its id when the
// message came on its own stream, else 0.
func (x *exchange) caller(owner uint64) *call {
	if owner != 0 {
		return x.calls[owner]
	}
	var only *call
	for _, p := range x.calls {
		switch {
		case !p.asks:
		case only != nil:
			return nil
		default:
			only = p
		}
	}
	if only != nil && x.haunted(only.agent) {
		return nil
	}
	return only
}

// haunted reports whether a call that another agent gave up may still be running.
func (x *exchange) haunted(agent string) bool {
	now := time.Now()
	for _, g := range x.inquiry.ghosts {
		if g.agent != agent && now.Before(g.until) {
			return true
		}
	}
	return false
}

// giveUp takes a call out of the map that nobody waits for any more, and remembers it.
// It reports whether the call had no answer yet.
func (x *exchange) giveUp(id uint64) bool {
	p := x.claim(id)
	if p == nil {
		return false
	}
	if p.asks {
		x.mu.Lock()
		defer x.mu.Unlock()
		now, q := time.Now(), &x.inquiry
		for len(q.ghosts) > 0 && now.After(q.ghosts[0].until) {
			q.ghosts = q.ghosts[1:]
		}
		q.ghosts = append(q.ghosts, ghost{id, p.agent, now.Add(haunting)})
	}
	return true
}

// laid follows the late answer of a call that was given up; mu is held.
func (q *inquiry) laid(id uint64) {
	for i, g := range q.ghosts {
		if g.id == id {
			q.ghosts = append(q.ghosts[:i:i], q.ghosts[i+1:]...)
			return
		}
	}
}

// over ends the questions of a call; mu is held.
func (q *inquiry) over(call uint64) {
	for _, o := range q.open {
		if o.call == call {
			o.cancel(errCallOver)
		}
	}
}

// question puts a request of the server to the agent that it concerns, or declines it.
func (x *exchange) question(b []byte, e wire.Envelope, owner uint64) {
	id, params := bytes.Clone(e.ID.Of(b)), bytes.Clone(e.Params.Of(b))
	method := string(bytes.Trim(e.Method.Of(b), `"`))
	if len(params) == 0 {
		params = []byte("{}")
	}
	if !json.Valid(id) || id[0] == '{' || id[0] == '[' || !json.Valid(params) {
		x.noise.add(b)
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ask, err := x.enquire(string(id), owner, pageIn(method, params), cancel)
	if err != nil {
		cancel(nil)
		x.reply(id, method, nil, err)
		return
	}
	go func() {
		defer cancel(nil)
		result, err := ask(ctx, method, params)
		x.mu.Lock()
		delete(x.inquiry.open, string(id))
		x.mu.Unlock()
		switch cause := context.Cause(ctx); {
		case cause == errWithdrawn: // and does not want an answer any more
		case cause != nil:
			x.reply(id, method, nil, cause)
		default:
			x.reply(id, method, result, err)
		}
	}()
}

// enquire notes a question and returns how to ask it.
func (x *exchange) enquire(id string, owner uint64, page string, cancel context.CancelCauseFunc) (func(context.Context, string, []byte) ([]byte, error), error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.caller(owner)
	switch {
	case p == nil:
		return nil, errWhose
	case p.client.Ask == nil:
		return nil, actors.ErrCannot
	case len(x.inquiry.open) >= maxQuestions || x.inquiry.open[id] != nil:
		return nil, fmt.Errorf("%w: this server has asked too much already", actors.ErrCannot)
	}
	if x.inquiry.open == nil {
		x.inquiry.open = map[string]*question{}
	}
	x.inquiry.open[id] = &question{p.id, cancel}
	x.inquiry.sent(page, p)
	return p.client.Ask, nil
}

// pageIn is the page that a question sends its agent to, "" for none.
func pageIn(method string, params []byte) string {
	if method != "elicitation/create" {
		return ""
	}
	return actors.PageOf(params)
}

// sent notes that the agent of p is sent to a page; mu is held.
func (q *inquiry) sent(id string, p *call) {
	if id == "" || p.client.Session == nil {
		return
	}
	now := time.Now()
	for id, g := range q.pages {
		if now.After(g.until) {
			delete(q.pages, id)
		}
	}
	if len(q.pages) >= maxPages {
		return
	}
	if q.pages == nil {
		q.pages = map[string]page{}
	}
	q.pages[id] = page{p.id, p.client.Session, now.Add(opening)}
}

// completed tells the agent that was sent to a page, and nobody else, that all is done there:
// on the stream of the call, if that still runs.
func (x *exchange) completed(params []byte) {
	const method = "notifications/elicitation/complete"
	id := actors.PageOf(params)
	x.mu.Lock()
	g, known := x.inquiry.pages[id]
	delete(x.inquiry.pages, id)
	var notify func(string, []byte)
	if c := x.calls[g.call]; known && c != nil {
		notify = c.client.Notify
	}
	x.mu.Unlock()
	switch {
	case !known: // or told before
		x.dropped.News.Add(1)
	case notify != nil:
		notify(method, bytes.Clone(params))
	default:
		g.to.Later(method, bytes.Clone(params))
	}
}

// withdraw ends the question that a cancellation of the server names. It reports
// whether there is one.
func (x *exchange) withdraw(params []byte) (found bool) {
	_ = wire.ScanObject(params, func(key []byte, v wire.Span) bool {
		if string(key) != "requestId" {
			return true
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if q := x.inquiry.open[string(v.Of(params))]; q != nil {
			q.cancel(errWithdrawn)
			found = true
		}
		return false
	})
	return found
}

// reply answers a request of the server under the server's own id.
func (x *exchange) reply(id []byte, method string, result []byte, err error) {
	key := `,"result":`
	var raw actors.RawError
	switch {
	case err == nil:
	case errors.As(err, &raw):
		key, result = `,"error":`, raw
	default:
		key, result = decline(method, err)
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = wire.Flatten(append(b, key...), result)
	_ = x.control.send(nil, append(b, '}')) // a dead connection needs no answer
}

// decline is the answer when nobody can be asked, or whoever was asked is gone.
func decline(method string, err error) (key string, value []byte) {
	cannot := errors.Is(err, actors.ErrCannot)
	switch {
	case method == "elicitation/create" && cannot:
		return `,"result":`, []byte(`{"action":"decline"}`)
	case method == "elicitation/create":
		return `,"result":`, []byte(`{"action":"cancel"}`)
	case method == "roots/list":
		return `,"result":`, []byte(`{"roots":[]}`)
	}
	text, _ := json.Marshal(method + ": " + err.Error())
	return `,"error":`, []byte(`{"code":-1,"message":` + string(text) + `}`)
}

// news passes a notification to the agent that it concerns. A log message that belongs
// to no call goes to the owner of the connection.
func (x *exchange) news(method string, params []byte, owner uint64) {
	x.mu.Lock()
	if !x.inquiry.rate.take() || !json.Valid(params) {
		x.mu.Unlock()
		x.dropped.News.Add(1)
		return
	}
	p := x.caller(owner)
	var notify func(string, []byte)
	if p != nil {
		notify = p.client.Notify
	}
	x.mu.Unlock()
	switch {
	case notify != nil:
		notify(method, bytes.Clone(params))
	case p == nil && method == "notifications/message" && x.events.Log != nil:
		x.events.Log(bytes.Clone(params))
	}
}

// updated tells of a resource that changed.
func (x *exchange) updated(params []byte) {
	var p struct{ URI string }
	if x.events.Updated != nil && json.Unmarshal(params, &p) == nil && p.URI != "" {
		x.events.Updated(p.URI)
	}
}

const (
	// Notifications of one server: so many at once, and so many in a second after that.
	newsBurst = 200
	newsRate  = 100
)

// bucket holds the notifications of one server to a rate.
type bucket struct {
	spent float64
	at    time.Time
}

func (k *bucket) take() bool {
	now := time.Now()
	k.spent = max(0, k.spent-now.Sub(k.at).Seconds()*newsRate)
	k.at = now
	if k.spent >= newsBurst {
		return false
	}
	k.spent++
	return true
}
