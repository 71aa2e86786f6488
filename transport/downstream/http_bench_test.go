package downstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcphubd/actors"
)

// BenchmarkHTTPCalls measures calls of a server over HTTP beside plain POSTs to it by
// the same client: what is more than those is ours.
func BenchmarkHTTPCalls(b *testing.B) {
	for _, size := range []int{200, 31 << 10, 1 << 20} {
		for _, stream := range []bool{false, true} {
			p := newPeer(b)
			text := `{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`
			p.first = func(w http.ResponseWriter, _ *http.Request, m message) bool {
				p.mu.Lock()
				p.seen = p.seen[:0]
				p.mu.Unlock()
				if m.Method != "tools/call" {
					return false
				}
				if stream {
					reply(w, 200, "text/event-stream", "data: "+answerTo(m, text)+"\n\n")
				} else {
					said := answerTo(m, text)
					w.Header().Set("Content-Length", fmt.Sprint(len(said)))
					reply(w, 200, "application/json", said)
				}
				return true
			}
			name := fmt.Sprintf("%dB,stream=%v", size, stream)
			c := attach(b, p.remote(nil), actors.Events{}).(*Remote)
			b.Run("calls/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						a, err := c.Call(context.Background(), toolCall("x", `{}`))
						if err != nil {
							b.Error(err)
							return
						}
						_, _ = a.Result.WriteTo(io.Discard)
						a.Result.Close()
					}
				})
			})
			b.Run("posts/"+name, func(b *testing.B) {
				b.ReportAllocs()
				client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						post(b, client, p.Server)
					}
				})
			})
		}
	}
}

func post(b *testing.B, client *http.Client, s *httptest.Server) {
	body := `{"jsonrpc":"2.0","id":4294967296,"method":"tools/call","params":{"name":"x","arguments":{}}}`
	res, err := client.Post(s.URL+"/mcp", "application/json", strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
}
