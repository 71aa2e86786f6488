package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var valid = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// serverOf is a server with tools of these names.
func serverOf(name string, tools ...string) Server {
	entries := make([]string, len(tools))
	for i, t := range tools {
		entries[i] = entry(t, "")
	}
	parsed, _ := ParseTools([][]byte{page(entries...)})
	return Server{Name: name, Tools: parsed}
}

// exposed maps server and tool to the exposed name.
func exposed(c *Catalog) map[[2]string]string {
	out := map[[2]string]string{}
	for _, e := range c.Entries() {
		out[[2]string{e.Server, e.Tool}] = e.Exposed
	}
	return out
}

func TestC39NoPairIsTakenForAnother(t *testing.T) {
	servers := []Server{serverOf("acme", "_status"), serverOf("acme_", "status"), serverOf("a__b", "c"), serverOf("a", "b__c"), serverOf("d", "x__y__z")}
	c := Build(servers)
	got := exposed(c)
	for pair, want := range map[[2]string]string{
		{"acme", "_status"}: "acme___status", {"a", "b__c"}: "a__b__c", {"d", "x__y__z"}: "d__x__y__z",
	} {
		if got[pair] != want {
			t.Errorf("%v is exposed as %s", pair, got[pair])
		}
	}
	for pair, name := range got {
		if e, ok := c.Lookup(name); !ok || e.Server != pair[0] || e.Tool != pair[1] {
			t.Errorf("%s reaches %+v, not %v", name, e, pair)
		}
		for _, alone := range servers {
			if n, ok := exposed(Build([]Server{alone}))[pair]; ok && n != name {
				t.Errorf("%v is %s alone and %s in company", pair, n, name)
			}
		}
	}
	if len(got) != 5 {
		t.Errorf("names %v", got)
	}
}

func TestC53OddNamesAreMappedAndStayVisible(t *testing.T) {
	odd := []string{"calendar.read", "Create Share Now", "files/read", "café", "restart.jsV1", "🚀"}
	c := Build([]Server{serverOf("Cloud MCP (prod)", odd...), serverOf("plain", "tool")})
	var list []struct{ Name, Title string }
	if err := json.Unmarshal(c.List(Scope{}, nil, nil), &list); err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, e := range list {
		if !valid.MatchString(e.Name) {
			t.Errorf("name %q", e.Name)
		}
		if got, ok := c.Lookup(e.Name); !ok || e.Title != "" && got.Tool != e.Title {
			t.Errorf("%q reaches %q, title %q", e.Name, got.Tool, e.Title)
		}
		titles = append(titles, e.Title)
	}
	slices.Sort(odd)
	if !slices.Equal(titles, append(odd, "")) {
		t.Errorf("titles %q", titles)
	}
}

// TestTitleOfTheServerStays, and the description tells the name that was changed.
func TestTitleOfTheServerStays(t *testing.T) {
	for _, more := range []string{`,"title":"T"`, `,"annotations":{"title":"T"}`} {
		tools, _ := ParseTools([][]byte{page(entry("a.b", more))})
		list := string(Build([]Server{{"s", tools}}).List(Scope{}, nil, nil))
		if !strings.Contains(list, more+"}]") || strings.Count(list, "title") != 1 || !strings.Contains(list, `"description":"Tool a.b of s. "`) {
			t.Errorf("list %s", list)
		}
	}
}

func TestC29LongNamesAreShortenedToTheSameEveryTime(t *testing.T) {
	server := "enterprise-cost-report-service"
	var tools []string
	for _, n := range []int{20, 32, 33, 45, 64, 128} {
		tools = append(tools, strings.Repeat("t", n))
	}
	c := Build([]Server{serverOf(server, tools...)})
	seen := map[string]bool{}
	for _, e := range c.Entries() {
		if !valid.MatchString(e.Exposed) || seen[e.Exposed] {
			t.Errorf("name %q", e.Exposed)
		}
		seen[e.Exposed] = true
		if plain := server + "__" + e.Tool; len(plain) <= 64 != (e.Exposed == plain) {
			t.Errorf("%d characters are exposed as %q", len(plain), e.Exposed)
		}
	}
	// Names are promises to agents' configurations: they may not change with a release.
	if e, ok := c.Lookup("enterprise-cost-report-service__ttttttttttttttttttttttt_0ba791bc"); !ok || len(e.Tool) != 45 {
		t.Errorf("the name of a long tool changed: %v", exposed(c))
	}
}

// TestC29ShorterNamesFitAndLeadToTheSame for every length that can be configured, do not
// depend on what else there is, and tell the whole name in the description.
func TestC29ShorterNamesFitAndLeadToTheSame(t *testing.T) {
	var tools []string
	for _, n := range []int{1, 5, 20, 33, 45, 64, 128} {
		tools = append(tools, strings.Repeat("t", n), strings.Repeat("ü", n))
	}
	servers := []Server{serverOf("enterprise-cost-report-service", tools...), serverOf("d", tools...), serverOf("d_", tools...)}
	whole := Build(servers)
	for longest := 16; longest < MaxName; longest++ {
		c := whole.Within(longest)
		alone := exposed(Build(servers[:1]))
		for i, e := range c.Entries() {
			if len(e.Shown) > longest || !valid.MatchString(e.Shown) {
				t.Errorf("%d: name %q", longest, e.Shown)
			}
			if got, ok := c.Lookup(e.Shown); !ok || got != e || e.Exposed != whole.Entries()[i].Exposed {
				t.Errorf("%d: %q reaches %+v, not %+v", longest, e.Shown, got, e)
			}
			if e.Server == servers[0].Name && alone[[2]string{e.Server, e.Tool}] != e.Exposed {
				t.Errorf("%d: the common name %q depends on company", longest, e.Exposed)
			}
			if !CanBe(e.Shown, e.Server, longest) {
				t.Errorf("%d: %q is not taken for a tool of %s", longest, e.Shown, e.Server)
			}
		}
		var list []struct{ Name, Description string }
		if err := json.Unmarshal(c.List(Scope{}, nil, nil), &list); err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			e, _ := c.Lookup(l.Name)
			if cut := len(mapped(e.Server)+"__"+mapped(e.Tool)) > longest; cut && l.Description != "Tool "+e.Tool+" of "+e.Server+". " {
				t.Errorf("%d: %q is described as %q", longest, l.Name, l.Description)
			}
		}
	}
	// These are promises too, to what models have in their context.
	if e, ok := whole.Within(41).Lookup("enterprise-cost-report-service___0ba791bc"); !ok || len(e.Tool) != 45 {
		t.Errorf("the short name of a long tool changed: %v", whole.Within(41).Entries())
	}
}

// TestTheWholeNameStandsInFrontOfADescription, of whatever kind that is.
func TestTheWholeNameStandsInFrontOfADescription(t *testing.T) {
	long := strings.Repeat("t", 100)
	for was, want := range map[string]string{
		"": `Tool ` + long + ` of s. `, `,"description":"Does \"it\"."`: `Tool ` + long + ` of s. Does "it".`, `,"description":null`: `Tool ` + long + ` of s. `,
		`,"description":""`: `Tool ` + long + ` of s. `,
	} {
		tools, _ := ParseTools([][]byte{page(`{"name":"` + long + `"` + was + `,"inputSchema":{"type":"object"}}`)})
		var list []struct{ Description string }
		if err := json.Unmarshal(Build([]Server{{"s", tools}}).List(Scope{}, nil, nil), &list); err != nil || list[0].Description != want {
			t.Errorf("%s becomes %v, %v", was, list, err)
		}
	}
	huge := strings.Repeat("d", 2*maxDescription)
	tools, _ := ParseTools([][]byte{page(`{"name":"` + long + `","description":"` + huge + `","inputSchema":{"type":"object"}}`)})
	list := string(Build([]Server{{"s", tools}}).List(Scope{}, nil, nil))
	if !strings.Contains(list, `"description":"Tool `+long+` of s. ddd`) || len(list) > maxDescription+1000 || !json.Valid([]byte(list)) {
		t.Errorf("%.300s", list)
	}
}

func TestNamesMadeToCollideAreToldApart(t *testing.T) {
	long := strings.Repeat("x", 100)
	taken := exposed(Build([]Server{serverOf("a", long)}))[[2]string{"a", long}]
	squat := strings.TrimPrefix(taken, "a__")
	for range 10 {
		servers := []Server{serverOf("a", long, squat), serverOf("b", "t")}
		rand.Shuffle(2, func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		c := Build(servers)
		got := exposed(c)
		if got[[2]string{"a", squat}] != taken || got[[2]string{"a", long}] == taken || len(got[[2]string{"a", long}]) != 64 {
			t.Fatalf("names %v", got)
		}
	}
}

func TestOwnToolsCannotBeTakenOver(t *testing.T) {
	c := Build([]Server{serverOf("mcphub", "get_result", "read_result", "other")})
	for _, name := range []string{"mcphub_get_result", "get_result", "mcphub__get_result", "mcphub_read_result", "mcphub__read_result"} {
		if e, ok := c.Lookup(name); ok {
			t.Errorf("%s reaches %+v", name, e)
		}
	}
	if _, ok := c.Lookup("mcphub__other"); !ok || len(c.Entries()) != 3 {
		t.Errorf("names %v", exposed(c))
	}
	for _, name := range []string{"mcphub_get_result", "get_result", "mcphub__get_result"} {
		if canonical, ok := OwnTool(name); !ok || canonical != GetResult {
			t.Errorf("%s is %q", name, canonical)
		}
	}
	if _, ok := OwnTool("fs__get_result"); ok {
		t.Error("a server's tool is taken for ours")
	}
}

func TestOwnToolsAreEntriesThatWeWouldAcceptOurselves(t *testing.T) {
	var entries []string
	for _, o := range OwnTools(MaxName) {
		entries = append(entries, string(o))
	}
	tools, bad := ParseTools([][]byte{page(entries...)})
	if len(bad) > 0 || !slices.Equal(names(tools), []string{ReadResult, GetResult}) || !tools[0].ReadOnly || !tools[1].ReadOnly {
		t.Errorf("tools %v, bad %v", names(tools), bad)
	}
}

func TestC63EntriesAreCarriedAsTheyWereWrittenButForTheName(t *testing.T) {
	raw := `{ "title":"T", "name" : "t","description":"<x> & \u2028 é","inputSchema":{"type":"object","$defs":{"n":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/n"}},"x-vendor":1},` +
		`"annotations":{"destructiveHint":true,"x":2},"icons":[{"src":"data:,"}],"_meta":{"anthropic/maxResultSizeChars":200000,"k":{"n":9007199254740993}},"futureField":[1],"futureField":[1.0]}`
	tools, bad := ParseTools([][]byte{page(raw)})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	list := string(Build([]Server{{"s", tools}}).List(Scope{}, nil, nil))
	if want := "[" + strings.Replace(raw, `"name" : "t"`, `"name" : "s__t"`, 1) + "]"; list != want {
		t.Errorf("got  %s\nwant %s", list, want)
	}
}

func TestOutputSchemaIsCutWithItsComma(t *testing.T) {
	const schema = `"outputSchema":{"type":"object","properties":{"name":{"type":"string"}}}`
	for in, want := range map[string]string{
		`{"name":"t","inputSchema":{"type":"object"}, ` + schema + ` }`:             `{"name":"s__t","inputSchema":{"type":"object"} }`,
		`{ ` + schema + ` , "name":"t","inputSchema":{"type":"object"}}`:            `{ "name":"s__t","inputSchema":{"type":"object"}}`,
		`{"name":"t" ,` + schema + `,"inputSchema":{"type":"object"}}`:              `{"name":"s__t","inputSchema":{"type":"object"}}`,
		`{"name":"t","inputSchema":{"type":"object"},"_meta":{` + schema + `}}`:     `{"name":"s__t","inputSchema":{"type":"object"},"_meta":{` + schema + `}}`,
		`{"name":"t","output\u0053chema":{},"inputSchema":{"type":"object"},"z":1}`: `{"name":"s__t","inputSchema":{"type":"object"},"z":1}`,
	} {
		tools, _ := ParseTools([][]byte{page(in)})
		c := Build([]Server{{"s", tools}})
		if got := c.List(Scope{}, nil, func(Entry) Output { return StripSchema }); string(got) != "["+want+"]" {
			t.Errorf("%s\ngot  %s\nwant [%s]", in, got, want)
		}
	}
}

func TestC105ListIsTheSameBytesInWhateverOrderServersCome(t *testing.T) {
	var servers []Server
	for i := range 10 {
		var tools []string
		for j := range 20 {
			tools = append(tools, fmt.Sprintf("tool.%d", j), fmt.Sprintf("tool_%d", j))
		}
		servers = append(servers, serverOf(fmt.Sprintf("server%d", i), tools...))
	}
	first := Build(servers).List(Scope{}, OwnTools(MaxName), nil)
	for range 100 {
		rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		tools := servers[0].Tools
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		if again := Build(servers).List(Scope{}, OwnTools(MaxName), nil); string(again) != string(first) {
			t.Fatal("the same tools give another list")
		}
	}
}

func TestListShowsWhatTheScopeSeesAndOwnToolsAlways(t *testing.T) {
	c := Build([]Server{serverOf("fs", "read", "write"), serverOf("git", "log")})
	for _, s := range []struct {
		Scope
		want string
	}{
		{Scope{}, "fs__read fs__write git__log own"},
		{Scope{Servers: []string{"fs"}}, "fs__read fs__write own"},
		{Scope{Servers: []string{}}, "own"},
		{Scope{Tools: []string{}}, "own"},
		{Scope{Tools: []string{"fs__read", "git__log"}, Servers: []string{"git", "gone"}}, "git__log own"},
		{Scope{Tools: []string{"fs__*"}}, "fs__read fs__write own"},
	} {
		var list []struct{ Name string }
		if err := json.Unmarshal(c.List(s.Scope, [][]byte{[]byte(`{"name":"own"}`)}, nil), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, e.Name)
		}
		if strings.Join(got, " ") != s.want {
			t.Errorf("%+v sees %v", s.Scope, got)
		}
	}
	if got := string(Build(nil).List(Scope{}, nil, nil)); got != "[]" {
		t.Errorf("an empty list is %s", got)
	}
}

func TestFilterIsOnTheServersOwnNamesAndDenyWins(t *testing.T) {
	for _, c := range []struct {
		allow, deny []string
		tool        string
		want        bool
	}{
		{nil, nil, "a", true},
		{[]string{}, nil, "a", false},
		{[]string{"*"}, []string{"write_*"}, "write_file", false},
		{[]string{"*"}, []string{"write_*"}, "read_file", true},
		{[]string{"read"}, nil, "reads", false},
		{nil, []string{"*"}, "files/write", false},
		{nil, []string{"*.delete"}, "a/b.delete", false},
		{[]string{"*"}, []string{}, "a", true},
		{[]string{"a*b*c"}, nil, "aXbXbc", true},
		{[]string{"?"}, nil, "é", true},
		{[]string{"[a"}, nil, "[a", true},
	} {
		if got := Allowed(c.allow, c.deny, c.tool); got != c.want {
			t.Errorf("allow %q deny %q: %q is %v", c.allow, c.deny, c.tool, got)
		}
	}
}

// FuzzNamesAreUnique: names are valid, unique, found again, and do not depend on
// order; nor on company, as long as no tool is named like a shortened name.
func FuzzNamesAreUnique(f *testing.F) {
	f.Add("a", "b__c", "a__b", "c", "acme_", "status", uint8(0))
	f.Add("x.y", "t", "x_y", "t", "x y", "t", uint8(200))
	f.Add("mcphub", "get_result", "", "", "s", "\xff😀", uint8(1))
	hashed := regexp.MustCompile(`_[0-9a-f]{8,}$`)
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2, s3, t3 string, more uint8) {
		tools := func(n string) []Tool {
			return []Tool{{Name: n}, {Name: n + strings.Repeat("_", int(more))}, {Name: n + "_" + n}}
		}
		servers := []Server{{s1, tools(t1)}, {s2, tools(t2)}, {s3, tools(t3)}}
		c := Build(servers)
		all := exposed(c)
		seen := map[string]bool{}
		for pair, name := range all {
			e, ok := c.Lookup(name)
			if !valid.MatchString(name) || seen[name] || !ok || e.Server != pair[0] || e.Tool != pair[1] || Reserved(name) {
				t.Fatalf("%q for %q", name, pair)
			}
			seen[name] = true
		}
		slices.Reverse(servers)
		for pair, name := range exposed(Build(servers)) {
			if all[pair] != name {
				t.Fatalf("%q is %q or %q, by order", pair, name, all[pair])
			}
		}
		if hashed.MatchString(t1) || hashed.MatchString(t2) || hashed.MatchString(t3) {
			return
		}
		for _, alone := range servers {
			for pair, name := range exposed(Build([]Server{alone})) {
				if all[pair] != name && alone.Name != "" {
					t.Fatalf("%q is %q alone and %q in company", pair, name, all[pair])
				}
			}
		}
	})
}

func BenchmarkList(b *testing.B) {
	var servers []Server
	for i := range 10 {
		var entries []string
		for j := range 40 {
			entries = append(entries, entry(fmt.Sprintf("tool%d", j), `,"description":"`+strings.Repeat("d", 2000)+`"`))
		}
		tools, _ := ParseTools([][]byte{page(entries...)})
		servers = append(servers, Server{fmt.Sprintf("server%d", i), tools})
	}
	c := Build(servers)
	for b.Loop() {
		b.SetBytes(int64(len(c.List(Scope{}, OwnTools(MaxName), nil))))
	}
}
