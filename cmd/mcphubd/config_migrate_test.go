package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const oldConfig = `# My hub.
verbatim = true # for now

[servers.fs]
command = "npx"
env = { FS_TOKEN = "sk-test-AAAA" }

[agents.codex]
token = "sk-test-BBBB"`

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are what lies in dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestMigrateWritesAndKeepsWhatWas(t *testing.T) {
	home := emptyHome(t)
	dir := filepath.Join(home, "conf")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, dir, "c.toml", oldConfig)
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	before := mcphubd(t, "config", "show", "--config", file)
	got := mcphubd(t, "config", "migrate", "--config", file)
	if got.code != codeOK {
		t.Fatalf("%+v", got)
	}
	migrated := read(t, file)
	if !strings.Contains(migrated, "\n#listen = ") || !strings.HasPrefix(migrated, "# My hub.\nverbatim = true # for now\n") {
		t.Errorf("the file is now\n%s", migrated)
	}
	if after := mcphubd(t, "config", "show", "--config", file); after != before {
		t.Errorf("in force was %+v, is %+v", before, after)
	}
	files := names(t, dir)
	if len(files) != 2 || !strings.HasPrefix(files[1], "c.toml.20") || !strings.HasSuffix(files[1], "Z.bak") {
		t.Fatalf("the folder holds %v", files)
	}
	if backup := read(t, filepath.Join(dir, files[1])); backup != oldConfig {
		t.Errorf("the backup is %q", backup)
	}
	if !strings.Contains(got.stderr, files[1]) {
		t.Errorf("the backup is not named: %q", got.stderr)
	}
	for _, name := range files {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}

	again := mcphubd(t, "config", "migrate", "--config", file)
	if again.code != codeOK || again.stdout != "" || !strings.Contains(again.stderr, "every key already") {
		t.Errorf("the second time: %+v", again)
	}
	if read(t, file) != migrated || len(names(t, dir)) != 2 {
		t.Errorf("the second time changed something: %v", names(t, dir))
	}
}

func TestMigrateDryRunOnlyPrints(t *testing.T) {
	home := emptyHome(t)
	file := write(t, home, "c.toml", oldConfig)
	dry := mcphubd(t, "config", "migrate", "--dry-run", "--config", file)
	if dry.code != codeOK || dry.stderr != "" || read(t, file) != oldConfig || len(names(t, home)) != 1 {
		t.Errorf("%+v, the folder holds %v", dry, names(t, home))
	}
	if wet := mcphubd(t, "config", "migrate", "--config", file); wet.stdout != dry.stdout {
		t.Errorf("it printed\n%s\nand did\n%s", dry.stdout, wet.stdout)
	}
}

func TestMigratePrintsADiffWithoutSecrets(t *testing.T) {
	file := write(t, emptyHome(t), "c.toml", oldConfig)
	got := mcphubd(t, "config", "migrate", "--dry-run", "--config", file)
	if strings.Contains(got.stdout, "sk-test") || !strings.Contains(got.stdout, "No newline at end of file") {
		t.Error(got.stdout)
	}
}

// The standard tool makes the same file of the old one.
func TestMigratePrintsADiffThatCanBeApplied(t *testing.T) {
	tool, err := exec.LookPath("patch")
	if err != nil {
		t.Fatal(err)
	}
	home := emptyHome(t)
	for name, text := range map[string]string{
		"lf.toml":  "verbatim = true\n\n[servers.fs]\ncommand = \"npx\"\n",
		"cut.toml": "[results]\npreview = \"1KB\"\n[servers.fs]\ncommand = \"npx\"",
	} {
		file := write(t, home, name, text)
		patched := write(t, home, name+".patched", text)
		got := mcphubd(t, "config", "migrate", "--config", file)
		cmd := exec.Command(tool, "-s", patched)
		cmd.Stdin = strings.NewReader(got.stdout)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", name, err, out, got.stdout)
		}
		if read(t, patched) != read(t, file) {
			t.Errorf("%s: the diff makes\n%s\nthe file is\n%s", name, read(t, patched), read(t, file))
		}
	}
}

func TestMigrateWritesThroughALink(t *testing.T) {
	home := emptyHome(t)
	if err := os.Mkdir(filepath.Join(home, "dotfiles"), 0o700); err != nil {
		t.Fatal(err)
	}
	target := write(t, filepath.Join(home, "dotfiles"), "hub.toml", oldConfig)
	link := filepath.Join(home, "c.toml")
	if err := os.Symlink("dotfiles/hub.toml", link); err != nil {
		t.Fatal(err)
	}
	if got := mcphubd(t, "config", "migrate", "--config", link); got.code != codeOK {
		t.Errorf("%+v", got)
	}
	if to, err := os.Readlink(link); err != nil || to != "dotfiles/hub.toml" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if !strings.Contains(read(t, target), "#listen") {
		t.Error("the target is as it was")
	}
}

func TestMigrateChangesNothingWhereItCannot(t *testing.T) {
	home := emptyHome(t)
	bad := write(t, home, "bad.toml", "lisen = \"\"\n")
	if got := mcphubd(t, "config", "migrate", "--config", bad); got.code != codeInvalid || got.stdout != "" || !strings.Contains(got.stderr, "did you mean listen?") {
		t.Errorf("an invalid file: %+v", got)
	}
	if got := mcphubd(t, "config", "migrate"); got.code != codeNotFound || got.stdout != "" {
		t.Errorf("no file: %+v", got)
	}
	if files := names(t, home); len(files) != 1 || read(t, bad) != "lisen = \"\"\n" {
		t.Errorf("the folder holds %v", files)
	}
	// A write that fails, here because its place is taken, leaves nothing behind.
	good := write(t, home, "c.toml", oldConfig)
	write(t, home, fmt.Sprintf("c.toml.%d.new", os.Getpid()), "taken")
	if got := mcphubd(t, "config", "migrate", "--config", good); got.code != codeFailed || got.stdout != "" || read(t, good) != oldConfig {
		t.Errorf("a failed write: %+v", got)
	}
	if files := names(t, home); len(files) != 3 {
		t.Errorf("the folder holds %v", files)
	}
}
