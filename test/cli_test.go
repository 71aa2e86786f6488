package test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mcphubd/test/mcptest"
)

// TestCommands runs the scripts in testdata/cli: what a user types and sees, on the
// built binary, each with a home of its own. Besides the usual commands of testscript
// there are
//
//	code N CMD…       CMD ends with exactly this exit code
//	until RE CMD…     CMD is repeated until its output matches
//	take VAR RE       sets a variable to the first group of RE in the last output
//	hash VAR          sets a variable to the SHA-256 of the last stdout
//
// The variable FAKE is a command that is a fake server (see mcptest.Script).
func TestCommands(t *testing.T) {
	bin := mcptest.Binary(t)
	fake, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cli",
		Setup: func(env *testscript.Env) error {
			dir := filepath.Join(env.WorkDir, "bin")
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			for _, name := range []string{"home", "run", "tmp"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, name), 0o700); err != nil {
					return err
				}
			}
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run"))
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
			env.Setenv("MCPHUBD_CONFIG", filepath.Join(env.WorkDir, "config.toml"))
			env.Setenv("MCPHUBD_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv("FAKE", fake)
			env.Defer(func() { endDetached(filepath.Join(env.WorkDir, "data", "lock"), bin) })
			return os.Symlink(bin, filepath.Join(dir, "mcphubd"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": cliCode, "until": cliUntil, "take": cliTake, "hash": cliHash,
		},
	})
}

// endDetached ends a daemon that a command of a script launched.
func endDetached(lock, bin string) {
	b, err := os.ReadFile(lock)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == bin {
		_ = syscall.Kill(pid, syscall.SIGKILL) // its children die with it
	}
}

func cliCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N CMD…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func cliUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until RE CMD…")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for end := time.Now().Add(mcptest.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // it may fail until then
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("waited in vain for %s to show %s", args[1:], want)
}

func cliTake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: take VAR RE")
	}
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("the last output has no %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

func cliHash(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hash VAR")
	}
	sum := sha256.Sum256([]byte(ts.ReadFile("stdout")))
	ts.Setenv(args[0], hex.EncodeToString(sum[:]))
}

// Every script is there, so that a renamed folder does not pass for a success.
func TestThereAreScriptsOfTheCommands(t *testing.T) {
	found, err := filepath.Glob("testdata/cli/*.txtar")
	if err != nil || len(found) < 6 {
		t.Fatalf("%d scripts, %v", len(found), err)
	}
	for _, name := range []string{"status", "result", "doctor", "logs", "tool", "completion"} {
		if !slices.Contains(found, "testdata/cli/"+name+".txtar") {
			t.Errorf("no script %s", name)
		}
	}
}
