package mcptest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mcphubd/test/mcptest/proc"
)

// Kill9 ends the daemon as a crash would and waits until it is gone.
func (d *Daemon) Kill9() {
	d.Children()
	d.killed = true
	d.signal(syscall.SIGKILL)
	<-d.exit
}

// Stop asks the daemon to end and reports how it did. It waits longer than the
// ten seconds that are promised, and then kills.
func (d *Daemon) Stop() error {
	d.t.Helper()
	if d.PID() == 0 {
		return nil
	}
	d.Children()
	d.signal(syscall.SIGTERM)
	select {
	case <-d.exit:
	case <-time.After(Patience):
		d.signal(syscall.SIGKILL)
		<-d.exit
		return fmt.Errorf("mcphubd did not end within %s of SIGTERM\n%s", Patience, d.Log())
	}
	if !d.cmd.ProcessState.Success() {
		return fmt.Errorf("mcphubd ended with %s\n%s", d.cmd.ProcessState, d.Log())
	}
	return nil
}

// Restart stops the daemon and starts it on the same address.
func (d *Daemon) Restart() {
	d.t.Helper()
	if err := d.Stop(); err != nil {
		d.t.Fatal(err)
	}
	d.StartAgain()
}

// StartAgain starts the daemon on the address it had, after Kill9 or Stop.
func (d *Daemon) StartAgain() {
	d.t.Helper()
	config, err := os.ReadFile(d.Config)
	if err != nil {
		d.t.Fatal(err)
	}
	d.SetConfig(strings.Replace(string(config), `"127.0.0.1:0"`, quote(d.Addr()), 1))
	if err := d.Start(); err != nil {
		d.t.Fatal(err)
	}
}

// Gone reports whether the process has ended.
func (d *Daemon) Gone() bool {
	select {
	case <-d.exit:
		return true
	default:
		return false
	}
}

func (d *Daemon) signal(s syscall.Signal) {
	if !d.Gone() {
		_ = syscall.Kill(d.PID(), s)
	}
}

// Get reads a path of the daemon: /debug/state, /readyz, …
func (d *Daemon) Get(path string) (status int, body []byte, err error) {
	res, err := http.Get("http://" + d.Addr() + path)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// Goroutines asks the daemon how many goroutines it has: its debug state where
// that tells, else its profile. 0 means that neither does.
func (d *Daemon) Goroutines() int {
	if _, b, err := d.Get("/debug/state"); err == nil {
		if n := numberAfter(b, `"goroutines":`); n > 0 {
			return n
		}
	}
	_, b, _ := d.Get("/debug/pprof/goroutine?debug=1")
	return numberAfter(b, "goroutine profile: total ")
}

func numberAfter(b []byte, mark string) int {
	_, rest, _ := bytes.Cut(b, []byte(mark))
	rest = bytes.TrimLeft(rest, " ")
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, _ := strconv.Atoi(string(rest[:end]))
	return n
}

// end leaves nothing behind: neither the daemon nor a child of it, nor a file.
func (d *Daemon) end() {
	if d.PID() != 0 {
		if err := d.Stop(); err != nil && !d.killed {
			d.t.Error(err)
		}
	}
	if d.t.Failed() {
		d.t.Logf("log of the daemon:\n%s", tail(d.Log(), 8<<10))
	}
	for p := range d.kids {
		if proc.Alive(p) && strings.Contains(proc.Environ(p), d.Home) {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	}
	_ = os.RemoveAll(d.Home)
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
