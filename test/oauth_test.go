package test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// guarded is a daemon with a server d that wants tokens of an authority.
func guarded(t *testing.T, script mcptest.Script, lines string) (hub, *mcptest.Authority) {
	t.Helper()
	a := mcptest.NewAuthority(t)
	door := a.Guard(t, mcptest.NewRemote(t, script).URL)
	return hub{Daemon: mcptest.StartDaemon(t, "[servers.d]\nurl = \""+door.URL+"/mcp\"\n"+lines)}, a
}

// login signs in to d, as a user with a browser does, and returns what the command said.
func (h hub) login(t *testing.T) string {
	t.Helper()
	c := h.Command("server", "login", "d", "--no-browser", "--timeout", mcptest.Patience.String())
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !strings.HasPrefix(lines.Text(), "http") {
			continue
		}
		res, err := http.Get(lines.Text()) // the user says yes, and is sent back
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return said.String()
}

func TestAUserSignsInOnceAndTheDaemonKeepsIt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]mcptest.Script{"session": {}, "stream of events": {SSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, authority := guarded(t, script, "")
			a := h.Agent("a")

			// Nobody has signed in: one problem with one command, and no attempt of our own.
			mcptest.Eventually(t, "the problem", func() bool { return strings.Contains(h.problem(t, "server-unauthorized"), "sign-in needed") })
			r, err := a.Call(background(t), "d__echo", "{}")
			if err != nil || r.Status != http.StatusOK || !r.IsError() || !strings.Contains(r.Text(), "mcphubd server login d") {
				t.Errorf("%v, HTTP %d: %s", err, r.Status, r.Body)
			}
			if h.problem(t, "server-down") != "" || len(authority.Asked()) != 0 {
				t.Error("it is said to be down, or the daemon tried to sign in")
			}

			said := h.login(t)
			h.awaitState(t, "d", "ready")
			echo(t, a, "d__echo")
			if h.problem(t, "server-unauthorized") != "" {
				t.Error("the problem stays")
			}
			file := filepath.Join(h.Data, "grants", "d.json")
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(said, file) {
				t.Errorf("%v %v: %s", info, err, said)
			}

			// The token is refused before its time: it is renewed, and no agent notices.
			before, _ := os.ReadFile(file)
			authority.Forget(false)
			echo(t, a, "d__echo")
			after, _ := os.ReadFile(file)
			if string(before) == string(after) {
				t.Error("the new token was not kept")
			}

			// It is there after a restart, expired or not.
			if err := h.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(after), `"expiry": "2`, `"expiry": "1`, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			a = h.Agent("a")
			echo(t, a, "d__echo")

			// All is revoked: the user is told, and the authority is not asked again and again.
			authority.Forget(true)
			asked := len(authority.Asked())
			mcptest.Eventually(t, "the problem", func() bool {
				r, err := a.Call(background(t), "d__echo", "{}")
				if err != nil || r.Status != http.StatusOK || !r.IsError() || !strings.Contains(r.Text(), "mcphubd server login d") {
					t.Errorf("%v, HTTP %d: %s", err, r.Status, r.Body)
				}
				return strings.Contains(h.problem(t, "server-unauthorized"), "invalid_grant")
			})
			if n := len(authority.Asked()) - asked; n != 1 {
				t.Errorf("the refused refresh token was sent %d times", n)
			}
			h.login(t)
			h.awaitState(t, "d", "ready")
			echo(t, a, "d__echo")

			state, err := h.Command("status", "--json").CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, state)
			}
			for where, text := range map[string]string{"the log": h.Log(), "the state": string(state), "what login says": said} {
				if strings.Contains(text, "access-") || strings.Contains(text, "refresh-") {
					t.Errorf("%s shows a token:\n%s", where, text)
				}
			}
		})
	}
}
