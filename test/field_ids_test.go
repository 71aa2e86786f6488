package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// twoAtOnce holds calls of echo until there are two, and answers the last first.
var twoAtOnce = []mcptest.Rule{{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{{Gather: 2}, {Default: true}}}}

// withOne sends an echo of v under the id 1 and checks that its own answer comes.
func withOne(t testing.TB, a *mcptest.Agent, v string) error {
	r, err := a.Request(background(t), "1", "tools/call", `{"name":"d__echo","arguments":{"v":"`+v+`"}}`)
	if err == nil && (r.Text() != v || r.AnswerID() != "1") {
		err = fmt.Errorf("asked for %s and got %s", v, r.Body)
	}
	return err
}

func TestC03RequestsWithOneIdInOneSessionGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{Rules: twoAtOnce})
	for era, agent := range eras {
		a := agent(h)
		if err := all(2, func(i int) error { return withOne(t, a, []string{"X", "Y"}[i]) }); err != nil {
			t.Errorf("%s: %v", era, err)
		}
	}
}

func TestC19AgentsWithTheSameIdsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	err := all(50, func(i int) error {
		a := h.Modern(fmt.Sprintf("agent%d", i))
		if i%2 == 0 {
			a = h.Agent(fmt.Sprintf("agent%d", i))
		}
		for n := range full(100) {
			v := fmt.Sprintf("%d of %d", n, i)
			r, err := a.Request(background(t), "1", "tools/call", fmt.Sprintf(`{"name":"d__echo","arguments":{"v":%q,"ms":%d}}`, v, rand.IntN(4)))
			if err != nil || r.Text() != v || r.AnswerID() != "1" {
				return fmt.Errorf("asked for %s and got %s: %w", v, r.Body, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	idsNeverCameTwice(t, h, 50*full(100))
}

// idsNeverCameTwice looks at what the server received: its ids are integers that a
// double holds, each used once.
func idsNeverCameTwice(t *testing.T, h hub, atLeast int) {
	t.Helper()
	seen := map[string]bool{}
	for _, line := range h.d().Record.All() {
		m := mcptest.Members(line)
		id := string(m["id"])
		if id == "" || m["method"] == nil {
			continue // a notification, or an answer to the server's own request
		}
		if seen[id] {
			t.Errorf("id %s came twice", id)
		}
		if strings.Trim(id, "0123456789") != "" || len(id) > 15 {
			t.Errorf("id %s is not a plain integer", id)
		}
		seen[id] = true
	}
	if len(seen) < atLeast {
		t.Errorf("the server saw %d ids, want %d", len(seen), atLeast)
	}
}

func TestC62AbsentAndNullArgumentsAreAnObjectAndWrongTypesReachNobody(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	n := 0
	for era, agent := range eras {
		a := agent(h)
		for params, want := range map[string]string{
			`{"name":"d__raw"}`:                                       `{}`,
			`{"name":"d__raw","arguments":null}`:                      `{}`,
			`{"name":"d__raw","arguments":{}}`:                        `{}`,
			`{"name":"d__raw","arguments":{"a":null,"b":{"c":null}}}`: `{"a":null,"b":{"c":null}}`,
			`{"name":"d__raw","arguments":[]}`:                        "",
			`{"name":"d__raw","arguments":"{}"}`:                      "",
			`{"name":"d__raw","arguments":1}`:                         "",
		} {
			r, err := a.RPC(background(t), "tools/call", params)
			if want == "" {
				if err != nil || !bytes.Contains(r.Error(), []byte("-32602")) {
					t.Errorf("%s %s: %v, %s", era, params, err, r.Body)
				}
				continue
			}
			n++
			lines := h.d().Record.Await(t, "tools/call", n)
			if got := mcptest.Members(mcptest.Members(lines[n-1])["params"])["arguments"]; err != nil || string(got) != want {
				t.Errorf("%s %s reached the server as %s: %v", era, params, got, err)
			}
		}
	}
	a := h.Agent("null")
	r, err := a.Post(background(t), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, nil)
	if err != nil || !bytes.Contains(r.Error(), []byte("-32602")) {
		t.Errorf("params null: %v, %s", err, r.Body)
	}
	if got := len(h.d().Record.Of("tools/call")); got != n {
		t.Errorf("the server saw %d calls, want %d", got, n)
	}
}

func TestC90AnswersCarryTheIdAsItWasSent(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{StringID: true})
	long := `"` + strings.Repeat("i", 10<<10) + `"`
	for era, agent := range eras {
		a := agent(h)
		for _, id := range []string{`0`, `"0"`, `"a-b"`, `9007199254740993`, `-1`, `""`, `1.0`, `"\u0061\/"`, long} {
			r, err := a.Request(background(t), id, "tools/call", `{"name":"d__echo","arguments":{"v":"x"}}`)
			if err != nil || r.AnswerID() != id || r.Text() != "x" {
				t.Errorf("%s id %.40s: answered under %.40s, %v: %.200s", era, id, r.AnswerID(), err, r.Body)
			}
		}
		for _, id := range []string{`null`, `{}`, `[1]`, `true`} {
			r, err := a.Request(background(t), id, "tools/call", `{"name":"d__echo"}`)
			if err != nil || !bytes.Contains(r.Error(), []byte("-32600")) {
				t.Errorf("%s id %s: %v, %s", era, id, err, r.Body)
			}
		}
	}
}

func TestC90ZeroAndTheStringZeroAreTwoCalls(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{Rules: twoAtOnce})
	a := h.Agent("a")
	err := all(2, func(i int) error {
		id := []string{`0`, `"0"`}[i]
		r, err := a.Request(background(t), id, "tools/call", fmt.Sprintf(`{"name":"d__echo","arguments":{"v":"v%d"}}`, i))
		if err == nil && (r.AnswerID() != id || r.Text() != fmt.Sprintf("v%d", i)) {
			err = fmt.Errorf("id %s got %s", id, r.Body)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestC91AnswersThatNobodyWaitsForAreDropped(t *testing.T) {
	t.Parallel()
	late := filepath.Join(t.TempDir(), "late")
	result := func(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}]}` }
	answer := func(id, text string) mcptest.Step {
		return mcptest.Step{Answer: &mcptest.Answer{ID: mcptest.Bytes(id), Result: mcptest.Bytes(result(text))}}
	}
	s := mcptest.NewServer(t, mcptest.Script{Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{{Wait: late}, answer("$ID", "late"), {Touch: late + ".sent"}}},
		{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{
			answer("999999", "unknown"), answer("null", "null"), answer(`"x"`, "string"),
			{Write: `{"jsonrpc":"2.0","id":$ID,"method":"x/unknown"}` + "\n"},
			answer("$ID", "first"), answer("$ID", "second"), {Touch: late}}},
		{Method: "tools/call", Tool: "count", Do: []mcptest.Step{{Write: `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"both"}}` + "\n"}}},
	}})
	limited := func(timeout string) string { return s.TOML("d", fmt.Sprintf("call_timeout = %q", timeout)) }
	h := hub{mcptest.StartDaemon(t, limited("30m")), map[string]mcptest.Server{"d": s}}
	a := h.Agent("a")
	pid := pidOf(t, a, "d__pid")
	h.read(t, newConfig, func() { h.SetConfig(limited("2s")) }) // for the one call that is to be late
	if r := call(t, a, "d__sleep", "{}"); !r.IsError() || !strings.Contains(r.Text(), "call_timeout") {
		t.Errorf("a call over its deadline: %s", r.Body)
	}
	h.read(t, newConfig, func() { h.SetConfig(limited("30m")) })
	for range 3 {
		if r := call(t, a, "d__echo", "{}"); r.Text() != "first" {
			t.Errorf("got %s", r.Body)
		}
	}
	if r := call(t, a, "d__count", "{}"); !r.IsError() || !strings.Contains(r.Text(), "d") {
		t.Errorf("a result and an error together: %s", r.Body)
	}
	if now := pidOf(t, a, "d__pid"); now != pid {
		t.Errorf("the server was process %s and is %s", pid, now)
	}
	idsNeverCameTwice(t, h, 6)
}
