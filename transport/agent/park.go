package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcphubd/actors"
)

const (
	// statePrefix begins our requestStates, for whoever reads them.
	statePrefix = "mcphub."
	// maxParked bounds the calls of one agent that wait for it to come back.
	maxParked = 64
)

var (
	errNoShow  = errors.New("the agent was asked for input and did not come back in time")
	errBarred  = errors.New("the agent is no longer welcome")
	errSilence = fmt.Errorf("%w: it came back without an answer", actors.ErrCannot)
)

// A talk is a call of a 2026-07-28 agent in which the server may ask something. That
// revision has no way to ask: the request ends with what is to be asked and a
// requestState, and the agent sends it again with the answers. In between the call is
// parked: it goes on without a request.
type talk struct {
	s           *Server
	agent, name string // of the identity, and of what was requested
	can         abilities
	level       logLevel
	cancel      context.CancelCauseFunc
	asked       chan struct{} // holds one when there is a new point
	done        chan struct{} // closed when the call is over
	reply       actors.Reply
	err         error

	mu     sync.Mutex
	x      *exchange // of the request that waits; nil while parked
	points []*point
	last   int
	timer  *time.Timer
	left   bool // nobody will take the reply
}

// point is one thing that the server asked.
type point struct {
	key, method string
	params      []byte
	told        bool // to the agent
	answer      chan said
}

// talk makes a call that may be parked on its way. It goes on when its request has
// ended, so its bytes are its own.
func (v visit) talk(x *exchange, p params, c actors.Call, can abilities) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(v.r.Context()))
	t := &talk{s: v.s, agent: v.id.name, name: c.Method + " " + c.Name, cancel: cancel, can: can.clone(),
		level: x.level, asked: make(chan struct{}, 1), done: make(chan struct{})}
	c.Params = bytes.Clone(c.Params)
	if c.Progress != nil {
		c.Progress = t.progress
	}
	c.Cancel, c.Ask, c.Notify, c.Can, c.Session = cancel, t.ask, t.notify, t.can.json(), t
	t.x = x
	go func() {
		defer cancel(nil)
		t.finish(v.agent.Call(ctx, c))
	}()
	t.attend(v, x)
}

// resume goes on with a parked call, if that is what a request is about. Else its state is
// for the server to judge, which may be a gateway like this one.
func (v visit) resume(x *exchange, p params, c *actors.Call) bool {
	state, _ := text(p.state.Of(c.Params))
	t := v.s.parked.take(v.id.name, c.Method+" "+c.Name, state)
	if t == nil {
		c.Stated = !isNull(p.state.Of(c.Params))
		return false
	}
	t.back(x, p.responses.Of(c.Params))
	t.attend(v, x)
	return true
}

// attend answers a request with what the call comes to, or with what is asked.
func (t *talk) attend(v visit, x *exchange) {
	x.expect(time.Now())
	defer x.settle()
	for {
		select {
		case <-t.done:
		case <-t.asked:
			if question := t.park(); question != nil {
				x.result(actors.HeldBody(question, nil))
				return
			}
			continue
		case <-v.r.Context().Done():
			t.cancel(errCancelled)
			<-t.done
		}
		break
	}
	x.answer(t.reply, t.err)
}

// finish notes what the call came to.
func (t *talk) finish(reply actors.Reply, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reply, t.err = reply, err
	if t.left {
		t.drop()
	}
	close(t.done)
}

func (t *talk) drop() {
	if t.reply.Result != nil {
		t.reply.Result.Close()
		t.reply.Result = nil
	}
}

// leave ends a parked call that nobody comes back for.
func (t *talk) leave(why error) {
	t.cancel(why)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.left = true
	t.drop()
}

// ask puts a question to the agent, and waits for it to come back with the answer.
func (t *talk) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	if err := t.can.check(method, params); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.last++
	p := &point{key: "q" + strconv.Itoa(t.last), method: method, params: params, answer: make(chan said, 1)}
	t.points = append(t.points, p)
	t.mu.Unlock()
	t.wake()
	select {
	case a := <-p.answer:
		return a.result, a.err
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		t.points = slices.DeleteFunc(t.points, func(q *point) bool { return q == p })
		return nil, context.Cause(ctx)
	}
}

func (t *talk) wake() {
	select {
	case t.asked <- struct{}{}:
	default:
	}
}

// park leaves the call waiting for the agent, and returns what the agent is asked; nil
// when there is nothing to ask any more.
func (t *talk) park() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.points) == 0 {
		return nil
	}
	state := t.s.parked.put(t)
	if state == "" {
		for _, p := range t.points {
			p.answer <- said{err: fmt.Errorf("%w: %d of its calls wait for it already", actors.ErrCannot, maxParked)}
		}
		t.points = nil
		return nil
	}
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, p := range t.points {
		if i > 0 {
			b = append(b, ',')
		}
		p.told = true
		b = append(b, `"`+p.key+`":{"method":"`+p.method+`","params":`...)
		b = append(append(b, p.params...), '}')
	}
	t.x = nil
	t.timer = time.AfterFunc(t.s.pace.parked, func() {
		if t.s.parked.take(t.agent, t.name, state) != nil {
			t.leave(errNoShow)
		}
	})
	return append(b, `},"requestState":"`+state+`"}`...)
}

// back hands the answers that the agent came back with to whoever asked. What it leaves
// out it does not want to answer.
func (t *talk) back(x *exchange, responses []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.x = x
	var open []*point
	for _, p := range t.points {
		if !p.told {
			open = append(open, p)
			continue
		}
		a := said{err: errSilence}
		if isObject(responses) {
			if r := pickOne(responses, p.key).Of(responses); isObject(r) {
				a = said{result: bytes.Clone(r)}
			}
		}
		p.answer <- a
	}
	if t.points = open; len(open) > 0 {
		t.wake()
	}
}

// progress and notify reach the request that waits; while there is none, nobody.
func (t *talk) progress(params []byte, token actors.Range) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.x != nil && t.x.token != nil {
		t.x.progress(params, token)
	}
}

func (t *talk) notify(method string, params []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.x != nil {
		t.x.notify(t.level, method, params)
	}
}

// Later is for what comes when the call is over: an agent of the newest revision has no
// stream for it but that of a request of the call.
func (t *talk) Later(method string, params []byte) { t.notify(method, params) }

// parked are the calls that wait for their agents to come back, by requestState.
type parked struct {
	mu  sync.Mutex
	all map[string]*talk
}

// put returns a state for t that cannot be guessed and works once, or "" when its agent
// has too many calls here.
func (k *parked) put(t *talk) string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it does not fail
	state := statePrefix + hex.EncodeToString(random[:])
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, other := range k.all {
		if other.agent == t.agent {
			n++
		}
	}
	if n >= maxParked {
		return ""
	}
	if k.all == nil {
		k.all = map[string]*talk{}
	}
	k.all[state] = t
	return state
}

// take returns the call that waits under a state, if the agent's and for that tool.
func (k *parked) take(agent, name, state string) *talk {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.all[state]
	if t == nil || t.agent != agent || t.name != name {
		return nil
	}
	delete(k.all, state)
	return t
}

// leave ends the calls of one agent, or of all ("").
func (k *parked) leave(agent string, why error) {
	k.mu.Lock()
	var gone []*talk
	for state, t := range k.all {
		if agent == "" || t.agent == agent {
			delete(k.all, state)
			gone = append(gone, t)
		}
	}
	k.mu.Unlock()
	for _, t := range gone {
		t.leave(why)
	}
}
