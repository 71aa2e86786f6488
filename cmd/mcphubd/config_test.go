package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/config"
)

// result is what one run of the program left behind.
type result struct {
	code           int
	stdout, stderr string
}

// mcphubd runs the program as a user with an empty home.
func mcphubd(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func emptyHome(t *testing.T) string {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "MCPHUBD_CONFIG", "MCPHUBD_DATA"} {
		t.Setenv(name, "")
	}
	return home
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodesAndStreams(t *testing.T) {
	home := emptyHome(t)
	good := write(t, home, "good.toml", "[servers.fs]\ncommand = \"npx\"\n")
	odd := write(t, home, "odd.toml", "max_per_call_override = \"1KB\"\n")
	bad := write(t, home, "bad.toml", "\nlisen = \"\"\nverbatim = 1\n")
	for _, v := range []struct {
		args           string
		code           int
		stdout, stderr string // parts; "" = nothing at all
	}{
		{"", codeUsage, "", "serve"},
		{"nonsense", codeUsage, "", "nonsense"},
		{"config", codeUsage, "", "check"},
		{"config check --bogus", codeUsage, "", "--bogus"},
		{"--help", codeOK, "Exit codes", ""},
		{"config check --help", codeOK, "Nothing is started", ""},
		{"version", codeOK, "mcphubd ", ""},
		{"config default", codeOK, string(config.DefaultFile()), ""},
		{"config path", codeOK, home + "/.config/mcphubd/config.toml\n", "the defaults are in force"},
		{"config path --config " + good, codeOK, good + "\n", ""},
		{"config check", codeOK, "the defaults", ""},
		{"config check --config " + good, codeOK, good + ": ok, 1 server, 0 agents\n", ""},
		{"config check --config " + odd, codeOK, "ok", "warning: " + odd + ":1: max_per_call_override"},
		{"config check --config " + bad, codeInvalid, "", bad + ":2: lisen: unknown key; did you mean listen?\n" + bad + ":3: verbatim: "},
		{"config show --config " + bad, codeInvalid, "", bad + ":2: lisen"},
		{"config show --config " + home + "/gone", codeInvalid, "", home + "/gone: no such file"},
		{"config show --sources --config " + good, codeOK, `command = "npx"                               # ` + good + ":2\n", ""},
	} {
		got := mcphubd(t, strings.Fields(v.args)...)
		if got.code != v.code {
			t.Errorf("mcphubd %s: exit code %d, want %d", v.args, got.code, v.code)
		}
		for _, stream := range []struct{ name, got, want string }{{"stdout", got.stdout, v.stdout}, {"stderr", got.stderr, v.stderr}} {
			if !strings.Contains(stream.got, stream.want) || stream.want == "" && stream.got != "" {
				t.Errorf("mcphubd %s: %s is %q, want %q", v.args, stream.name, stream.got, stream.want)
			}
		}
	}
}

func TestTheVariableNamesTheConfiguration(t *testing.T) {
	home := emptyHome(t)
	t.Setenv("MCPHUBD_CONFIG", write(t, home, "c.toml", "verbatim = true\n"))
	if got := mcphubd(t, "config", "show"); !strings.Contains(got.stdout, "verbatim = true\n") {
		t.Errorf("%+v", got)
	}
}

func TestConfigCheckTellsTheProblemsAsJSON(t *testing.T) {
	bad := write(t, emptyHome(t), "bad.toml", "lisen = \"\"\n")
	got := mcphubd(t, "config", "check", "--json", "--config", bad)
	var found checked
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	want := config.Problem{File: bad, Line: 1, Key: "lisen", Message: "unknown key", Fix: "did you mean listen?"}
	if got.code != codeInvalid || got.stderr != "" || found.OK || len(found.Problems) != 1 || found.Problems[0] != want {
		t.Errorf("%+v", got)
	}
}

func TestConfigShowGivesJSONWithSourcesAndWithoutSecrets(t *testing.T) {
	file := write(t, emptyHome(t), "c.toml", "[agents.a]\ntoken = \"sk-test-AAAA\"\n")
	got := mcphubd(t, "config", "show", "--json", "--sources", "--config", file)
	var out shown
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if out.File != file || out.Config["response_budget"] != "32KB" || out.Sources["agents.a.token"] != file+":2" || out.Sources["listen"] != "default" {
		t.Errorf("%+v", out)
	}
	if strings.Contains(got.stdout+got.stderr, "sk-test") {
		t.Errorf("shows the token: %+v", got)
	}
}
