package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// TestC40EachAgentHasItsOwnCopyWhereThatIsConfigured, for all its sessions; it ends with
// the last of them, and everybody shares one copy where nothing is configured.
func TestC40EachAgentHasItsOwnCopyWhereThatIsConfigured(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{}, `isolation = "per_agent"`)
	a, again, b, modern := h.Agent("a"), h.Agent("a"), h.Agent("b"), h.Modern("c")
	pids := map[string]string{}
	for range 20 { // each keeps its own state
		for name, agent := range map[string]*mcptest.Agent{"a": a, "b": b, "c": modern} {
			pid := pidOf(t, agent, "d__pid")
			if pids[name] != "" && pids[name] != pid {
				t.Fatalf("%s met %s after %s", name, pid, pids[name])
			}
			pids[name] = pid
		}
	}
	if pids["a"] == pids["b"] || pids["b"] == pids["c"] || pidOf(t, again, "d__pid") != pids["a"] {
		t.Errorf("processes %v", pids)
	}
	_, state, _ := h.Get("/debug/state")
	for _, want := range []string{`"instances"`, `"agent":"a"`, `"pid":` + pids["a"], `"isolation":"per_agent"`} {
		if !strings.Contains(strings.ReplaceAll(string(state), `": `, `":`), want) {
			t.Errorf("the state does not show %s", want)
		}
	}
	process, _ := strconv.Atoi(pids["a"])
	a.Delete(background(t))
	if pid := pidOf(t, again, "d__pid"); pid != pids["a"] {
		t.Errorf("the copy ended with one of two sessions")
	}
	again.Delete(background(t))
	mcptest.Eventually(t, "its copy to end with the agent's last session", func() bool { return !proc.Alive(process) })
	if pid := pidOf(t, h.Agent("a"), "d__pid"); pid == pids["a"] || pid == "" {
		t.Errorf("a came back to %s", pid)
	}
	shared := one(t, "", mcptest.Script{})
	if x, y := pidOf(t, shared.Agent("a"), "d__pid"), pidOf(t, shared.Agent("b"), "d__pid"); x != y {
		t.Errorf("shared: %s and %s", x, y)
	}
}

func TestC40EachSessionHasItsOwnCopyWhereThatIsConfigured(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{}, `isolation = "per_session"`)
	first, second := h.Agent("a"), h.Agent("a")
	one, two := pidOf(t, first, "d__pid"), pidOf(t, second, "d__pid")
	if one == two || pidOf(t, first, "d__pid") != one {
		t.Errorf("processes %s and %s", one, two)
	}
	first.Delete(background(t))
	process, _ := strconv.Atoi(one)
	mcptest.Eventually(t, "the copy to end with its session", func() bool { return !proc.Alive(process) })
	if pid := pidOf(t, second, "d__pid"); pid != two {
		t.Errorf("another session's copy ended too")
	}
}

// TestC40CopiesAreBounded, and who gets none is told why.
func TestC40CopiesAreBounded(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{}, `isolation = "per_agent"`)
	for i := range 32 {
		call(t, h.Agent(fmt.Sprint("a", i)), "d__pid", "{}")
	}
	r := call(t, h.Agent("late"), "d__pid", "{}")
	if !r.IsError() || !strings.Contains(r.Text(), "32 copies") || !strings.Contains(r.Text(), "per_agent") {
		t.Errorf("one too many: %s", r.Body)
	}
	if n := len(h.Children()); n < 33 {
		t.Errorf("%d children", n)
	}
	call(t, h.Agent("a0"), "d__pid", "{}")
}

// TestC61ACopyIsOfferedWhatItsAgentCanBeAsked, to the letter, and a server for all what can be
// carried to an agent.
func TestC61ACopyIsOfferedWhatItsAgentCanBeAsked(t *testing.T) {
	t.Parallel()
	const everyone = `{"sampling":{},"elicitation":{"form":{},"url":{}}}`
	sampler := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{},
		CreateMessageWithToolsHandler: func(_ context.Context, r *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			return &mcp.CreateMessageWithToolsResult{Model: "m", Role: "assistant", StopReason: "toolUse",
				Content: []mcp.Content{&mcp.ToolUseContent{ID: "u", Name: r.Params.Tools[0].Name, Input: map[string]any{}}}}, nil
		}}
	asked := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }}
	steps := map[string][]struct {
		agent string
		can   *mcp.ClientOptions // nil = nothing
		want  string             // "" = no other handshake
	}{
		"per_session": {{"a", nil, `{}`}, {"a", sampler, `{"sampling":{"tools":{}}}`}, {"a", asked, `{"elicitation":{"form":{}}}`}},
		"per_agent":   {{"a", nil, everyone}, {"b", sampler, `{"sampling":{"tools":{}}}`}, {"b", asked, ""}, {"c", asked, `{"elicitation":{"form":{}}}`}},
		"shared":      {{"a", sampler, ""}, {"b", nil, ""}},
	}
	for isolation, steps := range steps {
		for _, kind := range []string{"stdio", "http"} {
			t.Run(isolation+" over "+kind, func(t *testing.T) {
				t.Parallel()
				heard := filepath.Join(t.TempDir(), "heard")
				const ask = `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[],"tools":[{"name":"look","inputSchema":{"type":"object"}}]}}` + "\n"
				script := mcptest.Script{SSE: true, Rules: []mcptest.Rule{{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{
					{Write: ask}, {Wait: heard}, {Default: true}}}}}
				server := mcptest.NewServer(t, script)
				table := server.TOML("d", "isolation = \""+isolation+"\"")
				said := server.Record.All
				if kind == "http" {
					r := mcptest.NewRemote(t, script)
					table = "[servers.d]\nurl = \"" + r.URL + "/mcp\"\nera = \"legacy\"\nisolation = \"" + isolation + "\"\n"
					said = func() (all [][]byte) {
						for _, q := range r.Requests() {
							all = append(all, []byte(q.Body))
						}
						return all
					}
				}
				h := hub{Daemon: mcptest.StartDaemon(t, table)}
				h.awaitState(t, "d", "ready")
				offers := func() (all []string) {
					for _, line := range said() {
						if m := mcptest.Members(line); string(m["method"]) == `"initialize"` {
							all = append(all, string(mcptest.Members(m["params"])["capabilities"]))
						}
					}
					return all
				}
				want := []string{everyone}
				for _, step := range steps {
					if step.want != "" {
						want = append(want, step.want)
					}
					if step.can == nil {
						call(t, h.Agent(step.agent), "d__pid", "{}")
						continue
					}
					cs := h.official(t, step.agent, "2025-11-25", step.can)
					if _, err := cs.CallTool(background(t), &mcp.CallToolParams{Name: "d__pid"}); err != nil {
						t.Fatal(err)
					}
					if step.can != sampler {
						continue
					}
					go func() { // who can do it is asked, also by a server that was not told
						mcptest.Eventually(t, "the answer at the server", func() bool {
							for _, line := range said() {
								if m := mcptest.Members(line); m["method"] == nil && string(m["id"]) == "7" {
									return os.WriteFile(heard+".new", m["result"], 0o600) == nil && os.Rename(heard+".new", heard) == nil // whole, or not there
								}
							}
							return false
						})
					}()
					if _, err := cs.CallTool(background(t), &mcp.CallToolParams{Name: "d__echo"}); err != nil {
						t.Fatal(err)
					}
					if b, _ := os.ReadFile(heard); !strings.Contains(string(b), `"tool_use"`) || !strings.Contains(string(b), `"look"`) {
						t.Errorf("the server heard %s", b)
					}
				}
				got := offers()
				for i := range got {
					got[i] = sorted(got[i])
				}
				for i := range want {
					want[i] = sorted(want[i])
				}
				if !slices.Equal(got, want) {
					t.Errorf("the copies were offered\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

// sorted is an object with its members in order.
func sorted(object string) string {
	var v map[string]any
	_ = json.Unmarshal([]byte(object), &v)
	b, _ := json.Marshal(v)
	return string(b)
}

// TestC106ACopysLogGoesToItsOwnerOnly, from the level up that the owner asked for.
func TestC106ACopysLogGoesToItsOwnerOnly(t *testing.T) {
	t.Parallel()
	const said = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"of a copy"}}` + "\n"
	for isolation, levels := range map[string][]string{"per_agent": {"error", "info", "info"}, "per_session": {"error", "info", "info", "info"}, "shared": {"info"}} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			h := one(t, "", mcptest.Script{Capabilities: `{"tools":{},"logging":{}}`, Rules: []mcptest.Rule{
				{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{{Default: true}, {Write: said}}}}}, "isolation = \""+isolation+"\"")
			heard := map[string]chan string{}
			agents := map[string]*mcp.ClientSession{}
			for name, level := range map[string]mcp.LoggingLevel{"a": "info", "a again": "info", "b": "error"} {
				ch := make(chan string, 100)
				agents[name] = h.official(t, name[:1], "2025-11-25", &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
					ch <- fmt.Sprint(r.Params.Data)
				}})
				heard[name] = ch
				if err := agents[name].SetLoggingLevel(background(t), &mcp.SetLoggingLevelParams{Level: level}); err != nil {
					t.Fatal(err)
				}
			}
			who := map[string][]string{"a": {"a"}, "a again": {"a again"}, "b": {"b"}}
			switch isolation {
			case "per_agent":
				who["a"], who["a again"] = []string{"a", "a again"}, []string{"a", "a again"}
			case "shared":
				all := []string{"a", "a again", "b"}
				who = map[string][]string{"a": all, "a again": all, "b": all}
			}
			for _, caller := range []string{"a", "b", "a again", "a", "b"} {
				if _, err := agents[caller].CallTool(background(t), &mcp.CallToolParams{Name: "d__echo"}); err != nil {
					t.Fatal(err)
				}
				for _, name := range who[caller] {
					select {
					case <-heard[name]:
					case <-time.After(mcptest.Patience):
						t.Errorf("%s never heard what was said to %s", name, caller)
					}
				}
			}
			for name, ch := range heard {
				if len(ch) > 0 {
					t.Errorf("%s heard what was said to another", name)
				}
			}
			mcptest.Eventually(t, "each copy to be told its level", func() bool {
				var told []string
				for _, line := range h.d().Record.Of("logging/setLevel") {
					var m struct{ Params struct{ Level string } }
					_ = json.Unmarshal(line, &m)
					told = append(told, m.Params.Level)
				}
				if isolation == "shared" { // perhaps after the levels of those who asked first
					return len(told) > 0 && told[len(told)-1] == levels[0]
				}
				slices.Sort(told)
				return slices.Equal(slices.Compact(told), slices.Compact(slices.Clone(levels))) && len(told) >= len(levels)
			})
		})
	}
}
