package config_test

import (
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"mcphubd/config"
)

func migrate(t testing.TB, text string) string {
	t.Helper()
	migrated, err := config.Migrate("c.toml", []byte(text), testWorld())
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return string(migrated)
}

const bom = "\uFEFF"

// userFiles look like what people write.
var userFiles = map[string]string{
	"empty":          "",
	"blank":          "\n\n",
	"comment":        "# mine\n",
	"no final end":   "# mine\nlisten = \"\" # none",
	"only a server":  "[servers.fs]\ncommand = \"npx\"\n",
	"about a server": "# My servers.\n# They are few.\n[servers.fs] # the files\ncommand = \"npx\"",
	"out of order":   "[agents.codex]\nmax_lines = 10\n\n[log]\nlevel = 'warn'\n\n[servers.fs]\ncommand = 'npx'\n[servers.fs.tool.x]\nresponse_budget = '1KB'\n[results]\npreview='1KB'\n[servers.docs]\nurl = 'http://x/mcp'\n",
	"dotted":         "results.preview = '1KB'\nlog.level = 'warn'\n\n# servers\n\nservers.fs.command = 'npx'\nservers.fs.tools.deny = ['x']\n",
	"inline":         "results = { preview = '1KB' }\nservers = { fs = { command = 'npx', tools = { deny = ['}'] } } }\nagents = {}\n",
	"quoted":         "[ \"results\" ] # here\n\"preview\" = '1KB'\n[servers . 'fs']\ncommand = 'npx'\n",
	"texts":          "[servers.fs]\ncommand = 'npx'\nargs = [\n  \"\"\"\nlisten = 1\n[results]\n# \\\"\"\" verbatim = 2\n\"\"\"\"\", # ]\n  '''\n#spool''',\n  'a # b', \"c ] \\\" d\",\n]\nenv = { A = '}', B = \"]\" }\n",
	"commented":      "#listen = \"127.0.0.1:1\"\n  # verbatim=true\nfail_open = true\n\n# [results]\n# preview = '1KB'\n\n#[servers.old]\n#command = 'old'\n[servers.fs]\ncommand = 'npx'\n# isolation = 'per_agent'\n",
	"prose":          "# [1] see below = nothing\n# call it = what you like\n\n[servers.fs]\ncommand = 'npx'\n# [results] are kept\n",
	"empty tables":   "[servers]\n[results]\n[agents]\n[log]",
	"byte order":     bom + "[servers.fs]\ncommand = 'npx'\n",
	"mixed ends":     "listen = ''\r\n\n[log]\nlevel = 'info'\r\n",
}

// allFiles are userFiles and those of testdata, with either end of line, with and
// without the last.
func allFiles(t testing.TB) map[string]string {
	all := map[string]string{"the defaults": string(config.DefaultFile())}
	for name, text := range userFiles {
		all[name] = text
	}
	for _, name := range []string{"empty", "everything", "forms", "no-agents", "warnings"} {
		all["testdata "+name] = readFile(t, "testdata/good/"+name+".toml")
	}
	for name, text := range maps.Clone(all) {
		crlf := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
		all[name+", CRLF"] = crlf
		all[name+", cut"] = strings.TrimRight(text, "\r\n")
		all[name+", CRLF, cut"] = strings.TrimRight(crlf, "\r\n")
	}
	return all
}

// additions are the lines of migrated that are not of text, by their number. What
// text has must be there in its order, byte for byte, but that a last line got its end
// and that a byte order mark stays in front.
func additions(t testing.TB, text, migrated string) map[int]bool {
	t.Helper()
	if strings.HasPrefix(text, bom) != strings.HasPrefix(migrated, bom) {
		t.Errorf("the byte order mark: %q became %q", text, migrated)
	}
	text, migrated = strings.TrimPrefix(text, bom), strings.TrimPrefix(migrated, bom)
	added, rest := map[int]bool{}, strings.SplitAfter(text, "\n")
	if last := len(rest) - 1; rest[last] == "" {
		rest = rest[:last]
	}
	for i, line := range strings.SplitAfter(migrated, "\n") {
		if len(rest) > 0 && (line == rest[0] || len(rest) == 1 && strings.TrimRight(line, "\r\n") == rest[0]) {
			rest = rest[1:]
		} else {
			added[i] = true
		}
	}
	if len(rest) > 0 {
		t.Errorf("lost or changed: %q in\n%s", rest, migrated)
	}
	return added
}

func sameConfig(t testing.TB, what, a, b string) {
	t.Helper()
	x, err := config.Parse("c.toml", []byte(a), testWorld())
	if err != nil {
		t.Fatal(what, err)
	}
	y, err := config.Parse("c.toml", []byte(b), testWorld())
	if err != nil {
		t.Errorf("%s: %v in\n%s", what, err, b)
		return
	}
	x.Sources, y.Sources, x.Warnings, y.Warnings = nil, nil, nil, nil
	if !reflect.DeepEqual(x, y) {
		t.Errorf("%s: the meaning changed from\n%s\nto\n%s", what, a, b)
	}
}

func TestMigrationOnlyAddsCommentsAndASecondOneNothing(t *testing.T) {
	for name, text := range allFiles(t) {
		migrated := migrate(t, text)
		sameConfig(t, name, text, migrated)
		lines := strings.SplitAfter(strings.TrimPrefix(migrated, bom), "\n")
		for i := range additions(t, text, migrated) {
			if line := strings.TrimRight(lines[i], "\r\n"); line != "" && line[0] != '#' {
				t.Errorf("%s: added %q", name, line)
			}
			if strings.Contains(text, "\r\n") && lines[i] != "" && !strings.HasSuffix(lines[i], "\r\n") {
				t.Errorf("%s: added %q", name, lines[i])
			}
		}
		if again := migrate(t, migrated); again != migrated {
			t.Errorf("%s: the second migration makes of\n%s\nthis\n%s", name, migrated, again)
		}
	}
}

func TestMigratedFileSpeaksOfEveryKey(t *testing.T) {
	for name, text := range userFiles {
		migrated := migrate(t, text)
		for _, key := range config.Keys() {
			last := key[strings.LastIndexByte(key, '.')+1:]
			if last == "allow" || last == "deny" { // within tools
				continue
			}
			if !regexp.MustCompile(`[\s#.{"]` + last + `["]?(\.\w+)*\s*=`).MatchString("\n" + migrated) {
				t.Errorf("%s: no %s in\n%s", name, key, migrated)
			}
		}
	}
}

// ownKey is an addition for the program itself, and not an example of a server or an
// agent.
var ownKey = regexp.MustCompile(`^#(\[(results|spool|log|debug)\]|[a-z_.]+ = )`)

var tableHeader = regexp.MustCompile(`^\s*(#*)\s*\[\s*"?(\w+)`)

// They are the defaults, so switching them on changes nothing, wherever they stand.
func TestAddedKeysWorkWhereTheyStand(t *testing.T) {
	for name, text := range allFiles(t) {
		if strings.HasPrefix(name, "inline") {
			continue // what is in braces cannot be added to, see below
		}
		migrated := migrate(t, text)
		added := additions(t, text, migrated)
		lines := strings.SplitAfter(strings.TrimPrefix(migrated, bom), "\n")
		example := false
		for i, line := range lines {
			if header := tableHeader.FindStringSubmatch(line); header != nil {
				commentedByUser := header[1] != "" && !added[i]
				example = commentedByUser || header[2] == "servers" || header[2] == "agents"
			}
			if added[i] && !example && ownKey.MatchString(line) {
				lines[i] = line[1:]
			}
		}
		sameConfig(t, name, text, strings.Join(lines, ""))
	}
}

func TestExamplesWorkOnceTheyAreSwitchedOn(t *testing.T) {
	migrated := migrate(t, "# nothing\n")
	c := parse(t, commented.ReplaceAllString(migrated, "$1"))
	if c.Servers["files"].Command != "npx" || c.Servers["docs"].URL == "" || c.Agents["codex"].Token == "" {
		t.Errorf("%+v", c)
	}
}

func TestTheDefaultsThemselvesLackNothing(t *testing.T) {
	text := string(config.DefaultFile())
	if migrated := migrate(t, text); migrated != text {
		t.Errorf("it became\n%s", migrated)
	}
}

// A file from before a key existed gets that key, with its comment, and nothing else.
func TestAFileFromBeforeAKeyGetsThatKey(t *testing.T) {
	defaults := string(config.DefaultFile())
	for _, v := range []struct{ old, want string }{
		{"# true = nothing is ever stored or cut, whatever its size.\nverbatim = false\n\n", "\n# true = nothing is ever stored or cut, whatever its size.\n#verbatim = false\n"},
		{"# true = an agent reads back only what it stored itself.\nowner_only = false\n\n", "\n# true = an agent reads back only what it stored itself.\n#owner_only = false\n"},
		{"#cwd = \"~\"\n", "#cwd = \"~\"\n"},
	} {
		before := strings.Replace(defaults, v.old, "", 1)
		migrated := migrate(t, before)
		added := additions(t, before, migrated)
		if migrated == before || len(added) > 5 || !strings.Contains(migrated, v.want) {
			t.Errorf("without %q: %d lines added to\n%s", v.old, len(added), migrated)
		}
	}
}

func TestWhereAddedKeysStand(t *testing.T) {
	const text = `# About my hub.

verbatim = false

# The servers.
[servers.fs]
command = "npx"

[results]
preview = "1KB"
[log]
level = "info"
`
	migrated := migrate(t, text)
	order := []string{
		"# About my hub.\n\nverbatim = false\n\n# Where agents attach", "#listen = ", "#drain_timeout = ",
		"#[spool]\n", "#max_bytes = \"2GB\"\n\n#[debug]\n", "#token = \"\"\n\n# The servers.\n[servers.fs]\ncommand = \"npx\"\n\n[results]\npreview = \"1KB\"\n\n# true = an agent",
		"#owner_only = false\n\n[log]\nlevel = \"info\"\n\n", "#[servers.files]\n", "#[agents.codex]\n", "#token = ",
	}
	rest := migrated
	for _, part := range order {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is missing, or not where it should be, in\n%s", part, migrated)
		}
		rest = after
	}
	if strings.Contains(migrated, "#[results]") || strings.Contains(migrated, "#[log]") || strings.Contains(migrated, "#verbatim") {
		t.Errorf("what is there is added once more:\n%s", migrated)
	}
}

func TestKeysOfADottedTableAreAddedDotted(t *testing.T) {
	migrated := migrate(t, "results.preview = '1KB'\n[servers.fs]\ncommand = 'npx'\n")
	if !strings.Contains(migrated, "\n#results.owner_only = false\n") || strings.Contains(migrated, "#[results]") {
		t.Error(migrated)
	}
	sameConfig(t, "switched on", "results.preview = '1KB'\n[servers.fs]\ncommand = 'npx'\n", strings.Replace(migrated, "#results.", "results.", 1))
}

func TestMigrationRefusesWhatIsInvalid(t *testing.T) {
	_, err := config.Migrate("c.toml", []byte("lisen = ''\n"), config.Env{})
	if problems, ok := err.(*config.Error); !ok || problems.Problems[0].Key != "lisen" {
		t.Errorf("%v", err)
	}
}

func FuzzMigrationKeepsTheMeaningAndIsIdempotent(f *testing.F) {
	for _, text := range userFiles {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		migrated, err := config.Migrate("c.toml", []byte(text), testWorld())
		if err != nil {
			if strings.Contains(err.Error(), "is a bug") {
				t.Errorf("%v: %q", err, text)
			}
			return
		}
		sameConfig(t, "migrated", text, string(migrated))
		again, err := config.Migrate("c.toml", migrated, testWorld())
		if err != nil || string(again) != string(migrated) {
			t.Errorf("%v: %q is not stable", err, text)
		}
		additions(t, text, string(migrated))
	})
}
