package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// signedIn are the scenarios in which the suite's server wants OAuth and a user can help.
//
// The suite's extensions are left out. A grant here is what a user said yes to, and these are
// about clients that come without one: auth/client-credentials-basic and -jwt with a secret or
// a key of their own, auth/wif-jwt-bearer with the identity of a workload,
// auth/enterprise-managed-authorization with an employer's identity provider. Whoever has such
// a client puts the tokens that it gets into headers, from a ${file:PATH} that is read again
// once one is refused. auth/dpop and auth/dpop-nonce want a key that signs every request;
// tokens here are bearer tokens, which is all that the revisions themselves demand.
var signedIn = []struct{ scenario, revision string }{
	{"auth/metadata-default", "2025-11-25"},
	{"auth/metadata-var1", "2025-11-25"},
	{"auth/metadata-var2", "2025-11-25"},
	{"auth/metadata-var3", "2025-11-25"},
	{"auth/scope-from-www-authenticate", "2025-11-25"},
	{"auth/scope-from-scopes-supported", "2025-11-25"},
	{"auth/scope-omitted-when-undefined", "2025-11-25"},
	{"auth/scope-step-up", "2025-11-25"},
	{"auth/scope-retry-limit", "2025-11-25"},
	{"auth/token-endpoint-auth-basic", "2025-11-25"},
	{"auth/token-endpoint-auth-post", "2025-11-25"},
	{"auth/token-endpoint-auth-none", "2025-11-25"},
	{"auth/pre-registration", "2025-11-25"},
	{"auth/basic-cimd", "2025-11-25"},
	{"auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26"},
	{"auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26"},
	{"auth/metadata-default", "2026-07-28"},
	{"auth/basic-cimd", "2026-07-28"},
	{"auth/resource-mismatch", "2026-07-28"},
	{"auth/offline-access-scope", "2026-07-28"},
	{"auth/offline-access-not-supported", "2026-07-28"},
	{"auth/authorization-server-migration", "2026-07-28"},
	{"auth/iss-supported", "2026-07-28"},
	{"auth/iss-not-advertised", "2026-07-28"},
	{"auth/iss-supported-missing", "2026-07-28"},
	{"auth/iss-wrong-issuer", "2026-07-28"},
	{"auth/iss-unexpected", "2026-07-28"},
	{"auth/iss-normalized", "2026-07-28"},
	{"auth/metadata-issuer-mismatch", "2026-07-28"},
}

func TestTheLoginConforms(t *testing.T) {
	peers(t)
	for _, a := range signedIn {
		t.Run(a.scenario+"/"+a.revision, func(t *testing.T) {
			judgeChecks(t, testClient(t, a.scenario, a.revision, signIn(t)))
		})
	}
}

// page describes a client of ours, which is all the registration that auth/basic-cimd wants.
// A daemon has no such page by itself, so it is one that its user has, named by client_id.
// Nobody fetches it in the suite.
const page = "https://conformance-test.local/client-metadata.json"

// signIn has a daemon use the suite's server: it signs in, calls every tool, and signs in
// once more where it is told to.
func signIn(t *testing.T) func(task) string {
	return func(k task) string {
		var known struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		}
		_ = json.Unmarshal([]byte(k.Context), &known) // in one scenario
		if k.Scenario == "auth/basic-cimd" {
			known.ID = page
		}
		d := mcptest.StartDaemon(t, fmt.Sprintf("[servers.conf]\nurl = %q\n[servers.conf.oauth]\nclient_id = %q\nclient_secret = %q\n", k.URL, known.ID, known.Secret))
		a := d.Agent("a")
		for more, again := []string(nil), true; again; {
			said, err := login(d, more...)
			t.Logf("%s: the login says %v: %s", k.Scenario, err, said)
			if err != nil || more != nil {
				break
			}
			mcptest.Eventually(t, "the server to have let the daemon in, or not", func() bool { return tried(d) })
			more, again = callAll(t, d, a)
		}
		if err := d.Stop(); err != nil {
			t.Errorf("%s: the daemon: %v\n%s", k.Scenario, err, d.Log())
		}
		return ""
	}
}

// tried reports whether the daemon has used what was granted: only then is its list of
// tools the server's, since nobody waits for one that starts anew.
func tried(d *mcptest.Daemon) bool {
	var s struct {
		Servers []struct {
			State    string
			Featured bool
		}
	}
	_, body, err := d.Get("/debug/state")
	if err != nil || json.Unmarshal(body, &s) != nil || len(s.Servers) != 1 {
		return false
	}
	return s.Servers[0].Featured || s.Servers[0].State != "connecting" && s.Servers[0].State != "ready"
}

// told is what an agent reads where a login helps.
var told = regexp.MustCompile(`mcphubd server login conf(?: --scope "([^"]+)")?`)

// callAll calls every tool, and returns the arguments of the login that whoever calls, or
// looks at the state, is told to try.
func callAll(t *testing.T, d *mcptest.Daemon, a *mcptest.Agent) (more []string, again bool) {
	list, err := a.RPC(t.Context(), "tools/list", "{}")
	if err != nil {
		t.Error(err)
	}
	_, state, err := d.Get("/debug/state")
	if err != nil {
		t.Error(err)
	}
	texts := []string{string(state)}
	for _, name := range toolsIn(list.Result()) {
		r, err := a.Call(t.Context(), name, "{}")
		t.Logf("%s: %v %.500s", name, err, r.Body)
		texts = append(texts, r.Text())
	}
	for _, text := range texts {
		if m := told.FindStringSubmatch(text); m != nil {
			more, again = append(more, "--scope", m[1]), true
		}
	}
	return more, again
}

func toolsIn(list []byte) (names []string) {
	var l struct{ Tools []struct{ Name string } }
	_ = json.Unmarshal(list, &l)
	for _, t := range l.Tools {
		if strings.HasPrefix(t.Name, nameBefore) {
			names = append(names, t.Name)
		}
	}
	return slices.Clip(names)
}

// login signs in as a user with a browser does.
func login(d *mcptest.Daemon, more ...string) (said string, err error) {
	c := d.Command(append([]string{"server", "login", "conf", "--no-browser", "--timeout", mcptest.Patience.String()}, more...)...)
	out, err := c.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "http") {
			if res, err := http.Get(lines.Text()); err == nil {
				res.Body.Close()
			}
		}
	}
	return said, c.Wait()
}
