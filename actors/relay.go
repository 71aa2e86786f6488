package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/actors/budget"
)

// This file carries requests with an answer that are no tool calls: as raw bytes,
// with only the name, uri or reference in them rewritten.

// Methods that are relayed, as in Call.Method.
const (
	GetPrompt    = "prompts/get"
	ReadResource = "resources/read"
	Complete     = "completion/complete"
)

// What a completion is about, as in Call.Ref.
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// codeNoMethod is the JSON-RPC code of a method that is not known.
const codeNoMethod = -32601

// NotFound reports a resource that no server in scope has. How that is said on the
// wire depends on the agent's revision.
type NotFound struct{ URI string }

func (e *NotFound) Error() string { return fmt.Sprintf("resource not found: %.200s", e.URI) }

// Request relays one request other than tools/call. What it returns is within the
// agent's budget like the result of a call: what exceeds it is stored whole, and
// the agent gets a text in its place that says so. The error is an *RPCError, a
// *NotFound, or why the server was not reached.
func (s Session) Request(ctx context.Context, c Call) (Reply, error) {
	ctx, done := c.cancellable(ctx)
	defer done()
	w := s.walk(c)
	w.row.Tool = c.Method
	to, err := w.aim(ctx)
	if err != nil {
		return Reply{}, err
	}
	if !w.desk.live.begin(w.live(to.exposed)) {
		return Reply{}, &RPCError{CodeInvalidRequest, fmt.Sprintf("agent %q has %d calls in flight already", w.agent, maxInFlight)}
	}
	defer w.finish()
	reply, err := w.relay(ctx, to)
	w.give(reply)
	if err != nil {
		w.row.Error = clip(err.Error(), 500)
	}
	return reply, err
}

// relay carries the request to its server and the answer back.
func (w *walk) relay(ctx context.Context, to aim) (Reply, error) {
	renamed := to.own != w.call.Name
	w.call.Name = to.exposed
	if to.text != "" {
		return w.bound(HeldBody(instructionsResult(to.exposed, to.text), nil))
	}
	ctx, done := w.bounded(ctx)
	defer done()
	conn, release, err := w.ticket.server.lease(ctx)
	if err != nil {
		return Reply{}, w.failed(ctx, err)
	}
	defer release()
	if reply, err, ok := w.undeclared(declaredBy(conn), to); ok {
		return reply, err
	}
	params, token := w.rewritten(to.own, renamed)
	answer, err := w.converse(ctx, conn, Request{Method: w.call.Method, Params: params, Token: token, Hold: w.ticket.hold,
		Progress: w.call.Progress, Agent: w.agent, Client: w.call.Client})
	switch {
	case err != nil:
		return Reply{}, w.failed(ctx, err)
	case answer.Error != nil:
		return w.fault(answer.Error)
	}
	return w.bound(answer.Result)
}

// undeclared answers for a server that never said that it knows the method: it is
// not asked (case C101).
func (w *walk) undeclared(has declared, to aim) (Reply, error, bool) {
	switch w.call.Method {
	case GetPrompt:
		if has.prompts {
			return Reply{}, nil, false
		}
	case ReadResource:
		if has.resources {
			return Reply{}, nil, false
		}
		if w.call.Only == "" {
			return Reply{}, &NotFound{to.exposed}, true
		}
	case Complete:
		if has.completions {
			return Reply{}, nil, false
		}
		if w.call.Only == "" { // agents complete wherever the user types
			w.row.Outcome = "ok"
			return Reply{Result: HeldBody([]byte(`{"completion":{"values":[],"total":0,"hasMore":false}}`), nil)}, nil, true
		}
	}
	return Reply{}, &RPCError{codeNoMethod, fmt.Sprintf("server %s does not offer %s", to.server, w.call.Method)}, true
}

// rewritten returns the params for the server, in pieces. All bytes are the agent's
// but the name and the progress token.
func (w *walk) rewritten(name string, renamed bool) (pieces [][]byte, token int) {
	token = -1
	var edits []edit
	if renamed {
		own, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(name, "\uFFFD"))
		edits = append(edits, edit{at: w.call.NameAt, with: own})
	}
	if w.call.Progress != nil {
		if e, ok := tokenEdit(w.call); ok {
			edits = append(edits, e)
		}
	}
	sortEdits(edits)
	at := 0
	for _, e := range edits {
		pieces = append(pieces, w.call.Params[at:e.at.A], []byte(e.before))
		if e.with == nil {
			token = len(pieces)
		}
		pieces = append(pieces, e.with, []byte(e.after))
		at = e.at.B
	}
	return append(pieces, w.call.Params[at:]), token
}

// bound gives the agent the result, or what stands for one that is over its budget.
// A completion is for a person who types, never for a model, and passes.
func (w *walk) bound(body *Body) (Reply, error) {
	size := body.Size()
	w.row.ResultBytes, w.row.Outcome = size, "ok"
	if !budget.Exceeds(size, w.ticket.limit) || w.call.Method == Complete {
		return Reply{Result: body}, nil
	}
	facts := body.Facts()
	if facts.ResultType == "input_required" {
		return Reply{Result: body}, nil
	}
	id, err := w.keep(body, facts)
	if err != nil {
		body, err := w.failOpen(body, err)
		return Reply{Result: body}, err
	}
	w.row.Stored = true
	defer body.Close()
	read, get := w.ownNames()
	n := budget.Notice{CallID: string(id), Server: w.row.Server, Subject: w.call.Name, Limit: room(w.ticket.limit, w.call.Extra),
		ReadTool: read, GetTool: get, Facts: facts}
	if w.call.Method == GetPrompt {
		return Reply{Result: HeldBody(n.Prompt(), nil)}, nil
	}
	return Reply{Result: HeldBody(n.Resource(), nil)}, nil
}

// Subscribe has heard called whenever the resource changed, until cancel. heard
// must not block. The error is as that of Request, or a RawError of the server.
func (s Session) Subscribe(ctx context.Context, uri string, heard func()) (cancel func(), err error) {
	return s.subscribe(ctx, Call{Method: ReadResource, Name: uri}, heard)
}

func (s Session) subscribe(ctx context.Context, c Call, heard func()) (cancel func(), err error) {
	w := &walk{Session: s, call: c}
	to, err := w.aim(ctx)
	switch {
	case err != nil:
		return nil, err
	case to.text != "":
		return func() {}, nil // instructions change with a list, not by themselves
	}
	ctx, done := context.WithTimeoutCause(ctx, w.ticket.timeout, errCallTimeout)
	defer done()
	cancel, err = w.ticket.server.subscribe(ctx, to.own, func() {
		if s.touches(to.server) { // the scope may have shrunk since
			heard()
		}
	})
	var no *RPCError
	var raw RawError
	if err != nil && !errors.As(err, &no) && !errors.As(err, &raw) {
		err = w.failed(ctx, err)
	}
	return cancel, err
}

// touches reports whether the agent may know of a server, as of now.
func (s Session) touches(server string) bool {
	v := s.hub.View()
	agent, known := v.Config.Agent(s.agent)
	return known && scopeOf(agent).Touches(server)
}
