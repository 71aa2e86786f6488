package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

func peakRSS(h hub) int64 { return proc.PeakRSS(h.PID()) }

// modernOnly is a stdio server that knows no initialize.
func modernOnly(more ...mcptest.Rule) mcptest.Script {
	return mcptest.Script{Rules: append(more,
		mcptest.Rule{Method: "initialize", Do: []mcptest.Step{{Answer: &mcptest.Answer{
			Error: `{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}`}}}},
		mcptest.Rule{Method: "server/discover", Do: []mcptest.Step{mcptest.Result(
			`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"9"}}}`)}})}
}

func TestC56ServersThatChokeOnAnythingButInitializeNeverGetIt(t *testing.T) {
	t.Parallel()
	choke := func(do ...mcptest.Step) mcptest.Script {
		return mcptest.Script{Rules: []mcptest.Rule{{Method: "server/discover", Do: do}}}
	}
	h := start(t, "", map[string]mcptest.Script{
		"dies":    choke(mcptest.Exit(1)),
		"hangs":   choke(),
		"refuses": choke(mcptest.Step{Answer: &mcptest.Answer{Error: `{"code":-32602,"message":"no"}`}}),
		"shouts":  choke(mcptest.Step{Stderr: mcptest.Bytes(strings.Repeat("panic! ", 1200)), Answer: &mcptest.Answer{Error: `{"code":-32601,"message":"no"}`}}),
	})
	a := h.Agent("a")
	for name, s := range h.servers {
		if r := call(t, a, name+"__echo", `{"v":"x"}`); r.Text() != "x" {
			t.Errorf("%s: %s", name, r.Body)
		}
		lines := s.Record.All()
		if method := string(mcptest.Members(lines[0])["method"]); method != `"initialize"` || len(s.Record.Of("server/discover")) > 0 || len(s.Record.Of("initialize")) != 1 {
			t.Errorf("%s: the first message was %s", name, lines[0])
		}
	}
}

// TestC57EachLegIsNegotiatedByItself: all pairs of agent and server eras at once.
func TestC57EachLegIsNegotiatedByItself(t *testing.T) {
	t.Parallel()
	h := start(t, "", map[string]mcptest.Script{"old": {Protocol: "2025-03-26"}, "new": modernOnly()})
	for era, agent := range eras {
		a := agent(h)
		for _, server := range []string{"old", "new"} {
			for i := range 3 {
				v := fmt.Sprintf("%s to %s %d", era, server, i)
				r := call(t, a, server+"__raw", `{"v":"`+v+`","n":12345678901234567890}`)
				params := mcptest.Members(mcptest.Members(r.Result())["structuredContent"])["params"]
				if !bytes.Contains(params, []byte(`"arguments":{"v":"`+v+`","n":12345678901234567890}`)) {
					t.Errorf("%s: %s", v, r.Body)
				}
				meta := string(mcptest.Members(params)["_meta"])
				// The revision is of the leg; what else the agent says of itself passes.
				if spoken := strings.Contains(meta, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`); spoken != (server == "new") {
					t.Errorf("%s: _meta is %s", v, meta)
				}
				if known := strings.Contains(meta, "clientCapabilities"); known != (server == "new" || era == "modern") {
					t.Errorf("%s: _meta is %s", v, meta)
				}
				if typed := bytes.Contains(r.Result(), []byte(`"resultType":"complete"`)); typed != (era == "modern") {
					t.Errorf("%s: resultType is there: %v", v, typed)
				}
			}
		}
	}
	// The server that refused initialize was started once more, and never asked again.
	s := h.servers["new"]
	if n, m := len(s.Record.Of("initialize")), len(s.Record.Of("server/discover")); n != 1 || m != 1 {
		t.Errorf("%d times initialize, %d times server/discover", n, m)
	}
	r := call(t, h.Agent("b"), "new__pid", "")
	pid := r.Text()
	if _, err := h.Agent("b").Call(background(t), "new__crash", `{"code":3}`); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the server to be back", func() bool {
		r, err := h.Agent("b").Call(background(t), "new__pid", "")
		return err == nil && !r.IsError() && r.Text() != "" && r.Text() != pid
	})
	if n := len(s.Record.Of("initialize")); n != 1 {
		t.Errorf("after a crash it was asked to initialize again, %d times in all", n)
	}
}

// TestC56WhatWasFoundOutOutlivesTheDaemon, and does no harm when it is not true any more.
func TestC56WhatWasFoundOutOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	old := mcptest.NewRemote(t, mcptest.Script{})
	table := func(s mcptest.Server) string { return s.TOML("d") + "[servers.old]\nurl = \"" + old.URL + "/mcp\"\n" }
	discovered := func() (n int) {
		for _, q := range old.Requests() {
			n += strings.Count(q.Body, "server/discover")
		}
		return n
	}
	modern := mcptest.NewServer(t, modernOnly())
	h := hub{Daemon: mcptest.StartDaemon(t, table(modern))}
	again := func() {
		h.awaitState(t, "d", "ready")
		h.awaitState(t, "old", "ready")
		a := h.Agent("a")
		echo(t, a, "d__echo")
		echo(t, a, "old__echo")
		if err := h.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	again()
	for range 2 {
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		again()
	}
	if n, m := len(modern.Record.Of("initialize")), len(modern.Record.Of("server/discover")); n != 1 || m != 3 {
		t.Errorf("%d times initialize, %d times server/discover", n, m)
	}
	if n := discovered(); n != 1 {
		t.Errorf("the older server at a URL was asked server/discover %d times", n)
	}
	// The program is another one now, and chokes.
	h.SetConfig(table(mcptest.NewServer(t, mcptest.Script{Rules: []mcptest.Rule{{Method: "server/discover", Do: []mcptest.Step{mcptest.Exit(1)}}}})))
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	again()
}

func TestC56TheEraCanBePinned(t *testing.T) {
	t.Parallel()
	h := start(t, "", map[string]mcptest.Script{"d": modernOnly()}, `era = "modern"`)
	call(t, h.Agent("a"), "d__echo", `{"v":"x"}`)
	if lines := h.d().Record.All(); string(mcptest.Members(lines[0])["method"]) != `"server/discover"` {
		t.Errorf("the first message was %s", lines[0])
	}
	h = start(t, "", map[string]mcptest.Script{"d": modernOnly()}, `era = "legacy"`)
	r, err := h.Agent("a").Call(background(t), "d__echo", `{"v":"x"}`)
	if err != nil || r.Result() != nil && !r.IsError() || len(h.d().Record.Of("server/discover")) > 0 {
		t.Errorf("pinned to the older revisions: %v %s", err, r.Body)
	}
}

// TestC61AModernServersQuestionsReachBothErasOverStdio: as they are, or one by one.
func TestC61AModernServersQuestionsReachBothErasOverStdio(t *testing.T) {
	t.Parallel()
	const asks = `{"resultType":"input_required","requestState":"S\u0031","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"sure?","requestedSchema":{"type":"object","properties":{}}}}}}`
	ask := func(n int) mcptest.Rule {
		return mcptest.Rule{Method: "tools/call", Tool: "echo", Nth: n, Do: []mcptest.Step{mcptest.Result(asks)}}
	}
	h := one(t, "", modernOnly(ask(1), ask(3), ask(5)))
	m := h.Modern("a")
	if r := call(t, m, "d__echo", `{"v":"x"}`); string(r.Result()) != asks {
		t.Errorf("a modern agent got %s", r.Result())
	}
	if r, err := m.RPC(background(t), "tools/call", `{"name":"d__echo","arguments":{"v":"x"},"requestState":"S1","inputResponses":{"k":{"action":"accept"}}}`); err != nil || r.Text() != "x" {
		t.Errorf("%v %s", err, r.Body)
	}
	sent := h.d().Record.Of("tools/call")
	if !bytes.Contains(sent[1], []byte(`"requestState":"S1","inputResponses":{"k":{"action":"accept"}}`)) {
		t.Errorf("the server got %s", sent[1])
	}
	legacyIsAsked(t, h)
	if r := call(t, h.Agent("deaf"), "d__echo", `{"v":"x"}`); r.Text() != "x" {
		t.Errorf("%s", r.Body)
	}
	sent = h.d().Record.Of("tools/call")
	if !bytes.Contains(sent[3], []byte(`"inputResponses":{"k":{"action":"accept","content":{"n":1}}}`)) || !bytes.Contains(sent[3], []byte(`"requestState":"S\u0031"`)) {
		t.Errorf("the server got %s", sent[3])
	}
	if !bytes.Contains(sent[5], []byte(`"inputResponses":{"k":{"action":"decline"}}`)) {
		t.Errorf("the server got %s", sent[5])
	}
}

// TestC61AGatewayBehindAGatewayCanAsk: to the outer one the inner is a server of the newest
// revision, whose states are its own, whatever they look like.
func TestC61AGatewayBehindAGatewayCanAsk(t *testing.T) {
	t.Parallel()
	answered := filepath.Join(t.TempDir(), "answered")
	inner := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{
		{Write: mcptest.Bytes(fmt.Sprintf(question, 1))}, {Wait: answered}, {Default: true}}}}})
	outer := hub{Daemon: mcptest.StartDaemon(t, "[servers.inner]\nurl = \""+inner.URL("outer")+"\"\n")}
	cs := outer.official(t, "a", mcptest.Modern, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"who": "a"}}, nil
	}})
	go func() {
		mcptest.Eventually(t, "the answer at the server", func() bool { return strings.Contains(heard(inner, "1"), `"who":"a"`) })
		_ = os.WriteFile(answered, nil, 0o600)
	}()
	res, err := cs.CallTool(background(t), &mcp.CallToolParams{Name: "inner__d__echo", Arguments: map[string]any{"v": "x"}})
	if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "x" {
		t.Errorf("%v %v", res, err)
	}
	if n := len(inner.d().Record.Of("tools/call")); n != 1 {
		t.Errorf("the server was called %d times", n)
	}
	// A state that leads nowhere does not call an older server, which never gave one.
	for _, state := range []string{`"mcphub.` + strings.Repeat("0", 64) + `"`, `"S"`, `7`} {
		r, err := inner.Modern("a").RPC(background(t), "tools/call", `{"name":"d__echo","arguments":{"v":"x"},"requestState":`+state+`,"inputResponses":{}}`)
		if err != nil || !bytes.Contains(r.Body, []byte(`"code":-32602`)) || len(inner.d().Record.Of("tools/call")) != 1 {
			t.Errorf("state %s: %v %s", state, err, r.Body)
		}
	}
}

// TestC94NobodyIsAskedForSignsOfLife: one handshake a process, no ping, and a server that
// is busy is left alone.
func TestC94NobodyIsAskedForSignsOfLife(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "ping", Do: []mcptest.Step{mcptest.Exit(9)}}}})
	a := h.Agent("a")
	pid := call(t, a, "d__pid", "").Text()
	if r := call(t, a, "d__echo", `{"v":"done","ms":3000}`); r.Text() != "done" {
		t.Error(string(r.Body))
	}
	if again := call(t, a, "d__pid", "").Text(); again != pid {
		t.Errorf("process %s became %s", pid, again)
	}
	if n, p := len(h.d().Record.Of("initialize")), len(h.d().Record.Of("ping")); n != 1 || p != 0 {
		t.Errorf("%d handshakes, %d pings", n, p)
	}
}
