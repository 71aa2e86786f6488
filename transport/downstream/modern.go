package downstream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// The members that the newest revision demands of every request's _meta.
const (
	metaProtocol     = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel" // where the agent wants log messages
)

// withMeta puts into _meta what the newest revision demands, as far as the agent did not
// say it itself: of the agent what is known of it, else of this daemon. All other bytes stay as they are.
func withMeta(params []byte, protocol, version string, req actors.Request) []byte {
	type demand struct{ key, value string }
	demanded := []demand{
		{metaProtocol, strconv.Quote(protocol)},
		{metaClient, `{"name":"mcphubd","version":` + quote(version) + `}`},
		{metaCapabilities, `{}`},
	}
	if len(req.Can) > 0 {
		demanded[2].value = string(req.Can)
	}
	if req.LogLevel != "" {
		demanded = append(demanded, demand{metaLogLevel, quote(req.LogLevel)})
	}
	if len(params) == 0 {
		params = []byte("{}")
	}
	at, _ := valueOf(params, "_meta")
	if !at.OK() {
		params = insert(params, 0, `"_meta":{}`)
		at, _ = valueOf(params, "_meta")
	} else if params[at.A] != '{' {
		params = splice(params, at, "{}")
		at.B = at.A + 2
	}
	for _, d := range demanded {
		v, there := valueOf(at.Of(params), d.key)
		switch before := len(params); {
		case !there:
			params = insert(params, at.A, `"`+d.key+`":`+d.value)
			at.B += len(params) - before
		case d.key == metaProtocol && string(v.Of(at.Of(params))) != d.value:
			// The header says what was agreed with this server, and both must be alike.
			params = splice(params, wire.Span{A: at.A + v.A, B: at.A + v.B}, d.value)
			at.B += len(params) - before
		}
	}
	return params
}

// metaMark stands in every key of _meta that MCP itself defines, however it is escaped.
var metaMark = []byte("io.modelcontextprotocol")

// older is req for a server of an older revision.
func older(id uint64, req actors.Request) actors.Request {
	for _, piece := range req.Params {
		if bytes.Contains(piece, metaMark) {
			req.Params, req.Token = [][]byte{withoutProtocol(paramsOf(id, req))}, -1
			return req
		}
	}
	return req
}

// withoutProtocol takes the revision out of _meta that the agent speaks with this daemon. It
// is not the server's, and one that knows both would take the request for one of the newest
// (case C57). All other bytes stay as they are. params is its own to change.
func withoutProtocol(params []byte) []byte {
	meta, ok := valueOf(params, "_meta")
	if !ok || params[meta.A] != '{' {
		return params
	}
	for {
		at, there := memberOf(meta.Of(params), metaProtocol)
		if !there {
			return params
		}
		params = slices.Delete(params, meta.A+at.A, meta.A+at.B)
		meta.B -= at.B - at.A
	}
}

// memberOf returns where a member of object stands, with the comma that goes when it goes.
func memberOf(object []byte, key string) (at wire.Span, ok bool) {
	first := true
	at.A = 1 // behind the brace; later behind the value before
	_ = wire.ScanObject(object, func(k []byte, v wire.Span) bool {
		if ok = isKey(k, key); ok {
			at.B = v.B
		} else {
			at.A, first = v.B, false
		}
		return !ok
	})
	if rest := bytes.TrimLeft(object[at.B:], " \t\r\n"); ok && first && rest[0] == ',' {
		at.B = len(object) - len(rest) + 1
	}
	return at, ok
}

// isKey reports whether raw, as it stands between its quotes, is key.
func isKey(raw []byte, key string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == key
	}
	var text string
	return json.Unmarshal([]byte(`"`+string(raw)+`"`), &text) == nil && text == key
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// valueOf returns where the value of a member of object stands.
func valueOf(object []byte, key string) (at wire.Span, ok bool) {
	_ = wire.ScanObject(object, func(k []byte, v wire.Span) bool {
		if string(k) == key {
			at, ok = v, true
		}
		return !ok
	})
	return at, ok
}

// splice returns b with the bytes at at replaced.
func splice(b []byte, at wire.Span, with string) []byte {
	out := make([]byte, 0, len(b)+len(with))
	out = append(append(out, b[:at.A]...), with...)
	return append(out, b[at.B:]...)
}

// insert makes text the first member of the object that opens at brace.
func insert(b []byte, brace int, text string) []byte {
	rest := bytes.TrimLeft(b[brace+1:], " \t\r\n")
	if len(rest) > 0 && rest[0] != '}' {
		text += ","
	}
	return splice(b, wire.Span{A: brace + 1, B: brace + 1}, text)
}
