// Package test proves the promises of the whole house on the built binary: agents
// over HTTP, servers as child processes, the store on disk.
package test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mcphubd/test/mcptest"
)

func TestMain(m *testing.M) { mcptest.Run(m) }

// hub is a running daemon and the fake servers behind it, by name.
type hub struct {
	*mcptest.Daemon
	servers map[string]mcptest.Server
}

// start runs a daemon over these servers. conf is what stands above their tables;
// a server's own lines follow its table.
func start(t testing.TB, conf string, scripts map[string]mcptest.Script, lines ...string) hub {
	t.Helper()
	conf, servers := tables(t, conf, scripts, lines...)
	return hub{mcptest.StartDaemon(t, conf), servers}
}

func tables(t testing.TB, conf string, scripts map[string]mcptest.Script, lines ...string) (string, map[string]mcptest.Server) {
	t.Helper()
	servers := map[string]mcptest.Server{}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		servers[name] = mcptest.NewServer(t, scripts[name])
		conf += servers[name].TOML(name, lines...)
	}
	return conf, servers
}

// one is a daemon with the single server d.
func one(t testing.TB, conf string, script mcptest.Script, lines ...string) hub {
	t.Helper()
	return start(t, conf, map[string]mcptest.Script{"d": script}, lines...)
}

// d is the server of that name.
func (h hub) d() mcptest.Server { return h.servers["d"] }

// full is how much of something a test does: all of it, or a tenth under the race
// detector.
func full(n int) int {
	if raced {
		return max(n/10, 1)
	}
	return n
}

// background bounds what a test waits for.
func background(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(stop)
	return ctx
}

// call makes a call whose answer must be a result.
func call(t testing.TB, a *mcptest.Agent, tool, args string) mcptest.Response {
	t.Helper()
	r, err := a.Call(background(t), tool, args)
	if err != nil || r.Result() == nil {
		t.Fatalf("%s %.100s: HTTP %d, %v: %.500s", tool, args, r.Status, err, r.Body)
	}
	return r
}

// receiptOf is the receipt that must be in place of the result.
func receiptOf(t testing.TB, r mcptest.Response) mcptest.Receipt {
	t.Helper()
	receipt, ok := mcptest.ReceiptOf(r.Result())
	if !ok {
		t.Fatalf("no receipt: HTTP %d: %.500s", r.Status, r.Body)
	}
	return receipt
}

// readBack is the whole stored result of a receipt, checked against its digest.
func readBack(t testing.TB, a *mcptest.Agent, receipt mcptest.Receipt) []byte {
	t.Helper()
	all, err := a.ReadBack(background(t), receipt.CallID)
	if err != nil {
		t.Fatal(err)
	}
	if receipt.SHA256 != "" && digest(all) != receipt.SHA256 {
		t.Errorf("%d bytes with digest %s were read back for the receipt %+v", len(all), digest(all), receipt)
	}
	return all
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// echo proves that the server answers.
func echo(t testing.TB, a *mcptest.Agent, tool string) {
	t.Helper()
	if r := call(t, a, tool, `{"v":"still here"}`); r.Text() != "still here" {
		t.Errorf("%s answered %.300s", tool, r.Body)
	}
}

// state is what the tests read of /debug/state.
type state struct {
	Problems []struct{ Code, Subject, Text string }
	Servers  []struct {
		Name, State, Cause, Stderr string
		InFlight, Tools, Starts    int
		Listed                     bool
		NextTry                    time.Time
		Info                       struct{ PID int }
	}
	Calls []struct{ Agent, Tool string }
	Spool struct {
		Results, RawBytes, FileBytes, WALBytes, FailedOpen int64
	}
	Daemon struct {
		PID, Goroutines int
		RSSBytes        int64
		LogLevel        string
	}
}

func (h hub) state(t testing.TB) (s state) {
	t.Helper()
	status, body, err := h.Get("/debug/state")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if status != 200 || err != nil {
		t.Fatalf("/debug/state: HTTP %d, %v", status, err)
	}
	return s
}

// awaitState waits until the server of that name is in that state.
func (h hub) awaitState(t testing.TB, server, want string) {
	t.Helper()
	mcptest.Eventually(t, server+" to be "+want, func() bool {
		for _, s := range h.state(t).Servers {
			if s.Name == server {
				return s.State == want
			}
		}
		return false
	})
}

// all runs f n times at once and returns when each has ended.
func all(n int, f func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	var failed []string
	for range n {
		if err := <-errs; err != nil {
			failed = append(failed, err.Error())
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d failed: %s", len(failed), n, strings.Join(failed[:min(len(failed), 3)], "; "))
	}
	return nil
}

// same fails the test with the place where two byte strings part.
func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(at-40, 0)
	t.Errorf("%s: %d bytes for %d, and they part at %d:\n got %q\nwant %q", what, len(got), len(want), at,
		got[from:min(at+60, len(got))], want[from:min(at+60, len(want))])
}

// touch makes a file that a script waits for.
func touch(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
