package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// listOf is the list of tools that an agent gets at once.
func listOf(t testing.TB, a *mcptest.Agent) string {
	t.Helper()
	r, err := a.RPC(background(t), "tools/list", "{}")
	if err != nil || r.Result() == nil {
		t.Fatalf("tools/list: %v, HTTP %d, %.300s", err, r.Status, r.Body)
	}
	return string(r.Result())
}

// TestC22AnAgentThatListsAtOnceGetsTheLastKnownListAndHearsOfTheNext: the server takes
// its time at every start.
func TestC22AnAgentThatListsAtOnceGetsTheLastKnownListAndHearsOfTheNext(t *testing.T) {
	t.Parallel()
	up := filepath.Join(t.TempDir(), "up")
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "initialize", Do: []mcptest.Step{{Wait: up}, {Default: true}}}}})
	touch(t, up)
	h.awaitState(t, "d", "ready")
	if list := listOf(t, h.Agent("a")); !strings.Contains(list, `"d__echo"`) {
		t.Errorf("the first list: %.300s", list)
	}
	if err := os.Remove(up); err != nil {
		t.Fatal(err)
	}
	h.Restart()
	a := mcptest.NewAgent(h.URL("a"))
	defer a.Close()
	hello, err := a.Init(background(t), mcptest.Legacy)
	if err != nil || !strings.Contains(string(hello.Result()), `"listChanged":true`) {
		t.Errorf("initialize: %v, %s", err, hello.Body)
	}
	if list := listOf(t, a); !strings.Contains(list, `"d__echo"`) {
		t.Errorf("the list while the server starts: %.300s", list)
	}
	if s := h.state(t).Servers[0]; s.State != "connecting" {
		t.Errorf("the server is %s", s.State)
	}
	touch(t, up)
	echo(t, a, "d__echo")
}

// TestC22AnEmptyOrFailedFirstListIsLookedAtAgain, and the agent is told.
func TestC22AnEmptyOrFailedFirstListIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for name, first := range map[string][]mcptest.Step{
		"empty":   {mcptest.Result(`{"tools":[]}`)},
		"failed":  {{Answer: &mcptest.Answer{Error: `{"code":-32603,"message":"not yet"}`}}},
		"no list": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/list", Nth: 1, Do: first}}}, `connect_timeout = "1s"`)
			a := h.Agent("a")
			stream, err := a.Listen(background(t))
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if !strings.Contains(listOf(t, a), `"d__echo"`) {
				if _, err := stream.NextOf("notifications/tools/list_changed"); err != nil {
					t.Fatal(err)
				}
			}
			if list := listOf(t, a); !strings.Contains(list, `"d__echo"`) {
				t.Errorf("the list after the second look: %.300s", list)
			}
		})
	}
}
