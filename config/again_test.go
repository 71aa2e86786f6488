package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAFileThatIsGoneOrEmptyStopsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[servers.a]\ncommand = \"a\"\n")
	running, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty"},
		{" \n\t\n", "the file is empty"},
		{"[servers.a\n", ":1"},
		{"listen = 5\n", ":1: listen"},
		{"# nothing\n", ""},
		{"\n[servers.a]\n\tcommand='a' # as before\n", ""},
	} {
		write(c.text)
		again, err := LoadAgain(path, running)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v", c.text, err)
		}
		if err == nil && again.Same(running) != strings.Contains(c.text, "servers") {
			t.Errorf("%q is the same as before: %v", c.text, again.Same(running))
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadAgain(path, running); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestWhatARunningDaemonCannotTakeOverIsNamed(t *testing.T) {
	started, c := Default(), Default()
	c.Listen, c.Socket, c.MaxRequest, c.Verbatim = "127.0.0.1:1", "/s", 5*MB, true
	if keys := c.OnlyAtStart(started); !slices.Equal(keys, []string{"listen", "socket", "max_request"}) {
		t.Error(keys)
	}
}
