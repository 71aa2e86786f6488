package test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

func TestC39ToolsWithUnderlinesReachTheServerThatListedThem(t *testing.T) {
	t.Parallel()
	scripts := map[string]mcptest.Script{}
	offer := func(server string, tools ...string) {
		results := map[string]string{}
		for _, tool := range tools {
			results[tool] = textResult(server + " answers for " + tool)
		}
		scripts[server] = mcptest.Script{Tools: toolsNamed(tools...), Rules: answers(results)}
	}
	offer("acme", "_status", "status", "-x")
	offer("acme-", "_status", "status")
	offer("a", "b__c", "b_", "_", "__")
	offer("a_b", "c", "_c", "_")
	offer("d", "x__y__z")
	h := start(t, "", scripts)
	a := h.Agent("a")
	for server, script := range scripts {
		for _, rule := range script.Rules {
			exposed := server + "__" + rule.Tool
			want := server + " answers for " + rule.Tool
			if got := call(t, a, exposed, "").Text(); got != want {
				t.Errorf("%s: %q", exposed, got)
			}
		}
	}
	list, err := a.RPC(background(t), "tools/list", "{}")
	if err != nil || strings.Count(string(list.Body), `"name":"a__b__c"`) != 1 {
		t.Errorf("%v: %s", err, list.Body)
	}
	// What nobody listed reaches nobody, whatever it could be split into.
	for _, name := range []string{"a__b", "a__c", "d__x", "acme__", "acme", "__", "a_b__b__c", "acme-___"} {
		r, err := a.Call(background(t), name, "{}")
		if err != nil || r.Result() != nil && !r.IsError() {
			t.Errorf("%s: %v, %s", name, err, r.Body)
		}
	}
}

func TestC39NamesThatCouldBeTakenForOthersAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"acme_", "a__b", "_a", "a b", "a.b", "é"} {
		d := mcptest.NewDaemon(t, fmt.Sprintf("[servers.%q]\ncommand = \"true\"\n", name))
		out, err := d.Command("serve").CombinedOutput()
		if code := exitCode(err); code != 4 || !strings.Contains(string(out), "config.toml:2:") || !strings.Contains(string(out), name) {
			t.Errorf("%q: exit code %d, %s", name, code, out)
		}
	}
}

func TestC41NoRouteAnswersAForeignPage(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	echo(t, h.Modern("a"), "d__echo")
	_, port, _ := strings.Cut(h.Addr(), ":")
	foreign := []http.Header{
		{"Host": {"evil.example:" + port}}, {"Host": {"evil.example"}}, {"Host": {"127.0.0.1.evil.example:" + port}},
		{"Host": {"127.0.0.1:1"}}, {"Host": {"0.0.0.0:" + port}},
		{"Origin": {"https://evil.example"}}, {"Origin": {"null"}}, {"Origin": {"http://127.0.0.1:1"}}, {"Origin": {"http://localhost"}},
		{"Origin": {"http://" + h.Addr() + ".evil.example"}}, {"Origin": {""}},
		{"Host": {"evil.example"}, "X-Forwarded-Host": {h.Addr()}, "Forwarded": {"host=" + h.Addr()}},
	}
	for _, path := range []string{"/", "/mcp", "/mcp/a", "/servers/d/mcp", "/sse", "/message", "/healthz", "/readyz", "/metrics",
		"/debug/state", "/debug/", "/debug/actors", "/debug/calls", "/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/nothing"} {
		a := mcptest.NewAgent("http://" + h.Addr() + path)
		defer a.Close()
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT"} {
			for _, header := range foreign {
				r, err := a.Do(background(t), method, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`), header)
				if err != nil || r.Status != http.StatusForbidden || strings.Contains(string(r.Body), "mcphubd.debug") {
					t.Errorf("%s %s with %v: HTTP %d, %v: %.100s", method, path, header, r.Status, err, r.Body)
				}
				for name := range r.Header {
					if strings.HasPrefix(name, "Access-Control") || name == "Mcp-Session-Id" {
						t.Errorf("%s %s with %v: the answer has the header %s", method, path, header, name)
					}
				}
			}
		}
	}
	for _, host := range []string{"localhost:" + port, "LocalHost:" + port, "127.0.0.1", "[::1]:" + port} {
		a := mcptest.NewAgent(h.URL("a"))
		a.Header = http.Header{"Host": {host}, "Origin": {"http://" + h.Addr()}}
		if _, err := a.Init(background(t), mcptest.Legacy); err != nil {
			t.Errorf("a normal client that calls us %s: %v", host, err)
		}
		a.Close()
	}
}

func TestC41TheUsualAddressIsLoopback(t *testing.T) {
	t.Parallel()
	d := mcptest.NewDaemon(t, "")
	out, err := d.Command("config", "default").Output()
	if err != nil || !strings.Contains(string(out), "\nlisten = \"127.0.0.1:9820\"\n") {
		t.Errorf("%v: %.300s", err, out)
	}
}

func TestC105TheListIsTheSameBytesForEveryAgentAndStart(t *testing.T) {
	t.Parallel()
	scripts := map[string]mcptest.Script{}
	for i := range 10 {
		name := fmt.Sprintf("s%d", i)
		scripts[name] = mcptest.Script{PageSize: 1 + i, Tools: toolsOf(), Rules: []mcptest.Rule{
			{Method: "initialize", Do: []mcptest.Step{{Sleep: rand.IntN(150)}, {Default: true}}}, // who comes first is to be any
			{Method: "tools/list", Do: []mcptest.Step{{Sleep: rand.IntN(20)}, {Default: true}}},
		}}
	}
	h := start(t, "", scripts)
	var first []byte
	for round := range 6 {
		if round > 0 {
			h.Restart()
		}
		for i := range 10 {
			h.awaitState(t, fmt.Sprintf("s%d", i), "ready")
		}
		lists := make([][]byte, 20)
		err := all(len(lists), func(i int) error {
			a := h.Agent(fmt.Sprintf("agent%d", i%4))
			for range 3 {
				r, err := a.Request(background(t), "1", "tools/list", "{}")
				list := r.Message() // as a body, or as an event when it took long
				if err != nil || lists[i] != nil && string(lists[i]) != string(list) {
					return fmt.Errorf("%w: two lists differ", err)
				}
				lists[i] = list
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if first == nil {
			first = lists[0]
			if n := strings.Count(string(first), `"x-order"`); n != 10*8 {
				t.Fatalf("the list has %d tools", n)
			}
		}
		for i, list := range lists {
			same(t, fmt.Sprintf("start %d, list %d", round, i), list, first)
		}
	}
}

// toolsOf is a list in no order, with schemas of many properties in no order.
func toolsOf() mcptest.Bytes {
	var list []string
	for _, i := range rand.Perm(8) {
		var properties []string
		for _, p := range rand.Perm(20) {
			properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, p))
		}
		list = append(list, fmt.Sprintf(`{"x-order":%d,"name":"t%d","inputSchema":{"properties":{%s},"type":"object"}}`,
			len(list), i, strings.Join(properties, ",")))
	}
	return mcptest.Bytes("[" + strings.Join(list, ",") + "]")
}
