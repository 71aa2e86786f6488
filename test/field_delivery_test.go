package test

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"testing"

	"mcphubd/test/mcptest"
)

var callID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// stored waits until one result of this agent is stored, and returns its id.
func stored(t *testing.T, h hub, name string) (id string) {
	t.Helper()
	mcptest.Eventually(t, "the result to be stored", func() bool {
		r := call(t, h.Agent(name), "mcphub_read_result", `{}`)
		id = callID.FindString(r.Text())
		return id != ""
	})
	return id
}

// post sends a call on a connection of its own, and reads n bytes of what comes back.
func post(t *testing.T, h hub, a *mcptest.Agent, params string, n int64) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", h.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	body, _ := a.Message("7", "tools/call", params)
	fmt.Fprintf(c, "POST /mcp/a HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
		h.Addr(), a.Session, len(body), body)
	if _, err := io.CopyN(io.Discard, c, n); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// TestC92AResultWhoseAgentWasCutOffCanBeFetched: cut before the answer, and in its midst.
// The tool ran once, and only its agent is told.
func TestC92AResultWhoseAgentWasCutOffCanBeFetched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		read int64
	}{
		"before the answer": {`{"bytes":1000}`, 0},
		"in its midst":      {`{"bytes":50000000}`, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := filepath.Join(t.TempDir(), "end")
			script := mcptest.Script{}
			if c.read == 0 { // the daemon has time to see that the agent is gone: what small answers meet in between is lost
				script.Rules = []mcptest.Rule{{Method: "tools/call", Tool: "blob", Do: []mcptest.Step{{Wait: end}, {Sleep: 1500}, {Default: true}}}}
			}
			h := one(t, "response_budget = \"0\"\n", script)
			a := h.Agent("a")
			conn := post(t, h, a, `{"name":"d__blob","arguments":`+c.args+`}`, c.read)
			h.d().Record.Await(t, "tools/call", 1)
			_ = conn.SetLinger(0) // as a Wi-Fi change would end it
			conn.Close()
			touch(t, end)
			id := stored(t, h, "a")
			got, err := h.Agent("a").ReadBack(background(t), id)
			if err != nil || !h.d().Ledger.Has(got) {
				t.Errorf("%d bytes came back: %v", len(got), err)
			}
			if n := len(h.d().Record.Of("tools/call")); n != 1 {
				t.Errorf("the tool ran %d times", n)
			}
			if r := call(t, h.Agent("b"), "mcphub_read_result", `{}`); callID.MatchString(r.Text()) {
				t.Errorf("another agent is told of it: %s", r.Text())
			}
			if n := len(h.d().Record.Of("notifications/cancelled")); n != 0 {
				t.Errorf("%d cancels were sent", n)
			}
		})
	}
}
