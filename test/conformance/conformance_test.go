package conformance

import (
	"fmt"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// servers are the ways in which the fixture stands behind the daemon.
var servers = map[string]func(t *testing.T) string{
	"stdio":     func(t *testing.T) string { return fmt.Sprintf("command = %q\n", fixture(t)) },
	"stateful":  func(t *testing.T) string { return fmt.Sprintf("url = %q\n", overHTTP(t, "false")) },
	"stateless": func(t *testing.T) string { return fmt.Sprintf("url = %q\n", overHTTP(t, "true")) },
}

// runs are what is proved: a fixture, a revision, and how it is pinned.
var runs = []struct{ server, revision, more string }{
	{"stdio", "2025-11-25", ""},
	{"stdio", "2026-07-28", "era = \"modern\"\n"},
	{"stateful", "2025-11-25", ""},
	{"stateless", "2026-07-28", ""},
	{"stateful", byDefault, ""},
}

// mayFail says why a scenario may fail, by server and revision. An entry is for what
// cannot be; what is not there yet has none.
var mayFail = map[string]map[string]string{}

func TestAServerAloneConformsAsIfItWereReachedDirectly(t *testing.T) {
	peers(t)
	for _, r := range runs {
		t.Run(r.server+"/"+r.revision, func(t *testing.T) {
			d := mcptest.StartReady(t, "[servers.conf]\n"+servers[r.server](t)+r.more)
			url := "http://" + d.Addr() + "/servers/conf/mcp"
			judge(t, r.revision, run(t, url, r.revision), mayFail[r.server+"/"+r.revision])
		})
	}
}

func TestTheGatewayConformsUnderItsOwnNames(t *testing.T) {
	peers(t)
	for _, r := range runs[:2] {
		t.Run(r.server+"/"+r.revision, func(t *testing.T) {
			d := mcptest.StartReady(t, "[servers.conf]\n"+servers[r.server](t)+r.more)
			url := shim(t, d.Addr()) + "/mcp"
			judge(t, r.revision, run(t, url, r.revision), mayFail[strings.Join([]string{"shim", r.server, r.revision}, "/")])
		})
	}
}
