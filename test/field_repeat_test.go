package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// payTools are two tools with the same effect; one of them says that it may be repeated.
const payTools = `[{"name":"pay","inputSchema":{"type":"object"}},` +
	`{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`

func TestC08TheLedgerOfAServerThatDiesInACall(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger")
	gone := mcptest.Exit(3)
	died := []mcptest.Step{{Append: ledger}, gone}
	// The nth message is counted by the process: each one that is started dies of its first.
	h := one(t, "", mcptest.Script{Tools: payTools, Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "pay", Do: died}, {Method: "tools/call", Tool: "look", Do: died},
	}})
	starts := 1 // and one more for each process that died
	for tool, effects := range map[string]int{"pay": 1, "look": 2} {
		mcptest.Eventually(t, "a server that lives", func() bool {
			s := h.state(t).Servers[0]
			return s.State == "ready" && s.Starts == starts
		})
		starts += effects
		_ = os.Remove(ledger)
		r, err := h.Agent("a").Call(background(t), "d__"+tool, "{}")
		if err != nil || !r.IsError() || !strings.Contains(r.Text(), "exit status 3") || !strings.Contains(r.Text(), "may have run") {
			t.Errorf("%s: %v, %s", tool, err, r.Body)
		}
		if n := lines(t, ledger, tool); n != effects {
			t.Errorf("%s had its effect %d times, want %d", tool, n, effects)
		}
	}
}

func TestC08TheLedgerOfAConnectionThatBreaksAfterTheRequest(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger")
	broken := []mcptest.Step{{Append: ledger}, {HTTP: &mcptest.Reply{Then: "close"}}}
	remote := mcptest.NewRemote(t, mcptest.Script{Tools: payTools, Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "pay", Do: broken},
		{Method: "tools/call", Tool: "look", Nth: 1, Do: broken},
		{Method: "tools/call", Tool: "look", Do: []mcptest.Step{{Append: ledger}, mcptest.Result(textResult("seen"))}},
	}})
	h := hub{Daemon: mcptest.StartDaemon(t, fmt.Sprintf("[servers.d]\nurl = %q\n", remote.URL+"/mcp"))}
	h.awaitState(t, "d", "ready")
	a := h.Agent("a")
	r, err := a.Call(background(t), "d__pay", "{}")
	if err != nil || !r.IsError() || !strings.Contains(r.Text(), "may have run and was not repeated") || lines(t, ledger, "pay") != 1 {
		t.Errorf("paid %d times: %v, %s", lines(t, ledger, "pay"), err, r.Body)
	}
	if got := call(t, a, "d__look", "{}").Text(); got != "seen" || lines(t, ledger, "look") != 2 {
		t.Errorf("looked %d times: %s", lines(t, ledger, "look"), got)
	}
}

// lines counts the lines of a file that are exactly this.
func lines(t *testing.T, path, line string) (n int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		if strings.TrimSuffix(l, "\n") == line {
			n++
		}
	}
	return n
}
