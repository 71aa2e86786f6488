package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/store"
)

// errCallTimeout is the cause of a context whose call_timeout is over.
var errCallTimeout = errors.New("call_timeout")

// A walk is one call on its way from admission to receipt, in the goroutine of
// whoever called.
type walk struct {
	Session
	call     Call
	serial   int64
	ticket   ticket
	instance owner       // of whom the server has a copy for this call; none = it is shared
	row      store.Call  // what will be recorded
	given    int64       // bytes of the answer
	asked    atomic.Bool // the server asked something, so the call is not made anew
	vigil    *vigil      // for its idle_timeout; nil = none
	turn     Turn        // for its call_timeout
	left     bool        // in time: nobody ends it any more
}

// walks keeps what small calls were made with. A walk goes back only when nobody else
// can have it still: see recycle.
var walks = sync.Pool{New: func() any { return new(walk) }}

func (s Session) walk(c Call) *walk {
	w := walks.Get().(*walk)
	w.Session, w.call, w.serial = s, c, newSerial()
	w.row = store.Call{At: c.began(), Agent: s.agent, ArgBytes: int64(c.ArgsAt.B - c.ArgsAt.A), Outcome: "failed"}
	return w
}

// recycle gives a walk back for the next call, if this one was simple: questions, repeated
// calls and results that may still be stored have kept it.
func (w *walk) recycle(r Reply, err error) {
	if err == nil && w.left && w.call.Ask == nil && r.Keep == nil {
		*w = walk{}
		walks.Put(w)
	}
}

// Call runs one tool call. It returns what the agent gets, which is never more
// than the agent's budget allows unless the store failed. The error is an
// *RPCError for a refusal; any other is for the model to read.
func (s Session) Call(ctx context.Context, c Call) (Reply, error) {
	reply, err := s.answer(ctx, c)
	if err != nil {
		v := s.hub.View()
		agent, _ := v.Config.Agent(s.agent)
		agent = c.under(agent)
		reply.Room = room(ownLimit(v.Config, agent), c.Extra)
	}
	return reply, err
}

func (s Session) answer(ctx context.Context, c Call) (Reply, error) {
	if own, ok := catalog.OwnTool(c.Name); ok && s.hasOwn(c.Only) {
		return s.own(ctx, own, c)
	}
	ctx, done := c.cancellable(ctx)
	defer done()
	w := s.walk(c)
	if err := w.admit(ctx); err != nil {
		return Reply{}, err
	}
	reply, err := w.made(ctx)
	w.recycle(reply, err)
	return reply, err
}

// made runs a call that is on the live list.
func (w *walk) made(ctx context.Context) (Reply, error) {
	defer w.finish()
	reply, err := w.run(ctx)
	w.give(reply)
	if err != nil {
		w.row.Error = clip(err.Error(), 500)
	}
	return reply, err
}

// finish says the end: once the call is on the live list, whatever happens takes
// it off and records it.
func (w *walk) finish() {
	w.desk.live.end(w.serial)
	w.row.Serial, w.row.Took = w.serial, time.Since(w.row.At)
	w.hub.sys.ledger.record(w.row, w.given)
	switch first, enough := w.desk.rows.put(w.row); {
	case enough:
		w.tell(settle{})
	case first:
		w.tell(called{})
	}
}

// admit gets the ticket, and waits for servers that may still bring the tool.
func (w *walk) admit(ctx context.Context) (err error) {
	for {
		if w.ticket, err = w.Session.admit(w.call); err != nil {
			return err
		}
		if w.ticket.waitFor == nil {
			break
		}
		// Bounded by connect_timeout: then the server is backing off, and the next
		// admission says so.
		if _, err := w.hub.await(ctx, func(v *View) bool { return !anyConnecting(v, w.ticket.waitFor) }); err != nil {
			return fmt.Errorf("tool %s: server %s is still connecting: %w", w.call.Name, w.ticket.waitFor[0], err)
		}
	}
	w.row.Server, w.row.Tool = w.ticket.entry.Server, w.ticket.entry.Tool
	w.plain(w.hub.View())
	w.capped()
	if err := w.isolate(ctx); err != nil {
		return err
	}
	if !w.desk.live.begin(w.live(w.call.Name)) {
		return &RPCError{CodeInvalidRequest, fmt.Sprintf("agent %q has %d calls in flight already", w.agent, maxInFlight)}
	}
	return nil
}

func anyConnecting(v *View, servers []string) bool {
	for _, n := range servers {
		if s, ok := v.Servers[n]; ok && s.State == Connecting && !s.Listed && !v.Stopping {
			return true
		}
	}
	return false
}

// run carries the call to the server and its result back.
func (w *walk) run(ctx context.Context) (Reply, error) {
	ctx, done := w.bounded(ctx)
	defer done()
	answer, release, err := w.carry(ctx)
	defer release()
	if err != nil {
		return Reply{}, w.failed(ctx, err)
	}
	if answer.Error != nil {
		return w.fault(answer.Error)
	}
	body, err := w.settle(answer.Result)
	return w.deliverable(body), err
}

// bounded lets the call's context end when call_timeout or idle_timeout is over.
func (w *walk) bounded(ctx context.Context) (context.Context, func()) {
	ctx, enough := w.watched(ctx)
	line := w.desk.ends.of(w.ticket.timeout)
	line.Join(&w.turn, w, time.Now())
	return ctx, func() { enough(); w.left = line.Leave(&w.turn) }
}

// Due is called when call_timeout is over.
func (w *walk) Due() { w.call.Cancel(errCallTimeout) }

func (w *walk) request() Request {
	params, token := splice(w.call, w.ticket.entry.Tool)
	return Request{Method: "tools/call", Params: params, Token: token, Hold: w.ticket.hold, Progress: w.call.Progress,
		Agent: w.agent, Client: w.call.Client}
}

// failed words an error for the agent, and notes the outcome.
func (w *walk) failed(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return fmt.Errorf("call %s: %w", w.call.Name, err)
	case errors.Is(cause, errIdle):
		return w.idle()
	case errors.Is(cause, errCallTimeout):
		w.row.Outcome = "timeout"
		return fmt.Errorf("call %s: no answer within %s (call_timeout of server %s); the server was told to cancel, the call may have run and was not repeated",
			w.call.Name, w.ticket.timeout, w.row.Server)
	default:
		w.row.Outcome = "cancelled"
		return fmt.Errorf("call %s: cancelled: %w", w.call.Name, cause)
	}
}

// settle decides whether the agent gets the result itself or a receipt for it.
func (w *walk) settle(body *Body) (*Body, error) {
	size := body.Size()
	w.row.ResultBytes, w.row.Outcome = size, outcomeOf(body)
	over := budget.Exceeds(size, w.ticket.limit)
	undelivered := w.agentGone()
	if !over && !undelivered && w.ticket.rule.Lines == 0 {
		return body, nil
	}
	facts := body.Facts()
	if facts.ResultType == "input_required" {
		return body, nil // a question to the agent is never stored, cut or altered
	}
	w.ticket.limit = w.ticket.rule.Limit(max(w.ticket.entry.Asked, budget.Asked(facts.Meta)))
	crowded := w.ticket.rule.Crowded(facts)
	if over = crowded || budget.Exceeds(size, w.ticket.limit); !over && !undelivered {
		return body, nil
	}
	if facts.IsError {
		w.row.Outcome = "tool_error"
	}
	id, kept := w.keeping(body, facts)
	var receipt []byte
	if over { // made meanwhile; nobody gets it before the commit
		receipt = w.receipt(facts, id)
	}
	if err := kept(); err != nil {
		return w.failOpen(body, err)
	}
	w.row.Stored = true
	if !over {
		return body, nil
	}
	defer body.Close()
	if !crowded {
		if b := w.withoutMedia(body, facts, id); b != nil {
			return HeldBody(b, nil), nil
		}
	}
	return HeldBody(receipt, nil), nil
}

// agentGone reports whether nobody is there to take the result.
func (w *walk) agentGone() bool {
	return w.call.Gone != nil && w.call.Gone.Err() != nil
}

// keep stores the body. It returns after the commit.
func (w *walk) keep(body *Body, f budget.Facts) (store.ID, error) {
	id, kept := w.keeping(body, f)
	return id, kept()
}

// keeping begins to store the body. kept waits for the commit.
func (w *walk) keeping(body *Body, f budget.Facts) (id store.ID, kept func() error) {
	id, now := store.NewID(), w.spool.now()
	facts, err := json.Marshal(struct {
		Blocks     []budget.Block `json:"blocks,omitempty"`
		More       int            `json:"more,omitempty"`
		Structured bool           `json:"structured,omitempty"`
	}{f.Blocks, f.More, f.Structured})
	if err != nil {
		return "", func() error { return err }
	}
	return id, body.seal(w.spool, store.Result{ID: id, Agent: w.agent, Server: w.row.Server, Tool: w.row.Tool,
		Exposed: w.ticket.entry.Exposed, Bytes: f.Bytes, Lines: f.Lines, SHA256: f.SHA256, IsError: f.IsError,
		Stored: now, Expires: now.Add(store.Retention), Facts: facts})
}

// failOpen gives the agent the complete result after the store refused it.
func (w *walk) failOpen(body *Body, cause error) (*Body, error) {
	size := body.Size()
	w.unstored(size, cause)
	if w.ticket.failOpen {
		return body, nil
	}
	body.Close()
	return nil, fmt.Errorf("call %s: the result of %d bytes exceeds the budget of %d bytes and could not be stored: %w",
		w.call.Name, size, w.ticket.limit, cause)
}

// unstored makes it known that an answer of size bytes could not be stored.
func (w *walk) unstored(size int64, cause error) {
	w.spool.pub.failedOpen.Add(1)
	due := w.hub.sys.problems.Raise(Problem{Code: "result-not-stored", Subject: w.call.Name,
		Text: fmt.Sprintf("a result of %s (%d bytes) was not stored: %v", w.call.Name, size, cause),
		Fix:  "free disk space, or raise spool.max_bytes", Fades: time.Hour})
	if due {
		w.hub.sys.log.Warn().Str("agent", w.agent).Str("server", w.row.Server).Str("tool", w.row.Tool).
			Int64("bytes", size).Err(cause).Bool("failOpen", w.ticket.failOpen).Msg("result was not stored")
	}
}

var (
	isErrorHead = []byte(`"is`)
	isErrorTail = []byte(`Error"`) // looked for first: an E is seldom, a quote is not
)

// outcomeOf looks for isError in a result that is in memory. It is for the record
// only: what decides is scanned.
func outcomeOf(b *Body) string {
	held, all := b.Held()
	if !all {
		return "ok"
	}
	for rest := held; ; {
		before, after, found := bytes.Cut(rest, isErrorTail)
		if !found {
			return "ok"
		}
		if bytes.HasSuffix(before, isErrorHead) && bytes.HasPrefix(bytes.TrimLeft(after, " \t\r\n:"), []byte("true")) {
			return "tool_error"
		}
		rest = after
	}
}

// clip cuts s to n bytes on a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
