package actors

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcphubd/store"
)

// TestAnExpiredResultIsUnknownToWhoCouldNotRead: neither tool tells another agent
// that there was a result, whether by scope or by results.owner_only, before the
// pruner came by and after.
func TestAnExpiredResultIsUnknownToWhoCouldNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := `response_budget = "4KB"
[agents.a]
[agents.outside]
servers = []
[agents.other]
`
		r := newRig(t, conf+oneServer, map[string]*fakeServer{"d": issuesServer()})
		id, never := r.stored("a", 500), string(store.NewID())
		says := func(agent, tool, id string) string {
			t.Helper()
			got, err := r.call(t.Context(), agent, tool, `{"callId":"`+id+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(got, id, "ID")
		}
		told := func(agent string, expired bool) {
			t.Helper()
			for _, tool := range []string{"mcphub_get_result", "mcphub_read_result"} {
				got, unknown := says(agent, tool, id), says(agent, tool, never)
				if expired != strings.Contains(got, "expired") || expired == (got == unknown) {
					t.Errorf("%s asks %s for the expired id: %s\nfor one that never was: %s", agent, tool, got, unknown)
				}
			}
		}
		time.Sleep(24*time.Hour + time.Second)
		for range 2 {
			told("a", true)
			told("other", true)
			told("outside", false)
			time.Sleep(time.Hour) // the pruner comes by
		}
		if _, err := r.Hub.Reload(t.Context(), parse(t, conf+"[results]\nowner_only = true\n"+oneServer)); err != nil {
			t.Fatal(err)
		}
		told("a", true)
		told("other", false)
		told("outside", false)
	})
}
