package downstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcphubd/actors"
)

func TestC06HTTPResultBytesAreTheServersOwn(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	sse := func(message string) string { return "event: message\r\ndata: " + message + "\r\n\r\n" }
	for _, want := range []string{
		`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"id":9007199254740993,"big":1234567890123456787}}`,
		`{ "a" : 1.0 , "a":-0,"b":1e400, "c":"\u003c<>&\u2028` + "\u2028" + `\u0000\ud800\/", "content":[{"type":"new"}]  }`,
		`{}`, `[]`, `"text"`, `17`,
		`{"pad":"` + strings.Repeat("é", 200<<10) + `","id":9007199254740993 }`,
	} {
		for _, form := range []string{`{"jsonrpc":"2.0","id":$ID,"result":%s}`, `{"result": %s ,"jsonrpc":"2.0","id":$ID}`, `  {"id":"$ID","result":%s}  `} {
			for _, stream := range []bool{false, true} {
				for _, piece := range []int{1 + rand.IntN(40), 1000, 1 << 20} {
					if piece < 1000 && len(want) > 10000 {
						piece = 333
					}
					p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
						said := strings.ReplaceAll(fmt.Sprintf(form, want), "$ID", string(m.ID))
						if stream {
							inPieces(w, "text/event-stream", sse(said), piece)
						} else {
							inPieces(w, "application/json; charset=utf-8", said, piece)
						}
					}
					got, err := ask(t, c, "x", `{}`)
					if err != nil || sha256.Sum256([]byte(got)) != sha256.Sum256([]byte(want)) {
						t.Fatalf("%.60s in %s, stream %v, pieces of %d: got %.60s, %v", want, form, stream, piece, got, err)
					}
				}
			}
		}
	}
	p.call = func(w http.ResponseWriter, _ *http.Request, m message) { // as a JSON printer writes it
		reply(w, 200, "application/json", "{\n \"jsonrpc\": \"2.0\",\n \"id\": "+string(m.ID)+",\n \"result\": {\r\n\t\"a\": 1\n}\n}\n")
	}
	if got, err := ask(t, c, "x", `{}`); err != nil || got != "{\r\n\t\"a\": 1\n}" {
		t.Errorf("white space of the server: %q, %v", got, err)
	}
}

func TestC07ParamsReachTheServerByteForByte(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	for _, arguments := range []string{`{"a":null,"b":{"c":1.0,"c":1e400}}`, "{\n\r\"a\":" + strings.Repeat(" ", 300<<10) + "12345678901234567890}"} {
		if got, err := ask(t, c, "echo", arguments); err != nil || got != arguments {
			t.Errorf("%.100s, %v", got, err)
		}
		all := p.of("tools/call")
		if last := all[len(all)-1].body; !strings.HasSuffix(last, `"method":"tools/call","params":{"name":"echo","arguments":`+arguments+`}}`) {
			t.Errorf("the server got %.200s", last)
		}
	}
}

func TestC02LongMessagesArriveWholeUpToMaxFrame(t *testing.T) {
	p := newPeer(t)
	k := p.remote(nil)
	k.MaxFrame = 65 << 20
	c := attach(t, k, actors.Events{})
	for _, stream := range []bool{true, false} {
		for _, size := range []int{70_000, 3 << 19, 64 << 20} {
			p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
				w.Header().Set("Content-Type", "application/json")
				before, after := "", ""
				if stream {
					w.Header().Set("Content-Type", "text/event-stream")
					before, after = "data: ", "\n\n"
				}
				_, _ = io.WriteString(w, before+`{"result":{"content":[{"type":"text","text":"`)
				for n := 0; n < size; n += 1000 {
					_, _ = io.WriteString(w, strings.Repeat("x", min(1000, size-n)))
				}
				_, _ = io.WriteString(w, `"}]},"jsonrpc":"2.0","id":`+string(m.ID)+`}`+after)
			}
			got, err := ask(t, c, "x", `{}`)
			if want := len(`{"content":[{"type":"text","text":""}]}`) + size; err != nil || len(got) != want || strings.Count(got, "x") != size+2 {
				t.Errorf("stream %v, %d bytes: got %d, %v", stream, size, len(got), err)
			}
		}
		for _, whole := range []bool{true, false} { // also when it is told in advance
			p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
				said := answerTo(m, `"`+strings.Repeat("x", 66<<20)+`"`)
				if stream {
					said = "data:" + said + "\n\n"
					w.Header().Set("Content-Type", "text/event-stream")
				} else {
					w.Header().Set("Content-Type", "application/json")
				}
				if whole {
					w.Header().Set("Content-Length", fmt.Sprint(len(said)))
				}
				_, _ = io.WriteString(w, said)
			}
			if _, err := ask(t, c, "x", `{}`); !contains(err, "fake", "max_frame = 65MB") {
				t.Errorf("stream %v: %v", stream, err)
			}
		}
		p.call = nil
		serves(t, c)
	}
	if len(p.of("initialize")) != 1 || c.Err() != nil {
		t.Error("the session did not survive")
	}
}

func TestC88StreamsInAllForms(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	const want = `{"a":1}`
	for _, stream := range []string{
		"\xEF\xBB\xBF:ping\r\n\r\nevent: message\r\ndata: $\r\n\r\n",
		"event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":\"wrong\"}\n\ndata:$\n\n",
		"id:\rretry: 1\rdata: $\r\r",
		"data: {\"jsonrpc\":\ndata: \"2.0\",\"id\":$ID,\"result\":\ndata: {\"a\":1}}\n\n",
		"data: \n\ndata: $\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
		"data: $\n", "data: $", ": only a comment\n\ndata: not json\n\ndata: $\r\n",
	} {
		p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
			said := strings.ReplaceAll(strings.ReplaceAll(stream, "$ID", string(m.ID)), "$", answerTo(m, want))
			inPieces(w, "text/event-stream", said, 1+rand.IntN(20))
		}
		if got, err := ask(t, c, "x", `{}`); err != nil || got != want {
			t.Errorf("%q: %s, %v", stream, got, err)
		}
	}
	for _, stream := range []string{"data: $CUT", "data: $CUT\n\n", "event: other\ndata: $\n\n"} {
		p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
			whole := answerTo(m, want)
			reply(w, 200, "text/event-stream", strings.ReplaceAll(strings.ReplaceAll(stream, "$CUT", whole[:len(whole)-3]), "$", whole))
		}
		if got, err := ask(t, c, "x", `{}`); !contains(err, "fake") {
			t.Errorf("%q is taken for the answer %q", stream, got)
		}
	}
	serves(t, mustEcho(p, c))
}

// mustEcho has p answer as usual again.
func mustEcho(p *peer, c actors.Conn) actors.Conn {
	p.call = nil
	return c
}

func TestC04NoAnswerIsNeverASuccess(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	for _, s := range []struct {
		status     int
		kind, body string
		says       []string
	}{
		{202, "", "", []string{"HTTP 202", "empty body", "unknown"}},
		{204, "", "", []string{"HTTP 204", "unknown"}},
		{200, "application/json", "", []string{"HTTP 200", "empty body", "unknown"}},
		{200, "text/event-stream", "", []string{"ended before the answer", "may have run"}},
		{200, "text/event-stream", ":ping\n\ndata:\n\n", []string{"ended before the answer"}},
		{200, "application/json", "{}", []string{"HTTP 200 application/json", "no JSON-RPC answer: {}", "unknown"}},
		{200, "application/json", "null", []string{"no JSON-RPC answer: null"}},
		{200, "application/json", `[{"jsonrpc":"2.0","id":7,"result":{}}]`, []string{"nothing in it answers the call", "unknown"}},
		{200, "application/json", `[{"jsonrpc":"2.0","id":$ID,"result":{}},7]`, []string{"no JSON-RPC answer"}},
		{200, "application/json", `[[{"jsonrpc":"2.0","id":$ID,"result":{}}]]`, []string{"no JSON-RPC answer"}},
		{200, "application/json", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{"another request"}},
		{200, "application/json", `{"jsonrpc":"2.0","id":$ID,"method":"x"}`, []string{"no JSON-RPC answer"}},
		{200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{}`, []string{"no JSON-RPC answer"}},
		{200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"m"}}`, []string{"a result and an error"}},
		{200, "text/html", "<html><title>Sign in</title></html>", []string{"HTTP 200 text/html", "Sign in", "unknown"}},
		{200, "text/html", strings.Repeat("<p>big page</p>", 40000), []string{"HTTP 200 text/html", "unknown"}},
	} {
		p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
			reply(w, s.status, s.kind, strings.ReplaceAll(s.body, "$ID", string(m.ID)))
		}
		got, err := ask(t, c, "x", `{}`)
		if !contains(err, append(s.says, "fake")...) {
			t.Errorf("HTTP %d %s %.60q: %q, %v", s.status, s.kind, s.body, got, err)
		}
		p.call = nil
		serves(t, c)
	}
	for _, legal := range []string{`{"content":[]}`, `{}`} {
		p.call = func(w http.ResponseWriter, _ *http.Request, m message) { reply(w, 200, "", answerTo(m, legal)) }
		if got, err := ask(t, c, "x", `{}`); err != nil || got != legal {
			t.Errorf("%s: %s, %v", legal, got, err)
		}
	}
	if n := len(p.of("initialize")); n != 1 || c.Err() != nil {
		t.Error("single failed calls ended the connection:", c.Err())
	}
}

func TestC08NothingThatMayHaveRunIsSentAgain(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	for name, then := range map[string]func(w http.ResponseWriter, r *http.Request, m message){
		"closes":        func(http.ResponseWriter, *http.Request, message) { panic(http.ErrAbortHandler) },
		"resets":        func(w http.ResponseWriter, _ *http.Request, _ message) { reset(w) },
		"never answers": func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() },
		"cuts the answer": func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Length", "500")
			reply(w, 200, "application/json", answerTo(m, `{}`)[:20])
			panic(http.ErrAbortHandler)
		},
		"breaks off in the stream": func(w http.ResponseWriter, _ *http.Request, m message) {
			reply(w, 200, "text/event-stream", "data: "+answerTo(m, `{}`)[:20])
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			serves(t, c) // so that a connection is there to be used again
			_ = os.Remove(ledger)
			enough := errors.New("that was long enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			p.call = func(w http.ResponseWriter, r *http.Request, m message) {
				f, _ := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				_, _ = io.WriteString(f, "paid\n")
				f.Close()
				if name == "never answers" {
					cancel(enough)
				}
				then(w, r, m)
			}
			defer mustEcho(p, c)
			got, err := bytesOf(c.Call(ctx, toolCall("pay", `{}`)))
			if errors.Is(err, enough) != (name == "never answers") || err == nil {
				t.Errorf("%s, %v", got, err)
			}
			if name != "never answers" && (!errors.Is(err, actors.ErrLost) || !contains(err, "fake", "may have run and was not repeated")) {
				t.Error(err)
			}
			if b, _ := os.ReadFile(ledger); string(b) != "paid\n" {
				t.Errorf("the ledger says %q", b)
			}
		})
	}
	serves(t, c)
}

func reset(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

func TestC34NothingButTheCallsContextBoundsACall(t *testing.T) {
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			p := newPeer(t)
			const limit = 200 * time.Millisecond
			takes := limit + 100*time.Millisecond
			p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
				kind, before, after := "application/json", "", ""
				if stream {
					kind, before, after = "text/event-stream", "data: ", "\n\n"
				}
				time.Sleep(takes) // before the headers
				reply(w, 200, kind, before+`{"jsonrpc":"2.0",`)
				time.Sleep(takes) // and behind them
				_, _ = io.WriteString(w, `"id":`+string(m.ID)+`,"result":{}}`+after)
			}
			k := p.remote(nil)
			c := attach(t, k, actors.Events{})
			quiet(t, c)
			link := c.(*Remote).link
			k.Server.ConnectTimeout, link.timeout = limit, limit
			pool := link.newPool()
			pool.DialContext = new(net.Dialer).DialContext // which is bounded by it, but here for the call to begin
			link.pool.Swap(pool).CloseIdleConnections()
			if got, err := ask(t, c, "x", `{}`); err != nil || got != `{}` {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestACancelOverHTTPIsToldToTheServerAndHurtsNobodyElse(t *testing.T) {
	p := newPeer(t)
	started := make(chan bool, 1)
	p.call = func(w http.ResponseWriter, r *http.Request, m message) {
		if m.Params.Name == "echo" {
			result(w, m, string(m.Params.Arguments))
			return
		}
		started <- true
		<-r.Context().Done()
	}
	c := attach(t, p.remote(nil), actors.Events{})
	why := errors.New("the agent has gone")
	for i, progress := range []func([]byte, actors.Range){nil, func([]byte, actors.Range) {}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-started
			serves(t, c)
			cancel(why)
		}()
		req := toolCall("never", `{}`)
		req.Progress = progress
		if _, err := c.Call(ctx, req); !errors.Is(err, why) {
			t.Errorf("err %v, want the cause", err)
		}
		serves(t, c)
		eventually(t, "the server is told", func() bool { return len(p.of("notifications/cancelled")) == i+1 })
	}
	for i, told := range p.of("notifications/cancelled") {
		all := p.of("tools/call")
		id := string(all[0].ID)
		if i == 1 {
			id = string(all[3].ID)
		}
		if told.body != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}` || told.header.Get(sessionHeader) != "s1" {
			t.Errorf("told %s", told.body)
		}
	}
}

func TestProgressOverHTTPReachesItsCallInOrderAndBeforeTheAnswer(t *testing.T) {
	p := newPeer(t)
	standing := make(chan string)
	p.get = func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, "text/event-stream", ":\n\n")
		for {
			select {
			case said := <-standing:
				_, _ = io.WriteString(w, "data: "+said+"\n\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	next := make(chan bool)
	p.call = func(w http.ResponseWriter, r *http.Request, m message) {
		note := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s}}`, n, m.ID)
		}
		for n := range 3 {
			inPieces(w, "text/event-stream", "data: "+note(n)+"\n\n", 7)
			<-next
		}
		standing <- note(3) // servers say it there as well
		<-next
		_, _ = io.WriteString(w, "data: "+note(4)+"\n\ndata: "+answerTo(m, `{}`)+"\n\n")
	}
	c := attach(t, p.remote(nil), actors.Events{})
	eventually(t, "the standing stream is up", func() bool { return c.(*Remote).Standing() == "up" })
	var got []string
	req := actors.Request{Method: "tools/call", Token: 1, Hold: 1 << 16,
		Params: [][]byte{[]byte(`{"name":"x","_meta":{"progressToken":`), nil, []byte(`}}`)},
		Progress: func(params []byte, at actors.Range) {
			var note struct{ Progress int }
			if json.Unmarshal(params, &note) != nil || note.Progress != len(got) {
				t.Errorf("note %d is %s", len(got), params)
			}
			if got = append(got, string(at.Of(params))); len(got) < 5 {
				next <- true
			}
		}}
	if a, err := bytesOf(c.Call(t.Context(), req)); err != nil || a != `{}` {
		t.Fatal(a, err)
	}
	sent := p.of("tools/call")[0]
	if len(got) != 5 || got[0] != string(sent.ID) || !strings.Contains(sent.body, `"_meta":{"progressToken":`+got[0]+`}`) {
		t.Errorf("tokens %v for %s", got, sent.body)
	}
}

func TestAStreamThatTheServerClosesEarlyIsResumedAndNotRepeated(t *testing.T) {
	p := newPeer(t)
	answers := make(chan string, 1)
	p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
		answers <- answerTo(m, `{"v":1}`)
		reply(w, 200, "text/event-stream", "id: e1\nretry: 1\ndata:\n\n")
	}
	gets := 0
	p.get = func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Last-Event-Id") {
		case "":
			w.WriteHeader(405)
		case "e1":
			if gets++; gets == 1 {
				w.WriteHeader(503)
				return
			}
			reply(w, 200, "text/event-stream", "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
		case "e2":
			reply(w, 200, "text/event-stream", "id: e3\ndata: "+<-answers+"\n\n")
		}
	}
	c := attach(t, p.remote(nil), actors.Events{})
	quiet(t, c)
	if got, err := ask(t, c, "x", `{}`); err != nil || got != `{"v":1}` {
		t.Errorf("%s, %v", got, err)
	}
	if n := len(p.of("tools/call")); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	p.get = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }
	if _, err := ask(t, c, "x", `{}`); !contains(err, "fake", "could not be resumed", "404", "may have run") {
		t.Error(err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	p := newPeer(t)
	dialed := map[string]bool{}
	c := attach(t, p.remote(nil), actors.Events{})
	for _, stream := range []bool{false, true} {
		p.call = func(w http.ResponseWriter, r *http.Request, m message) {
			dialed[r.RemoteAddr] = true // one call after the other
			if stream {
				reply(w, 200, "text/event-stream", "data: "+answerTo(m, `{}`)+"\n\n")
			} else {
				result(w, m, `{}`)
			}
		}
		for range 30 {
			if _, err := ask(t, c, "x", `{}`); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(dialed) > 10 {
		t.Errorf("%d connections for 60 calls in a row", len(dialed))
	}
}
