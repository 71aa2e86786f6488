package test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// TestToolsThatWantBadHeadersAreLeftOutOneByOne where headers matter, and named to the owner.
func TestToolsThatWantBadHeadersAreLeftOutOneByOne(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"9"}}}`,
		"tools/list": `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
			{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"}}}},
			{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"no name"}}}},
			{"name":"fine","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Content-Type", "application/json")
		result, ok := answers[m.Method]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"Method not found"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
	}))
	t.Cleanup(server.Close)
	h := hub{Daemon: mcptest.StartDaemon(t, "[servers.d]\nurl = \""+server.URL+"/mcp\"\n")}
	h.awaitState(t, "d", "ready")
	a := h.Agent("a")
	r, err := a.RPC(background(t), "tools/list", "{}")
	if err != nil || !bytes.Contains(r.Body, []byte(`"d__good"`)) || !bytes.Contains(r.Body, []byte(`"d__fine"`)) || bytes.Contains(r.Body, []byte(`"d__bad"`)) {
		t.Errorf("%v %s", err, r.Body)
	}
	call(t, a, "d__good", `{"a":"x"}`)
	_, state, err := h.Get("/debug/state")
	if err != nil || !bytes.Contains(state, []byte(`"name": "bad"`)) || !bytes.Contains(state, []byte("it is no name for a header")) {
		t.Errorf("the state does not name it: %v %s", err, state)
	}
	if out, err := h.Command("server", "show", "d").CombinedOutput(); err != nil || !strings.Contains(string(out), "it is no name for a header") {
		t.Errorf("server show does not name it: %v %s", err, out)
	}
}
