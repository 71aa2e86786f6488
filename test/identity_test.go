package test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

const twoTokens = `[agents.a]
token = "tok-a-0123456789"
[agents.b]
token = "${file:TOKENFILE}"
[agents.open]
`

// authorised is the agent of a daemon that brings a token.
func authorised(d *mcptest.Daemon, path, token string) *mcptest.Agent {
	a := mcptest.NewAgent(strings.TrimSuffix(d.URL("x"), "/mcp/x") + path)
	a.HTTP = &http.Client{Transport: bearerTransport(token)}
	return a
}

type bearerTransport string

func (t bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if t != "" {
		r.Header.Set("Authorization", "Bearer "+string(t))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestAnAgentWithATokenIsEnteredWithItAlone: by path, at the plain endpoint, over the
// socket and by the bridge.
func TestAnAgentWithATokenIsEnteredWithItAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("tok-b-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := one(t, strings.Replace(twoTokens, "TOKENFILE", file, 1), mcptest.Script{})
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/mcp/a", "", 401}, {"/mcp/a", "tok-b-0123456789", 401}, {"/mcp/a", "tok-a-0123456789", 200},
		{"/mcp/b", "tok-b-0123456789", 200}, {"/mcp/b", "", 401}, {"/mcp", "tok-b-0123456789", 200}, {"/mcp", "", 401},
		{"/mcp", "nobodys", 401}, {"/mcp/open", "", 200}, {"/mcp/open", "nobodys", 401}, {"/mcp/stranger", "", 404},
		{"/servers/d/mcp/a", "", 401}, {"/servers/d/mcp/a", "tok-a-0123456789", 200},
	} {
		a := authorised(h.Daemon, c.path, c.token)
		r, _ := a.Init(background(t), "2025-06-18")
		if r.Status != c.status {
			t.Errorf("%s with %q: HTTP %d, want %d: %.300s", c.path, c.token, r.Status, c.status, r.Body)
		}
		if c.status == 404 && !strings.Contains(string(r.Body), "[agents.stranger]") {
			t.Errorf("a stranger is not told what to do: %s", r.Body)
		}
		for _, secret := range []string{"tok-a-", "tok-b-"} {
			if strings.Contains(string(r.Body), secret) {
				t.Errorf("%s says %s", c.path, r.Body)
			}
		}
	}
	_, raw, _ := h.Get("/debug/state")
	var state struct{ Daemon struct{ Socket string } }
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	socket := state.Daemon.Socket
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	r, err := client.Post("http://localhost/mcp/a", "application/json", strings.NewReader("{}"))
	if err != nil || r.StatusCode != 401 {
		t.Errorf("over the socket %s: %v %v", socket, r, err)
	}
}

// TestTheBridgeBringsTheTokenOfItsAgent from a file or the environment; without it the
// client is told so under its own id.
func TestTheBridgeBringsTheTokenOfItsAgent(t *testing.T) {
	t.Parallel()
	h := one(t, "[agents.a]\ntoken = \"tok-a-0123456789\"\n", mcptest.Script{})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("tok-a-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := connect(t, h.Daemon, "a")
	none.send(`{"jsonrpc":"2.0","id":"h1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if line := none.next(`"id":"h1"`); !strings.Contains(line, "token") {
		t.Errorf("without the token: %s", line)
	}
	for _, how := range []struct{ args, env []string }{
		{[]string{"--token-file", file}, nil},
		{nil, []string{"MCPHUBD_TOKEN=tok-a-0123456789"}},
	} {
		b := connectWith(t, h.Daemon, how.env, append([]string{"--agent", "a"}, how.args...)...)
		b.hello()
		b.call(1, "d__echo", `{"v":"let in"}`)
		b.next(`"id":1`, "let in")
	}
}

// TestTheBridgeWritesNoLineThatItsClientCannotTake: what is larger is stored, also where
// no budget says so.
func TestTheBridgeWritesNoLineThatItsClientCannotTake(t *testing.T) {
	t.Parallel()
	h := one(t, "response_budget = \"0\"\n", mcptest.Script{})
	b := connectWith(t, h.Daemon, nil, "--agent", "a", "--max-line", "64KB")
	b.hello()
	b.call(1, "d__blob", `{"bytes":40000}`)
	if line := b.next(`"id":1`); strings.Contains(line, `\"status\":\"stored\"`) {
		t.Errorf("stored, although it fits: %.200s", line)
	}
	b.call(2, "d__blob", `{"bytes":200000}`)
	if line := b.next(`"id":2`); !strings.Contains(line, `\"status\":\"stored\"`) || len(line) > 64<<10 {
		t.Errorf("%d bytes: %.300s", len(line), line)
	}
}
