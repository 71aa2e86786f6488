package agent

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"

	"mcphubd/actors"
	"mcphubd/actors/budget"
	"mcphubd/transport/wire"
)

// call answers tools/call. On a legacy session (sess) a dropped connection is not a
// cancel: the call goes on and its result is kept. On 2026-07-28 the exchange is the
// call.
func (v visit) call(m message, p params, sess *session) {
	x := v.exchange(m.id, sess == nil)
	if m.method == actors.ReadResource {
		x.lacks = readType
	}
	c, no := callOf(m, p)
	if no != nil {
		x.fail(no.code, no.text)
		return
	}
	if p.token.OK() && !isNull(c.Params[p.token.A:]) {
		x.token, c.Progress = p.token.Of(c.Params), x.progress
	}
	c.Ceiling, c.At = maxResult(v.r.Header), m.came
	if sess == nil {
		v.callModern(x, p, c)
		return
	}
	c.Wire = sess.sid
	c.Gone, c.LogLevel = v.r.Context(), sess.logs().String()
	if !sess.can.none() {
		c.Ask, c.Can, c.Session = x.asker(sess, c.Gone), sess.can.json(), sess
	}
	if c.Ask != nil || c.LogLevel != "" {
		c.Notify = func(method string, params []byte) { x.notify(sess.logs(), method, params) }
	}
	// Nothing of the request's own context: the call goes on without it.
	ctx, cancel := context.WithCancelCause(context.Background())
	x.run = running{m.id, cancel}
	sess.begin(&x.run)
	defer sess.done(&x.run)
	v.make(ctx, cancel, x, c)
}

// maxResultHeader tells how many bytes of a result a client takes; the bridge sends it
// for clients whose lines have a limit.
const maxResultHeader = "Mcphub-Max-Result"

func maxResult(h http.Header) int64 {
	if len(h[maxResultHeader]) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(h[maxResultHeader][0], 10, 64) // what it cannot read is no bound
	return n
}

// callModern is the part of call that is about the newest revision.
func (v visit) callModern(x *exchange, p params, c actors.Call) {
	c.Rounds, c.Extra = true, int64(len(x.lacks)+len(","))
	if p.logging.OK() {
		x.level = levelOf(p.logging.Of(c.Params))
		c.LogLevel = x.level.String()
		c.Notify = func(method string, params []byte) { x.notify(x.level, method, params) }
	}
	if p.state.OK() && v.resume(x, p, &c) {
		return
	}
	if can := abilitiesOf(p.capabilities.Of(c.Params)); !can.none() {
		v.talk(x, p, c, can)
		return
	}
	ctx, cancel := context.WithCancelCause(v.r.Context())
	v.make(ctx, cancel, x, c)
}

// make makes a call in the goroutine of its request.
func (v visit) make(ctx context.Context, cancel context.CancelCauseFunc, x *exchange, c actors.Call) {
	defer cancel(nil)
	c.Cancel = cancel
	defer x.settle()
	x.expect(c.At)
	reply, err := v.agent.Call(ctx, c)
	if context.Cause(ctx) == errCancelled {
		if reply.Result != nil {
			reply.Result.Close()
		}
		x.nothing()
		return
	}
	x.answer(reply, err)
}

// callOf checks what the protocol says of params, and no more: what is in arguments
// is between the agent and the server.
func callOf(m message, p params) (actors.Call, *refusal) {
	b := m.params.Of(m.body)
	if !isObject(b) {
		return actors.Call{}, badParams("params of " + m.method + " is not an object")
	}
	if bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, '\r') >= 0 {
		b = wire.Flatten(nil, b)
	}
	if m.method != "tools/call" {
		return relayOf(m, p, b)
	}
	name, ok := text(p.name.Of(b))
	switch {
	case !ok:
		return actors.Call{}, badParams("params.name is not a string")
	case p.args.OK() && !isObject(b[p.args.A:]) && !isNull(b[p.args.A:]):
		return actors.Call{}, badParams("params.arguments is not an object")
	case p.token.OK() && !isString(p.token.Of(b)) && !isNumber(p.token.Of(b)) && !isNull(b[p.token.A:]):
		return actors.Call{}, badParams("params._meta.progressToken is not a string or a number")
	}
	return actors.Call{Name: name, Params: b, NameAt: rangeOf(p.name), ArgsAt: rangeOf(p.args), MetaAt: rangeOf(p.meta),
		TokenAt: rangeOf(p.token)}, nil
}

func badParams(text string) *refusal { return &refusal{400, codeInvalidParams, text} }

func rangeOf(s wire.Span) actors.Range { return actors.Range{A: s.A, B: s.B} }

// answer sends what a call came to.
func (x *exchange) answer(reply actors.Reply, err error) {
	var no *actors.RPCError
	x.keep = reply.Keep
	switch {
	case errors.As(err, &no):
		x.fail(no.Code, no.Message)
	case err != nil:
		x.result(actors.HeldBody(budget.ErrorResult(err.Error(), reply.Room), nil))
	case reply.Result != nil:
		x.result(reply.Result)
	case reply.Error != nil:
		x.rawError(reply.Error)
	default:
		x.fail(codeInternal, "the call came to nothing: this is a bug in mcphubd")
	}
}
