package config_test

import (
	"strings"
	"testing"

	"mcphubd/config"
)

// args parses a file whose only server has the one argument written, and gives
// back what it became.
func arg(t *testing.T, env config.Env, written string) (string, error) {
	t.Helper()
	c, err := config.Parse("/etc/mcphubd/config.toml", []byte("[servers.s]\ncommand = 's'\nargs = ['"+written+"']\n"), env)
	if err != nil {
		return "", err
	}
	return c.Servers["s"].Args[0], nil
}

func TestC109ReferencesAreReplacedAndNothingElse(t *testing.T) {
	env := world(
		map[string]string{"A": "1", "EMPTY": "", "NESTED": "${A}"},
		map[string]string{
			"/home/me/key":     "k1\n",
			"/etc/mcphubd/key": "k2\r\n",
			"/abs/key":         "k3\n\n",
		},
	)
	for written, want := range map[string]string{
		"plain":                  "plain",
		"${A}":                   "1",
		"x${A}y${A}":             "x1y1",
		"${env:A}":               "1",
		"${A:-2}":                "1",
		"${EMPTY}":               "",
		"${EMPTY:-2}":            "2",
		"${GONE:-}":              "",
		"${GONE:-a:-b}":          "a:-b",
		"${env:GONE:-http://x/}": "http://x/",
		"${NESTED}":              "${A}",
		"${file:~/key}":          "k1",
		"${file:key}":            "k2",
		"${file:/abs/key}":       "k3\n",
		"$5":                     "$5",
		"$$":                     "$$",
		"$":                      "$",
		"$A":                     "$A",
		"$(A)":                   "$(A)",
		"a$${A}b":                "a${A}b",
		"$$${A}":                 "$${A}",
		"~":                      "~",
		"~/x":                    "~/x",
	} {
		if got, err := arg(t, env, written); err != nil || got != want {
			t.Errorf("%s became %q, %v; want %q", written, got, err, want)
		}
	}
}

func TestC109AMissingReferenceIsAnErrorThatNamesIt(t *testing.T) {
	env := world(nil, map[string]string{"/big": strings.Repeat("x", 65<<10)})
	for written, want := range map[string]string{
		"${MISSING}":     "MISSING",
		"${env:MISSING}": "MISSING",
		"${file:gone}":   "${file:gone}",
		"${file:~/gone}": "${file:~/gone}",
		"${file:/big}":   "${file:/big}: more than 64KB",
		"${file:}":       "names no file",
		"${OPEN":         "no closing }",
		"${}":            "no variable",
		"${1}":           "no variable",
		"${A B}":         "no variable",
		"${A-x}":         "no variable",
	} {
		got, err := arg(t, env, written)
		if err == nil {
			t.Errorf("%s became %q, want an error", written, got)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ":3: servers.s.args: ") {
			t.Errorf("%s: %q does not name %q, or the line", written, err, want)
		}
	}
}

func TestTheHomeDirectoryStandsForALeadingTilde(t *testing.T) {
	const text = "socket = '~/s'\n[servers.s]\ncommand = '~/bin/my server'\ncwd = '~'\n[servers.t]\ncommand = '~other/x'\n"
	c, err := config.Parse("c.toml", []byte(text), world(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	s := c.Servers["s"]
	got := []string{c.Socket, s.Command, s.Cwd, c.Servers["t"].Command}
	want := []string{"/home/me/s", "/home/me/bin/my server", "/home/me", "~other/x"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	if _, err := config.Parse("c.toml", []byte(text), config.Env{}); err == nil {
		t.Error("without a home directory ~ was accepted")
	}
}
