package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcphubd/actors"
)

// beats makes silence and beat so short that a waiting call shows them at once.
var beats = func() pace {
	p := steady
	p.silence, p.beat = time.Millisecond, time.Millisecond
	return p
}()

func TestAWaitingCallShowsSignsOfLife(t *testing.T) {
	f := start(t, quick(beats))
	g := newGate(f.gw.agent("default"))
	sid := f.login("/mcp")
	c := f.dial()
	io.WriteString(c, f.rawRequest("/mcp", callBody(`"x"`, `{"name":"d__sleep"}`), sessionHeader, sid))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v %v", resp, err)
	}
	r := bufio.NewReader(resp.Body)
	for range 6 { // signs of life while the call is still at work
		if line, err := r.ReadString('\n'); err != nil || line != "\n" && !strings.HasPrefix(line, ": ") {
			t.Fatalf("%q %v", line, err)
		}
	}
	g.let <- held("{\n\"a\":\r\n1}")
	rest, err := io.ReadAll(r)
	if err != nil || !strings.HasSuffix(string(rest), "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{ \"a\":  1}}\n\n") {
		t.Errorf("%q %v", rest, err)
	}
}

func TestC26ADroppedConnectionHurtsNobodyElse(t *testing.T) {
	f := start(t)
	g := newGate(f.gw.agent("default"))
	others := newGate(f.gw.agent("others"))
	sid, stays := f.login("/mcp"), f.login("/mcp/others")
	body := callBody("1", `{"name":"d__sleep"}`)
	stay := make(chan answer, 10)
	for range 10 {
		go func() { stay <- f.do("POST", "/mcp/others", body, sessionHeader, stays) }()
	}
	for range 10 {
		within(t, others.entered, "a call that stays")
	}
	for i := range 12 {
		c := f.dial()
		modern := i >= 6
		if modern {
			io.WriteString(c, f.rawRequest("/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), modernCall...))
		} else {
			io.WriteString(c, f.rawRequest("/mcp", body, sessionHeader, sid))
		}
		call := within(t, g.entered, "a call that is dropped")
		ctx := within(t, g.ctx, "its context")
		half := false
		switch i % 3 {
		case 0:
			c.SetLinger(0)
			c.Close()
		case 1:
			c.Close()
		case 2:
			half = true
			c.CloseWrite()
		}
		if modern {
			within(t, ctx.Done(), "the cancel of a modern call")
			continue
		}
		within(t, call.Gone.Done(), "the news that the agent is gone")
		if ctx.Err() != nil {
			t.Error("a legacy call was cancelled by a dropped connection")
		}
		g.let <- held(`{"late":true}`)
		if half {
			if a, err := response(c); err != nil || !strings.Contains(a.body, `"late":true`) {
				t.Errorf("a half-closed client still reads: %v %v", a, err)
			}
		}
	}
	for range 3 { // dropped in the middle of initialize
		c := f.dial()
		io.WriteString(c, f.rawRequest("/mcp", hello)[:200])
		c.SetLinger(0)
		c.Close()
	}
	for range 10 {
		others.let <- held(`{"stayed":true}`)
	}
	for range 10 {
		if a := within(t, stay, "an answer"); !strings.Contains(a.body, `"stayed":true`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if i := f.s.Sessions()[0]; i.Agent != "default" || i.Protocol != "2025-06-18" || i.Client != "raw" || i.Version != "9" {
		t.Errorf("session: %+v", i)
	}
}

func TestCancelEndsTheCallWithoutAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		pace pace
	}{{"quiet", steady}, {"streaming", beats}} {
		f := start(t, quick(tt.pace))
		g := newGate(f.gw.agent("default"))
		sid, other := f.login("/mcp"), f.login("/mcp")
		out := make(chan answer, 1)
		go func() { out <- f.do("POST", "/mcp", callBody(`"r-1"`, `{"name":"d__sleep"}`), sessionHeader, sid) }()
		within(t, g.entered, "the call")
		ctx := within(t, g.ctx, "its context")
		cancel := func(sid, id string) answer {
			return f.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"x"}}`, sessionHeader, sid)
		}
		for _, a := range []answer{cancel(other, `"r-1"`), cancel(sid, `1`), cancel(sid, `null`)} {
			if a.status != 202 {
				t.Errorf("%s: a cancel that hits nothing: %d %s", tt.name, a.status, a.body)
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: cancelled by another", tt.name)
		}
		if n := f.s.Sessions()[0].InFlight; n != 1 {
			t.Errorf("%s: %d in flight", tt.name, n)
		}
		if a := cancel(sid, `"r-1"`); a.status != 202 || a.body != "" {
			t.Errorf("%s: %d %s", tt.name, a.status, a.body)
		}
		within(t, ctx.Done(), "the cancel")
		a := within(t, out, "the end of the exchange")
		if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || strings.Contains(a.body, "data:") {
			t.Errorf("%s: late answer: %d %v %q", tt.name, a.status, a.header, a.body)
		}
	}
}

func TestACancelThatCouldMeanTwoCallsEndsNeither(t *testing.T) {
	f := start(t)
	g := newGate(f.gw.agent("default"))
	sid := f.login("/mcp")
	out := make(chan answer, 2)
	for range 2 {
		go func() { out <- f.do("POST", "/mcp", callBody("1", `{"name":"d__sleep"}`), sessionHeader, sid) }()
	}
	within(t, g.entered, "one")
	within(t, g.entered, "two")
	if a := f.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, sessionHeader, sid); a.status != 202 {
		t.Errorf("%d %s", a.status, a.body)
	}
	for range 2 {
		g.let <- held("{}")
		if a := within(t, out, "an answer"); !strings.Contains(a.body, `"result":{}`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

func TestProgressCarriesTheAgentsOwnToken(t *testing.T) {
	f := start(t)
	f.gw.agent("default").call = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		if c.Progress == nil {
			return held(`{"progress":"not asked for"}`), nil
		}
		for i := range 3 {
			p := fmt.Sprintf("{\"progress\":%d.0,\n\"progressToken\":4294967297,\"x\":1}", i)
			at := strings.Index(p, "4294967297")
			c.Progress([]byte(p), actors.Range{A: at, B: at + 10})
		}
		return held(`{"token":` + string(c.TokenAt.Of(c.Params)) + `}`), nil
	}
	sid := f.login("/mcp")
	for _, token := range []string{`"a\u0062"`, `9007199254740993`, `0`} {
		a := f.do("POST", "/mcp", callBody("5", `{"_meta":{"z":1,"progressToken":`+token+`},"name":"d__x"}`), sessionHeader, sid)
		want := ": working\n\n"
		for i := range 3 {
			want += fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":%d.0, \"progressToken\":%s,\"x\":1}}\n\n", i, token)
		}
		want += `event: message` + "\n" + `data: {"jsonrpc":"2.0","id":5,"result":{"token":` + token + "}}\n\n"
		if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || a.body != want {
			t.Errorf("%s:\ngot  %q\nwant %q", token, a.body, want)
		}
	}
	for _, params := range []string{`{"name":"d__x"}`, `{"name":"d__x","_meta":{"progressToken":null}}`} {
		if a := f.do("POST", "/mcp", callBody("5", params), sessionHeader, sid); !strings.Contains(a.body, "not asked for") {
			t.Errorf("%s: %s", params, a.body)
		}
	}
}

func TestAnAgentThatDoesNotReadHoldsUpNobody(t *testing.T) {
	f := start(t)
	told, line := make(chan struct{}), strings.Repeat("x", 64<<10)
	f.gw.agent("default").call = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		for range 1000 { // far more than sockets buffer
			c.Progress([]byte(`{"progressToken":1,"message":"`+line+`"}`), actors.Range{A: 17, B: 18})
		}
		close(told)
		return held("{}"), nil
	}
	sid := f.login("/mcp")
	c := f.dial()
	c.SetReadBuffer(4 << 10)
	io.WriteString(c, f.rawRequest("/mcp", callBody("1", `{"name":"d__x","_meta":{"progressToken":1}}`), sessionHeader, sid))
	within(t, told, "the server's news to be taken")
	c.SetLinger(0)
	c.Close()
}

func TestLargeResultsArriveWhole(t *testing.T) {
	f := start(t)
	value := `{"content":[{"type":"text","text":"` + strings.Repeat(`a\n"`[:3], 1<<20) + `"}],` + "\n" + `"n":1.0}`
	f.gw.agent("default").call = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		if c.Progress != nil {
			c.Progress([]byte(`{"progressToken":1}`), actors.Range{A: 17, B: 18})
		}
		return held(value), nil
	}
	sid := f.login("/mcp")
	legacy := f.do("POST", "/mcp", callBody("1", `{"name":"d__x"}`), sessionHeader, sid)
	if legacy.body != `{"jsonrpc":"2.0","id":1,"result":`+value+`}` || legacy.header.Get("Content-Length") != fmt.Sprint(len(legacy.body)) {
		t.Errorf("legacy: %d bytes, %v", len(legacy.body), legacy.header)
	}
	modern := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo",`+modernMeta+`}`), modernCall...)
	if modern.body != `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",`+value[1:]+`}` {
		t.Errorf("modern: %d bytes", len(modern.body))
	}
	stream := f.do("POST", "/mcp", callBody("1", `{"name":"d__x","_meta":{"progressToken":1}}`), sessionHeader, sid)
	if !strings.HasSuffix(stream.body, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"+strings.ReplaceAll(value, "\n", " ")+"}\n\n") {
		t.Errorf("stream: %d bytes", len(stream.body))
	}
}

func TestC99TheRequestLimitIsKeptAndNamed(t *testing.T) {
	f := start(t) // 1 MiB
	sid := f.login("/mcp")
	body := func(n int) string {
		b := callBody("1", `{"name":"d__echo","arguments":{"pad":""}}`)
		return strings.Replace(b, `""`, `"`+strings.Repeat("x", n-len(b))+`"`, 1)
	}
	for _, tt := range []struct{ size, status int }{{300 << 10, 200}, {1 << 20, 200}, {1<<20 + 1, 413}, {5 << 20, 413}} {
		for _, chunked := range []bool{false, true} {
			raw := f.rawRequest("/mcp", body(tt.size), sessionHeader, sid)
			if chunked {
				raw = strings.Replace(raw, fmt.Sprintf("Content-Length: %d\r\n", tt.size), "Transfer-Encoding: chunked\r\n", 1)
				raw = strings.Replace(raw, "\r\n\r\n", fmt.Sprintf("\r\n\r\n%x\r\n", tt.size), 1) + "\r\n0\r\n\r\n"
			}
			c := f.dial()
			go io.WriteString(c, raw) // the answer to what is too large may come before its end
			a, err := response(c)
			if err != nil || a.status != tt.status {
				t.Errorf("%d bytes, chunked %v: %d %.100s %v", tt.size, chunked, a.status, a.body, err)
			}
			if tt.status == 413 && (!json.Valid([]byte(a.body)) || !strings.Contains(a.body, "1048576") || !strings.Contains(a.body, "max_request")) {
				t.Errorf("%d bytes: %s", tt.size, a.body)
			}
		}
	}
	if a := f.do("POST", "/mcp", "\x1f\x8b", "Content-Encoding", "gzip"); a.status != 415 || !json.Valid([]byte(a.body)) {
		t.Errorf("gzip: %d %s", a.status, a.body)
	}
	if a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo"}`), "Content-Encoding", "identity", sessionHeader, sid); a.status != 200 {
		t.Errorf("identity: %d %s", a.status, a.body)
	}
}

func TestC99NoMoreThanTheLimitIsRead(t *testing.T) {
	for _, declared := range []int64{-1, 1 << 40} {
		src := &counter{}
		r, _ := http.NewRequest("POST", "/mcp", src)
		r.ContentLength = declared
		_, no := readBody(discard{}, r, nil, 1000, time.Minute)
		if no == nil || no.status != 413 || src.n > 1001 {
			t.Errorf("declared %d: %d bytes read, %+v", declared, src.n, no)
		}
	}
}

// counter is an endless body.
type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) { c.n += len(p); return len(p), nil }

type discard struct{ http.ResponseWriter }

func (discard) Header() http.Header { return http.Header{} }

func FuzzResultTypeKeepsEveryOtherByte(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, ` { "a" : [ ] } `, `[]`, `null`, ``, `{`, " \n{\n}"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, v []byte, cut int) {
		whole := appendValue(nil, v, resultType)
		var pieces []byte
		w := typing{to: appender{&pieces}, put: resultType}
		k := min(len(v), max(0, cut))
		w.Write(v[:k])
		w.Write(v[k:])
		if string(whole) != string(pieces) {
			t.Fatalf("in one: %q, in pieces: %q", whole, pieces)
		}
		if json.Valid(v) && !json.Valid(whole) {
			t.Fatalf("%q became %q", v, whole)
		}
		back := strings.Replace(string(whole), resultType, "", 1)
		if back != string(v) { // it had members
			back = strings.Replace(back, ",", "", 1)
		}
		if json.Valid(v) && !strings.Contains(string(v), "resultType") && back != string(v) {
			t.Fatalf("%q came back as %q", v, back)
		}
	})
}

func FuzzParseNeverLetsAMalformedBodyPass(f *testing.F) {
	for _, s := range []string{hello, callBody("1", `{"name":"x","_meta":{"progressToken":"t"}}`), `[]`, `{"jsonrpc":"2.0","id":null}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, no := parse(body)
		if no != nil {
			return
		}
		if _, no = findParams(m.params.Of(body)); no != nil {
			return
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%q passed: %v", body, err)
		}
		if m.method != "" && m.id != nil && string(m.id) != string(got["id"]) {
			t.Fatalf("%q: id %q, want %q", body, m.id, got["id"])
		}
	})
}
