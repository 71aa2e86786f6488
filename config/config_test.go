package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcphubd/config"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("c.toml", []byte(text), testWorld())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultFileParsesToTheDefaults(t *testing.T) {
	explicit := parse(t, string(config.DefaultFile()))
	defaults := config.Default()
	explicit.Sources, defaults.Sources = nil, nil
	if !reflect.DeepEqual(explicit, defaults) {
		t.Errorf("default.toml gives %+v, no file gives %+v", explicit, defaults)
	}
}

// commented is an example line of default.toml, see its first lines.
var commented = regexp.MustCompile(`(?m)^#([^ \n])`)

func TestDefaultFileShowsEveryKeyThereIs(t *testing.T) {
	text := commented.ReplaceAllString(string(config.DefaultFile()), "$1")
	c := parse(t, text)
	if len(c.Warnings) > 0 {
		t.Errorf("its examples are warned about: %v", c.Warnings)
	}
	shown := map[string]bool{}
	for key := range c.Sources {
		for _, pattern := range config.Keys() {
			if pattern == key || regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `[^.]+`)+"$").MatchString(key) {
				shown[pattern] = true
			}
		}
	}
	for _, key := range config.Keys() {
		if !shown[key] {
			t.Errorf("default.toml does not show %s", key)
		}
	}
}

func TestKeysAreThoseOfTheSchema(t *testing.T) {
	for _, key := range []string{"listen", "results.preview", "servers.*.command", "servers.*.tool.*.response_budget", "agents.*.token"} {
		if !slices.Contains(config.Keys(), key) {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestTheExampleOfTheSpecificationMeansThis(t *testing.T) {
	c := parse(t, readFile(t, "testdata/good/everything.toml"))
	fs, docs, codex := c.Servers["fs"], c.Servers["docs"], c.Agents["codex"]
	size := func(s config.Size) *config.Size { return &s }
	for _, v := range []struct{ what, got, want any }{
		{"budget", c.ResponseBudget, 32 * config.KB},
		{"override", c.MaxPerCallOverride, 128 * config.KB},
		{"frame", c.MaxFrame, config.GB},
		{"call timeout", c.CallTimeout, 30 * time.Minute},
		{"drain timeout", c.DrainTimeout, 8 * time.Second},
		{"args", fs.Args, []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/me/src"}},
		{"env", fs.Env, map[string]string{"LOG_LEVEL": "warn"}},
		{"cwd", fs.Cwd, "/home/me"},
		{"server's budget", fs.ResponseBudget, size(64 * config.KB)},
		{"server's call timeout", fs.CallTimeout, 10 * time.Minute},
		{"server's connect timeout", fs.ConnectTimeout, 30 * time.Second},
		{"tools", fs.Tools, config.ToolFilter{Allow: []string{"*"}, Deny: []string{"write_*"}}},
		{"headers", docs.Headers, map[string]string{"Authorization": "Bearer sk-test-DDDD"}},
		{"transport", docs.Transport, "http"},
		{"enabled", docs.Enabled, true},
		{"agent's servers", codex.Servers, []string{"fs", "docs"}},
		{"ceiling", codex.ResponseBudget, size(10 * config.KB)},
		{"token", codex.Token, "sk-test-CCCC"},
	} {
		if !reflect.DeepEqual(v.got, v.want) {
			t.Errorf("%s is %v, want %v", v.what, v.got, v.want)
		}
	}
}

func TestTheNarrowestBudgetCounts(t *testing.T) {
	c := parse(t, `
response_budget = "1MB"
[servers.a]
command = "a"
response_budget = "2KB"
[servers.a.tool.big]
response_budget = "0"
[servers.b]
command = "b"
[servers.b.tool.small]
response_budget = "512B"
`)
	for _, v := range []struct {
		server, tool string
		want         config.Size
	}{
		{"a", "big", 0}, {"a", "x", 2 * config.KB}, {"b", "small", 512}, {"b", "x", config.MB}, {"c", "x", config.MB},
	} {
		if got := c.Budget(v.server, v.tool); got != v.want {
			t.Errorf("budget of %s %s is %s, want %s", v.server, v.tool, got, v.want)
		}
	}
}

func TestAbsentListsMeanAllAndEmptyOnesNone(t *testing.T) {
	c := parse(t, "[agents.a]\n[agents.b]\nservers = []\ntools = []\n")
	if a := c.Agents["a"]; a.Servers != nil || a.Tools != nil {
		t.Errorf("absent lists became %v, %v", a.Servers, a.Tools)
	}
	if b := c.Agents["b"]; b.Servers == nil || b.Tools == nil {
		t.Error("empty lists became absent ones")
	}
}

func TestWhoMayEnter(t *testing.T) {
	const one, withToken = "[agents.one]\n", "[agents.one]\ntoken = 'secret'\n"
	for _, v := range []struct {
		text, name string
		want       bool
	}{
		{"", "anybody", true}, {"", "default", true}, {"", "a/b", false}, {"", "", false},
		{one, "one", true}, {one, "two", false}, {one, "default", true},
		{withToken, "one", true}, {withToken, "two", false}, {withToken, "default", false},
		{withToken + "[agents.default]\n", "default", true},
	} {
		agent, ok := parse(t, v.text).Agent(v.name)
		if ok != v.want || ok && agent.Name != v.name {
			t.Errorf("with %q %q may enter: %v as %q", v.text, v.name, ok, agent.Name)
		}
	}
}

// C39: with these server names refused, the first __ of an exposed name always
// ends the server's name, whatever the tools are called.
func TestC39NoTwoPairsOfServerAndToolLookTheSame(t *testing.T) {
	for _, name := range []string{"acme_", "a__b", "_a", "a b", "Cloud MCP (prod)", "mcphub", "", "é", "-x", strings.Repeat("a", 41)} {
		if config.ValidServerName(name) {
			t.Errorf("%q is accepted", name)
		}
	}
	for _, name := range []string{"acme", "a", "d", "a_b", "A-1", "mcphub-2", "a-", strings.Repeat("a", 40)} {
		if !config.ValidServerName(name) {
			t.Errorf("%q is refused", name)
		}
	}
}

func FuzzExposedNamesAreUnique(f *testing.F) {
	f.Add("acme", "_status", "acme_", "status")
	f.Add("a", "b__c", "a__b", "c")
	f.Fuzz(func(t *testing.T, server1, tool1, server2, tool2 string) {
		if !config.ValidServerName(server1) || !config.ValidServerName(server2) {
			return
		}
		same := server1 == server2 && tool1 == tool2
		if !same && server1+"__"+tool1 == server2+"__"+tool2 {
			t.Errorf("(%s, %s) and (%s, %s) look the same", server1, tool1, server2, tool2)
		}
	})
}

func FuzzParseNeverPanicsAndPlacesEveryProblem(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := config.Parse("c.toml", text, testWorld())
		if err == nil {
			shown := &strings.Builder{}
			if err := config.Write(shown, c.Settings(), false); err != nil {
				t.Fatal(err)
			}
			_, err := config.Parse("shown.toml", []byte(shown.String()), testWorld())
			if err != nil && strings.Contains(err.Error(), "TOML") {
				t.Errorf("what is shown is no TOML: %v\n%s", err, shown)
			}
			return
		}
		problems := err.(*config.Error).Problems
		if len(problems) == 0 {
			t.Error("an error without a problem")
		}
		for _, p := range problems {
			if p.Line < 0 || p.Line > 1+strings.Count(string(text), "\n") || p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func seeds(f *testing.F) (texts [][]byte) {
	files, _ := filepath.Glob("testdata/*/*.toml")
	for _, file := range files {
		texts = append(texts, []byte(readFile(f, file)))
	}
	return texts
}
