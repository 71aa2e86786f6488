package agent

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/transport/wire"
)

// message is one JSON-RPC message of an agent, as bytes.
type message struct {
	body   []byte
	came   time.Time // when the body was read
	id     []byte    // as sent; nil when it has none
	method string    // "" for an answer of the agent's
	params wire.Span

	answers       []byte // of an answer: the id that it is for
	result, fault wire.Span
}

// lenient lets names come twice and surrogates stand alone: that is between the agent
// and the server.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// parse looks at a body far enough to know that it is one message and no trick:
// whole, valid JSON in UTF-8, no member that counts given twice or in disguise.
// With a refusal it returns what can be said of the message, for its id.
func parse(body []byte) (message, *refusal) {
	m := message{body: body}
	if !utf8.Valid(body) || !jsontext.Value(body).IsValid(lenient...) {
		return m, &refusal{400, codeParse, "the body is not valid JSON in UTF-8"}
	}
	switch bytes.TrimLeft(body, " \t\r\n")[0] {
	case '{':
	case '[':
		return m, invalid("batches are not accepted: send each message by itself")
	default:
		return m, invalid("the body is not a JSON-RPC message")
	}
	e, err := wire.ScanEnvelope(body)
	if err != nil {
		return m, invalid("the body is not a JSON-RPC message")
	}
	if e.Odd {
		return m, invalid("a member of the message came twice, or with escapes in its name")
	}
	if string(e.Version.Of(body)) != `"2.0"` {
		if v, ok := text(e.Version.Of(body)); !ok || v != "2.0" {
			return m, invalid(`"jsonrpc" is not "2.0"`)
		}
	}
	m.params = e.Params
	if !e.Method.OK() {
		m.answers, m.result, m.fault = e.ID.Of(body), e.Result, e.Error
		return m, nil
	}
	if string(e.Method.Of(body)) == `"tools/call"` {
		m.method = "tools/call" // the usual one costs no memory
	} else if method, ok := text(e.Method.Of(body)); ok {
		m.method = method
	} else {
		return m, invalid(`"method" is not a string`)
	}
	if e.ID.OK() {
		id := e.ID.Of(body)
		if !isString(id) && !isNumber(id) {
			return m, invalid(`"id" is not a string or a number`)
		}
		m.id = id
	}
	return m, nil
}

// Names of members that count in params and in _meta.
var (
	paramNames = []string{"name", "arguments", "_meta", "cursor", "requestState", "inputResponses"}
	metaNames  = []string{"progressToken", "io.modelcontextprotocol/protocolVersion",
		"io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/logLevel"}
)

// params is where the members that count stand in the bytes of params.
type params struct {
	name, args, meta, cursor, token      wire.Span
	state, responses                     wire.Span // of a 2026-07-28 call that goes on
	version, capabilities, info, logging wire.Span // of a 2026-07-28 request, in _meta
}

// findParams finds them. It refuses only what could be read in two ways.
func findParams(b []byte) (params, *refusal) {
	var p params
	if len(b) == 0 || b[0] != '{' {
		return p, nil
	}
	var at [6]wire.Span
	var in [5]wire.Span
	if odd := pick(b, paramNames, at[:]); odd != "" {
		return p, invalid(`"` + odd + `" came twice in params, or with escapes in its name`)
	}
	p.name, p.args, p.meta, p.cursor, p.state, p.responses = at[0], at[1], at[2], at[3], at[4], at[5]
	meta := p.meta
	if !meta.OK() || b[meta.A] != '{' {
		return p, nil
	}
	if odd := pick(meta.Of(b), metaNames, in[:]); odd != "" {
		return p, invalid(`"` + odd + `" came twice in _meta, or with escapes in its name`)
	}
	for i := range in {
		if in[i].OK() {
			in[i].A, in[i].B = in[i].A+meta.A, in[i].B+meta.A
		}
	}
	p.token, p.version, p.capabilities, p.info, p.logging = in[0], in[1], in[2], in[3], in[4]
	return p, nil
}

// pick notes where the members called names stand in the object b. It returns the
// name of one that came twice, or spelled with escapes.
func pick(b []byte, names []string, at []wire.Span) (odd string) {
	wire.ScanObject(b, func(key []byte, v wire.Span) bool {
		for i, name := range names {
			if !isKey(key, name) {
				continue
			}
			if at[i].OK() || len(key) != len(name) {
				odd = name
				return false
			}
			at[i] = v
		}
		return true
	})
	return odd
}

// isKey reports whether a key as written is name, with or without escapes.
func isKey(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	if bytes.IndexByte(key, '\\') < 0 {
		return false
	}
	var s string
	quoted := append(append([]byte{'"'}, key...), '"')
	return json.Unmarshal(quoted, &s) == nil && s == name
}

// text is the string that the JSON value v is, if it is one.
func text(v []byte) (string, bool) {
	if !isString(v) {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	var s string
	err := json.Unmarshal(v, &s)
	return s, err == nil
}

func isString(v []byte) bool { return len(v) >= 2 && v[0] == '"' }

func isNumber(v []byte) bool { return len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9') }

func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

func isNull(v []byte) bool { return len(v) > 0 && v[0] == 'n' }

func pickOne(b []byte, name string) wire.Span {
	var at [1]wire.Span
	if pick(b, []string{name}, at[:]) != "" {
		return wire.Span{}
	}
	return at[0]
}
