package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"
)

// What the gateway puts before the names and uris of the server conf.
const (
	nameBefore = "conf__"
	uriBefore  = "mcphub://conf/"
)

// shim stands in front of the daemon at addr, so that the suite can speak of the
// fixture's names: it puts the gateway's names into requests and takes them off
// answers. Nothing else passes it changed.
func shim(t *testing.T, addr string) string {
	t.Helper()
	var own string
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", addr
			if r.In.Host == own {
				r.Out.Host = addr
			}
			if r.In.Header.Get("Origin") == "http://"+own {
				r.Out.Header.Set("Origin", "http://"+addr)
			}
			name := r.In.Header.Get("Mcp-Name")
			switch r.In.Header.Get("Mcp-Method") {
			case "tools/call", "prompts/get":
				r.Out.Header.Set("Mcp-Name", nameBefore+name)
			case "resources/read":
				r.Out.Header.Set("Mcp-Name", uriBefore+name)
			}
			if name == "" {
				r.Out.Header.Del("Mcp-Name")
			}
			if r.In.Body != nil {
				b, _ := io.ReadAll(r.In.Body) // a body that breaks off is the daemon's to refuse
				b = exposed(b)
				r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			r.Body = &plain{Closer: r.Body, in: bufio.NewReader(r.Body)}
			return nil
		},
	}
	s := httptest.NewUnstartedServer(proxy)
	own = s.Listener.Addr().String()
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// exposed is a message with the gateway's names; one that cannot be read stays as it is.
func exposed(b []byte) []byte {
	var m map[string]json.RawMessage
	var method string
	var params map[string]any
	if json.Unmarshal(b, &m) != nil || json.Unmarshal(m["method"], &method) != nil || json.Unmarshal(m["params"], &params) != nil {
		return b
	}
	switch method {
	case "tools/call", "prompts/get":
		prefix(params, "name", nameBefore)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		prefix(params, "uri", uriBefore)
	case "completion/complete":
		ref, _ := params["ref"].(map[string]any)
		prefix(ref, "name", nameBefore)
		prefix(ref, "uri", uriBefore)
	case "subscriptions/listen":
		wanted, _ := params["notifications"].(map[string]any)
		uris, _ := wanted["resourceSubscriptions"].([]any)
		for i, uri := range uris {
			if s, ok := uri.(string); ok {
				uris[i] = uriBefore + s
			}
		}
	default:
		return b
	}
	m["params"], _ = json.Marshal(params) // it was JSON
	out, _ := json.Marshal(m)
	return out
}

func prefix(object map[string]any, key, before string) {
	if s, ok := object[key].(string); ok {
		object[key] = before + s
	}
}

// plain reads an answer line by line, which events are made of, without the gateway's
// names.
type plain struct {
	io.Closer
	in   *bufio.Reader
	line []byte
	err  error
}

func (p *plain) Read(b []byte) (int, error) {
	for len(p.line) == 0 && p.err == nil {
		p.line, p.err = p.in.ReadBytes('\n')
		p.line = bytes.ReplaceAll(p.line, []byte(`"`+nameBefore), []byte(`"`))
		p.line = bytes.ReplaceAll(p.line, []byte(uriBefore), nil)
	}
	if len(p.line) == 0 {
		return 0, p.err
	}
	n := copy(b, p.line)
	p.line = p.line[n:]
	return n, nil
}
