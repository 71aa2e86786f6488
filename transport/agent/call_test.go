package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcphubd/actors"
)

func TestC03TwoRequestsWithOneIdEachGetTheirOwnAnswer(t *testing.T) {
	f := start(t)
	x := make(chan struct{})
	f.gw.agent("default").call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
		if strings.Contains(string(c.Params), `"X"`) {
			<-x // X is asked first and answered last
		}
		return echo(ctx, c)
	}
	sid := f.login("/mcp")
	ask := func(v string) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			out <- f.do("POST", "/mcp", callBody("1", `{"name":"d__echo","arguments":{"v":"`+v+`"}}`), sessionHeader, sid)
		}()
		return out
	}
	first := ask("X")
	second := within(t, ask("Y"), "the answer to Y")
	close(x)
	for v, a := range map[string]answer{"X": within(t, first, "the answer to X"), "Y": second} {
		want := `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"v":"` + v + `"}}}`
		if a.status != 200 || a.body != want {
			t.Errorf("%s: %d %s", v, a.status, a.body)
		}
	}
}

func TestC19AnswersMatchTheirCallers(t *testing.T) {
	f := start(t)
	var wg sync.WaitGroup
	for a := range 20 {
		path := fmt.Sprintf("/mcp/a%d", a)
		sid := f.login(path)
		wg.Go(func() {
			for n := range 50 {
				v := fmt.Sprintf(`{"v":"%d-%d"}`, a, n)
				got := f.do("POST", path, callBody(fmt.Sprint(n), `{"name":"d__echo","arguments":`+v+`}`), sessionHeader, sid)
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":%s}}`, n, v); got.body != want {
					t.Errorf("got %s, want %s", got.body, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestC57BothErasAtOneURL(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	legacy := f.do("POST", "/mcp", callBody("7", `{"name":"d__echo","arguments":{"a":1}}`), sessionHeader, sid, versionHeader, "2025-06-18")
	if want := `{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"a":1}}}`; legacy.body != want {
		t.Errorf("legacy: %s", legacy.body)
	}
	modern := f.do("POST", "/mcp", callBody("7", `{"name":"d__echo","arguments":{"a":1},`+modernMeta+`}`), modernCall...)
	if want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[],"structuredContent":{"a":1}}}`; modern.body != want {
		t.Errorf("modern: %s", modern.body)
	}
	for _, a := range []answer{legacy, modern} {
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
			t.Errorf("%d %v", a.status, a.header)
		}
	}
}

func TestResultTypeIsAddedOnlyWhereItIsMissing(t *testing.T) {
	f := start(t)
	for result, want := range map[string]string{
		`{}`:                              `{"resultType":"complete"}`,
		` { } `:                           `{"resultType":"complete" }`,
		`{"a":1}`:                         `{"resultType":"complete","a":1}`,
		`{ "a":1}`:                        `{"resultType":"complete" ,"a":1}`,
		`{"resultType":"x"}`:              `{"resultType":"x"}`,
		`{"a":{"resultType":1}}`:          `{"resultType":"complete","a":{"resultType":1}}`,
		`{"\u0072esultType":"x"}`:         `{"\u0072esultType":"x"}`,
		`[1]`:                             `[1]`,
		`null`:                            `null`,
		`{"resultType":"input_required"}`: `{"resultType":"input_required"}`,
	} {
		f.gw.agent("default").call = func(context.Context, actors.Call) (actors.Reply, error) { return held(result), nil }
		a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), modernCall...)
		got := strings.TrimSuffix(strings.TrimPrefix(a.body, `{"jsonrpc":"2.0","id":1,"result":`), "}")
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %s, want %s", result, got, want)
		}
	}
}

func TestC62ArgumentsOfTheWrongTypeReachNobody(t *testing.T) {
	f := start(t)
	got := make(chan actors.Call, 1)
	f.gw.agent("default").call = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		c.Params = []byte(string(c.Params))
		got <- c
		return held("{}"), nil
	}
	sid := f.login("/mcp")
	for params, want := range map[string]string{ // the bytes of arguments that go on
		`{"name":"d__list"}`:                                                "",
		`{"name":"d__list","arguments":null}`:                               "null",
		`{"name":"d__list","arguments":{}}`:                                 "{}",
		`{"name":"d__list","arguments":{"a":null,"b":{"c":null}}}`:          `{"a":null,"b":{"c":null}}`,
		`{"arguments":{"z":1.0,"a":12345678901234567890},"name":"d__list"}`: `{"z":1.0,"a":12345678901234567890}`,
	} {
		a := f.do("POST", "/mcp", callBody("1", params), sessionHeader, sid)
		if a.status != 200 {
			t.Fatalf("%s: %d %s", params, a.status, a.body)
		}
		c := within(t, got, "the call")
		if c.Name != "d__list" || string(c.NameAt.Of(c.Params)) != `"d__list"` || string(c.ArgsAt.Of(c.Params)) != want || string(c.Params) != params {
			t.Errorf("%s: got %+v", params, c)
		}
	}
	before := f.gw.agent("default").count()
	for _, params := range []string{
		`{"name":"d__list","arguments":[]}`, `{"name":"d__list","arguments":"{}"}`, `{"name":"d__list","arguments":1}`,
		`{"name":"d__list","arguments":false}`, `null`, `[]`, `"x"`, `{}`, `{"name":1}`, `{"name":null}`, `{"name":["d__list"]}`,
		`{"name":"d__list","_meta":{"progressToken":{}}}`,
	} {
		a := f.do("POST", "/mcp", callBody("1", params), sessionHeader, sid)
		if a.status != 200 || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`) {
			t.Errorf("%s: %d %s", params, a.status, a.body)
		}
	}
	if a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo","arguments":[],`+modernMeta+`}`), modernCall...); a.status != 400 || !strings.Contains(a.body, "-32602") {
		t.Errorf("modern: %d %s", a.status, a.body)
	}
	if n := f.gw.agent("default").count() - before; n != 0 {
		t.Errorf("%d calls went on", n)
	}
}

func TestC90IdsAreEchoedByteForByte(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	long := `"` + strings.Repeat("x", 10<<10) + `"`
	for _, id := range []string{`0`, `"0"`, `"a-b"`, `9007199254740993`, `-1`, `""`, `1.0`, `1e3`, `"\u0041\/"`, long} {
		for _, method := range []string{"tools/call", "tools/list"} {
			a := f.do("POST", "/mcp", `{"method":"`+method+`","params":{"name":"d__echo"},"id":`+id+`,"jsonrpc":"2.0"}`, sessionHeader, sid)
			if a.status != 200 || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":`+id+`,"result":`) {
				t.Errorf("%.40s: %d %.100s", id, a.status, a.body)
			}
		}
	}
	for _, id := range []string{`null`, `{}`, `[]`, `true`} {
		a := f.do("POST", "/mcp", callBody(id, `{"name":"d__echo"}`), sessionHeader, sid)
		if a.status != 400 || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
}

func TestC97HeadersMustSayWhatTheBodySays(t *testing.T) {
	f := start(t)
	f.gw.agent("default").call = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		return held(`{"called":"` + c.Name + `"}`), nil
	}
	call := func(name string, headers ...string) answer {
		return f.do("POST", "/mcp", callBody("1", `{"name":"`+name+`",`+modernMeta+`}`), append([]string{versionHeader, "2026-07-28", "Mcp-Method", "tools/call"}, headers...)...)
	}
	for name, header := range map[string]string{"d__echo": "d__echo", "d__grüße": "=?base64?ZF9fZ3LDvMOfZQ==?=", `d\u005f_echo`: "d__echo"} {
		if a := call(name, "Mcp-Name", header); a.status != 200 || !strings.Contains(a.body, `"called":"d__`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	before := f.gw.agent("default").count()
	for what, a := range map[string]answer{
		"another name":      call("d2__delete", "Mcp-Name", "d__echo"),
		"no name":           call("d__echo"),
		"another method":    call("d__echo", "Mcp-Name", "d__echo", "Mcp-Method", "tools/list"),
		"another version":   call("d__echo", "Mcp-Name", "d__echo", versionHeader, "2026-07-29"),
		"bad base64":        call("d__echo", "Mcp-Name", "=?base64?%%%?="),
		"no version header": f.do("POST", "/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), "Mcp-Method", "tools/call", "Mcp-Name", "d__echo"),
	} {
		if a.status != 400 || !strings.Contains(a.body, "-32020") {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	for what, params := range map[string]string{
		"no meta":         `{"name":"d__echo"}`,
		"no capabilities": `{"name":"d__echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
		"bad clientInfo":  `{"name":"d__echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":7}}`,
	} {
		if a := f.do("POST", "/mcp", callBody("1", params), modernCall...); a.status != 400 || !strings.Contains(a.body, "-32602") {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if n := f.gw.agent("default").count() - before; n != 0 {
		t.Errorf("%d calls went on", n)
	}
}

func TestWhatCouldBeReadInTwoWaysIsRefused(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"d__echo"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call","params":{"name":"d__echo"}}`,
		`{"jsonrpc":"2.0","\u0069d":1,"method":"tools/call","params":{"name":"d__echo"}}`,
		callBody("1", `{"name":"d__echo","name":"d2__delete"}`),
		callBody("1", `{"name":"d__echo","n\u0061me":"d2__delete"}`),
		callBody("1", `{"n\u0061me":"d__echo"}`),
		callBody("1", `{"name":"d__echo","arguments":{},"arguments":[]}`),
		callBody("1", `{"name":"d__echo","_meta":{},"_meta":{"progressToken":1}}`),
		callBody("1", `{"name":"d__echo","_meta":{"progressToken":1,"progressToken":2}}`),
		`{"id":1,"method":"tools/call","params":{"name":"d__echo"}}`,
		`{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"d__echo"}}`,
		`{"jsonrpc":"2.0","id":1,"method":7}`,
		`17`, `"x"`, `null`,
	} {
		if a := f.do("POST", "/mcp", body, sessionHeader, sid); a.status != 400 || !strings.Contains(a.body, `"code":-32600,`) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	for _, body := range []string{"", "{", callBody("1", `{"name":"d__echo"}`) + "x", "\xef\xbb\xbf{}", callBody("1", "{\"name\":\"d__\xff\"}"),
		strings.Repeat("[", 20000), callBody("1", `{"name":"d__echo","arguments":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`}`)} {
		if a := f.do("POST", "/mcp", body, sessionHeader, sid); a.status != 400 || !strings.Contains(a.body, `"code":-32700,`) {
			t.Errorf("%.60q: %d %s", body, a.status, a.body)
		}
	}
	if n := f.gw.agent("default").count(); n != 0 {
		t.Errorf("%d calls went on", n)
	}
}

func TestC102ABatchIsRefusedWhole(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	for _, pv := range []string{"2025-03-26", "2025-06-18", ""} {
		for _, body := range []string{
			`[]`,
			`[{"jsonrpc":"2.0","id":1,"method":"ping"},` + callBody("2", `{"name":"d__echo"}`) + `,{"bad":1}]`,
			`[` + callBody("1", `{"name":"d__echo"}`) + `,` + callBody("1", `{"name":"d__echo"}`) + `]`,
			` [` + hello + `]`,
			`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 10000) + `1]`,
		} {
			a := f.do("POST", "/mcp", body, sessionHeader, sid, versionHeader, pv)
			if a.status != 400 || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
				t.Errorf("%s %.60s: %d %s", pv, body, a.status, a.body)
			}
		}
	}
	if n := f.gw.agent("default").count(); n != 0 {
		t.Errorf("%d calls went on", n)
	}
}

func TestC107BytesPassUnchanged(t *testing.T) {
	f := start(t)
	const result = `{"z":"a<b>&c\u2028` + "\u2028" + `","a":12345678901234567890,"a":1e400,"m":-0,"n":1.0,"u":"\ud800\u0000"}`
	const tools = `[{"z":1,"name":"d__x","description":"<tag>` + "\u2028" + `","inputSchema":{"type":"object","b":1.0,"a":2}}]`
	a := f.gw.agent("default")
	a.tools = tools
	a.call = func(context.Context, actors.Call) (actors.Reply, error) { return held(result), nil }
	sid := f.login("/mcp")
	if got := f.do("POST", "/mcp", callBody("1", `{"name":"d__x"}`), sessionHeader, sid).body; got != `{"jsonrpc":"2.0","id":1,"result":`+result+`}` {
		t.Errorf("result: %s", got)
	}
	if got := f.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, sessionHeader, sid).body; got != `{"jsonrpc":"2.0","id":1,"result":{"tools":`+tools+`}}` {
		t.Errorf("tools: %s", got)
	}
	got := f.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, versionHeader, "2026-07-28", "Mcp-Method", "tools/list").body
	if want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcphubd","version":"1.2.3"}},"tools":` + tools + `}}`; got != want {
		t.Errorf("modern tools: %s", got)
	}
}

func TestLineBreaksBetweenTokensAreTheOnlyBytesChanged(t *testing.T) {
	f := start(t)
	var got string
	f.gw.agent("default").call = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		got = string(c.Params)
		return held("{}"), nil
	}
	sid := f.login("/mcp")
	f.do("POST", "/mcp", callBody("1", "{\r\n  \"name\": \"d__echo\",\n\t\"arguments\": {\"a\": \"x\\ny\",\n\"b\": 1.0}\n}"), sessionHeader, sid)
	if want := `{    "name": "d__echo", ` + "\t" + `"arguments": {"a": "x\ny", "b": 1.0} }`; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestErrorsOfACallReachTheAgent(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	closed := false
	for what, tt := range map[string]struct {
		reply actors.Reply
		err   error
		want  string
	}{
		"refused":         {err: &actors.RPCError{Code: -32602, Message: `no tool "x"`}, want: `"error":{"code":-32602,"message":"no tool \"x\""}}`},
		"wrapped refusal": {err: fmt.Errorf("call: %w", &actors.RPCError{Code: -32602, Message: "m"}), want: `"error":{"code":-32602,"message":"m"}}`},
		"failed":          {err: errors.New("server is not ready: <exit status 1>"), want: `server is not ready: <exit status 1>`},
		"server's error":  {reply: actors.Reply{Error: []byte(`{"code":-5,"message":"m","data":1.0}`)}, want: `"error":{"code":-5,"message":"m","data":1.0}}`},
		"result":          {reply: actors.Reply{Result: actors.HeldBody([]byte(`{}`), func() { closed = true })}, want: `"result":{}}`},
		"nothing":         {want: `"error":{"code":-32603`},
	} {
		f.gw.agent("default").call = func(context.Context, actors.Call) (actors.Reply, error) { return tt.reply, tt.err }
		a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid)
		if a.status != 200 || !strings.Contains(a.body, tt.want) {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
		if what == "failed" && !strings.Contains(a.body, `"isError":true`) {
			t.Errorf("%s is no tool result: %s", what, a.body)
		}
	}
	if !closed {
		t.Error("the result was not closed")
	}
	f.gw.agent("default").call = func(context.Context, actors.Call) (actors.Reply, error) {
		return actors.Reply{Error: []byte(`{"code":-32602,"message":"m"}`)}, nil
	}
	if a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), modernCall...); a.status != 400 {
		t.Errorf("modern: %d %s", a.status, a.body)
	}
}

func TestACursorThatWasNeverIssuedIsRefused(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	list := func(params string) string {
		return f.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`, sessionHeader, sid).body
	}
	for _, params := range []string{`{}`, `null`, `{"cursor":null}`, `{"cursor":""}`, `{"_meta":{"progressToken":1}}`} {
		if got := list(params); !strings.Contains(got, `"result":{"tools":[`) {
			t.Errorf("%s: %s", params, got)
		}
	}
	for _, params := range []string{`{"cursor":"abc"}`, `{"cursor":7}`, `[]`, `"x"`} {
		if got := list(params); !strings.Contains(got, `"code":-32602,`) {
			t.Errorf("%s: %s", params, got)
		}
	}
}
