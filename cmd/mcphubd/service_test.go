package main

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update-service", false, "write the golden units anew")

// unitText is what print shows, with the path of this program taken out.
func unitText(t *testing.T, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := mcphubd(t, append([]string{"service", "print"}, args...)...)
	if got.code != codeOK {
		t.Fatalf("%+v", got)
	}
	return strings.ReplaceAll(got.stdout, self, "/opt/mcphubd")
}

func TestUnitsAreAsTheirManagersReadThem(t *testing.T) {
	emptyHome(t)
	t.Setenv("PATH", `/usr/bin:/bin:/home/a "b"/100%/$HOME`)
	t.Setenv("MCPHUBD_DATA", "/srv/<data> & $5")
	for _, manager := range []string{"systemd", "launchd"} {
		got := unitText(t, "--manager", manager, "--config", "/etc/50% off.toml")
		golden := filepath.Join("testdata", "service", manager+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := read(t, golden); got != want {
			t.Errorf("%s:\n%s\nis not\n%s", golden, got, want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(unitText(t, "--manager", "launchd")))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestInstallKeepsWhatWasThereAndSaysWhatItDid(t *testing.T) {
	home := emptyHome(t)
	file := filepath.Join(home, ".config", "systemd", "user", "mcphubd.service")
	install := []string{"service", "install", "--manager", "systemd"}
	if got := mcphubd(t, append(install, "--dry-run")...); got.code != codeOK || !strings.Contains(got.stdout, "+ExecStart=") {
		t.Fatalf("%+v", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("a dry run wrote the file")
	}
	got := mcphubd(t, install...)
	if got.code != codeOK || !strings.Contains(got.stderr, "systemctl --user enable --now mcphubd.service") {
		t.Fatalf("%+v", got)
	}
	printed := mcphubd(t, "service", "print", "--manager", "systemd").stdout
	if read(t, file) != printed {
		t.Error("what is installed is not what is printed")
	}
	if got := mcphubd(t, install...); got.code != codeOK || got.stdout != "" || len(names(t, filepath.Dir(file))) != 1 {
		t.Errorf("a second time: %+v, %v", got, names(t, filepath.Dir(file)))
	}
	const mine = "[Service]\nExecStart=/my/own\n"
	if err := os.WriteFile(file, []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := mcphubd(t, install...); got.code != codeOK || !strings.Contains(got.stdout, "-ExecStart=/my/own") {
		t.Errorf("over another file: %+v", got)
	}
	kept := ""
	for _, name := range names(t, filepath.Dir(file)) {
		if strings.HasSuffix(name, ".bak") {
			kept = read(t, filepath.Join(filepath.Dir(file), name))
		}
	}
	if kept != mine || read(t, file) != printed {
		t.Errorf("kept is %q", kept)
	}
	if got := mcphubd(t, "service", "uninstall", "--manager", "systemd"); got.code != codeOK || !strings.Contains(got.stderr, "disable --now") {
		t.Errorf("%+v", got)
	}
	if got := mcphubd(t, "service", "uninstall", "--manager", "systemd"); got.code != codeNotFound {
		t.Errorf("there is none: %+v", got)
	}
}
