package downstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"mcphubd/actors"
)

func TestC67ErrorsKeepCodeMessageAndData(t *testing.T) {
	p := newPeer(t)
	p.stateless = true
	c := attach(t, p.remote(nil), actors.Events{})
	object := `{"code":-32042,"message":"quota", "data":{"retry":9007199254740993}}`
	for _, status := range []int{200, 400, 404, 429, 500, 503} {
		for _, id := range []string{"$ID", "null", `"server-error"`} {
			for _, stream := range []bool{false, true} {
				if stream && id != "$ID" && status == 200 {
					continue // on a stream only the id says what an error is about
				}
				p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
					w.Header().Set("Retry-After", "7")
					said := `{"jsonrpc":"2.0","id":` + strings.ReplaceAll(id, "$ID", string(m.ID)) + `,"error":` + object + `}`
					if stream {
						reply(w, status, "text/event-stream", "data: "+said+"\n\n")
					} else {
						reply(w, status, "application/json", said)
					}
				}
				if got, err := ask(t, c, "x", `{}`); err != nil || got != "error "+object {
					t.Errorf("HTTP %d, id %s, stream %v: %s, %v", status, id, stream, got, err)
				}
			}
		}
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

func TestC67StatusesBecomeErrorsThatNameServerAndStatus(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(map[string]string{"Authorization": "Bearer sk-test-AAAA"}), actors.Events{})
	for _, s := range []struct {
		status     int
		kind, body string
		says       []string
	}{
		{502, "text/html", "<html><head><title>502 Bad\nGateway</title></head>" + strings.Repeat("x", 1<<20) + "</html>", []string{"HTTP 502 Bad Gateway", "a page: 502 Bad", "may have run"}},
		{500, "", "", []string{"HTTP 500 Internal Server Error", "may have run"}},
		{503, "text/plain", "overloaded", []string{"HTTP 503", "overloaded", "Retry-After: 7"}},
		{504, "text/html", "<html></html>", []string{"HTTP 504", "a page"}},
		{429, "text/plain", "slow down", []string{"HTTP 429", "slow down", "Retry-After: 7", "did not run"}},
		{418, "application/json", `{"error":"teapot"}`, []string{"HTTP 418", "teapot", "did not run"}},
		{400, "text/plain", "bad sk-test-AAAA", []string{"HTTP 400", "bad ***"}},
		{303, "", "", []string{"HTTP 303"}},
	} {
		p.call = func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Retry-After", "7")
			reply(w, s.status, s.kind, s.body)
		}
		if got, err := ask(t, c, "x", `{}`); !contains(err, append(s.says, "fake")...) || len(err.Error()) > 600 {
			t.Errorf("HTTP %d: %s, %v", s.status, got, err)
		}
		p.call = nil
		serves(t, c)
	}
	if c.Err() != nil || len(p.of("initialize")) != 1 {
		t.Error("single failed calls ended the connection:", c.Err())
	}
}

func TestC95ARefusedCredentialIsAProblemOfItsOwnAndNoLoop(t *testing.T) {
	p := newPeer(t)
	k := p.remote(map[string]string{"Authorization": "Bearer sk-test-AAAA"})
	c := attach(t, k, actors.Events{})
	refuse := func(w http.ResponseWriter, _ *http.Request, _ message) bool {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://127.0.0.1/x"`)
		reply(w, 401, "application/json", `{"error":"invalid_token: sk-test-AAAA"}`)
		return true
	}
	p.call = func(w http.ResponseWriter, r *http.Request, m message) {
		if m.Params.Name == "echo" {
			result(w, m, string(m.Params.Arguments))
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		w.WriteHeader(403)
	}
	for range 5 { // one tool that is not allowed says nothing about the others
		if _, err := ask(t, c, "write", `{}`); !contains(err, "fake", "not allowed", "HTTP 403", "insufficient_scope", "headers of [servers.fake]") {
			t.Error(err)
		}
	}
	serves(t, c)
	quiet(t, c)
	before := len(p.of("POST"))
	p.first = refuse
	for range 50 {
		_, err := ask(t, c, "echo", `{}`)
		if !contains(err, "fake", "sign-in needed", "HTTP 401", "headers of [servers.fake]") || strings.Contains(err.Error(), "sk-test") {
			t.Fatal(err)
		}
	}
	if n := len(p.of("POST")) - before; n > maxStrikes {
		t.Errorf("50 calls made %d tries", n)
	}
	<-c.Done()
	if !contains(c.Err(), "sign-in needed") {
		t.Error(c.Err())
	}
	before = len(p.of("POST"))
	if _, err := k.Connect(t.Context(), actors.Events{}); !contains(err, "fake", "sign-in needed", "HTTP 401") || strings.Contains(err.Error(), "sk-test") {
		t.Error(err)
	}
	if n := len(p.of("POST")) - before; n != 1 {
		t.Errorf("a new start made %d tries", n)
	}
}

func TestOneFailureDoesNotEndTheConnectionAndManyInARowDo(t *testing.T) {
	p := newPeer(t)
	release := make(chan bool)
	var bad atomic.Bool
	p.call = func(w http.ResponseWriter, r *http.Request, m message) {
		switch {
		case m.Params.Name == "long":
			<-release
			result(w, m, `{"long":true}`)
		case bad.Load():
			w.WriteHeader(503)
		default:
			result(w, m, string(m.Params.Arguments))
		}
	}
	c := attach(t, p.remote(nil), actors.Events{})
	long := make(chan error, 1)
	go func() {
		got, err := ask(t, c, "long", `{}`)
		if err == nil && got != `{"long":true}` {
			err = errors.New(got)
		}
		long <- err
	}()
	eventually(t, "the long call runs", func() bool { return len(p.of("tools/call")) == 1 })
	fail := func(times int) {
		bad.Store(true)
		for range times {
			if _, err := ask(t, c, "x", `{}`); err == nil {
				t.Error("no error")
			}
		}
		bad.Store(false)
	}
	for range 3 {
		fail(maxStrikes - 1)
		serves(t, c)
	}
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	fail(maxStrikes)
	<-c.Done()
	if !contains(c.Err(), "fake", "HTTP 503") {
		t.Error(c.Err())
	}
	if err := c.Close(context.Background()); err != nil { // as its owner does when it is lost
		t.Error(err)
	}
	release <- true
	if err := <-long; err != nil {
		t.Errorf("a call that was under way did not end well: %v", err)
	}
	eventually(t, "the session is ended after the last call", func() bool { return len(p.of("DELETE")) == 1 })
}

func TestCloseFailsCallsInFlightAtOnce(t *testing.T) {
	p := newPeer(t)
	p.call = func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() }
	c := attach(t, p.remote(nil), actors.Events{})
	errs := make(chan error, 2)
	for i := range 2 {
		go func() {
			req := toolCall("x", `{}`)
			if i == 1 {
				req.Progress = func([]byte, actors.Range) {}
			}
			_, err := bytesOf(c.Call(context.Background(), req))
			errs <- err
		}()
	}
	eventually(t, "the calls run", func() bool { return len(p.of("tools/call")) == 2 })
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-errs; !errors.Is(err, actors.ErrLost) || !contains(err, "fake", "it is being stopped", "may have run and was not repeated") {
			t.Error(err)
		}
	}
}

func TestC08AServerThatIsDownIsKnownToBeAndNothingWasSent(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	serves(t, c)
	p.CloseClientConnections()
	p.Close()
	unheard(t, p.Listener.Addr().String())
	_, err := ask(t, c, "echo", `{}`)
	for contains(err, "may have run") { // the old connection was still thought to be good
		_, err = ask(t, c, "echo", `{}`)
	}
	if !contains(err, "fake", "refused", "did not run") {
		t.Error(err)
	}
	<-c.Done()
	if !contains(c.Err(), "fake", "refused") {
		t.Error(c.Err())
	}
	if _, err := p.remote(nil).Connect(t.Context(), actors.Events{}); !contains(err, "fake", "refused") {
		t.Error(err)
	}
}

func TestC08ACallWaitsForAServerThatRestarts(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	nowhere := unheard(t, "127.0.0.1:0")
	link := c.(*Remote).link
	pool := link.newPool() // it is known that the old connections are gone
	dial, refused := pool.DialContext, new(atomic.Int64)
	pool.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if refused.Load() == 0 {
			address = nowhere
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			refused.Add(1)
		}
		return conn, err
	}
	link.pool.Swap(pool).CloseIdleConnections()
	serves(t, c)
	if refused.Load() == 0 {
		t.Error("the server was never away")
	}
}

// unheard holds an address on which nobody listens, so that nobody else can.
func unheard(t *testing.T, address string) string {
	t.Helper()
	want, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	at := &unix.SockaddrInet4{Port: want.Port, Addr: [4]byte(want.IP.To4())}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // old connections are no listener
	if err := unix.Bind(fd, at); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
}

// relay carries bytes to a server until it is told to lose them, as a network does that
// has silently gone away. When it is back, new connections work, and the old ones do not.
type relay struct {
	net.Listener
	mu   sync.Mutex
	deaf []*atomic.Bool
	away bool
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			t.Cleanup(func() { in.Close(); out.Close() })
			deaf := new(atomic.Bool)
			r.mu.Lock()
			r.deaf = append(r.deaf, deaf)
			deaf.Store(r.away)
			r.mu.Unlock()
			carry := func(to, from net.Conn) {
				b := make([]byte, 32<<10)
				for {
					n, err := from.Read(b)
					switch {
					case deaf.Load() && err != nil:
						return // the other end never hears of it
					case deaf.Load():
						continue
					}
					if _, werr := to.Write(b[:n]); err != nil || werr != nil {
						to.Close()
						return
					}
				}
			}
			go carry(in, out)
			go carry(out, in)
		}
	}()
	return r
}

// leave loses everything on the connections that are there, and on those that are dialed
// before it is back: a transport may have begun one that it has no use for yet.
func (r *relay) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = true
	for _, d := range r.deaf {
		d.Store(true)
	}
}

func (r *relay) comeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = false
}

func TestC100AHalfOpenConnectionCostsOneCall(t *testing.T) {
	for _, second := range []bool{false, true} {
		p := newPeer(t)
		k := p.remote(nil)
		address := p.Listener.Addr().String()
		scheme := "http"
		if second {
			secure := httptest.NewUnstartedServer(p)
			secure.EnableHTTP2 = true
			secure.StartTLS()
			t.Cleanup(func() { secure.CloseClientConnections(); secure.Close() })
			address, scheme = secure.Listener.Addr().String(), "https"
		}
		r := newRelay(t, address)
		k.Server.URL = scheme + "://" + r.Addr().String() + "/mcp"
		c := attach(t, k, actors.Events{})
		for range 3 {
			serves(t, c)
		}
		quiet(t, c)
		r.leave()
		if _, err := bytesOf(c.Call(expireOnceSent(t.Context()), toolCall("echo", `{}`))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("HTTP/2 %v: %v", second, err)
		}
		r.comeBack()
		serves(t, c)
		if c.Err() != nil {
			t.Error(c.Err())
		}
		if second && !http2Seen(p) {
			t.Error("it was not HTTP/2")
		}
	}
}

// expiring is a context whose deadline has come when over is closed.
type expiring struct {
	context.Context
	over chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.over }

func (e expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// expireOnceSent is for one call, whose deadline comes as soon as it is written.
func expireOnceSent(ctx context.Context) context.Context {
	over := make(chan struct{})
	sent := sync.OnceFunc(func() { close(over) })
	return expiring{httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }}), over}
}

func http2Seen(p *peer) bool {
	for _, s := range p.of("tools/call") {
		if s.proto == 2 {
			return true
		}
	}
	return false
}

func TestRedirectsStayOnTheHostAndCredentialsWithThem(t *testing.T) {
	var leaked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	t.Cleanup(other.Close)
	p := newPeer(t)
	to := "/mcp/"
	p.first = func(w http.ResponseWriter, r *http.Request, _ message) bool {
		if r.URL.Path != "/mcp" {
			return false
		}
		w.Header().Set("Location", to)
		w.WriteHeader(307)
		return true
	}
	c := attach(t, p.remote(map[string]string{"Authorization": "Bearer sk-test-AAAA"}), actors.Events{})
	serves(t, c)
	quiet(t, c)
	to = other.URL + "/mcp?token=x"
	if _, err := ask(t, c, "echo", `{}`); !contains(err, "fake", "HTTP 307", "another host", other.URL, "did not run") {
		t.Error(err)
	}
	to = "/mcp"
	if _, err := ask(t, c, "echo", `{}`); !contains(err, "fake", "more than 3 times") {
		t.Error(err)
	}
	if leaked.Load() != 0 {
		t.Error("another host was asked")
	}
	if _, err := p.remote(nil).Connect(t.Context(), actors.Events{}); err == nil {
		t.Error("connected in a circle")
	}
}

func TestOnlyConfiguredHeadersReachTheServer(t *testing.T) {
	p := newPeer(t)
	p.first = func(w http.ResponseWriter, _ *http.Request, _ message) bool {
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "1"})
		return false
	}
	k := p.remote(map[string]string{"authorization": "Bearer sk-test-AAAA", "X-Team": "a, b", "Content-Type": "text/wrong", "Host": "example.test"})
	c := attach(t, k, actors.Events{})
	serves(t, c)
	serves(t, c)
	for _, s := range p.of("tools/call") {
		for name := range s.header {
			switch name {
			case "Authorization", "X-Team", "Content-Type", "Content-Length", "Accept", "User-Agent", sessionHeader, protocolHeader:
			default:
				t.Errorf("header %s: %s", name, s.header.Get(name))
			}
		}
		if s.header.Get("Authorization") != "Bearer sk-test-AAAA" || s.header.Get("X-Team") != "a, b" || s.header.Get("Content-Type") != "application/json" || s.host != "example.test" {
			t.Errorf("%v, host %s", s.header, s.host)
		}
	}
	u, _ := url.Parse(p.URL)
	k = p.remote(nil)
	k.Server.URL = "http://user:pass%20word@" + u.Host + "/mcp"
	serves(t, attach(t, k, actors.Events{}))
	all := p.of("tools/call")
	if got, want := all[len(all)-1].header.Get("Authorization"), "Basic "+base64.StdEncoding.EncodeToString([]byte("user:pass word")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestATextOfTheServerCannotFloodAnError(t *testing.T) {
	p := newPeer(t)
	p.call = func(w http.ResponseWriter, _ *http.Request, _ message) {
		w.WriteHeader(500)
		_, _ = io.CopyN(w, endless{}, 8<<20)
	}
	c := attach(t, p.remote(nil), actors.Events{})
	if _, err := ask(t, c, "x", `{}`); err == nil || len(err.Error()) > 600 {
		t.Errorf("%.100v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }
