package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
	"mcphubd/config"
)

// oldPeer is a scripted server over HTTP with SSE.
type oldPeer struct {
	*httptest.Server
	endpoint string                                 // what the first event says; "" = no event
	accept   func(w http.ResponseWriter)            // the answer to a POST; nil = 202
	call     func(m message) (say string, end bool) // what the stream brings for tools/call; nil = echo

	mu     sync.Mutex
	stream chan string // of the connection; "" ends it
	posts  []string    // where messages went
	seen   []sight
}

func newOldPeer(t testing.TB) *oldPeer {
	p := &oldPeer{endpoint: "/messages?sid=1"}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

func (p *oldPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		stream := make(chan string, 100)
		p.mu.Lock()
		p.stream = stream
		p.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		if p.endpoint != "" {
			_, _ = io.WriteString(w, "event: endpoint\r\ndata: "+p.endpoint+"\r\n\r\n")
		}
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case said := <-stream:
				if said == "" {
					return
				}
				_, _ = io.WriteString(w, said)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	b, _ := io.ReadAll(r.Body)
	var m message
	_ = json.Unmarshal(b, &m)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posts = append(p.posts, r.URL.String())
	p.seen = append(p.seen, sight{verb: r.Method, header: r.Header.Clone(), body: string(b), message: m})
	if p.accept != nil {
		p.accept(w)
	} else {
		w.WriteHeader(202)
	}
	say := func(result string) { p.stream <- "event: message\ndata: " + answerTo(m, result) + "\n\n" }
	switch {
	case m.Method == "initialize":
		say(hello)
	case m.Method == "tools/call" && p.call != nil:
		said, end := p.call(m)
		if said != "" {
			p.stream <- said
		}
		if end {
			p.stream <- ""
		}
	case m.Method == "tools/call":
		say(string(m.Params.Arguments))
	}
}

func (p *oldPeer) remote() *HTTP {
	return patiently(&HTTP{Server: config.Server{Name: "fake", URL: p.URL + "/base/sse", Transport: "sse"}, MaxFrame: 1 << 20, Version: "1"})
}

func TestC104TheAddressForMessagesIsFoundInAllItsForms(t *testing.T) {
	p := newOldPeer(t)
	for endpoint, want := range map[string]string{
		"/messages?sid=1": "/messages?sid=1", "messages?sid=1": "/base/messages?sid=1", "?sid=1": "/base/sse?sid=1",
		p.URL + "/m/2": "/m/2", "../up": "/up",
	} {
		p.endpoint = endpoint
		p.accept = func(w http.ResponseWriter) { reply(w, 200, "text/plain", "Accepted") }
		c := attach(t, p.remote(), actors.Events{})
		serves(t, c)
		if info := c.Info(); info.Protocol != "2025-06-18" || info.Instructions != "be kind" {
			t.Errorf("%+v", info)
		}
		p.mu.Lock()
		for _, at := range p.posts {
			if at != want {
				t.Errorf("%s: a message went to %s, want %s", endpoint, at, want)
			}
		}
		p.posts = nil
		p.mu.Unlock()
		_ = c.Close(context.Background())
	}
}

func TestC104AnAddressOnAnotherHostGetsNothing(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(other.Close)
	p := newOldPeer(t)
	p.endpoint = other.URL + "/messages"
	if _, err := p.remote().Connect(t.Context(), actors.Events{}); !contains(err, "fake", "another host", other.URL) {
		t.Error(err)
	}
}

func TestC104TheFirstEventIsBoundByConnectTimeout(t *testing.T) {
	p := newOldPeer(t)
	p.endpoint = ""
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no answer within 50ms (connect_timeout)"))
	defer cancel()
	if _, err := p.remote().Connect(ctx, actors.Events{}); !contains(err, "fake", "connect_timeout") {
		t.Error(err)
	}
}

func TestC104CallsInFlightFailAtOnceWhenTheStreamEnds(t *testing.T) {
	p := newOldPeer(t)
	p.call = func(m message) (string, bool) { return "", m.Params.Name == "end" }
	c := attach(t, p.remote(), actors.Events{})
	first := make(chan error, 1)
	go func() { _, err := ask(t, c, "never", `{}`); first <- err }()
	eventually(t, "the call runs", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.posts) >= 3 })
	_, err := ask(t, c, "end", `{}`)
	for _, err := range []error{err, <-first} {
		if !errors.Is(err, actors.ErrLost) || !contains(err, "fake", "event stream ended", "may have run and was not repeated") {
			t.Error(err)
		}
	}
	<-c.Done()
	if _, err := ask(t, c, "x", `{}`); !contains(err, "not sent") {
		t.Error(err)
	}
	p.call, p.endpoint = nil, "/new"
	serves(t, attach(t, p.remote(), actors.Events{}))
}

func TestOldServersAnswerByteForByteAndInAllForms(t *testing.T) {
	p := newOldPeer(t)
	c := attach(t, p.remote(), actors.Events{})
	want := `{ "a":-0,"b":1e400,"pad":"` + strings.Repeat("é", 200<<10) + `"}`
	for _, form := range []string{"data: $\n\n", "\r\n:x\r\nevent: message\r\ndata:$\r\n\r\n"} {
		p.call = func(m message) (string, bool) { return strings.Replace(form, "$", answerTo(m, want), 1), false }
		if got, err := ask(t, c, "x", `{}`); err != nil || got != want {
			t.Errorf("%.80s, %v", got, err)
		}
	}
	p.call = func(m message) (string, bool) {
		return "data: " + answerTo(m, `"`+strings.Repeat("x", 2<<20)+`"`) + "\n\n", false
	}
	if _, err := ask(t, c, "x", `{}`); !contains(err, "fake", "max_frame = 1MB") {
		t.Error(err)
	}
	p.call = nil
	serves(t, c)
}

func TestOldServersThatRefuseAMessageFailThatCallOnly(t *testing.T) {
	p := newOldPeer(t)
	c := attach(t, p.remote(), actors.Events{})
	p.call = func(message) (string, bool) { return "", false }
	p.accept = func(w http.ResponseWriter) { reply(w, 413, "text/plain", "too large") }
	if _, err := ask(t, c, "x", `{}`); !contains(err, "fake", "HTTP 413", "too large", "did not run") {
		t.Error(err)
	}
	p.call, p.accept = nil, nil
	serves(t, c)
	why := errors.New("the agent has gone")
	p.call = func(message) (string, bool) { return "", false }
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		eventually(t, "it is sent", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.seen) == 5 })
		cancel(why)
	}()
	if _, err := c.Call(ctx, toolCall("x", `{}`)); !errors.Is(err, why) {
		t.Error(err)
	}
	eventually(t, "the server is told", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		last := p.seen[len(p.seen)-1]
		return last.Method == "notifications/cancelled" && strings.Contains(last.body, string(p.seen[4].ID))
	})
	p.call = nil
	serves(t, c)
}

func TestOldServersReportProgressOnTheStream(t *testing.T) {
	p := newOldPeer(t)
	p.call = func(m message) (string, bool) {
		said := ""
		for n := range 3 {
			said += fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", m.ID, n)
		}
		return said + "data: " + answerTo(m, `{}`) + "\n\n", false
	}
	c := attach(t, p.remote(), actors.Events{})
	notes := 0
	_, err := bytesOf(c.Call(t.Context(), actors.Request{Method: "tools/call", Token: 1,
		Params: [][]byte{[]byte(`{"name":"x","_meta":{"progressToken":`), nil, []byte(`}}`)}, Progress: func([]byte, actors.Range) { notes++ }}))
	if err != nil || notes != 3 {
		t.Errorf("%d notes, %v", notes, err)
	}
}

func TestAServerThatIsNotOneOfTheOldSaysSo(t *testing.T) {
	p := newPeer(t)
	k := p.remote(nil)
	k.Server.Transport = "sse"
	if _, err := k.Connect(t.Context(), actors.Events{}); !contains(err, "fake", "HTTP 404") {
		t.Error(err)
	}
	old := newOldPeer(t)
	k = old.remote()
	k.Server.Transport = "http"
	old.accept = func(w http.ResponseWriter) { w.WriteHeader(405) }
	old.stream = make(chan string, 100)
	if _, err := k.Connect(t.Context(), actors.Events{}); !contains(err, "fake", "HTTP 405", `transport = "sse"`) {
		t.Error(err)
	}
}

func TestTheSDKsOldServerIsServed(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
		return nil, in, nil
	})
	web := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	changed := make(chan string, 10)
	k := patiently(&HTTP{Server: config.Server{Name: "fake", URL: web.URL, Transport: "sse"}, MaxFrame: 1 << 30, Version: "1"})
	c := attach(t, k, actors.Events{ListChanged: func(kind string) { changed <- kind }})
	if got, err := ask(t, c, "echo", `{"v":"x"}`); err != nil || !strings.Contains(got, `"structuredContent":{"v":"x"}`) {
		t.Errorf("%s, %v", got, err)
	}
	mcp.AddTool(s, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	if kind := <-changed; kind != "tools" {
		t.Error(kind)
	}
}
