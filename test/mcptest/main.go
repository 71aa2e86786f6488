package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ScriptEnv names the variable that makes a process a fake server: the path of
// a file with the script, or the script itself.
const ScriptEnv = "MCPTEST_SCRIPT"

// Main turns the process into what the environment asks for, a fake server or a
// forked helper, and does not return then. Otherwise it does nothing.
func Main() {
	if order := os.Getenv(helperEnv); order != "" {
		help(order)
		os.Exit(0)
	}
	given := os.Getenv(ScriptEnv)
	if given == "" {
		return
	}
	script, err := ParseScript(given)
	if err == nil {
		err = ServeStdio(script)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake server:", err)
		os.Exit(2)
	}
	os.Exit(0)
}

// Run is TestMain for packages that use the fake server or the daemon.
func Run(m *testing.M) {
	Main()
	code := m.Run()
	removeBuilt()
	os.Exit(code)
}

// ServeStdio serves the script on the pipes of this process.
func ServeStdio(script Script) error {
	if script.IgnoreTERM {
		signal.Ignore(syscall.SIGTERM)
	}
	if script.IgnoreEOF {
		signal.Ignore(syscall.SIGPIPE)
	}
	return Serve(script, os.Stdin, os.Stdout, os.Stderr)
}

// ParseScript reads a script: JSON text, or the path of a file that holds it.
func ParseScript(given string) (s Script, err error) {
	text := []byte(given)
	if !strings.HasPrefix(strings.TrimSpace(given), "{") {
		if text, err = os.ReadFile(given); err != nil {
			return s, err
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("script: %w", err)
	}
	return s, nil
}

// Server is a script made ready to be run as a child: its command line, its
// environment and the files that it writes.
type Server struct {
	Command string
	Args    []string
	Env     map[string]string
	Record  Lines
	Ledger  Ledger
}

// NewServer saves the script, with a record and a ledger where it has none. The
// child is the test binary itself, whose TestMain must call Run.
func NewServer(t testing.TB, script Script) Server {
	t.Helper()
	dir := t.TempDir()
	if script.Record == "" {
		script.Record = filepath.Join(dir, "record")
	}
	if script.Ledger == "" {
		script.Ledger = filepath.Join(dir, "ledger")
	}
	b, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "script.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{Command: exe, Env: map[string]string{ScriptEnv: path}, Record: Lines(script.Record), Ledger: Ledger(script.Ledger)}
}

// TOML is the server's table in a configuration of mcphubd, with extra lines.
func (s Server) TOML(name string, extra ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[servers.%s]\ncommand = %s\n", name, quote(s.Command))
	if len(s.Args) > 0 {
		args, _ := json.Marshal(s.Args)
		fmt.Fprintf(&b, "args = %s\n", args)
	}
	if len(s.Env) > 0 {
		var env []string
		for k, v := range s.Env {
			env = append(env, k+" = "+quote(v))
		}
		fmt.Fprintf(&b, "env = { %s }\n", strings.Join(env, ", "))
	}
	for _, line := range extra {
		b.WriteString(line + "\n")
	}
	return b.String()
}
