package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mcphubd/test/mcptest"
)

// pids are the processes of the servers that are up, by name.
func (h hub) pids(t testing.TB) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, s := range h.state(t).Servers {
		if s.State == "ready" {
			pids[s.Name] = s.Info.PID
		}
	}
	return pids
}

// awaitServers waits until the servers that are up are so many.
func (h hub) awaitServers(t testing.TB, n int) map[string]int {
	t.Helper()
	var pids map[string]int
	mcptest.Eventually(t, fmt.Sprint(n, " servers to be up"), func() bool {
		pids = h.pids(t)
		return len(pids) == n
	})
	return pids
}

// problem is the text of a problem of that code, "" when there is none.
func (h hub) problem(t testing.TB, code string) string {
	t.Helper()
	for _, p := range h.state(t).Problems {
		if p.Code == code {
			return p.Text
		}
	}
	return ""
}

// read waits until the daemon has looked at its configuration once more.
func (h hub) read(t testing.TB, text string, change func()) {
	t.Helper()
	before := strings.Count(h.Log(), text)
	change()
	mcptest.Eventually(t, "the log to say once more: "+text, func() bool { return strings.Count(h.Log(), text) > before })
}

const (
	sameConfig = "nothing changed"
	newConfig  = "configuration is in force"
	badConfig  = "configuration is invalid"
)

// reloading is a daemon with five busy servers, and what is in its configuration.
type reloading struct {
	hub
	top    string
	tables map[string]string
}

func (r *reloading) config(names ...string) string {
	if names == nil {
		names = slices.Sorted(maps.Keys(r.tables))
	}
	conf := r.top
	for _, n := range names {
		conf += r.tables[n]
	}
	return conf
}

func startReloading(t *testing.T, script mcptest.Script, agents string) *reloading {
	t.Helper()
	r := &reloading{tables: map[string]string{}, hub: hub{servers: map[string]mcptest.Server{}},
		top: "listen = \"127.0.0.1:0\"\ndrain_timeout = \"5m\"\n[log]\nlevel = \"debug\"\n" + agents}
	for i := range 5 {
		name := fmt.Sprint("d", i+1)
		r.servers[name] = mcptest.NewServer(t, script)
		r.tables[name] = r.servers[name].TOML(name)
	}
	r.Daemon = mcptest.StartReady(t, r.config())
	return r
}

// changesHeard counts the notices of changed tools on an agent's stream.
type changesHeard struct {
	mu sync.Mutex
	n  int
}

func (h *changesHeard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

func hear(t *testing.T, a *mcptest.Agent) *changesHeard {
	t.Helper()
	if r, err := a.RPC(background(t), "tools/list", "{}"); err != nil || r.Result() == nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	s, err := a.Listen(background(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h := &changesHeard{}
	go func() {
		for {
			if _, err := s.NextOf("notifications/tools/list_changed"); err != nil {
				return
			}
			h.mu.Lock()
			h.n++
			h.mu.Unlock()
		}
	}()
	return h
}

// TestC96AReloadTouchesOnlyWhatChanged: calls are in flight on five servers while the
// file is saved in every way that a file can be saved.
func TestC96AReloadTouchesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	end := filepath.Join(t.TempDir(), "end")
	r := startReloading(t, mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{{Wait: end}, {Default: true}}}}},
		"[agents.all]\n[agents.one]\nservers = [\"d1\"]\n")
	all5, one := r.Agent("all"), r.Agent("one")
	told, toldOne := hear(t, all5), hear(t, one)
	finished := make(chan error, 5)
	for name := range r.servers {
		go func() {
			res, err := all5.Call(background(t), name+"__sleep", "{}")
			if err == nil && res.Text() != "slept" {
				err = fmt.Errorf("the call on %s: %s", name, res.Body)
			}
			finished <- err
		}()
	}
	for _, s := range r.servers {
		s.Record.Await(t, "tools/call", 1)
	}
	pids := r.pids(t)
	same := func(what string) {
		t.Helper()
		if now := r.pids(t); !maps.Equal(now, pids) {
			t.Errorf("%s: servers were %v and are %v", what, pids, now)
		}
	}

	r.read(t, sameConfig, func() { r.SetConfig(strings.ReplaceAll(r.config(), "\n", "  \n\n") + "# end\n") })
	r.read(t, sameConfig, func() { r.SetConfig(r.config("d5", "d3", "d1", "d2", "d4")) })
	same("white space and order")

	r.tables["d2"] = strings.Replace(r.tables["d2"], "\nenv", "\nargs = [\"one\"]\nenv", 1)
	r.read(t, newConfig, func() { r.SetConfig(r.config()) })
	mcptest.Eventually(t, "d2 to be another process", func() bool {
		now := r.pids(t)
		return len(now) == 5 && now["d2"] != pids["d2"]
	})
	pids["d2"] = r.pids(t)["d2"]
	same("one server's args")
	if n := told.count() + toldOne.count(); n != 0 {
		t.Errorf("%d times agents were told of lists that had not changed", n)
	}

	r.servers["d6"] = mcptest.NewServer(t, mcptest.Script{})
	r.tables["d6"] = r.servers["d6"].TOML("d6")
	r.read(t, newConfig, func() { r.SetConfig(r.config()) })
	pids["d6"] = r.awaitServers(t, 6)["d6"]
	same("a new server")
	mcptest.Eventually(t, "the agent to hear of the new server", func() bool { return told.count() > 0 })

	delete(r.tables, "d5")
	delete(pids, "d5")
	r.read(t, newConfig, func() { r.SetConfig(r.config()) })
	same("a server that is gone")

	lines := strings.Count(r.config(), "\n")
	r.read(t, badConfig, func() { r.SetConfig(r.config() + "[servers.d7\n") })
	if text := r.problem(t, "config-invalid"); !strings.Contains(text, fmt.Sprintf("%s:%d", r.Config, lines+1)) {
		t.Errorf("the problem does not name line %d: %s", lines+1, text)
	}
	same("a syntax error")
	r.read(t, sameConfig, func() { r.SetConfig(r.config()) })
	if text := r.problem(t, "config-invalid"); text != "" {
		t.Errorf("the file is good again: %s", text)
	}
	r.read(t, badConfig, func() { r.SetConfig(r.config() + "responce_budget = 1\n") })
	same("an unknown key")
	r.read(t, badConfig, func() { write(t, r.Config, "") })
	same("an empty file")
	r.read(t, badConfig, func() { remove(t, r.Config) })
	same("no file")
	whole := r.config()
	r.read(t, badConfig, func() { write(t, r.Config, whole[:strings.Index(whole, "command = ")+12]) })
	same("half a file")
	r.read(t, sameConfig, func() { r.SetConfig(whole) })
	same("the whole file again")

	r.read(t, "restarted", func() { // two saves in a row: the last one counts
		r.SetConfig(whole + "\n[servers.gone]\ncommand = \"sleep\"\nargs = [\"1000\"]\n")
		r.SetConfig(strings.Replace(whole, "[agents.one]\n", "[agents.one]\nmax_lines = 5\n", 1))
	})
	mcptest.Eventually(t, "the last of two saves to count", func() bool {
		for _, s := range r.state(t).Servers {
			if s.Name == "gone" {
				return false
			}
		}
		return true
	})
	same("two saves")

	touch(t, end)
	for range cap(finished) {
		if err := <-finished; err != nil {
			t.Error(err)
		}
	}
	if n := toldOne.count(); n != 0 {
		t.Errorf("an agent was told %d times that its list changed, and it never did", n)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestC96SettingsThatNoProcessDependsOnAreTakenOver while the process goes on; those
// that wait for a restart are named.
func TestC96SettingsThatNoProcessDependsOnAreTakenOver(t *testing.T) {
	t.Parallel()
	server := mcptest.NewServer(t, mcptest.Script{})
	const top = "listen = \"127.0.0.1:0\"\n"
	h := hub{Daemon: mcptest.StartDaemon(t, top+server.TOML("d"))}
	a := h.Agent("a")
	pid := pidOf(t, a, "d__pid")
	h.read(t, newConfig, func() { h.SetConfig(top + server.TOML("d", `call_timeout = "50ms"`)) })
	if r, err := a.Call(background(t), "d__sleep", `{"ms":60000}`); err != nil || !r.IsError() || !strings.Contains(r.Text(), "50ms") {
		t.Errorf("a call over the new timeout: %v, %s", err, r.Body)
	}
	h.read(t, newConfig, func() {
		h.SetConfig("max_request = \"1MB\"\n" + top + "response_budget = \"1KB\"\n" + server.TOML("d", `tools = { deny = ["count"] }`))
	})
	receiptOf(t, call(t, a, "d__blob", `{"bytes":2000}`))
	if r, err := a.Call(background(t), "d__count", `{}`); err != nil || r.Error() == nil {
		t.Errorf("a tool that is denied now: %v, %s", err, r.Body)
	}
	if now := pidOf(t, a, "d__pid"); now != pid {
		t.Errorf("the server was restarted: %s, then %s", pid, now)
	}
	if text := h.problem(t, "restart-to-apply"); !strings.HasPrefix(text, "max_request changed") {
		t.Errorf("what waits for a restart: %q", text)
	}
	h.read(t, newConfig, func() { h.SetConfig(top + server.TOML("d")) })
	if text := h.problem(t, "restart-to-apply"); text != "" {
		t.Errorf("nothing waits for a restart any more: %q", text)
	}
	_, body, _ := h.Get("/debug/state")
	var s struct {
		Daemon struct {
			Config struct {
				File     string
				Revision int
			}
		}
	}
	if err := json.Unmarshal(body, &s); err != nil || s.Daemon.Config.Revision != 4 || s.Daemon.Config.File != h.Config {
		t.Errorf("%v: %+v", err, s)
	}
}

// TestSIGHUPReadsAlsoWhatTheFileRefersTo: the text is the same, a secret is another one.
func TestSIGHUPReadsAlsoWhatTheFileRefersTo(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "token")
	write(t, secret, "first")
	conf, servers := tables(t, "[log]\nlevel = \"debug\"\n", map[string]mcptest.Script{"d": {}, "e": {}})
	conf = strings.Replace(conf, "env = {", `env = { TOKEN = "${file:`+secret+`}",`, 1)
	h := hub{mcptest.StartDaemon(t, conf), servers}
	h.AwaitLog(sameConfig) // its first look at the file, which reads the secret
	a := h.Agent("a")
	pid := pidOf(t, a, "e__pid")
	if env := call(t, a, "d__env", "{}").Text(); !strings.Contains(env, "TOKEN=first") {
		t.Errorf("the environment: %s", env)
	}
	write(t, secret, "second")
	h.read(t, newConfig, func() { syscall.Kill(h.PID(), syscall.SIGHUP) })
	if env := call(t, a, "d__env", "{}").Text(); !strings.Contains(env, "TOKEN=second") {
		t.Errorf("the environment: %s", env)
	}
	if now := pidOf(t, a, "e__pid"); now != pid {
		t.Error("another server was restarted")
	}
}
