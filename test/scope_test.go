package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// offering is a server with a prompt, a resource, completion and the usual tools.
func offering(name string) mcptest.Script {
	answer := func(method, result string) mcptest.Rule {
		return mcptest.Rule{Method: method, Do: []mcptest.Step{{Answer: &mcptest.Answer{Result: mcptest.Bytes(result)}}}}
	}
	return mcptest.Script{
		Capabilities: `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}`,
		Instructions: "how to use " + name,
		Rules: []mcptest.Rule{
			answer("prompts/list", `{"prompts":[{"name":"review"}]}`),
			answer("prompts/get", `{"messages":[]}`),
			answer("resources/list", `{"resources":[{"uri":"file:///`+name+`/readme","name":"readme"}]}`),
			answer("resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"file:///`+name+`/{path}","name":"any"}]}`),
			answer("resources/read", `{"contents":[]}`),
			answer("resources/subscribe", `{}`),
			answer("completion/complete", `{"completion":{"values":["x"]}}`),
		},
	}
}

// asked is what an agent of one server may not ask of another, S standing for its name.
var asked = []struct{ method, params string }{
	{"tools/call", `{"name":"S__echo","arguments":{}}`},
	{"tools/call", `{"name":"S__no_such","arguments":{}}`},
	{"tools/call", `{"name":"s__Echo","arguments":{}}`},
	{"prompts/get", `{"name":"S__review"}`},
	{"resources/read", `{"uri":"file:///S/readme"}`},
	{"resources/read", `{"uri":"mcphub://S/file:///S/readme"}`},
	{"resources/read", `{"uri":"mcphub://S/instructions"}`},
	{"resources/read", `{"uri":"file:///S/anything"}`},
	{"resources/subscribe", `{"uri":"file:///S/readme"}`},
	{"resources/subscribe", `{"uri":"mcphub://S/file:///S/readme"}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"S__review"},"argument":{"name":"a","value":""}}`},
	{"completion/complete", `{"ref":{"type":"ref/resource","uri":"file:///S/{path}"},"argument":{"name":"path","value":""}}`},
}

// TestC17WhatIsOutOfScopeAnswersLikeWhatIsNotThere, byte for byte, in both eras, and
// the server sees no traffic for it.
func TestC17WhatIsOutOfScopeAnswersLikeWhatIsNotThere(t *testing.T) {
	t.Parallel()
	conf, servers := tables(t, "[agents.b]\nservers = [\"d1\"]\n[agents.all]\n[agents.none]\nservers = []\n",
		map[string]mcptest.Script{"d1": offering("d1"), "d2": offering("d2")})
	h := hub{mcptest.StartReady(t, conf), servers} // nothing is asked of them any more that no agent asks
	all := h.Agent("all")
	call(t, all, "d2__echo", `{}`)
	if r, err := all.RPC(background(t), "resources/list", "{}"); err != nil || !strings.Contains(string(r.Body), "d1/readme") || !strings.Contains(string(r.Body), "d2/readme") {
		t.Fatalf("%v: %s", err, r.Body)
	}
	before := len(h.servers["d2"].Record.All())
	for what, a := range map[string]*mcptest.Agent{"legacy": h.Agent("b"), "modern": h.Modern("b"), "nothing in scope": h.Agent("none")} {
		for _, q := range asked {
			ask := func(server string) string {
				r, err := a.RPC(background(t), q.method, strings.ReplaceAll(q.params, "S", server))
				if err != nil {
					t.Fatal(err)
				}
				id := string(mcptest.Members(r.Message())["id"])
				body := strings.Replace(string(r.Message()), `"id":`+id, `"id":0`, 1)
				return fmt.Sprint(r.Status, " ", strings.ReplaceAll(body, server, "S"))
			}
			if hidden, unknown := ask("d2"), ask("d9"); hidden != unknown {
				t.Errorf("%s: %s %s:\nout of scope %s\nunknown      %s", what, q.method, q.params, hidden, unknown)
			}
		}
		for _, list := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			r, err := a.RPC(background(t), list, "{}")
			if err != nil || r.Status != 200 || strings.Contains(string(r.Body), "d2") {
				t.Errorf("%s: %s: HTTP %d, %v: %.500s", what, list, r.Status, err, r.Body)
			}
		}
	}
	one := func(server string) string {
		a := mcptest.NewAgent(strings.TrimSuffix(h.URL("b"), "/mcp/b") + "/servers/" + server + "/mcp/b")
		r, _ := a.Init(background(t), "2025-06-18")
		return fmt.Sprint(r.Status, " ", strings.ReplaceAll(string(r.Body), server, "S"))
	}
	if hidden, unknown := one("d2"), one("d9"); hidden != unknown || !strings.HasPrefix(hidden, "404") {
		t.Errorf("its own endpoint:\nout of scope %s\nunknown      %s", hidden, unknown)
	}
	if after := h.servers["d2"].Record.All(); len(after) != before {
		t.Errorf("the server saw traffic: %s", after[before:])
	}
	if r, _ := h.Agent("b").Init(background(t), "2025-06-18"); strings.Contains(string(r.Body), "d2") {
		t.Errorf("the handshake tells of it: %s", r.Body)
	}
}

// TestC17AReloadNarrowsLiveSessions: the agent hears of it, and what it may no longer
// use is unknown from then on, stored results included.
func TestC17AReloadNarrowsLiveSessions(t *testing.T) {
	t.Parallel()
	conf, servers := tables(t, "", map[string]mcptest.Script{"d1": {}, "d2": {}})
	h := hub{mcptest.StartReady(t, "[agents.b]\n"+conf), servers}
	b := h.Agent("b")
	receipt := call(t, b, "d2__blob", `{"bytes":200000}`)
	id := idOf(t, receipt)
	list := func() string {
		r, err := b.RPC(background(t), "tools/list", "{}")
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Body)
	}
	list() // who never looked is not told of changes
	stream, err := b.Listen(background(t))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	h.SetConfig("[agents.b]\nservers = [\"d1\"]\n" + conf)
	if _, err := stream.NextOf("notifications/tools/list_changed"); err != nil {
		t.Fatal(err)
	}
	if l := list(); strings.Contains(l, "d2") || !strings.Contains(l, "d1__echo") {
		t.Errorf("the list: %.500s", l)
	}
	seen := len(servers["d2"].Record.Of("tools/call"))
	hidden, _ := b.Call(background(t), "d2__echo", "{}")
	unknown, _ := b.Call(background(t), "d9__echo", "{}")
	if errorOf(hidden, "d2") != errorOf(unknown, "d9") {
		t.Errorf("out of scope %s, unknown %s", hidden.Body, unknown.Body)
	}
	for _, tool := range []string{"mcphub_get_result", "mcphub_read_result"} {
		r := call(t, b, tool, `{"callId":"`+id+`"}`)
		if !r.IsError() || strings.Contains(string(r.Body), "d2") || strings.Contains(string(r.Body), "blob") {
			t.Errorf("%s: %s", tool, r.Body)
		}
	}
	if list := call(t, b, "mcphub_read_result", `{}`); strings.Contains(string(list.Body), id) {
		t.Errorf("the list still holds it: %s", list.Body)
	}
	if n := len(servers["d2"].Record.Of("tools/call")); n != seen {
		t.Errorf("the server saw %d more calls", n-seen)
	}
	h.SetConfig("[agents.b]\n" + conf)
	if _, err := stream.NextOf("notifications/tools/list_changed"); err != nil {
		t.Fatal(err)
	}
	if r := call(t, b, "mcphub_read_result", `{"callId":"`+id+`"}`); r.IsError() {
		t.Errorf("back in scope: %s", r.Body)
	}
}

// TestC17WhoIsTakenOutOfTheConfigurationIsOut with its live session: nothing is listed,
// nothing can be called, no session is made, and its stream ends.
func TestC17WhoIsTakenOutOfTheConfigurationIsOut(t *testing.T) {
	t.Parallel()
	conf, servers := tables(t, "", map[string]mcptest.Script{"d1": {}})
	h := hub{mcptest.StartReady(t, "[agents.b]\ntools = []\n[agents.c]\n"+conf), servers}
	b := h.Agent("b")
	stream, err := b.Listen(background(t))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	h.SetConfig("[agents.c]\n" + conf)
	for err == nil { // what comes on it before its end does not matter
		_, err = stream.Next()
	}
	for method, params := range map[string]string{
		"tools/list": "{}", "resources/list": "{}", "prompts/list": "{}", "tools/call": `{"name":"d1__echo","arguments":{}}`,
		"initialize": `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`,
	} {
		r, err := b.RPC(background(t), method, params)
		if err != nil || r.Status != http.StatusNotFound || !strings.Contains(string(r.Body), "add [agents.b]") || strings.Contains(string(r.Body), "d1") {
			t.Errorf("%s: %d %s %v", method, r.Status, r.Body, err)
		}
	}
}

// TestC16AnothersResultIsAsIfItWereNotThere with owner_only; its own agent reads it in
// any session of its own.
func TestC16AnothersResultIsAsIfItWereNotThere(t *testing.T) {
	t.Parallel()
	h := one(t, "[results]\nowner_only = true\n", mcptest.Script{})
	a, b := h.Agent("a"), h.Agent("b")
	id := idOf(t, call(t, a, "d__blob", `{"bytes":200000}`))
	random := strings.Repeat("0", 32)
	for _, args := range []string{`{"callId":"ID"}`, `{"callId":"ID","agent":"a","owner":"a"}`} {
		for _, tool := range []string{"mcphub_get_result", "mcphub_read_result"} {
			theirs := call(t, b, tool, strings.Replace(args, "ID", id, 1))
			none := call(t, b, tool, strings.Replace(args, "ID", random, 1))
			if strings.ReplaceAll(theirs.Text(), id, random) != none.Text() {
				t.Errorf("%s %s: another's %s, none %s", tool, args, theirs.Text(), none.Text())
			}
		}
	}
	again := h.Agent("a")
	if r := call(t, again, "mcphub_get_result", `{"callId":"`+id+`"}`); !strings.Contains(r.Text(), `"status":"ok"`) {
		t.Errorf("its own agent in a new session: %s", r.Body)
	}
}

// idOf is the callId of a receipt.
func idOf(t testing.TB, r mcptest.Response) string {
	t.Helper()
	var receipt struct{ Status, CallID string }
	if err := json.Unmarshal([]byte(r.Text()), &receipt); err != nil || receipt.Status != "stored" {
		t.Fatalf("no receipt: %v: %.300s", err, r.Body)
	}
	return receipt.CallID
}

// errorOf is the error of an answer with server as S.
func errorOf(r mcptest.Response, server string) string {
	return strings.ReplaceAll(string(mcptest.Members(r.Message())["error"]), server, "S")
}
