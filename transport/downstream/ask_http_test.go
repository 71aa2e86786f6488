package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
	"mcphubd/config"
)

// asksAll is an official server whose tool asks for a name and greets. Calls wait for each
// other before they ask and before they answer, so that none is ever the only one in flight.
func asksAll(together int) *mcp.Server {
	var came, asked sync.WaitGroup
	came.Add(together)
	asked.Add(together)
	s := mcp.NewServer(&mcp.Implementation{Name: "asks", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "greet", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		came.Done()
		came.Wait()
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "string"}}}})
		asked.Done()
		asked.Wait()
		if err != nil {
			return nil, err
		}
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "asked"})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, " ", answer.Content["n"])}}}, nil
	})
	return s
}

// greets has agents call greet at the same time; each says its own name when asked.
func greets(t *testing.T, c actors.Conn, want string, agents ...string) {
	t.Helper()
	if a, err := c.Call(t.Context(), actors.Request{Method: "logging/setLevel", Params: [][]byte{[]byte(`{"level":"debug"}`)}, Token: -1}); err != nil || a.Error != nil {
		t.Fatalf("%s %v", a.Error, err)
	}
	var wg sync.WaitGroup
	for _, agent := range agents {
		wg.Go(func() {
			req := toolCall("greet", `{}`)
			var mu sync.Mutex
			logged := 0
			req.Agent, req.Client = agent, actors.Client{
				Ask: func(_ context.Context, method string, params []byte) ([]byte, error) {
					var p struct{ Message string }
					if err := json.Unmarshal(params, &p); err != nil || method != "elicitation/create" || p.Message != "name?" {
						t.Errorf("asked %s %s", method, params)
					}
					return []byte(`{"action":"accept","content":{"n":"` + agent + `"}}`), nil
				},
				Notify: func(method string, params []byte) {
					mu.Lock()
					defer mu.Unlock()
					logged++
				},
			}
			got, err := outcome(c.Call(t.Context(), req))
			if err != nil || !strings.Contains(got, fmt.Sprintf(want, agent)) {
				t.Errorf("agent %s got %s, %v", agent, got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if want == "accept %s" && logged != 1 {
				t.Errorf("agent %s heard %d log messages", agent, logged)
			}
		})
	}
	wg.Wait()
}

// TestC61OverHTTPEachCallsQuestionFindsItsOwnAgent, because it comes on the call's stream.
func TestC61OverHTTPEachCallsQuestionFindsItsOwnAgent(t *testing.T) {
	s := asksAll(3)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	c := attach(t, patiently(&HTTP{Server: config.Server{Name: "fake", URL: web.URL, Transport: "http", Era: "legacy"}, MaxFrame: 1 << 30}), actors.Events{})
	greets(t, c, "accept %s", "a", "b", "c")
}

// TestC61OverTheOlderSSEOnlyAnOnlyCallIsAsked: all come on one stream.
func TestC61OverTheOlderSSEOnlyAnOnlyCallIsAsked(t *testing.T) {
	for n, want := range map[int]string{1: "accept %s", 2: "decline %.0s"} {
		s := asksAll(n)
		web := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
		t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
		c := attach(t, patiently(&HTTP{Server: config.Server{Name: "fake", URL: web.URL, Transport: "sse"}, MaxFrame: 1 << 30}), actors.Events{})
		greets(t, c, want, []string{"a", "b"}[:n]...)
	}
}
