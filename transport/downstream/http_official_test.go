package downstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
	"mcphubd/config"
)

// official is a server made with the SDK, with tools that use what its revision has.
func official(running *atomic.Int64) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "official", Version: "3"}, &mcp.ServerOptions{Instructions: "be official"})
	object := &jsonschema.Schema{Type: "object"}
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: object}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "steps", InputSchema: object}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for n := range 3 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n)}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{}, nil
	})
	s.AddTool(&mcp.Tool{Name: "never", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s.AddTool(&mcp.Tool{Name: "naïve", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	marked := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
		"region": {Type: "string", Extra: map[string]any{"x-mcp-header": "Region"}},
		"deep": {Type: "object", Properties: map[string]*jsonschema.Schema{
			"n":  {Type: "integer", Extra: map[string]any{"x-mcp-header": "Deep-N"}},
			"on": {Type: "boolean", Extra: map[string]any{"x-mcp-header": "On"}},
		}},
	}}
	s.AddTool(&mcp.Tool{Name: "marked", InputSchema: marked}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	return s
}

// written is what a server wrote, in any of its goroutines.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) add(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// tee keeps what the server wrote.
type tee struct {
	http.ResponseWriter
	b *written
}

func (w tee) Write(p []byte) (int, error) { w.b.add(p); return w.ResponseWriter.Write(p) }
func (w tee) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w tee) Flush()                      { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func TestTheSDKsServerIsServedInAllItsForms(t *testing.T) {
	for _, era := range []string{"legacy", "modern", ""} {
		for _, stateless := range []bool{false, true} {
			for _, json := range []bool{false, true} {
				if era == "modern" && !stateless {
					continue
				}
				t.Run(fmt.Sprintf("era %q, stateless %v, JSON %v", era, stateless, json), func(t *testing.T) { serveOfficial(t, era, stateless, json) })
			}
		}
	}
}

func serveOfficial(t *testing.T, era string, stateless, json bool) {
	var running atomic.Int64
	s := official(&running)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: json, PropagateRequestCancellation: true})
	var wrote written
	var note atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if note.Load() && r.Method == http.MethodPost {
			w = tee{w, &wrote}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	k := patiently(&HTTP{Server: config.Server{Name: "fake", URL: web.URL, Transport: "http", Era: era}, MaxFrame: 1 << 30, Version: "1", Pause: time.Millisecond})
	changed := make(chan string, 10)
	c := attach(t, k, actors.Events{ListChanged: func(kind string) { changed <- kind }})
	info := c.Info()
	modernWanted := era != "legacy" && stateless
	if info.Name != "official" || info.Instructions != "be official" || (info.Protocol >= modern) != modernWanted || !strings.Contains(string(info.Capabilities), `"tools"`) {
		t.Errorf("%+v, capabilities %s", info, info.Capabilities)
	}
	list, err := bytesOf(c.Call(t.Context(), actors.Request{Method: "tools/list", Params: [][]byte{[]byte("{}")}, Token: -1, Hold: 1 << 20}))
	if err != nil || !strings.Contains(list, `"naïve"`) {
		t.Fatal(list, err)
	}
	note.Store(true)
	got, err := ask(t, c, "echo", `{"v":1.0, "big":12345678901234567890}`)
	note.Store(false)
	if err != nil || !strings.Contains(got, `{\"v\":1.0, \"big\":12345678901234567890}`) || !strings.Contains(wrote.String(), got) {
		t.Errorf("got %s, %v; the server wrote %s", got, err, wrote.String())
	}
	for _, tool := range []string{"naïve", "marked"} {
		if got, err := ask(t, c, tool, `{"region":" ös ","deep":{"n":-3,"on":true}}`); err != nil || strings.HasPrefix(got, "error") {
			t.Errorf("%s: %s, %v", tool, got, err)
		}
	}
	if got, err := ask(t, c, "no such", `{}`); err != nil || !strings.HasPrefix(got, "error {") {
		t.Errorf("unknown tool: %s, %v", got, err)
	}
	officialProgress(t, c, json)
	if !stateless || modernWanted { // the others cannot be told anything
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for running.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if _, err := c.Call(ctx, toolCall("never", `{}`)); err == nil {
			t.Error("no error after the cancel")
		}
		eventually(t, "the cancel reached the tool", func() bool { return running.Load() == 0 })
		eventually(t, "the server knows whom to tell", func() bool { return c.(*Remote).Standing() == "up" })
		for len(changed) > 0 {
			<-changed
		}
		s.AddTool(&mcp.Tool{Name: "new", InputSchema: &jsonschema.Schema{Type: "object"}}, nil)
		if kind := <-changed; kind != "tools" {
			t.Errorf("changed %s", kind)
		}
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

func officialProgress(t *testing.T, c actors.Conn, json bool) {
	var notes atomic.Int64
	_, err := bytesOf(c.Call(t.Context(), actors.Request{Method: "tools/call", Token: 1, Hold: 1 << 16,
		Params:   [][]byte{[]byte(`{"name":"steps","_meta":{"progressToken":`), nil, []byte(`}}`)},
		Progress: func([]byte, actors.Range) { notes.Add(1) }}))
	if err != nil || !json && notes.Load() != 3 {
		t.Errorf("%d notes, %v", notes.Load(), err)
	}
}
