package test

import (
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// TestC01WhatWasSaidInALostSessionIsSaidAgain in the new one: which resources agents listen to,
// and from what level up they want log messages. A server at a URL that starts anew is found
// out by the end of its standing stream, too, when nobody calls it.
func TestC01WhatWasSaidInALostSessionIsSaidAgain(t *testing.T) {
	t.Parallel()
	empty := func(method, result string) mcptest.Rule {
		return mcptest.Rule{Method: method, Do: []mcptest.Step{mcptest.Result(result)}}
	}
	remote := mcptest.NewRemote(t, mcptest.Script{Capabilities: `{"tools":{},"logging":{},"resources":{"subscribe":true}}`, Rules: []mcptest.Rule{
		empty("resources/list", `{"resources":[{"uri":"u://x","name":"x"}]}`), empty("resources/templates/list", `{"resourceTemplates":[]}`),
		empty("resources/subscribe", `{}`)}})
	h := hub{Daemon: mcptest.StartDaemon(t, "[servers.d]\nurl = \""+remote.URL+"/mcp\"\n")}
	// said is what the server heard in a session.
	said := func(session string) string {
		var all []string
		for _, q := range remote.Requests() {
			for _, method := range []string{"resources/subscribe", "logging/setLevel"} {
				if q.Header.Get("Mcp-Session-Id") == session && strings.Contains(q.Body, `"`+method+`"`) {
					all = append(all, method+" "+string(mcptest.Members(mcptest.Members([]byte(q.Body))["params"])["level"]))
				}
			}
		}
		return strings.Join(all, ",")
	}
	up := func(session string) {
		t.Helper()
		mcptest.Eventually(t, "the standing stream of "+session, func() bool {
			_, body, err := h.Get("/debug/servers/d")
			return err == nil && strings.Contains(string(body), `"stream": "up"`) && strings.Contains(streamOf(remote), session)
		})
	}
	up("s1")
	a := h.Agent("a")
	for _, q := range [][2]string{{"logging/setLevel", `{"level":"info"}`}, {"resources/subscribe", `{"uri":"mcphub://d/u://x"}`}} {
		if r, err := a.RPC(background(t), q[0], q[1]); err != nil || string(r.Result()) != "{}" {
			t.Fatalf("%s: %v %s", q[0], err, r.Body)
		}
	}
	both := func(session string) {
		t.Helper()
		mcptest.Eventually(t, "all to be said again in "+session, func() bool {
			all := said(session)
			return strings.Count(all, "resources/subscribe") == 1 && strings.Count(all, `logging/setLevel "info"`) == 1
		})
	}
	both("s1")

	remote.Forget()
	echo(t, a, "d__echo") // the call finds it out
	both("s2")

	up("s2")
	remote.Forget()
	remote.EndStreams() // nobody calls
	both("s3")
}

// streamOf is the session that asked last for a standing stream.
func streamOf(r *mcptest.Remote) (session string) {
	for _, q := range r.Requests() {
		if q.Method == "GET" {
			session = q.Header.Get("Mcp-Session-Id")
		}
	}
	return session
}
