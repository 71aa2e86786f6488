package mcptest

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// gateway is a server that shows what an agent sent and answers with one body.
type gateway struct {
	*httptest.Server
	seen   chan *http.Request
	bodies chan string
	answer func(body string) (contentType, text string)
}

func newGateway(t testing.TB, answer func(string) (string, string)) *gateway {
	g := &gateway{seen: make(chan *http.Request, 64), bodies: make(chan string, 64), answer: answer}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		g.seen <- r
		g.bodies <- string(b)
		if err != nil {
			return
		}
		ct, text := g.answer(string(b))
		w.Header().Set("Content-Type", ct)
		w.Header().Set("Mcp-Session-Id", "s1")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(g.Close)
	return g
}

func TestTheAgentShowsTheExactBytesOfAResult(t *testing.T) {
	hostile := string(Hostile(0))
	for name, body := range map[string][2]string{
		"json":   {"application/json", `{"jsonrpc":"2.0","id":1,"result":` + hostile + `}`},
		"events": {"text/event-stream", ": hi\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\nevent: message\r\ndata: {\"result\":" + hostile + ",\"id\":1}\r\n\r\n"},
	} {
		g := newGateway(t, func(string) (string, string) { return body[0], body[1] })
		r, err := NewAgent(g.URL).Call(context.Background(), "x", `{"n":9007199254740993}`)
		if err != nil || string(r.Result()) != hostile || r.AnswerID() != "1" {
			t.Errorf("%s: %v, result %.100q", name, err, r.Result())
		}
		if got := <-g.bodies; got != `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993}}}` {
			t.Errorf("%s: sent %s", name, got)
		}
	}
}

func TestAModernAgentSendsWhatItsRevisionDemands(t *testing.T) {
	g := newGateway(t, func(string) (string, string) { return "application/json", `{"id":1,"result":{}}` })
	for _, params := range []string{`{"name":"d__echo"}`, `{"name":"d__echo","_meta":{"k":1}}`, `{"name":"d__echo","_meta":{}}`} {
		if _, err := NewModern(g.URL).RPC(context.Background(), "tools/call", params); err != nil {
			t.Fatal(err)
		}
		r, sent := <-g.seen, Members([]byte(<-g.bodies))
		if r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("Mcp-Name") != "d__echo" || r.Header.Get("Mcp-Protocol-Version") != Modern {
			t.Errorf("headers %v", r.Header)
		}
		meta := Members(Members(sent["params"])["_meta"])
		if string(meta["io.modelcontextprotocol/protocolVersion"]) != quote(Modern) || meta["io.modelcontextprotocol/clientCapabilities"] == nil {
			t.Errorf("%s became %s", params, sent["params"])
		}
		if strings.Contains(params, `"k"`) && meta["k"] == nil {
			t.Errorf("%s lost its own member", params)
		}
	}
}

func TestInitRemembersSessionAndRevision(t *testing.T) {
	g := newGateway(t, func(string) (string, string) {
		return "application/json", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}`
	})
	a := NewAgent(g.URL)
	if _, err := a.Init(context.Background(), "2099-01-01"); err != nil {
		t.Fatal(err)
	}
	<-g.seen
	if r := <-g.seen; r.Header.Get("Mcp-Session-Id") != "s1" || r.Header.Get("Mcp-Protocol-Version") != "2025-03-26" {
		t.Errorf("headers %v", r.Header)
	}
}

func TestAHalfClosedWireStillGetsItsAnswer(t *testing.T) {
	g := newGateway(t, func(string) (string, string) { return "application/json", `{"id":1,"result":2}` })
	a := NewAgent(g.URL)
	w, err := a.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Post(a, `{"id":1}`, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.HalfClose(); err != nil {
		t.Fatal(err)
	}
	if r, err := w.Response(); err != nil || string(r.Result()) != "2" {
		t.Errorf("%v, %q", err, r.Body)
	}
}

func TestReadBackRefusesPagesWithAHole(t *testing.T) {
	stored := "the stored bytes"
	page := func(at, end int) string {
		data := base64.StdEncoding.EncodeToString([]byte(stored[at:end]))
		text := fmt.Sprintf(`{"status":"ok","data":%q,"cursor":%d,"nextCursor":%d,"done":%v,"totalBytes":%d}`, data, at, end, end == len(stored), len(stored))
		return `{"id":1,"result":{"content":[{"type":"text","text":` + quote(text) + `}]}}`
	}
	for skip, want := range map[int]bool{0: true, 1: false} {
		g := newGateway(t, func(body string) (string, string) {
			var at int
			_, _ = fmt.Sscanf(body[strings.Index(body, `"cursor":`)+9:], "%d", &at)
			return "application/json", page(min(at+skip, len(stored)), min(at+skip+5, len(stored)))
		})
		got, err := NewAgent(g.URL).ReadBack(context.Background(), "x")
		if (err == nil && string(got) == stored) != want {
			t.Errorf("skipping %d: %q, %v", skip, got, err)
		}
	}
}
