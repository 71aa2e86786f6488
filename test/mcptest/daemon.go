package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcphubd/test/mcptest/proc"
)

// DaemonEnv names a variable with the path of a built mcphubd to use instead of
// building one.
const DaemonEnv = "MCPTEST_DAEMON"

var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Binary returns the path of mcphubd, built once in this process.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv(DaemonEnv); built.path != "" {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "mcphubd-bin-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "mcphubd")
		args := []string{"build", "-o", built.path}
		if raced {
			args = append(args, "-race")
		}
		if out, err := exec.Command("go", append(args, "mcphubd/cmd/mcphubd")...).CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build mcphubd: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func removeBuilt() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// Daemon is a running mcphubd with a home, a configuration and a data directory
// of its own. It is ended, with its children, when the test ends.
type Daemon struct {
	Home   string   // $HOME, the runtime directory and the temp directory
	Config string   // path of the configuration file
	Data   string   // path of the data directory
	Env    []string // more environment for the next start

	t      testing.TB
	bin    string
	port   *Port // where it listens, over all its starts
	mu     sync.Mutex
	cmd    *exec.Cmd
	addr   string
	log    bytes.Buffer
	exit   chan struct{} // closed when the process is gone
	kids   map[int]bool  // every descendant seen
	killed bool          // by Kill9
}

// StartDaemon starts mcphubd with that configuration and returns when it is
// ready. Unless the configuration says otherwise it listens on a port that is its own.
func StartDaemon(t testing.TB, config string) *Daemon {
	t.Helper()
	d := NewDaemon(t, config)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// StartReady is StartDaemon, and returns when all servers are up and were asked what they
// offer. An agent that lists before waits for them, but not for long.
func StartReady(t testing.TB, config string) *Daemon {
	t.Helper()
	d := StartDaemon(t, config)
	Eventually(t, "all servers to be ready", func() bool {
		var s struct {
			Servers []struct {
				State    string
				Featured bool
			}
		}
		if _, body, err := d.Get("/debug/state"); err != nil || json.Unmarshal(body, &s) != nil {
			return false
		}
		for _, server := range s.Servers {
			if server.State != "ready" || !server.Featured {
				return false
			}
		}
		return true
	})
	return d
}

// NewDaemon makes the directories and starts nothing.
func NewDaemon(t testing.TB, config string) *Daemon {
	t.Helper()
	bin := Binary(t)                          // first, because it may end the test
	home, err := os.MkdirTemp("", "mcphubd-") // short: a socket path must fit in it
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{Home: home, Config: filepath.Join(home, "config.toml"), Data: filepath.Join(home, "data"),
		t: t, bin: bin, kids: map[int]bool{}}
	if d.port, err = NewPort(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.port.Close)
	d.SetConfig(config)
	t.Cleanup(d.end)
	return d
}

var listenLine = regexp.MustCompile(`(?m)^\s*listen\s*=`)

// SetConfig replaces the configuration file in one step.
func (d *Daemon) SetConfig(config string) {
	d.t.Helper()
	if !listenLine.MatchString(config) {
		config = "listen = " + quote(d.port.Addr) + "\n" + config // agents find it again after a restart
	}
	tmp := d.Config + ".new"
	if err := os.WriteFile(tmp, []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(tmp, d.Config); err != nil {
		d.t.Fatal(err)
	}
}

// Command returns mcphubd with these arguments in this daemon's surroundings,
// so that it finds this daemon and nothing of the user's.
func (d *Daemon) Command(args ...string) *exec.Cmd {
	c := exec.Command(d.bin, args...)
	c.Dir = d.Home
	c.Env = append([]string{"HOME=" + d.Home, "XDG_RUNTIME_DIR=" + d.Home, "TMPDIR=" + d.Home, "PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8", "MCPHUBD_CONFIG=" + d.Config, "MCPHUBD_DATA=" + d.Data}, d.Env...)
	return c
}

// Start runs serve and waits for its ready line.
func (d *Daemon) Start() error {
	c := d.Command("serve", "--config", d.Config, "--data", d.Data)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ready := &readyWriter{d: d, ready: make(chan struct{})}
	c.Stdout, c.Stderr = ready, ready
	if err := c.Start(); err != nil {
		return err
	}
	exit := make(chan struct{})
	d.mu.Lock()
	d.cmd, d.exit, d.killed = c, exit, false
	d.mu.Unlock()
	go func() {
		_ = c.Wait()
		close(exit)
	}()
	select {
	case <-ready.ready:
		return nil
	case <-exit:
		return fmt.Errorf("mcphubd ended before it was ready: %s\n%s", c.ProcessState, d.Log())
	case <-time.After(Patience):
		return fmt.Errorf("mcphubd was not ready in %s\n%s", Patience, d.Log())
	}
}

var listening = regexp.MustCompile(`listening on http://(\S+?:\d+)`)

// readyWriter collects the log of one start and finds address and ready line.
type readyWriter struct {
	d     *Daemon
	ready chan struct{}
	mine  bytes.Buffer
	once  sync.Once
}

func (w *readyWriter) Write(p []byte) (int, error) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.d.log.Write(p)
	w.mine.Write(p)
	text := w.mine.String()
	if m := listening.FindStringSubmatch(text); m != nil {
		w.d.addr = m[1]
	}
	if w.d.addr != "" && readyLine.MatchString(text) {
		w.once.Do(func() { close(w.ready) })
		w.mine.Reset()
	}
	return len(p), nil
}

var readyLine = regexp.MustCompile(`(?m)^(mcphubd: )?ready\b`)

// Addr is host:port, URL the endpoint for that agent ("" = the default one).
func (d *Daemon) Addr() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addr
}

func (d *Daemon) URL(agent string) string {
	if agent == "" {
		return "http://" + d.Addr() + "/mcp"
	}
	return "http://" + d.Addr() + "/mcp/" + agent
}

// Agent returns an agent with a finished handshake of the older revisions.
func (d *Daemon) Agent(name string) *Agent {
	d.t.Helper()
	a := NewAgent(d.URL(name))
	d.t.Cleanup(a.Close)
	ctx, stop := context.WithTimeout(context.Background(), Patience)
	defer stop()
	if _, err := a.Init(ctx, Legacy); err != nil {
		d.t.Fatalf("agent %q: %v", name, err)
	}
	return a
}

// Modern returns an agent of the newest revision.
func (d *Daemon) Modern(name string) *Agent {
	a := NewModern(d.URL(name))
	d.t.Cleanup(a.Close)
	return a
}

// Log is everything the daemon has printed, over all its starts.
func (d *Daemon) Log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

// AwaitLog waits for a text in the log.
func (d *Daemon) AwaitLog(text string) {
	d.t.Helper()
	Eventually(d.t, "the log to say "+text, func() bool { return strings.Contains(d.Log(), text) })
}

// PID is the process id of the newest start.
func (d *Daemon) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return 0
	}
	return d.cmd.Process.Pid
}

// Children returns the processes below the daemon.
func (d *Daemon) Children() []int {
	below := proc.Descendants(d.PID())
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range below {
		d.kids[p] = true
	}
	return below
}
