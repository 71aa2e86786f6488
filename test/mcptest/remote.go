package mcptest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Remote is a fake server over streamable HTTP, in the process of the test. It
// follows the same Script; steps with HTTP say what goes over the connection.
type Remote struct {
	*httptest.Server // its URL + "/mcp" is the endpoint

	s        *server
	mu       sync.Mutex
	sessions map[string]bool
	issued   int
	requests []RemoteRequest
	forgets  bool                 // requests are not kept
	streams  map[chan string]bool // standing GET streams
}

// RemoteRequest is one request as it came.
type RemoteRequest struct {
	Method string
	Header http.Header
	Body   string
}

// NewRemote starts the server on a loopback port; it ends with the test.
func NewRemote(t testing.TB, script Script) *Remote {
	t.Helper()
	s, err := newServer(script, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	r := &Remote{s: s, sessions: map[string]bool{}, streams: map[chan string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.CloseClientConnections() // silent handlers wait for that
		r.Close()
	})
	return r
}

// ServeRemote serves the script over streamable HTTP on l, under any path, until l fails.
// It is a server in a process of its own, for benchmarks: it keeps no requests.
func ServeRemote(script Script, l net.Listener) error {
	s, err := newServer(script, os.Stderr)
	if err != nil {
		return err
	}
	r := &Remote{s: s, sessions: map[string]bool{}, streams: map[chan string]bool{}, forgets: true}
	return http.Serve(l, http.HandlerFunc(r.serve))
}

// Forget drops all sessions, as a restart would.
func (r *Remote) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.sessions)
}

// Notify sends a raw message on every standing stream.
func (r *Remote) Notify(raw string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for stream := range r.streams {
		stream <- raw
	}
}

// EndStreams ends the standing streams, and nothing else that is under way.
func (r *Remote) EndStreams() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for stream := range r.streams {
		delete(r.streams, stream)
		close(stream)
	}
}

// Requests returns what came so far.
func (r *Remote) Requests() []RemoteRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RemoteRequest(nil), r.requests...)
}

func (r *Remote) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	req := parse(body)
	known := r.take(q, req, body)
	r.s.record.write(append(bytes.ReplaceAll(body, []byte("\n"), []byte(" ")), '\n'))
	switch {
	case err != nil || !known:
		(&Reply{Status: http.StatusNotFound, Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`}).write(&request{ctx: q.Context(), http: w})
	case q.Method == http.MethodGet:
		r.stream(w, q)
	case q.Method == http.MethodDelete:
		r.mu.Lock()
		delete(r.sessions, q.Header.Get("Mcp-Session-Id"))
		r.mu.Unlock()
	default:
		r.answer(w, q.Context(), req)
	}
}

// take keeps a request, and reports whether it names a session that lives, or needs none. Both
// happen at once: Forget does not reach what Requests shows.
func (r *Remote) take(q *http.Request, req *request, body []byte) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.forgets {
		r.requests = append(r.requests, RemoteRequest{q.Method, q.Header.Clone(), string(body)})
	}
	id := q.Header.Get("Mcp-Session-Id")
	return r.s.script.Stateless || id == "" && req != nil && req.Method == "initialize" || r.sessions[id]
}

func (r *Remote) answer(w http.ResponseWriter, ctx context.Context, req *request) {
	if req == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := &lazy{w: w}
	if r.s.script.SSE {
		w.Header().Set("Content-Type", "text/event-stream")
		out.events = true
	}
	if req.Method == "initialize" && !r.s.script.Stateless {
		r.mu.Lock()
		r.issued++
		id := "s" + strconv.Itoa(r.issued)
		r.sessions[id] = true
		r.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	req.ctx, req.http, req.out = ctx, w, &writer{w: out}
	rule, n := r.s.match(req)
	switch {
	case rule != nil:
		r.s.follow(req, rule.Do, r.s.meeting(rule, n))
		if !out.wrote && (len(rule.Do) == 0 || rule.Do[len(rule.Do)-1].HTTP == nil) {
			<-ctx.Done() // no answer was ordered: say nothing
		}
	case len(req.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		r.s.answer(req)
	}
}

// stream is the standing GET stream of the older revisions.
func (r *Remote) stream(w http.ResponseWriter, q *http.Request) {
	messages := make(chan string, 1024)
	r.mu.Lock()
	r.streams[messages] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.streams, messages)
		r.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	out := &lazy{w: w, events: true}
	for {
		select {
		case m, open := <-messages:
			if !open {
				return
			}
			_, _ = io.WriteString(out, m+"\n")
		case <-q.Context().Done():
			return
		}
	}
}

// lazy passes a message on, as an event where that is wanted: a line each.
type lazy struct {
	w      http.ResponseWriter
	events bool
	inside bool // of an event
	wrote  bool
}

func (l *lazy) Write(p []byte) (int, error) {
	l.wrote = true
	if !l.events {
		return l.w.Write(p)
	}
	if !l.inside {
		_, _ = io.WriteString(l.w, "data: ")
	}
	l.inside = !bytes.HasSuffix(p, []byte("\n"))
	n, err := l.w.Write(p)
	if !l.inside {
		_, _ = io.WriteString(l.w, "\n")
		_ = http.NewResponseController(l.w).Flush()
	}
	return n, err
}

// write sends the reply as it is and then does to the connection what is ordered.
func (r *Reply) write(req *request) {
	for k, v := range r.Header {
		req.http.Header().Set(k, v)
	}
	control := http.NewResponseController(req.http)
	if r.Status != 0 || r.Body != "" || len(r.Header) > 0 || r.Then == "" {
		req.http.WriteHeader(max(r.Status, http.StatusOK))
		_, _ = io.WriteString(req.http, string(r.Body))
		_ = control.Flush()
	}
	switch r.Then {
	case "silence":
		<-req.ctx.Done()
	case "close":
		panic(http.ErrAbortHandler)
	case "reset":
		if c, _, err := control.Hijack(); err == nil {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		}
	}
}
