package downstream

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// officialChild is what a child of mode "official" serves, in both eras.
func officialChild() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "official", Version: "3"}, nil)
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, ok := r.Params.InputResponses["k"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{RequestState: "S", InputRequests: mcp.InputRequestMap{"k": &mcp.ElicitParams{Message: "name?",
				RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "string"}}}}}}, nil
		}
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("hello ", answer.Content["n"], " ", r.Params.RequestState)}}}, nil
	})
	return s
}

// TestC57TheOfficialServerOverStdioSpeaksTheEraThatIsPinned, and initialize where none is.
func TestC57TheOfficialServerOverStdioSpeaksTheEraThatIsPinned(t *testing.T) {
	for era, want := range map[string]string{"": protocol, "legacy": protocol, "modern": modern} {
		s := stdio(t, "official")
		s.Server.Era, s.Version = era, "1"
		changed := make(chan string, 1)
		c := connect(t, s, actors.Events{ListChanged: func(kind string) { changed <- kind }})
		if i := c.Info(); i.Protocol != want || i.Name != "official" || i.PID == 0 || !strings.Contains(string(i.Capabilities), `"tools"`) {
			t.Errorf("era %q: %+v", era, i)
		}
		if got, err := outcome(c.Call(t.Context(), actors.Request{Method: "tools/list", Token: -1})); err != nil || !strings.Contains(got, `"name":"ask"`) {
			t.Errorf("era %q: %s %v", era, got, err)
		}
		req := toolCall("ask", `{}`)
		req.Ask = func(context.Context, string, []byte) ([]byte, error) {
			return []byte(`{"action":"accept","content":{"n":"bob"}}`), nil
		}
		req.Can = []byte(`{"elicitation":{"form":{}}}`)
		got, err := outcome(c.Call(t.Context(), req))
		if want := map[string]string{protocol: "hello bob", modern: `"resultType":"input_required"`}[c.Info().Protocol]; err != nil || !strings.Contains(got, want) {
			t.Errorf("era %q: %s %v", era, got, err)
		}
		if c.Info().Protocol != modern {
			continue
		}
		progress := 0
		more := toolCall("ask", `{}`)
		more.Params = [][]byte{[]byte(`{"name":"ask","arguments":{},"requestState":"S","inputResponses":{"k":{"action":"accept","content":{"n":"bob"}}},"_meta":{"progressToken":`), nil, []byte(`}}`)}
		more.Token, more.Progress = 1, func([]byte, actors.Range) { progress++ }
		if got, err = outcome(c.Call(t.Context(), more)); err != nil || !strings.Contains(got, "hello bob S") || progress != 1 {
			t.Errorf("era %q: %s, %d reports, %v", era, got, progress, err)
		}
	}
}

// TestAServerThatKnowsNeitherEraIsNotAskedTwiceAgain, and the reason is that of initialize.
func TestAServerThatKnowsNeitherEraIsNotAskedTwiceAgain(t *testing.T) {
	s := stdio(t, "neither")
	for range 2 {
		_, err := s.Connect(t.Context(), actors.Events{})
		if err == nil || !strings.Contains(err.Error(), "no initialize here") {
			t.Error(err)
		}
	}
	if e := s.era.Load(); e == nil || *e != eraLegacy {
		t.Error("it is not remembered")
	}
	s = stdio(t, "neither")
	s.Server.Era = "modern"
	if _, err := s.Connect(t.Context(), actors.Events{}); err == nil || !strings.Contains(err.Error(), "server/discover") || !strings.Contains(err.Error(), "no server/discover here") {
		t.Error(err)
	}
}
