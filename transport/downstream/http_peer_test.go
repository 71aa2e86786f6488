package downstream

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"mcphubd/actors"
	"mcphubd/config"
)

// peer is a scripted server over streamable HTTP, in the process of the test.
type peer struct {
	*httptest.Server
	stateless bool
	protocol  string                                                               // "" = 2025-06-18
	call      func(w http.ResponseWriter, r *http.Request, m message)              // tools/call; nil = echo
	get       http.HandlerFunc                                                     // nil = 405
	first     func(w http.ResponseWriter, r *http.Request, m message) (taken bool) // before all else

	mu       sync.Mutex
	seen     []sight
	sessions map[string]bool
	issued   int
}

// sight is one request as it came.
type sight struct {
	verb   string
	header http.Header
	host   string
	proto  int
	body   string
	message
}

// trustTests has the certificate of httptest trusted in this process, and nowhere else.
func trustTests() {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	f, err := os.CreateTemp("", "cert")
	if err != nil {
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	_ = pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	os.Setenv("SSL_CERT_FILE", f.Name())
	_, _ = x509.SystemCertPool() // read now
	os.Unsetenv("SSL_CERT_FILE")
}

func newPeer(t testing.TB) *peer {
	p := &peer{sessions: map[string]bool{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m message
	_ = json.Unmarshal(b, &m)
	m.raw = b
	p.mu.Lock()
	p.seen = append(p.seen, sight{r.Method, r.Header.Clone(), r.Host, r.ProtoMajor, string(b), m})
	known := p.stateless || p.sessions[r.Header.Get(sessionHeader)]
	p.mu.Unlock()
	switch {
	case p.first != nil && p.first(w, r, m):
	case r.Method == http.MethodPost && m.Method == "initialize":
		p.initialize(w, m)
	case !known:
		reply(w, 404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
	case r.Method == http.MethodGet && p.get != nil:
		p.get(w, r)
	case r.Method == http.MethodGet:
		w.WriteHeader(405)
	case r.Method == http.MethodDelete:
		p.forget()
	case m.ID == nil:
		w.WriteHeader(202)
	case m.Method == "tools/call" && p.call != nil:
		p.call(w, r, m)
	case m.Method == "tools/call":
		result(w, m, string(m.Params.Arguments))
	case m.Method == "tools/list":
		result(w, m, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	default:
		reply(w, 200, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"no such method"}}`)
	}
}

func (p *peer) initialize(w http.ResponseWriter, m message) {
	if !p.stateless {
		p.mu.Lock()
		p.issued++
		id := fmt.Sprintf("s%d", p.issued)
		p.sessions[id] = true
		p.mu.Unlock()
		w.Header().Set(sessionHeader, id)
	}
	said := hello
	if p.protocol != "" {
		said = strings.Replace(said, "2025-06-18", p.protocol, 1)
	}
	result(w, m, said)
}

// forget drops all sessions, as a restart does.
func (p *peer) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.sessions)
}

// of returns what came with this method: of HTTP, or of the message.
func (p *peer) of(method string) (all []sight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if s.verb == method || s.Method == method {
			all = append(all, s)
		}
	}
	return all
}

// remote is a Connector for p.
func (p *peer) remote(headers map[string]string) *HTTP {
	return patiently(&HTTP{
		Server:   config.Server{Name: "fake", URL: p.URL + "/mcp", Transport: "http", Headers: headers},
		MaxFrame: 1 << 30, Version: "1", Pause: time.Millisecond,
	})
}

// patiently gives h limits of time that no busy machine reaches.
func patiently(h *HTTP) *HTTP {
	h.Server.ConnectTimeout, h.Patience, h.Farewell = 2*bound, bound, bound
	return h
}

// quiet waits until the server has answered what was asked beside calls: from then on
// only calls meet the server, and the test may give it other answers.
func quiet(t testing.TB, c actors.Conn) {
	t.Helper()
	eventually(t, "the server has answered the request for the standing stream", func() bool { return c.(*Remote).Standing() != "" })
}

// attach connects and ends the connection with the test.
func attach(t testing.TB, k actors.Connector, events actors.Events) actors.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	c, err := k.Connect(ctx, events)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// ask calls a tool and returns the bytes of its result, or its error object with a mark.
func ask(t testing.TB, c actors.Conn, name, arguments string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	return bytesOf(c.Call(ctx, toolCall(name, arguments)))
}

func bytesOf(a actors.Answer, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case a.Error != nil:
		return "error " + string(a.Error), nil
	}
	defer a.Result.Close()
	var b strings.Builder
	_, err = a.Result.WriteTo(&b)
	return b.String(), err
}

// serves asserts that the connection does its work.
func serves(t testing.TB, c actors.Conn) {
	t.Helper()
	want := `{"v":12345678901234567890}`
	if got, err := ask(t, c, "echo", want); err != nil || got != want {
		t.Fatalf("echo: %.200s, %v", got, err)
	}
}

func reply(w http.ResponseWriter, status int, kind, body string) {
	if kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	_ = http.NewResponseController(w).Flush()
}

func result(w http.ResponseWriter, m message, result string) {
	reply(w, 200, "application/json", answerTo(m, result))
}

func answerTo(m message, result string) string {
	return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`
}

// inPieces writes body so that the reader sees it cut at every n bytes.
func inPieces(w http.ResponseWriter, kind, body string, n int) {
	w.Header().Set("Content-Type", kind)
	for len(body) > 0 {
		k := min(n, len(body))
		_, _ = io.WriteString(w, body[:k])
		_ = http.NewResponseController(w).Flush()
		body = body[k:]
	}
}

// contains reports an error that says all of texts.
func contains(err error, texts ...string) bool {
	if err == nil {
		return false
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return false
		}
	}
	return true
}
