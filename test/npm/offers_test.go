package npm

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/test/mcptest"
)

// offers is what the server has beside tools: its lists, what some of it reads, and how
// arguments are completed. Names and uris stand in it as the server knows them.
func (k *talker) offers(t *testing.T, prefix string) map[string]string {
	t.Helper()
	ctx, got := t.Context(), map[string]string{}
	note := func(what string, v any, err error) {
		if r, ok := v.(*mcp.ReadResourceResult); ok {
			if k.InitializeResult().ProtocolVersion >= "2026-07-28" && r.CacheScope != "private" {
				t.Errorf("%s may be kept by %q", what, r.CacheScope)
			}
			r.CacheScope = ""
		}
		b, bad := json.Marshal(v)
		if err != nil || bad != nil {
			t.Fatalf("%s: %v %v", what, err, bad)
		}
		text := strings.NewReplacer(`,"resultType":"complete"`, "", `"resultType":"complete",`, "", "mcphub://ev/", "", `"`+prefix, `"`).Replace(string(b))
		got[strings.TrimPrefix(strings.Replace(what, "mcphub://ev/", "", 1), prefix)] = fleeting.ReplaceAllString(text, "…")
	}
	for p, err := range k.Prompts(ctx, nil) {
		note(p.Name, p, err)
	}
	for name, arguments := range map[string]map[string]string{"simple-prompt": nil, "args-prompt": {"city": "Köln <&>"},
		"completable-prompt": {"department": "Sales", "name": "Eve"}, "resource-prompt": {"resourceType": "Text", "resourceId": "3"}} {
		r, err := k.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + name, Arguments: arguments})
		note("got "+name, r, err)
	}
	for r, err := range k.ResourceTemplates(ctx, nil) {
		note(r.URITemplate, r, err)
	}
	for r, err := range k.Resources(ctx, nil) {
		note(r.URI, r, err)
		read, err := k.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.URI})
		note("read "+r.URI, read, err)
	}
	r, err := k.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prefix + "completable-prompt"},
		Argument: mcp.CompleteParamsArgument{Name: "name", Value: "E"}, Context: &mcp.CompleteContext{Arguments: map[string]string{"department": "Sales"}}})
	note("completed", r, err)
	return got
}

func TestPromptsAndResourcesOfTheEverythingServerAreAsIfAskedDirectly(t *testing.T) {
	npm := need(t)
	stdio := everything(npm, "stdio")
	want := talk(t, &mcp.CommandTransport{Command: exec.Command(stdio[0], stdio[1:]...)}, "2025-11-25").offers(t, "")
	if len(want) < 20 {
		t.Fatalf("the server has only %d things", len(want))
	}
	for transport, server := range everyTransport(t, npm) {
		d := mcptest.StartReady(t, "response_budget = \"1MB\"\n"+server)
		for path, prefix := range map[string]string{"/servers/ev/mcp": "", "/mcp/talker": "ev__"} {
			for _, revision := range []string{"2025-06-18", "2026-07-28"} {
				t.Run(transport+path+"/"+revision, func(t *testing.T) {
					k := talk(t, &mcp.StreamableClientTransport{Endpoint: "http://" + d.Addr() + path}, revision)
					got := k.offers(t, prefix)
					for what, w := range want {
						if got[what] != w {
							t.Errorf("%s\n got %.1500s\nwant %.1500s", what, got[what], w)
						}
					}
				})
			}
		}
	}
}
