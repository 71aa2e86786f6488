package npm

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/test/mcptest"
)

// What the everything server says without being asked: its log, from the level up that
// the agent chose, and news of the resources that it subscribed to, under the names
// that the agent knows.
func TestTheEverythingServerIsHeardUnasked(t *testing.T) {
	npm := need(t)
	for transport, server := range everyTransport(t, npm) {
		for path, names := range map[string]struct{ tool, uri string }{"/servers/ev/mcp": {"", ""}, "/mcp/listener": {"ev__", "mcphub://ev/"}} {
			t.Run(transport+path, func(t *testing.T) {
				d := mcptest.StartReady(t, server)
				logged, updated := make(chan string, 64), make(chan string, 64)
				client := mcp.NewClient(&mcp.Implementation{Name: "listener", Version: "1"}, &mcp.ClientOptions{
					LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { logged <- string(r.Params.Level) },
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
				})
				k, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + d.Addr() + path}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { k.Close() })
				if err := k.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
					t.Fatal(err)
				}
				uri := names.uri + "demo://resource/static/document/features.md"
				if err := k.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
				for _, tool := range []string{"toggle-subscriber-updates", "toggle-simulated-logging"} {
					r, err := k.CallTool(t.Context(), &mcp.CallToolParams{Name: names.tool + tool})
					if err != nil || !strings.HasPrefix(r.Content[0].(*mcp.TextContent).Text, "Started") {
						t.Fatalf("%s: %v: %+v", tool, err, r)
					}
				}
				mcptest.Eventually(t, "a log message and news of the resource", func() bool { return len(logged) > 0 && len(updated) > 0 })
				if got := <-updated; got != uri {
					t.Errorf("the news is of %s, not %s", got, uri)
				}
			})
		}
	}
}
