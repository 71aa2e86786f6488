package test

import (
	"fmt"
	"io"
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

// TestC92AResultWhoseAgentWasCutOffCanBeFetched: cut before the answer, and in its midst.
// The tool ran once, and only its agent is told.
func TestC92AResultWhoseAgentWasCutOffCanBeFetched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		read int64
	}{
		"before the answer": {`{"bytes":1000}`, 0},
		"in its midst":      {fmt.Sprintf(`{"bytes":%d}`, full(50_000_000)), 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := filepath.Join(t.TempDir(), "end")
			script := mcptest.Script{}
			if c.read == 0 {
				script.Rules = []mcptest.Rule{{Method: "tools/call", Tool: "blob", Do: []mcptest.Step{{Wait: end}, {Default: true}}}}
			}
			h := one(t, "response_budget = \"0\"\n", script)
			a := h.Agent("a")
			w := dial(t, a)
			send := func(method, params string) {
				if body, header := a.Message("7", method, params); w.Post(a, body, header) != nil {
					t.Fatal(method, " was not sent")
				}
			}
			send("ping", "{}") // in the second request of a connection the daemon misses its agent at once
			if r, err := w.Response(); err != nil || r.Result() == nil {
				t.Fatalf("ping: %v, %s", err, r.Body)
			}
			send("tools/call", `{"name":"d__blob","arguments":`+c.args+`}`)
			if _, err := io.CopyN(io.Discard, w.TCPConn, c.read); err != nil {
				t.Fatal(err)
			}
			h.d().Record.Await(t, "tools/call", 1)
			_ = w.Reset() // as a Wi-Fi change would end it
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
