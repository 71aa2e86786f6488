package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestADaemonThatDidNotStartSaysWhy to the client of the bridge, which may have no other
// way to hear of it. One that said nothing at least ended somehow.
func TestADaemonThatDidNotStartSaysWhy(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "daemon.out")
	if got := lastWords(out, c.ProcessState); got != "exit status 0" {
		t.Errorf("without a word: %q", got)
	}
	if err := os.WriteFile(out, []byte("mcphubd: listen on 127.0.0.1:1:\n\tanother program uses the port\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := lastWords(out, c.ProcessState); got != "mcphubd: listen on 127.0.0.1:1: another program uses the port" {
		t.Errorf("%q", got)
	}
}
