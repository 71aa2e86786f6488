package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Protocol revisions the tests speak of.
const (
	Legacy = "2025-06-18"
	Modern = "2026-07-28"
)

// Agent speaks raw streamable HTTP. It sends the bytes it is given and returns
// the bytes that came; it is safe for concurrent use after Init.
type Agent struct {
	URL      string      // of the endpoint: http://127.0.0.1:PORT/mcp/NAME
	Protocol string      // what MCP-Protocol-Version says; "" = no such header
	Session  string      // what Mcp-Session-Id says; "" = no such header
	Header   http.Header // sent with every request, over our own
	HTTP     *http.Client
	Timeout  time.Duration // of a request whose answer is read to the end; 0 = a minute

	last atomic.Int64
}

// NewAgent returns an agent that has sent nothing yet.
func NewAgent(url string) *Agent {
	return &Agent{URL: url, Header: http.Header{}, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
}

// NewModern returns an agent of the newest revision, which has no handshake.
func NewModern(url string) *Agent {
	a := NewAgent(url)
	a.Protocol = Modern
	return a
}

// Close gives the idle connections back.
func (a *Agent) Close() { a.HTTP.CloseIdleConnections() }

// Init does the handshake of the older revisions, asking for that one.
func (a *Agent) Init(ctx context.Context, revision string) (Response, error) {
	a.Protocol, a.Session = "", ""
	r, err := a.RPC(ctx, "initialize", `{"protocolVersion":`+quote(revision)+`,"capabilities":{},"clientInfo":{"name":"mcptest","version":"1"}}`)
	if err != nil {
		return r, err
	}
	var hello struct {
		Version string `json:"protocolVersion"`
	}
	if json.Unmarshal(r.Result(), &hello) != nil || hello.Version == "" {
		return r, fmt.Errorf("initialize: HTTP %d: %.300s", r.Status, r.Body)
	}
	a.Session, a.Protocol = r.Header.Get("Mcp-Session-Id"), hello.Version
	done, err := a.Post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	if err == nil && done.Status/100 != 2 {
		err = fmt.Errorf("initialized: HTTP %d: %.300s", done.Status, done.Body)
	}
	return r, err
}

// Call calls a tool; arguments is raw JSON, "" leaves the member out.
func (a *Agent) Call(ctx context.Context, tool, arguments string) (Response, error) {
	params := `{"name":` + quote(tool)
	if arguments != "" {
		params += `,"arguments":` + arguments
	}
	return a.RPC(ctx, "tools/call", params+"}")
}

// RPC sends one request under a fresh integer id; params is a raw object. For a
// modern agent it adds the members and headers that its revision demands.
func (a *Agent) RPC(ctx context.Context, method, params string) (Response, error) {
	id := strconv.FormatInt(a.last.Add(1), 10)
	return a.Request(ctx, id, method, params)
}

// Request is RPC under a raw id of the caller's choice.
func (a *Agent) Request(ctx context.Context, id, method, params string) (Response, error) {
	body, header := a.Message(id, method, params)
	r, err := a.Post(ctx, body, header)
	r.ID = id
	return r, err
}

// Message builds a request and the headers that go with it, and sends nothing.
func (a *Agent) Message(id, method, params string) (body string, header http.Header) {
	header = http.Header{}
	if a.Protocol >= Modern {
		header.Set("Mcp-Method", method)
		var p struct{ Name string }
		if _ = json.Unmarshal([]byte(params), &p); p.Name != "" {
			header.Set("Mcp-Name", p.Name)
		}
		params = withMeta(params, a.Protocol)
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":` + quote(method) + `,"params":` + params + `}`, header
}

// withMeta adds to a raw params object what 2026-07-28 wants in every request.
func withMeta(params, revision string) string {
	meta := `"io.modelcontextprotocol/protocolVersion":` + quote(revision) +
		`,"io.modelcontextprotocol/clientInfo":{"name":"mcptest","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	if before, after, ok := strings.Cut(params, `"_meta":{`); ok {
		if !strings.HasPrefix(strings.TrimSpace(after), "}") {
			meta += ","
		}
		return before + `"_meta":{` + meta + after
	}
	if rest := strings.TrimPrefix(strings.TrimSpace(params), "{"); strings.TrimSpace(rest) != "}" {
		return `{"_meta":{` + meta + `},` + rest
	}
	return `{"_meta":{` + meta + `}}`
}

// Post sends a raw body. Headers given replace the agent's own; an empty value
// list removes one.
func (a *Agent) Post(ctx context.Context, body string, header http.Header) (Response, error) {
	return a.Do(ctx, http.MethodPost, strings.NewReader(body), header)
}

// Do sends a request with any method and body, and reads the answer to its end.
func (a *Agent) Do(ctx context.Context, method string, body io.Reader, header http.Header) (Response, error) {
	limit := a.Timeout
	if limit == 0 {
		limit = time.Minute
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no whole answer within %s", limit))
	defer stop()
	res, err := a.start(ctx, method, body, header)
	if err != nil {
		return Response{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return Response{Status: res.StatusCode, Header: res.Header, Body: b}, err
}

func (a *Agent) start(ctx context.Context, method string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.URL, body)
	if err != nil {
		return nil, err
	}
	req.Header = a.headers(header)
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return a.HTTP.Do(req)
}

// headers are those of a well-behaved agent, then Agent.Header, then extra.
func (a *Agent) headers(extra http.Header) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if a.Session != "" {
		h.Set("Mcp-Session-Id", a.Session)
	}
	if a.Protocol != "" {
		h.Set("Mcp-Protocol-Version", a.Protocol)
	}
	for _, more := range []http.Header{a.Header, extra} {
		for k, v := range more {
			if len(v) == 0 {
				h.Del(k)
				continue
			}
			h[http.CanonicalHeaderKey(k)] = v
		}
	}
	return h
}

// Cancel tells the gateway that the request with this raw id is not wanted.
func (a *Agent) Cancel(ctx context.Context, id string) (Response, error) {
	return a.Post(ctx, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"test"}}`, nil)
}

// Delete ends the session.
func (a *Agent) Delete(ctx context.Context) (Response, error) {
	return a.Do(ctx, http.MethodDelete, nil, nil)
}

// Listen opens the standing stream (GET) of the older revisions.
func (a *Agent) Listen(ctx context.Context) (*Stream, error) {
	return a.Open(ctx, http.MethodGet, "", http.Header{"Accept": {"text/event-stream"}, "Content-Type": nil})
}

// Open sends a request and returns as soon as the headers of the answer are
// there, so that events can be read one by one, slowly, or never.
func (a *Agent) Open(ctx context.Context, method, body string, header http.Header) (*Stream, error) {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	res, err := a.start(ctx, method, r, header)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return nil, errors.New(method + ": " + res.Status + ": " + string(b))
	}
	return newStream(res), nil
}
