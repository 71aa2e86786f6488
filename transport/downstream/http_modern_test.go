package downstream

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcphubd/actors"
)

// newModern is a server of the newest revision that checks headers against the body.
func newModern(t *testing.T) *peer {
	p := newPeer(t)
	p.stateless = true
	p.first = func(w http.ResponseWriter, r *http.Request, m message) bool {
		var body struct {
			Params struct {
				Name, URI string
				Meta      map[string]json.RawMessage `json:"_meta"`
			}
		}
		_ = json.Unmarshal(m.raw, &body)
		name := body.Params.Name + body.Params.URI
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(405)
		case m.Method == "server/discover":
			result(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"be kind"}`)
		case r.Header.Get(methodHeader) != m.Method, r.Header.Get(nameHeader) != headerValue(name),
			string(body.Params.Meta[metaProtocol]) != `"`+r.Header.Get(protocolHeader)+`"`, body.Params.Meta[metaClient] == nil, body.Params.Meta[metaCapabilities] == nil:
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32020,"message":"header mismatch"}}`)
		default:
			return false
		}
		return true
	}
	return p
}

func TestC97HeadersAreBuiltFromTheBody(t *testing.T) {
	p := newModern(t)
	c := attach(t, p.remote(nil), actors.Events{})
	if info := c.Info(); info.Protocol != modern || info.Instructions != "be kind" {
		t.Errorf("%+v", info)
	}
	for _, name := range []string{"echo", "naïve 工具", " padded ", "=?base64?eA==?="} {
		quoted, _ := json.Marshal(name)
		for _, params := range []string{
			`{"name":$,"arguments":{"v":1.0}}`,
			`{"_meta":{},"name":$,"arguments":{"v":1.0}}`,
			`{"_meta":null,"name":$,"arguments":{"v":1.0}}`,
			`{"name":$,"arguments":{"v":1.0},"_meta":{"traceparent":"00-x", "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"agent","version":"9"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`,
			`{"name":$,"arguments":{"v":1.0},"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","x":1e400}}`,
		} {
			params = strings.Replace(params, "$", string(quoted), 1)
			got, err := bytesOf(c.Call(t.Context(), actors.Request{Method: "tools/call", Params: [][]byte{[]byte(params)}, Token: -1, Hold: 1 << 16}))
			if err != nil || got != `{"v":1.0}` {
				t.Errorf("%s: %s, %v", params, got, err)
			}
			all := p.of("tools/call")
			sent := all[len(all)-1]
			for _, kept := range []string{`"arguments":{"v":1.0}`, `"name":` + string(quoted)} {
				if !strings.Contains(sent.body, kept) {
					t.Errorf("%s became %s", params, sent.body)
				}
			}
			if strings.Contains(params, "agent") && !strings.HasSuffix(sent.body, params+"}") {
				t.Errorf("what the agent said was altered: %s became %s", params, sent.body)
			}
			if sent.header.Get(sessionHeader) != "" {
				t.Error("a session in a revision without sessions")
			}
		}
	}
	for _, req := range []actors.Request{
		{Method: "tools/list", Token: -1}, {Method: "tools/list", Params: [][]byte{[]byte("{ }")}, Token: -1},
	} {
		if got, err := bytesOf(c.Call(t.Context(), req)); err != nil || !strings.HasPrefix(got, `{"tools"`) {
			t.Errorf("%s, %v", got, err)
		}
	}
	if n := len(p.of("initialize")) + len(p.of("GET")); n != 0 {
		t.Errorf("%d requests of the older revisions", n)
	}
}

func TestAServerThatLeavesTheRevisionIsAskedAnew(t *testing.T) {
	p := newModern(t)
	k := p.remote(nil)
	c := attach(t, k, actors.Events{})
	serves(t, c)
	p.first = func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if m.Method == "tools/call" {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2025-06-18"]}}}`)
		}
		return m.Method == "tools/call"
	}
	if _, err := ask(t, c, "echo", `{}`); !contains(err, "fake", "unsupported protocol version", "did not run") {
		t.Error(err)
	}
	<-c.Done()
	p.first, p.stateless = nil, false
	c = attach(t, k, actors.Events{})
	serves(t, c)
	if got := c.Info().Protocol; got != "2025-06-18" {
		t.Error(got)
	}
}

// TestC57AnOlderServerIsNotToldOfTheNewestRevision: one that knows both takes a request that
// carries it for one of another session, as servers made with the SDK of today do.
func TestC57AnOlderServerIsNotToldOfTheNewestRevision(t *testing.T) {
	p := newPeer(t)
	p.first = func(w http.ResponseWriter, _ *http.Request, m message) bool {
		named := m.Method == "tools/call" && strings.Contains(string(m.raw), metaProtocol)
		if named {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32022,"message":"this server is stateful"}}`)
		}
		return named
	}
	old := newOldPeer(t)
	for _, kind := range []struct {
		*HTTP
		got func() string
	}{
		{p.remote(nil), func() string { all := p.of("tools/call"); return all[len(all)-1].body }},
		{old.remote(), func() string {
			old.mu.Lock()
			defer old.mu.Unlock()
			at := slices.IndexFunc(old.seen, func(s sight) bool { return s.Method == "tools/call" })
			return old.seen[at].body
		}},
	} {
		c := attach(t, kind.HTTP, actors.Events{})
		const begin, end = `{"name":"echo","arguments":{"v":1.0},"_meta":{"traceparent":"00-x"`, `, "io.modelcontextprotocol/clientCapabilities":{}}}`
		params := begin + `,"io.modelcontextprotocol/protocolVersion":"2026-07-28"` + end
		got, err := bytesOf(c.Call(t.Context(), actors.Request{Method: "tools/call", Params: [][]byte{[]byte(params)}, Token: -1, Hold: 1 << 16}))
		if err != nil || got != `{"v":1.0}` {
			t.Errorf("%s, %v", got, err)
		}
		if body := kind.got(); !strings.HasSuffix(body, begin+end+"}") {
			t.Errorf("it got %s", body)
		}
		serves(t, c)
	}
}

func TestOnlyTheRevisionIsTakenOutOfMeta(t *testing.T) {
	const key = `"io.modelcontextprotocol/protocolVersion"`
	for params, want := range map[string]string{
		`{"_meta":{` + key + `:"x"}}`:                                              `{"_meta":{}}`,
		`{"_meta":{ ` + key + ` : "x" , "a":1.0 }}`:                                `{"_meta":{ "a":1.0 }}`,
		`{"a":1e400,"_meta":{"b":-0,` + key + `:"x","c":[ ]},"d":1}`:               `{"a":1e400,"_meta":{"b":-0,"c":[ ]},"d":1}`,
		`{"_meta":{"b":1 , ` + key + `:{"y":[1]}}}`:                                `{"_meta":{"b":1}}`,
		`{"_meta":{` + key + `:1,"b":1,` + key + `:2}}`:                            `{"_meta":{"b":1}}`,
		`{"_meta":{"io.modelcontextprotocol\/protocolVersion":"x","b":1}}`:         `{"_meta":{"b":1}}`,
		`{"arguments":{"_meta":{` + key + `:"x"},` + key + `:1},"_meta":{"a":1}}`:  `{"arguments":{"_meta":{` + key + `:"x"},` + key + `:1},"_meta":{"a":1}}`,
		`{"_meta":{"b":{` + key + `:"x"}},"io.modelcontextprotocol/clientInfo":1}`: `{"_meta":{"b":{` + key + `:"x"}},"io.modelcontextprotocol/clientInfo":1}`,
		`{"_meta":null,"a":` + key + `}`:                                           `{"_meta":null,"a":` + key + `}`,
	} {
		if got := string(withoutProtocol([]byte(params))); got != want {
			t.Errorf("%s became %s, want %s", params, got, want)
		}
	}
}

func FuzzWithMetaKeepsWhatTheAgentSaid(f *testing.F) {
	f.Add(`{"name":"x","_meta":{"a":1},"arguments":{"n":1.0}}`)
	f.Add(`{ "_meta" : null }`)
	f.Add(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}`)
	s := &session{h: &HTTP{Version: "1"}}
	f.Fuzz(func(t *testing.T, params string) {
		var before, after map[string]json.RawMessage
		if json.Unmarshal([]byte(params), &before) != nil || before == nil || strings.Count(params, "_meta") > 1 || strings.Contains(params, `\`) {
			t.Skip()
		}
		out := withMeta([]byte(params), modern, s.h.Version, actors.Request{})
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%s became %s: %v", params, out, err)
		}
		var meta, were map[string]json.RawMessage
		_ = json.Unmarshal(before["_meta"], &were)
		if err := json.Unmarshal(after["_meta"], &meta); err != nil || string(meta[metaProtocol]) != `"`+modern+`"` || meta[metaClient] == nil || meta[metaCapabilities] == nil {
			t.Fatalf("%s became %s: %v", params, out, err)
		}
		for key, v := range were {
			if key != metaProtocol && string(meta[key]) != string(v) {
				t.Fatalf("%s became %s", params, out)
			}
		}
		for key, v := range before {
			if key != "_meta" && string(after[key]) != string(v) {
				t.Fatalf("%s became %s", params, out)
			}
		}
	})
}
