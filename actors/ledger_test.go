package actors

import (
	"testing"

	"mcphubd/store"
)

// As in mcphubd stats: who ends a call has not met an error.
func TestACancelledCallIsNoErrorOfTheServer(t *testing.T) {
	l := newLedger()
	for _, outcome := range []string{"ok", "tool_error", "rpc_error", "failed", "timeout", "cancelled"} {
		l.record(store.Call{Server: "s", Outcome: outcome}, 0)
	}
	if c := l.show(); c.Total.Errors != 4 || c.Total.Calls != 6 || c.Servers["s"].Outcomes["cancelled"] != 1 {
		t.Errorf("%+v", c.Total)
	}
}
