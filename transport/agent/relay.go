package agent

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// Requests besides tool calls that the fast path takes: what is relayed goes the way
// of a call, lists are answered from what is known.

var listsOf = map[string]struct {
	key  string
	kind actors.List
}{
	"prompts/list":             {"prompts", actors.PromptList},
	"resources/list":           {"resources", actors.ResourceList},
	"resources/templates/list": {"resourceTemplates", actors.TemplateList},
}

// toSDK are the requests of a session that the SDK answers. Of others it says in plain
// text what a client expects as an error of JSON-RPC (case C101).
var toSDK = map[string]bool{"": true, "ping": true, "logging/setLevel": true, "resources/subscribe": true,
	"resources/unsubscribe": true, "server/discover": true, "subscriptions/listen": true}

// relays reports whether the method is relayed.
func relays(method string) bool {
	return method == actors.GetPrompt || method == actors.ReadResource || method == actors.Complete
}

// feature answers a request about prompts, resources or completion, if it is one.
func (v visit) feature(m message, p params, sess *session) bool {
	if l, ok := listsOf[m.method]; ok {
		v.listing(m, p, sess == nil, l.key, func(ctx context.Context) []byte { return v.agent.List(ctx, l.kind) })
		return true
	}
	if !relays(m.method) {
		return false
	}
	v.agent = relaying{v.agent, sess == nil}
	v.call(m, p, sess)
	return true
}

// relaying is an agent whose calls are other requests.
type relaying struct {
	Agent
	modern bool
}

// codeNotFound is what agents before 2026-07-28 know for a resource that is not there.
const codeNotFound = -32002

// Call relays. No error of it is for a model to read: all are errors of the protocol.
func (r relaying) Call(ctx context.Context, c actors.Call) (actors.Reply, error) {
	reply, err := r.Request(ctx, c)
	var no *actors.RPCError
	var missing *actors.NotFound
	switch {
	case err == nil, errors.As(err, &no):
		return reply, err
	case errors.As(err, &missing):
		code := codeNotFound
		if r.modern {
			code = codeInvalidParams
		}
		b := appendError(nil, code, "Resource not found")
		b = append(appendText(append(b[:len(b)-1], `,"data":{"uri":`...), missing.URI), "}}"...)
		return actors.Reply{Error: b}, nil
	}
	return reply, &actors.RPCError{Code: codeInternal, Message: err.Error()}
}

// relayOf reads what a relayed request is about.
func relayOf(m message, p params, b []byte) (actors.Call, *refusal) {
	c := actors.Call{Method: m.method, Params: b, ArgsAt: rangeOf(p.args), MetaAt: rangeOf(p.meta), TokenAt: rangeOf(p.token)}
	at, key := p.name, "name"
	switch m.method {
	case actors.ReadResource:
		at, key = pickOne(b, "uri"), "uri"
	case actors.Complete:
		if at, key, c.Ref = refOf(b); c.Ref == "" {
			return c, badParams("params.ref is not a reference to a prompt or a resource")
		}
		if arg := pickOne(b, "argument"); !isObject(arg.Of(b)) {
			return c, badParams("params.argument is not an object")
		}
	}
	name, ok := text(at.Of(b))
	if !ok || name == "" {
		return c, badParams("params." + key + " is not a string")
	}
	c.Name, c.NameAt = name, rangeOf(at)
	return c, nil
}

// refOf finds what a completion is about: where its name or uri stands in b.
func refOf(b []byte) (at wire.Span, key, kind string) {
	ref := pickOne(b, "ref")
	if !isObject(ref.Of(b)) {
		return at, "", ""
	}
	kind, _ = text(pickOne(ref.Of(b), "type").Of(ref.Of(b)))
	member := map[string]string{actors.RefPrompt: "name", actors.RefResource: "uri"}[kind]
	if member == "" {
		return at, "", ""
	}
	if at = pickOne(ref.Of(b), member); at.OK() {
		at.A, at.B = at.A+ref.A, at.B+ref.A
	}
	return at, "ref." + member, kind
}

// nameOf is what the Mcp-Name header of a request repeats; named says whether it has to.
func nameOf(m message, p params) (name string, ok, named bool) {
	b := m.params.Of(m.body)
	at := p.name
	switch m.method {
	case "tools/call", actors.GetPrompt:
	case actors.ReadResource:
		at = pickOne(b, "uri")
	default:
		return "", true, false
	}
	name, ok = text(at.Of(b))
	return name, ok && name != "", true
}

// listing answers a list on one page, with the entries as they are. Only answers of
// 2026-07-28 carry the members that it asks for.
func (v visit) listing(m message, p params, modern bool, key string, entries func(context.Context) []byte) {
	x := v.exchange(m.id, modern)
	b := m.params.Of(m.body)
	if m.params.OK() && !isObject(b) && !isNull(b) {
		x.fail(codeInvalidParams, "params of "+m.method+" is not an object")
		return
	}
	if c, ok := text(p.cursor.Of(b)); p.cursor.OK() && !isNull(b[p.cursor.A:]) && (!ok || c != "") {
		x.fail(codeInvalidParams, "params.cursor is not one of ours: the list has one page")
		return
	}
	x.expect(m.came)
	defer x.settle()
	list := entries(v.r.Context())
	v.id.shown.note(key, list)
	x.answer(actors.Reply{Result: actors.HeldBody(v.s.listAs(key, list, modern), nil)}, nil)
}

// listAs is the result of a list.
func (s *Server) listAs(key string, entries []byte, modern bool) []byte {
	if len(entries) == 0 {
		entries = []byte("[]")
	}
	b := make([]byte, 0, len(entries)+256)
	b = append(b, '{')
	if modern {
		b = append(b, `"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcphubd","version":`...)
		b = append(appendText(b, s.o.Version), `}},`...)
	}
	b, _ = jsontext.AppendQuote(b, key)
	return append(append(append(b, ':'), entries...), '}')
}
