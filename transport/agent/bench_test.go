package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"mcphubd/actors"
)

// BenchmarkCall compares a small tools/call with a handler that only reads a body and
// writes an answer of the same size: the difference is ours.
func BenchmarkCall(b *testing.B) {
	const result = `{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}`
	body := callBody("1", `{"name":"d__echo","arguments":{"v":"`+strings.Repeat("x", 100)+`"}}`)
	modern := callBody("1", `{"name":"d__echo","arguments":{"v":"x"},`+modernMeta+`}`)

	b.Run("bare", func(b *testing.B) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.ReadAll(r.Body)
			w.Header()["Content-Type"] = typeJSON
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+result+`}`)
		})}
		go srv.Serve(ln)
		defer srv.Close()
		load(b, ln.Addr().String(), body)
	})
	f := start(b)
	f.gw.agent("default").call = func(context.Context, actors.Call) (actors.Reply, error) { return held(result), nil }
	sid := f.do("POST", "/mcp", hello).header.Get(sessionHeader)
	b.Run("legacy", func(b *testing.B) { load(b, f.addr, body, sessionHeader, sid) })
	b.Run("modern", func(b *testing.B) { load(b, f.addr, modern, modernCall...) })
}

// load sends one request after the other over one connection.
func load(b *testing.B, addr, body string, headers ...string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	f := fixture{addr: addr}
	raw, buf := []byte(f.rawRequest("/mcp", body, headers...)), make([]byte, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(raw); err != nil {
			b.Fatal(err)
		}
		n, err := c.Read(buf) // a small answer comes in one piece
		if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 200") {
			b.Fatalf("%s %v", buf[:n], err)
		}
	}
}
