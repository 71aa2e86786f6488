package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// exitCode is how a command ended; -1 when it did not run to an end of its own.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

func TestTheDemoShowsEqualHashesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	d := mcptest.NewDaemon(t, "")
	tree := filepath.Join(t.TempDir(), `${NOT_A_VARIABLE} "é"`)
	for i := range 40 {
		dir := filepath.Join(tree, fmt.Sprintf("dir %d", i%4))
		if err := errors.Join(os.MkdirAll(dir, 0o700),
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(strings.Repeat("é \"line\" <&>\n", 500)), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	before := below(t, d.Home)
	cmd := d.Command("demo", "--dir", tree)
	out, err := cmd.Output()
	if code := exitCode(err); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	hashes := regexp.MustCompile(`\b[0-9a-f]{64}\b`).FindAllString(string(out), -1)
	if len(hashes) != 2 || hashes[0] != hashes[1] || strings.Contains(string(out), "DIFFERENT") || strings.Count(string(out), "equal to the byte") != 2 {
		t.Errorf("hashes %v in\n%s", hashes, out)
	}
	if after := below(t, d.Home); after != before {
		t.Errorf("the demo left files: before %s, after %s", before, after)
	}
	if left := inHome(d.Home); len(left) > 0 {
		t.Errorf("the demo left processes: %v", left)
	}
}

// below names all files under dir.
func below(t testing.TB, dir string) string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(files, " ")
}

// inHome finds the processes whose home is that directory.
func inHome(home string) (found []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err == nil && strings.Contains(proc.Environ(pid), home) && proc.Alive(pid) {
			found = append(found, proc.Cmdline(pid))
		}
	}
	return found
}

func TestServeWithABadConfigurationSaysWhereAndExits4(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`response_budget = "100B"`: "512B",
		`respnse_budget = "32KB"`:  "response_budget",
		`listen = 1`:               "listen",
		`[servers.x]`:              "command",
		`fail_open = `:             "",
	} {
		d := mcptest.NewDaemon(t, "listen = \"127.0.0.1:0\"\n# a comment\n")
		f, err := os.OpenFile(d.Config, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(line + "\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Command("serve").CombinedOutput()
		if code := exitCode(err); code != 4 || !strings.Contains(string(out), d.Config+":3:") || !strings.Contains(string(out), want) {
			t.Errorf("%s: exit code %d, %s", line, code, out)
		}
		if _, err := os.Stat(d.Data); err == nil {
			t.Errorf("%s: a bad configuration made a data directory", line)
		}
	}
}

// beset is a daemon with open streams, calls that never end, and a server that
// neither EOF nor TERM ends.
type beset struct {
	hub
	streams []*mcptest.Stream
	stuck   chan mcptest.Response
	kids    []int
}

func besiege(t *testing.T) *beset {
	t.Helper()
	b := &beset{stuck: make(chan mcptest.Response, 4)}
	b.hub = one(t, "drain_timeout = \"1s\"\n", mcptest.Script{IgnoreEOF: true, IgnoreTERM: true,
		Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep"}},
		Start: []mcptest.Step{{Fork: &mcptest.Helper{Seconds: 600, IgnoreTERM: true}}}})
	for i := range 10 {
		s, err := b.Agent(fmt.Sprintf("agent%d", i)).Listen(background(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		b.streams = append(b.streams, s)
	}
	for i := range cap(b.stuck) {
		a := b.Modern(fmt.Sprintf("agent%d", i))
		go func() {
			r, _ := a.Call(background(t), "d__sleep", "{}")
			b.stuck <- r
		}()
	}
	b.d().Record.Await(t, "tools/call", cap(b.stuck))
	b.kids = b.Children()
	return b
}

// nothingIsLeft follows the end of the daemon: its streams and its children ended.
func (b *beset) nothingIsLeft(t *testing.T) {
	t.Helper()
	for _, s := range b.streams {
		for err := error(nil); err == nil; {
			_, err = s.Next()
		}
	}
	mcptest.Eventually(t, "all children to be gone", func() bool { return !slices.ContainsFunc(b.kids, proc.Alive) })
}

func TestC76SIGTERMAndSIGINTEndTheDaemonInTimeWhateverIsOpen(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			b := besiege(t)
			began := time.Now()
			if err := syscall.Kill(b.PID(), signal); err != nil {
				t.Fatal(err)
			}
			mcptest.Eventually(t, "the daemon to end", b.Gone)
			if took := time.Since(began); took > 10*time.Second { // the promise itself
				t.Errorf("that took %v", took)
			}
			if err := b.Stop(); err != nil { // tells how it ended
				t.Error(err)
			}
			for range cap(b.stuck) {
				if r := <-b.stuck; !r.IsError() {
					t.Errorf("a call that could not end was told HTTP %d %.300s", r.Status, r.Body)
				}
			}
			b.nothingIsLeft(t)
		})
	}
}

func TestC76ASecondSignalEndsTheDaemonAtOnceAndItsChildren(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	_ = syscall.Kill(b.PID(), syscall.SIGTERM)
	b.AwaitLog("stopping")
	_ = syscall.Kill(b.PID(), syscall.SIGTERM)
	mcptest.Eventually(t, "the daemon to end", b.Gone)
	b.Kill9() // it is gone; this only says that its exit code is no failure
	b.nothingIsLeft(t)
}

func TestC71ASecondDaemonOnTheSameDataRefusesAndTouchesNothing(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	a := h.Agent("a")
	receipt := receiptOf(t, call(t, a, "d__blob", `{"bytes":100000}`))
	starts := len(h.d().Record.Of("initialize"))
	err := all(5, func(int) error {
		out, err := h.Command("serve").CombinedOutput()
		if code := exitCode(err); code != 1 || !strings.Contains(string(out), fmt.Sprint(h.PID())) || !strings.Contains(string(out), h.Data) {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if n := len(h.d().Record.Of("initialize")); n != starts {
		t.Errorf("the second daemon started servers: %d handshakes, then %d", starts, n)
	}
	readBack(t, a, receipt)
	h.Kill9()
	h.StartAgain() // the lock died with its owner
	readBack(t, h.Agent("a"), receipt)
}

func TestTheDemoSaysWhatIsWrongWithItsFolder(t *testing.T) {
	t.Parallel()
	d := mcptest.NewDaemon(t, "")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file + ".none", file} {
		cmd := d.Command("demo", "--dir", dir)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if code := exitCode(err); code != 5 || len(out) > 0 || !strings.Contains(said.String(), "--dir") || !strings.Contains(said.String(), dir) {
			t.Errorf("%s: exit code %d, %q, %q", dir, code, out, said.String())
		}
	}
}
