package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// The servers. The calm ones must answer whatever happens to the others.
var (
	calm     = []string{"calm0", "calm1", "calm2", "calm3", "calm4"}
	shifting = []string{"crash0", "crash1", "moving"} // moving changes with every reload
	others   = []string{"slow", "loud"}
)

// house is one daemon with its servers, in a folder of its own. The bridges start the
// daemon whenever there is none, and so do we.
type house struct {
	dir, bin, conf, data string
	addr                 string
	port                 *mcptest.Port
	keep                 bool
	revision             int
	// unrest counts the beginnings and ends of disturbances: it is odd in one.
	unrest                       atomic.Int64
	reloads, stops, kills, falls atomic.Int64
}

func newHouse(keep bool) (*house, error) {
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return nil, err
	}
	h := &house{dir: dir, bin: filepath.Join(dir, "mcphubd"), conf: filepath.Join(dir, "config.toml"), data: filepath.Join(dir, "data"), keep: keep}
	if out, err := exec.Command("go", "build", "-o", h.bin, "mcphubd/cmd/mcphubd").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build mcphubd: %w\n%s", err, out)
	}
	if h.port, err = mcptest.NewPort(); err != nil {
		return nil, err
	}
	h.addr = h.port.Addr // the same after every restart
	return h, h.configure()
}

// configure writes the next configuration: it changes one server and a setting of all.
func (h *house) configure() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h.revision++
	var c strings.Builder
	// Room for all: what finds the store full passes whole, which would count as a violation.
	fmt.Fprintf(&c, "listen = %q\nsocket = %q\ncall_timeout = \"%dm\"\ndrain_timeout = \"2s\"\nspool = { max_bytes = \"48GB\" }\n", h.addr, filepath.Join(h.dir, "s.sock"), 5+h.revision%5)
	for _, group := range [][]string{calm, shifting, others} {
		for _, name := range group {
			script, err := json.Marshal(scriptOf(name))
			if err != nil {
				return err
			}
			fmt.Fprintf(&c, "[servers.%s]\ncommand = %q\nenv = { %s = %q", name, self, mcptest.ScriptEnv, script)
			if name == "moving" {
				fmt.Fprintf(&c, ", REVISION = \"%d\"", h.revision)
			}
			c.WriteString(" }\n")
		}
	}
	tmp := h.conf + ".new"
	if err := os.WriteFile(tmp, []byte(c.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, h.conf)
}

func scriptOf(name string) mcptest.Script {
	each := func(steps ...mcptest.Step) []mcptest.Rule {
		return []mcptest.Rule{{Method: "tools/call", Do: append(steps, mcptest.Step{Default: true})}}
	}
	switch name {
	case "slow":
		return mcptest.Script{Rules: each(mcptest.Step{Sleep: 300})}
	case "loud":
		shout := mcptest.Bytes(strings.Repeat("nobody wants to hear this\n", 40))
		return mcptest.Script{Rules: each(mcptest.Step{Stderr: shout, Write: shout[:26], Repeat: 20})}
	}
	return mcptest.Script{}
}

// command is mcphubd in this house.
func (h *house) command(args ...string) *exec.Cmd {
	c := exec.Command(h.bin, args...)
	c.Dir = h.dir
	c.Env = []string{"HOME=" + h.dir, "XDG_RUNTIME_DIR=" + h.dir, "TMPDIR=" + h.dir, "PATH=" + os.Getenv("PATH"),
		"MCPHUBD_CONFIG=" + h.conf, "MCPHUBD_DATA=" + h.data}
	return c
}

// pid is the daemon that runs, or 0.
func (h *house) pid() int {
	var a struct{ PID int }
	b, err := os.ReadFile(filepath.Join(h.data, "daemon.json"))
	if err != nil || json.Unmarshal(b, &a) != nil || !proc.Alive(a.PID) {
		return 0
	}
	return a.PID
}

// ensure sees to it that a daemon runs and that all its servers are up. A bridge starts
// it, as one would for a client.
func (h *house) ensure(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	starter := h.command("connect", "--agent", "starter")
	in, err := starter.StdinPipe()
	if err != nil {
		return err
	}
	if err := starter.Start(); err != nil {
		return err
	}
	defer func() {
		in.Close()
		starter.Wait()
	}()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	return poll(ctx, "all servers to be up", func() bool {
		s, err := h.state(ctx)
		up := 0
		for _, server := range s.Servers {
			if server.State == "ready" {
				up++
			}
		}
		return err == nil && up == len(calm)+len(shifting)+len(others) && h.pid() == s.Daemon.PID
	})
}

// state is what we read of /debug/state.
type state struct {
	Daemon struct {
		PID, Goroutines int
		RSSBytes        int64
		Config          struct{ Revision int }
	}
	Servers []struct{ Name, State string }
	Calls   []struct{ Tool string }
	Spool   struct{ Results, RawBytes, FileBytes, FailedOpen int64 }
}

func (h *house) state(ctx context.Context) (s state, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+"/debug/state", nil)
	if err != nil {
		return s, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// measure is what a daemon takes.
type measure struct {
	rss, goroutines, fds, processes int64
}

// Above the base line this much may be left: caches that were filled, connections that
// are idle, the sessions of clients that just left.
var slack = measure{rss: 96 << 20, goroutines: 24, fds: 24, processes: 0}

func (m measure) within(base measure) bool {
	return base == measure{} || m.rss <= base.rss+slack.rss && m.goroutines <= base.goroutines+slack.goroutines &&
		m.fds <= base.fds+slack.fds && m.processes <= base.processes+slack.processes
}

// greet has every agent seen once. For each name that was ever here the daemon keeps
// what belongs to the name; that is no leak, so it belongs to the base line.
func (h *house) greet(ctx context.Context, agents int) error {
	for i := range agents {
		a := mcptest.NewModern("http://" + h.addr + "/mcp/" + nameOf(i))
		r, err := a.RPC(ctx, "tools/list", "{}")
		a.Close()
		if err != nil || r.Result() == nil {
			return fmt.Errorf("the list of tools of %s: %v: %.300s", nameOf(i), err, r.Body)
		}
	}
	return nil
}

// settled measures the daemon as soon as it is back at the base line.
func (h *house) settled(ctx context.Context, base measure) (m measure, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	http.DefaultClient.CloseIdleConnections()
	err = poll(ctx, "the daemon to be back at its base line", func() bool {
		s, err := h.state(ctx)
		if err != nil {
			return false
		}
		pid := s.Daemon.PID
		m = measure{proc.RSS(pid), int64(s.Daemon.Goroutines), int64(len(proc.FDs(pid))), int64(len(proc.Descendants(pid)))}
		return len(s.Calls) == 0 && m.within(base)
	})
	if err != nil {
		err = fmt.Errorf("%w: %+v, at the beginning %+v", err, m, base)
	}
	return m, err
}

// patience bounds every wait for something that gets done, however busy the machine is.
const patience = 2 * time.Minute

// poll looks until ok, or fails with what it waited for.
func poll(ctx context.Context, what string, ok func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("waited in vain for "+what), ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// end leaves nothing behind.
func (h *house) end() {
	defer h.port.Close()
	if pid := h.pid(); pid != 0 {
		kids := proc.Descendants(pid)
		syscall.Kill(pid, syscall.SIGTERM)
		ctx, stop := context.WithTimeout(context.Background(), 15*time.Second)
		defer stop()
		if poll(ctx, "the end", func() bool { return !proc.Alive(pid) }) != nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, kid := range kids {
			if proc.Alive(kid) && strings.Contains(proc.Environ(kid), h.dir) {
				syscall.Kill(kid, syscall.SIGKILL)
			}
		}
	}
	if !h.keep {
		os.RemoveAll(h.dir)
	}
}
