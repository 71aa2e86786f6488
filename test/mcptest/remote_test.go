package mcptest

import (
	"context"
	"strings"
	"testing"
)

func TestARemoteFollowsTheScriptOverHTTP(t *testing.T) {
	ctx := context.Background()
	for _, sse := range []bool{false, true} {
		r := NewRemote(t, Script{SSE: sse, Rules: []Rule{
			{Method: "tools/call", Tool: "empty", Do: []Step{{HTTP: &Reply{Status: 202}}}},
			{Method: "tools/call", Tool: "page", Do: []Step{{HTTP: &Reply{Status: 502, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>"}}}},
			{Method: "tools/call", Tool: "reset", Do: []Step{{HTTP: &Reply{Then: "reset"}}}},
			{Method: "tools/call", Tool: "half", Do: []Step{{Write: `{"jsonrpc":`}, {HTTP: &Reply{Then: "close"}}}},
		}})
		a := NewAgent(r.URL)
		if _, err := a.Init(ctx, Legacy); err != nil {
			t.Fatal(err)
		}
		got, err := a.Call(ctx, "hostile", `{"pad":100000}`)
		if err != nil || string(got.Result()) != string(Hostile(100000)) {
			t.Errorf("sse %v: %v, %d bytes", sse, err, len(got.Result()))
		}
		if strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") != sse {
			t.Errorf("sse %v: %s", sse, got.Header.Get("Content-Type"))
		}
		if got, err := a.Call(ctx, "empty", "{}"); err != nil || got.Status != 202 || len(got.Body) > 0 {
			t.Errorf("empty: %d %q %v", got.Status, got.Body, err)
		}
		if got, err := a.Call(ctx, "page", "{}"); err != nil || got.Status != 502 || string(got.Body) != "<html>" {
			t.Errorf("page: %d %q %v", got.Status, got.Body, err)
		}
		for _, tool := range []string{"reset", "half"} {
			if got, err := a.Call(ctx, tool, "{}"); err == nil {
				t.Errorf("%s: %d %q", tool, got.Status, got.Body)
			}
		}
		r.Forget()
		if got, err := a.Call(ctx, "echo", "{}"); err != nil || got.Status != 404 {
			t.Errorf("forgotten session: %d %v", got.Status, err)
		}
		if last := r.Requests()[len(r.Requests())-1]; last.Header.Get("Mcp-Session-Id") != "s1" {
			t.Errorf("last request %+v", last)
		}
	}
}

func TestARemoteNotifiesOnTheStandingStream(t *testing.T) {
	r := NewRemote(t, Script{})
	a := NewAgent(r.URL)
	if _, err := a.Init(context.Background(), Legacy); err != nil {
		t.Fatal(err)
	}
	stream, err := a.Listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	r.Notify(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	if _, err := stream.NextOf("notifications/tools/list_changed"); err != nil {
		t.Error(err)
	}
}
