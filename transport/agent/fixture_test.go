package agent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/transport/front"
)

// fakeAgent takes orders: what it answers is set by the test.
type fakeAgent struct {
	mu      sync.Mutex
	call    func(ctx context.Context, c actors.Call) (actors.Reply, error)
	tools   string
	changed chan struct{}
	seen    int    // calls that got here
	shown   func() // called after each look at the tools; may be nil

	request    func(ctx context.Context, c actors.Call) (actors.Reply, error)
	lists      [3]string // by actors.List
	hello      actors.Hello
	refuse     error // of subscriptions
	subscribed chan string
	ended      chan string
	heard      func()
}

func (a *fakeAgent) Call(ctx context.Context, c actors.Call) (actors.Reply, error) {
	a.mu.Lock()
	a.seen++
	call := a.call
	a.mu.Unlock()
	return call(ctx, c)
}

func (a *fakeAgent) Tools(context.Context) []byte {
	a.mu.Lock()
	tools, shown := []byte(a.tools), a.shown
	a.mu.Unlock()
	if shown != nil {
		shown()
	}
	return tools
}

func (a *fakeAgent) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// change sets another tool list.
func (a *fakeAgent) change(tools string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools = tools
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *fakeAgent) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// Request answers with the call as it came, as the server would get it.
func (a *fakeAgent) Request(ctx context.Context, c actors.Call) (actors.Reply, error) {
	a.mu.Lock()
	a.seen++
	request := a.request
	a.mu.Unlock()
	return request(ctx, c)
}

func (a *fakeAgent) List(_ context.Context, kind actors.List) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []byte(a.lists[kind])
}

func (a *fakeAgent) Hello(context.Context) (actors.Hello, error) { return a.hello, nil }

func (a *fakeAgent) Subscribe(_ context.Context, uri string, heard func()) (func(), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse != nil {
		return nil, a.refuse
	}
	a.heard = heard
	a.subscribed <- uri
	return func() { a.ended <- uri }, nil
}

// fakeGateway welcomes every name but "stranger".
type fakeGateway struct {
	mu     sync.Mutex
	agents map[string]*fakeAgent
	barred map[string]bool
	tokens map[string]string // by agent
	idle   time.Duration     // of sessions; set before the first request
}

func (g *fakeGateway) Open(_ context.Context, name string) (Agent, error) {
	g.mu.Lock()
	barred := name == "stranger" || g.barred[name]
	g.mu.Unlock()
	if barred {
		return nil, &actors.RPCError{Code: -32600, Message: "no agent " + name + ": add [agents." + name + "] to the configuration"}
	}
	return g.agent(name), nil
}

// Enter asks for the token of whoever has one.
func (g *fakeGateway) Enter(name, token string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := config.Config{Agents: map[string]config.Agent{"default": {}}}
	for agent, token := range g.tokens {
		c.Agents[agent] = config.Agent{Name: agent, Token: token}
	}
	if agent, ok := c.Enter(name, token); ok {
		return agent, nil
	}
	return "", actors.ErrToken
}

func (g *fakeGateway) Left(string, string, bool) {}

func (g *fakeGateway) SessionIdle() time.Duration { return g.idle }

// OpenOne knows the server d, and the agent at it by a name of its own.
func (g *fakeGateway) OpenOne(ctx context.Context, name, server string) (Agent, error) {
	if _, err := g.Open(ctx, name); err != nil {
		return nil, err
	}
	if server != "d" {
		return nil, &actors.RPCError{Code: -32600, Message: "no server " + server + " here"}
	}
	return g.agent(name + " at " + server), nil
}

func (g *fakeGateway) agent(name string) *fakeAgent {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.agents[name] == nil {
		g.agents[name] = &fakeAgent{call: echo, tools: `[{"name":"d__echo","inputSchema":{"type":"object"}}]`, changed: make(chan struct{}),
			subscribed: make(chan string, 10), ended: make(chan string, 10), request: relayed, hello: actors.Hello{Instructions: "how to page: mcphub_get_result"}}
	}
	return g.agents[name]
}

// echo answers with the arguments as they came.
func echo(_ context.Context, c actors.Call) (actors.Reply, error) {
	return held(`{"content":[],"structuredContent":` + orEmpty(c.ArgsAt.Of(c.Params)) + `}`), nil
}

// relayed answers with what would be sent to a server.
func relayed(_ context.Context, c actors.Call) (actors.Reply, error) {
	return held(`{"method":"` + c.Method + `","name":` + string(c.NameAt.Of(c.Params)) + `,"params":` + string(c.Params) + `}`), nil
}

func orEmpty(b []byte) string {
	if len(b) == 0 || string(b) == "null" {
		return "{}"
	}
	return string(b)
}

func held(s string) actors.Reply {
	return actors.Reply{Result: actors.HeldBody([]byte(s), nil)}
}

// fixture is a server on a real listener.
type fixture struct {
	*testing.T
	gw   *fakeGateway
	s    *Server
	addr string
	port int
}

// steady is a pace at which a machine that stands still for a while changes nothing: no
// answer becomes a stream for being late, and every stream ends in good order.
var steady = pace{progress: time.Hour, write: time.Hour, silence: time.Hour, beat: time.Hour, farewell: time.Hour,
	settle: 10 * time.Millisecond, parked: time.Hour}

// quick has a server keep that pace.
func quick(p pace) func(*Server) {
	return func(s *Server) { s.pace, s.silence.After = p, p.silence }
}

func start(t testing.TB, change ...func(*Server)) *fixture {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{gw: &fakeGateway{agents: map[string]*fakeAgent{}}, addr: ln.Addr().String(), port: ln.Addr().(*net.TCPAddr).Port}
	f.T, _ = t.(*testing.T)
	f.s = New(Options{Gateway: f.gw, Version: "1.2.3", MaxRequest: 1 << 20, Port: func() int { return f.port }})
	quick(steady)(f.s)
	for _, c := range change {
		c(f.s)
	}
	srv := front.New(f.s, nil, zerolog.Nop())
	go srv.Serve(ln)
	t.Cleanup(func() {
		f.s.Close()
		srv.Close()
	})
	return f
}

func (f *fixture) url(path string) string { return "http://" + f.addr + path }

type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers come in pairs. It may be used from any goroutine.
func (f *fixture) do(method, path, body string, headers ...string) answer {
	r, err := http.NewRequest(method, f.url(path), strings.NewReader(body))
	if err != nil {
		return answer{body: err.Error()}
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{resp.StatusCode, resp.Header, string(b) + "\n" + err.Error()}
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"9"}}}`

// login makes a legacy session.
func (f *fixture) login(path string) string {
	f.Helper()
	a := f.do("POST", path, hello)
	sid := a.header.Get(sessionHeader)
	if a.status != 200 || sid == "" {
		f.Fatalf("initialize: %d %s", a.status, a.body)
	}
	return sid
}

func callBody(id, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + params + `}`
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

var modernCall = []string{versionHeader, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "d__echo"}

// rawRequest is a POST as bytes for a socket.
func (f *fixture) rawRequest(path, body string, headers ...string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", path, f.addr, len(body))
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

func (f *fixture) dial() *net.TCPConn {
	f.Helper()
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// response reads one answer off a socket.
func response(c net.Conn) (answer, error) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return answer{}, err
	}
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// within fails the test when ch stays silent; it is a bound on a hang, not a measure.
func within[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// gate holds calls of a fake agent until they are let go.
type gate struct {
	entered chan actors.Call
	ctx     chan context.Context
	let     chan actors.Reply
}

func newGate(a *fakeAgent) *gate {
	g := &gate{make(chan actors.Call, 200), make(chan context.Context, 200), make(chan actors.Reply)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
		c.Params = bytes.Clone(c.Params)
		g.entered <- c
		g.ctx <- ctx
		select {
		case r := <-g.let:
			return r, nil
		case <-ctx.Done():
			return actors.Reply{}, ctx.Err()
		}
	}
	return g
}

// setCall sets what a call does.
func (a *fakeAgent) setCall(f func(c actors.Call) (actors.Reply, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call = func(_ context.Context, c actors.Call) (actors.Reply, error) { return f(c) }
}
