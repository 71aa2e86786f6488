package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcphubd/test/mcptest/proc"
)

// target is one gateway under test.
type target struct {
	name   string
	start  func(bin, home string, servers []server) (argv []string, config string)
	path   func(server string) string       // of the endpoint
	tool   func(server, tool string) string // as an agent calls it
	stores bool                             // answers large results with a receipt
}

const floorName = "nullgw"

// targets are the raw relay, which is the floor, and mcphubd.
var targets = []*target{
	{
		name: floorName,
		start: func(bin, _ string, servers []server) (argv []string, _ string) {
			argv = []string{filepath.Join(bin, "nullgw")}
			for _, s := range servers {
				argv = append(argv, s.name+"="+s.command+s.url)
			}
			return argv, ""
		},
		path: func(server string) string { return "/" + server },
		tool: func(_, tool string) string { return tool },
	},
	{
		name: "mcphubd",
		start: func(bin, home string, servers []server) ([]string, string) {
			var c strings.Builder
			fmt.Fprintf(&c, "listen = \"127.0.0.1:0\"\nsocket = %q\nmax_frame = \"2GB\"\n", filepath.Join(home, "s.sock"))
			for _, s := range servers {
				key, at := "command", s.command
				if s.url != "" {
					key, at = "url", s.url
				}
				fmt.Fprintf(&c, "[servers.%s]\n%s = %q\n", s.name, key, at)
			}
			return []string{filepath.Join(bin, "mcphubd"), "serve", "--config", filepath.Join(home, "config.toml"), "--data", filepath.Join(home, "data")}, c.String()
		},
		path:   func(string) string { return "/mcp" },
		tool:   func(server, tool string) string { return server + "__" + tool },
		stores: true,
	},
}

// build compiles everything that a run needs into a directory of its own.
func build() (bin string, err error) {
	if bin, err = os.MkdirTemp("", "mcphubd-bench-"); err != nil {
		return "", err
	}
	c := exec.Command("go", "build", "-o", bin+"/", "mcphubd/test/bench/cmd/nullgw", "mcphubd/test/bench/cmd/fakemcp", "mcphubd/cmd/mcphubd")
	if out, err := c.CombinedOutput(); err != nil {
		_ = os.RemoveAll(bin)
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

// gateway is a started target: a fresh process in a fresh home.
type gateway struct {
	*target
	servers []string
	apart   []*remote // the servers that are no children of the gateway
	home    string
	cmd     *exec.Cmd
	began   time.Time
	exit    chan struct{}
	addr    chan string // gets the address once
	host    string

	mu    sync.Mutex
	log   bytes.Buffer
	found bool // the address was in the log
}

func startGateway(t *target, bin, down string, servers int) (_ *gateway, err error) {
	home, err := os.MkdirTemp(bin, "home-")
	if err != nil {
		return nil, err
	}
	g := &gateway{target: t, home: home, exit: make(chan struct{}), addr: make(chan string, 1)}
	defer func() {
		if err != nil {
			g.endApart()
		}
	}()
	behind, err := g.behind(bin, down, servers)
	if err != nil {
		return nil, err
	}
	argv, config := t.start(bin, home, behind)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = home, []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "TMPDIR=" + home, "PATH=/usr/local/bin:/usr/bin:/bin"}
	c.Stdout, c.Stderr = g, g
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	g.began = time.Now()
	if err := c.Start(); err != nil {
		_ = os.RemoveAll(home)
		return nil, err
	}
	g.cmd = c
	go func() {
		_ = c.Wait()
		close(g.exit)
	}()
	select {
	case g.host = <-g.addr:
		return g, nil
	case <-g.exit:
		err = errors.New("ended at once")
	case <-time.After(30 * time.Second):
		err = errors.New("no address after 30 s")
	}
	err = fmt.Errorf("%w: %s", err, g.tail())
	g.stop()
	return nil, err
}

var listening = regexp.MustCompile(`listening on http://(\S+?:\d+)`)

// Write takes the gateway's log and finds its address in it.
func (g *gateway) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.log.Len() < 1<<20 {
		g.log.Write(p)
	}
	if m := listening.FindSubmatch(g.log.Bytes()); m != nil && !g.found {
		g.found = true
		g.addr <- string(m[1])
	}
	return len(p), nil
}

func (g *gateway) tail() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.log.Bytes()
	return string(b[max(0, len(b)-1500):])
}

func (g *gateway) pid() int { return g.cmd.Process.Pid }

// agent returns an agent of the first server.
func (g *gateway) agent() (*agent, error) { return g.agentOf(g.servers[0]) }

func (g *gateway) agentOf(server string) (*agent, error) {
	return newAgent("http://" + g.host + g.path(server))
}

// params are those of tools/call for a tool of the first server.
func (g *gateway) params(tool, args string) string { return g.paramsOf(g.servers[0], tool, args) }

func (g *gateway) paramsOf(server, tool, args string) string {
	return `{"name":"` + g.tool(server, tool) + `","arguments":` + args + `}`
}

// awaitReady waits until every server has answered an echo, and says when the
// first list of tools came and when that was.
func (g *gateway) awaitReady() (list, ready time.Duration, err error) {
	deadline := time.Now().Add(30 * time.Second)
	for i := 0; i < len(g.servers); {
		var a *agent
		if a, err = g.agentOf(g.servers[i]); err == nil {
			if list == 0 {
				if m, _, err := a.rpc("tools/list", "{}"); err == nil && bytes.Contains(m, []byte(`"tools"`)) {
					list = time.Since(g.began)
				}
			}
			if err = a.fast(g.paramsOf(g.servers[i], "echo", echoArgs)); err == nil {
				i++
			}
		}
		if a != nil {
			a.close()
		}
		if err != nil && time.Now().After(deadline) {
			return 0, 0, fmt.Errorf("not ready: %w: %s", err, g.tail())
		}
		if err != nil {
			time.Sleep(2 * time.Millisecond)
		}
	}
	return list, time.Since(g.began), nil
}

// stop ends the gateway and, by their ids, whatever children it left.
func (g *gateway) stop() {
	below := proc.Descendants(g.pid())
	_ = syscall.Kill(g.pid(), syscall.SIGTERM)
	select {
	case <-g.exit:
	case <-time.After(12 * time.Second):
		_ = syscall.Kill(g.pid(), syscall.SIGKILL)
		<-g.exit
	}
	g.endApart()
	for _, p := range below {
		if strings.HasSuffix(proc.Cmdline(p), "fakemcp") {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	}
	_ = os.RemoveAll(g.home)
}
