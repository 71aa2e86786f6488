package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcphubd/config"
)

// TestNoSecretIsLogged: as it is, as JSON writes it, and after a reload that knows it no
// longer.
func TestNoSecretIsLogged(t *testing.T) {
	const plain, odd = "sk-test-plain", "sk \"te\\st\"\todd"
	with := &config.Config{Servers: map[string]config.Server{"d": {Secrets: []string{plain, odd}}}}
	var out bytes.Buffer
	g := &gather{w: &out}
	log := zerolog.New(g)
	logVeil.cover(with)
	logVeil.cover(&config.Config{Agents: map[string]config.Agent{"a": {Token: "tok-of-a"}}})
	log.Warn().Str("env", "A="+plain).Msg(odd)
	log.Warn().Str("token", "tok-of-a").Send()
	for _, part := range []string{plain, `te\\st`, "odd", "tok-of-a"} {
		if strings.Contains(out.String(), part) {
			t.Errorf("%q is in %s", part, out.String())
		}
	}
	if strings.Count(out.String(), "***") != 3 {
		t.Errorf("logged: %s", out.String())
	}
}

// TestNoSecretIsSaidByTheDaemon: its stderr is a file of its data directory, if a client
// launched it.
func TestNoSecretIsSaidByTheDaemon(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(filepath.Join(dir, "sk-test-said"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := "socket = \"" + dir + "/sk-test-said/sock\"\n[servers.d]\ncommand = \"true\"\nenv = { TOKEN = \"sk-test-said\" }\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	code := run(t.Context(), []string{"serve", "--config", file, "--data", filepath.Join(dir, "data")}, nil, io.Discard, &said)
	if text := said.String(); code != codeFailed || strings.Contains(text, "sk-test-said") || !strings.Contains(text, "/***: not a directory") {
		t.Errorf("exit code %d, and it says %s", code, text)
	}
}
