package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcphubd/test/mcptest"
)

// bridge is a harness's end of `mcphubd connect`.
type bridge struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func connect(t testing.TB, d *mcptest.Daemon, agent string) *bridge {
	t.Helper()
	return connectWith(t, d, nil, "--agent", agent)
}

func connectWith(t testing.TB, d *mcptest.Daemon, env []string, args ...string) *bridge {
	t.Helper()
	b := &bridge{t: t, cmd: d.Command(append([]string{"connect"}, args...)...), lines: make(chan string, 1024)}
	b.cmd.Env = append(b.cmd.Env, env...)
	in, err := b.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.in = in
	go func() {
		defer close(b.lines)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				b.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		b.cmd.Process.Kill()
		b.cmd.Wait()
	})
	return b
}

func (b *bridge) send(format string, args ...any) {
	b.t.Helper()
	if _, err := fmt.Fprintf(b.in, format+"\n", args...); err != nil {
		b.t.Fatal(err)
	}
}

// next is the next line that holds all of these texts; others are passed over.
func (b *bridge) next(texts ...string) string {
	b.t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case line, ok := <-b.lines:
			if !ok {
				b.t.Fatalf("the bridge ended before it wrote %q", texts)
			}
			found := true
			for _, text := range texts {
				found = found && strings.Contains(line, text)
			}
			if found {
				return line
			}
		case <-timeout:
			b.t.Fatalf("the bridge did not write %q", texts)
		}
	}
}

// collect reads lines until each of these texts was in one of them, in any order.
func (b *bridge) collect(texts ...string) (lines []string) {
	b.t.Helper()
	for len(texts) > 0 {
		line := b.next()
		lines = append(lines, line)
		for i, text := range texts {
			if strings.Contains(line, text) {
				texts = append(texts[:i:i], texts[i+1:]...)
				break
			}
		}
	}
	return lines
}

func (b *bridge) hello() {
	b.t.Helper()
	b.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"harness","version":"1"}}}`)
	b.next(`"id":"hello"`, `"protocolVersion":"2025-11-25"`)
	b.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (b *bridge) call(id int, tool, args string) {
	b.t.Helper()
	b.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// running is the daemon that the data directory names, or 0.
func running(d *mcptest.Daemon) int {
	var a struct{ PID int }
	b, err := os.ReadFile(filepath.Join(d.Data, "daemon.json"))
	if err != nil || json.Unmarshal(b, &a) != nil {
		return 0
	}
	return a.PID
}

// endStarted ends a daemon that a bridge started.
func endStarted(t testing.TB, d *mcptest.Daemon) {
	t.Cleanup(func() {
		if pid := running(d); pid != 0 {
			syscall.Kill(pid, syscall.SIGTERM)
			mcptest.Eventually(t, "the end of the daemon", func() bool { return syscall.Kill(pid, 0) != nil })
		}
	})
}

// TestC71TenBridgesStartOneDaemon: they come at once, none runs, one is started.
func TestC71TenBridgesStartOneDaemon(t *testing.T) {
	conf, _ := tables(t, "", map[string]mcptest.Script{"d": {}})
	d := mcptest.NewDaemon(t, conf)
	endStarted(t, d)
	bridges := make([]*bridge, 10)
	for i := range bridges {
		bridges[i] = connect(t, d, fmt.Sprint("agent", i))
	}
	var wg sync.WaitGroup
	pids := make([]string, len(bridges))
	for i, b := range bridges {
		wg.Go(func() {
			b.hello()
			b.call(1, "d__pid", `{}`)
			pids[i] = b.next(`"id":1`)
		})
	}
	wg.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Errorf("two servers answered: %s and %s", pids[0], pid)
		}
	}
	if second, err := d.Command("serve").CombinedOutput(); err == nil || !strings.Contains(string(second), "uses the data directory") {
		t.Errorf("a second daemon: %v\n%s", err, second)
	}
}

// TestC70ABridgeOutlivesItsDaemon: the call in flight has an unknown outcome and is not
// repeated, what comes later runs on the new daemon, the client hears that its list
// may have changed, and the bridge ends with its stdin.
func TestC70ABridgeOutlivesItsDaemon(t *testing.T) {
	conf, servers := tables(t, "", map[string]mcptest.Script{"d": {}})
	d := mcptest.NewDaemon(t, conf)
	endStarted(t, d)
	b := connect(t, d, "a")
	b.hello()
	b.call(1, "d__sleep", `{"ms":60000}`)
	servers["d"].Record.Await(t, "tools/call", 1)
	old := running(d)
	syscall.Kill(old, syscall.SIGKILL)
	mcptest.Eventually(t, "the daemon's death", func() bool { return syscall.Kill(old, 0) != nil })
	b.call(2, "d__echo", `{"v":"queued"}`)
	for _, line := range b.collect(`"id":1`, `"id":2`, "notifications/tools/list_changed") {
		switch {
		case strings.Contains(line, `"id":1`) && !(strings.Contains(line, "outcome is unknown") && strings.Contains(line, `"error"`)):
			t.Errorf("the call in flight: %s", line)
		case strings.Contains(line, `"id":2`) && !strings.Contains(line, "queued"):
			t.Errorf("the call that came later: %s", line)
		}
	}
	if now := running(d); now == old || now == 0 {
		t.Errorf("daemon %d after %d", now, old)
	}
	sleeps := 0
	for _, line := range servers["d"].Record.Of("tools/call") {
		if strings.Contains(string(line), `"sleep"`) {
			sleeps++
		}
	}
	if sleeps != 1 {
		t.Errorf("the call in flight reached a server %d times", sleeps)
	}
	b.in.Close()
	ended := make(chan error, 1)
	go func() { ended <- b.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error("exit:", err)
		}
	case <-time.After(time.Minute):
		t.Error("the bridge outlived its stdin")
	}
}

// TestC89BadLinesDoNoHarm to the session that they come in.
func TestC89BadLinesDoNoHarm(t *testing.T) {
	h := one(t, "", mcptest.Script{})
	b := connect(t, h.Daemon, "a")
	b.send("\xEF\xBB\xBF" + `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"harness","version":"1"}}}` + "\r")
	b.next(`"id":"hello"`, `"result"`)
	for _, c := range []struct{ line, want, id string }{
		{"", "", ""}, {"   \t", "", ""},
		{`{"jsonrpc":"2.0","id":9,"method":`, "-32700", `"id":null`},
		{"not json", "-32700", `"id":null`},
		{"{}", "-32600", `"id":null`},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "-32600", `"id":1`},
		{strings.Repeat("[", 100000), "-32700", `"id":null`},
	} {
		b.send("%s", c.line)
		if c.want != "" {
			b.next(c.want, c.id)
		}
	}
	b.send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	b.next(`"id":"last"`, `"result"`)
}
