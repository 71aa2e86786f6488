package conformance

import (
	"testing"

	"mcphubd/test/mcptest"
)

// asked are the scenarios in which the suite is the server, and the revision it
// speaks. The daemon has to be a client as good as the agent behind it is.
var asked = []struct{ scenario, revision string }{
	{"initialize", "2025-11-25"},
	{"tools_call", "2025-11-25"},
	{"elicitation-sep1034-client-defaults", "2025-11-25"},
	{"sse-retry", "2025-11-25"},
	{"json-schema-2020-12-preservation", "2025-11-25"},
	{"tools_call", "2026-07-28"},
	{"request-metadata", "2026-07-28"},
	{"http-standard-headers", "2026-07-28"},
	{"http-custom-headers", "2026-07-28"},
	{"http-invalid-tool-headers", "2026-07-28"},
	{"sep-2322-client-request-state", "2026-07-28"},
	{"json-schema-ref-no-deref", "2026-07-28"},
	{"json-schema-2020-12-preservation", "2026-07-28"},
}

// fronts are the ways in which the agent reaches the suite's server.
var fronts = map[string]func(t *testing.T, d *mcptest.Daemon) string{
	"alone":   func(t *testing.T, d *mcptest.Daemon) string { return "http://" + d.Addr() + "/servers/conf/mcp" },
	"gateway": func(t *testing.T, d *mcptest.Daemon) string { return shim(t, d.Addr()) + "/mcp" },
}

func TestTheDaemonIsAClientThatConforms(t *testing.T) {
	peers(t)
	program := sdkProgram(t, "everything-client")
	for name, front := range fronts {
		for _, a := range asked {
			t.Run(name+"/"+a.scenario+"/"+a.revision, func(t *testing.T) {
				judgeChecks(t, testClient(t, a.scenario, a.revision, through(t, program, front)))
			})
		}
	}
}

// judgeChecks fails the test for every check that failed, and when there was none.
func judgeChecks(t *testing.T, found []check) {
	t.Helper()
	passed := 0
	for _, c := range found {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "INFO", "SKIPPED":
		default:
			t.Errorf("%s: %s: %s: %s", c.Status, c.ID, c.Description, c.ErrorMessage)
		}
	}
	if passed == 0 {
		t.Errorf("nothing was proved in %d checks", len(found))
	}
}
