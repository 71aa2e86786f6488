package bridge

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/transport/wire"
)

// JSON-RPC error codes.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeInternal = -32603
)

// newEra is the first revision without sessions: its requests say everything.
const newEra = "2026-07-28"

// message is one line of the client.
type message struct {
	line    []byte
	id      []byte // as written; nil for notifications and answers
	method  string
	version string // protocol revision in _meta, "" when it names none
	name    string // what the Mcp-Name header has to say, for a modern request
	fault   []byte // the line that answers a message which is none
}

// read looks at a line. What is wrong with it is answered here, because a daemon
// that is down could not.
func read(line []byte) message {
	m := message{line: line}
	if !jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		m.fault = errorLine(nil, codeParse, "the line is not valid JSON")
		return m
	}
	e, err := wire.ScanEnvelope(line)
	if err != nil {
		m.fault = errorLine(nil, codeInvalid, "the line is not one JSON-RPC message")
		return m
	}
	if e.ID.OK() {
		m.id = e.ID.Of(line)
	}
	if string(e.Version.Of(line)) != `"2.0"` || e.Odd {
		m.fault = errorLine(m.id, codeInvalid, `the line is not one JSON-RPC message: "jsonrpc" is not "2.0", or a member came twice`)
		return m
	}
	if !e.Method.OK() {
		if m.id == nil {
			m.fault = errorLine(nil, codeInvalid, "the message has neither a method nor an id")
		}
		m.id = nil // an answer of the client
		return m
	}
	json.Unmarshal(e.Method.Of(line), &m.method)
	m.look(e.Params.Of(line))
	return m
}

// look finds what a modern request says in _meta, and what it is about.
func (m *message) look(params []byte) {
	var p struct {
		Name string
		URI  string
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if len(params) == 0 || json.Unmarshal(params, &p) != nil {
		return
	}
	m.version, m.name = p.Meta.Version, p.Name
	if m.method == "resources/read" {
		m.name = p.URI
	}
}

// modern reports whether m needs no session.
func (m *message) modern() bool { return m.version >= newEra }

// harmless reports whether m may be sent twice: it asks for nothing but a look.
func (m *message) harmless() bool {
	switch m.method {
	case "ping", "tools/list", "prompts/list", "prompts/get", "resources/list", "resources/read",
		"resources/templates/list", "completion/complete", "server/discover", "logging/setLevel",
		"resources/subscribe", "resources/unsubscribe", "subscriptions/listen":
		return true
	}
	return false
}

// errorLine is a JSON-RPC error; a nil id is null.
func errorLine(id []byte, code int, text string) []byte {
	if id == nil {
		id = []byte("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b, _ = jsontext.AppendQuote(b, text)
	return append(b, "}}"...)
}

// nameless begins the refusal of a request that the daemon did not read: the id of what
// it refuses is not known there.
var nameless = []byte(`{"jsonrpc":"2.0","id":null,"error"`)

// addressed puts id into a nameless refusal, so that the client knows it for an answer.
func addressed(answer, id []byte) []byte {
	if id == nil || !bytes.HasPrefix(answer, nameless) {
		return answer
	}
	head := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	return append(head, answer[len(nameless)-len(`,"error"`):]...)
}
