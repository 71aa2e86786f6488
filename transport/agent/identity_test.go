package agent

import (
	"io"
	"strings"
	"testing"

	"mcphubd/actors"
	"mcphubd/transport/bridge"
)

// locked is a gateway with two agents that have tokens.
func locked(t *testing.T) *fixture {
	f := start(t)
	f.gw.tokens = map[string]string{"a": "tok-aaaa", "b": "tok-bbbb"}
	return f
}

func TestAnAgentWithATokenIsNotEnteredWithoutIt(t *testing.T) {
	f := locked(t)
	for _, c := range []struct{ path, auth string }{
		{"/mcp/a", ""}, {"/mcp/a", "Bearer tok-bbbb"}, {"/mcp/a", "Bearer tok-aaa"}, {"/mcp/a", "Bearer "}, {"/mcp/a", "Basic tok-aaaa"},
		{"/servers/d/mcp/a", ""}, {"/servers/d/mcp/a", "Bearer tok-bbbb"}, {"/mcp", "Bearer nobodys"}, {"/mcp/c", "Bearer tok-aaaa"},
	} {
		var headers []string
		if c.auth != "" {
			headers = []string{"Authorization", c.auth}
		}
		for _, a := range []answer{
			f.do("POST", c.path, hello, headers...),
			f.do("POST", c.path, callBody("1", `{"name":"d__echo",`+modernMeta+`}`), append(headers, modernCall...)...),
			f.do("GET", c.path, "", append(headers, "Accept", "text/event-stream")...),
		} {
			if a.status != 401 || a.header.Get("Www-Authenticate") != "Bearer" || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":null,"error":`) {
				t.Errorf("%s with %q: %d %v %s", c.path, c.auth, a.status, a.header, a.body)
			}
			for _, secret := range []string{"tok-", "agent b", "agent a", "agents."} {
				if strings.Contains(a.body, secret) {
					t.Errorf("%s with %q says %q: %s", c.path, c.auth, secret, a.body)
				}
			}
		}
	}
	if n := f.gw.agent("a").count() + f.gw.agent("b").count(); n != 0 {
		t.Errorf("%d calls got through", n)
	}
}

func TestATokenSaysWhoAPlainRequestIsFrom(t *testing.T) {
	f := locked(t)
	call := append([]string{"Authorization", "bearer tok-bbbb"}, modernCall...)
	for _, path := range []string{"/mcp", "/mcp/b"} {
		if a := f.do("POST", path, callBody("1", `{"name":"d__echo",`+modernMeta+`}`), call...); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if n := f.gw.agent("b").count(); n != 2 {
		t.Errorf("agent b made %d calls, want 2", n)
	}
	if a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), modernCall...); a.status != 200 || f.gw.agent("default").count() != 1 {
		t.Errorf("the open default: %d %s", a.status, a.body)
	}
}

// TestASessionMadeUnderOneTokenIsRefusedUnderAnother: also at the plain endpoint, where
// nothing but the token differs.
func TestASessionMadeUnderOneTokenIsRefusedUnderAnother(t *testing.T) {
	f := locked(t)
	sid := f.do("POST", "/mcp", hello, "Authorization", "Bearer tok-aaaa").header.Get(sessionHeader)
	if sid == "" {
		t.Fatal("no session")
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for auth, want := range map[string]int{"Bearer tok-aaaa": 200, "Bearer tok-bbbb": 404, "Bearer other": 401, "": 404} {
		if a := f.do("POST", "/mcp", list, sessionHeader, sid, "Authorization", auth); a.status != want {
			t.Errorf("%q: %d %s, want %d", auth, a.status, a.body, want)
		}
	}
}

// TestAnotherTokenEndsWhatTheOldOneOpened: a stream that stands may not outlive the token
// it was opened with.
func TestAnotherTokenEndsWhatTheOldOneOpened(t *testing.T) {
	f := locked(t)
	sid := f.do("POST", "/mcp/a", hello, "Authorization", "Bearer tok-aaaa").header.Get(sessionHeader)
	_, stream := f.open("GET", "/mcp/a", "", sessionHeader, sid, "Accept", "text/event-stream", "Authorization", "Bearer tok-aaaa")
	f.gw.mu.Lock()
	f.gw.tokens["a"] = "tok-new"
	f.gw.mu.Unlock()
	f.gw.agent("a").change(`[]`)
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, stream.Body)
		close(ended)
	}()
	within(t, ended, "the end of the stream")
	if a := f.do("POST", "/mcp/a", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid, "Authorization", "Bearer tok-new"); a.status != 404 {
		t.Errorf("the old session: %d %s", a.status, a.body)
	}
	if a := f.do("POST", "/mcp/a", hello, "Authorization", "Bearer tok-new"); a.status != 200 {
		t.Errorf("a new session: %d %s", a.status, a.body)
	}
}

// TestTheGatewayIsToldHowMuchAClientTakes by the bridge, in a header.
func TestTheGatewayIsToldHowMuchAClientTakes(t *testing.T) {
	f := start(t)
	told := make(chan int64, 1)
	f.gw.agent("default").setCall(func(c actors.Call) (actors.Reply, error) {
		told <- c.Ceiling
		return held(`{"content":[]}`), nil
	})
	for header, want := range map[string]int64{"10485760": 10485760, "": 0, "x": 0, "1e3": 0} {
		f.do("POST", "/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), append([]string{bridge.MaxResultHeader, header}, modernCall...)...)
		if got := within(t, told, "the call"); got != want {
			t.Errorf("%q: told %d, want %d", header, got, want)
		}
	}
}
