package catalog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"
)

func TestC63EntriesOfAllListsKeepTheirBytesButForTheName(t *testing.T) {
	pages := [][]byte{
		[]byte("{\"prompts\":[ {\"title\":\"T\",\"name\":\"p/1\",\n\"_meta\":{\"n\":9007199254740993},\"icons\":[{\"src\":\"data:,\"}],\"future\":[1.0]} ]}"),
		[]byte(`{"prompts":[{"name":"b"},{"name":"b","second":1},{"name":7},{"noname":1},5]}`),
	}
	prompts, bad := ParsePrompts(pages)
	if len(prompts) != 2 || len(bad) != 4 {
		t.Fatalf("%d prompts, bad: %v", len(prompts), bad)
	}
	c := BuildPrompts(map[string][]Prompt{"d": prompts})
	got := string(c.List(Scope{}))
	want := regexp.MustCompile(`^\[\{"name":"d__b"\},\{"title":"T","name":"d__p_1_[0-9a-f]{8}", "_meta":\{"n":9007199254740993\},"icons":\[\{"src":"data:,"\}\],"future":\[1.0\]\}\]$`)
	if !want.MatchString(got) {
		t.Errorf("list %s", got)
	}
	for _, p := range prompts {
		e, ok := c.Find("d", p.Name())
		if back, found := c.Lookup(e.Exposed); !ok || !found || back.Prompt != p.Name() {
			t.Errorf("%q is exposed as %q, which leads to %+v", p.Name(), e.Exposed, back)
		}
	}
	resources, bad := ParseResources([][]byte{[]byte(`{"resources":[{"size":1.0,"uri":"a:b?c#d","annotations":{"x":-0}}, {"uri":"\ud800"}, {"uri":""}]}`)})
	if len(resources) != 1 || len(bad) != 2 {
		t.Fatalf("%d resources, bad: %v", len(resources), bad)
	}
	o := BuildResources(map[string]*Offer{"d": {Resources: resources}})
	if got, want := string(o.List(Scope{}, nil)), `[{"size":1.0,"uri":"mcphub://d/a:b?c#d","annotations":{"x":-0}}]`; got != want {
		t.Errorf("list %s", got)
	}
}

func TestC87AServersOwnURILeadsToWhoListedItThenToWhoHasATemplate(t *testing.T) {
	resources, _ := ParseResources([][]byte{[]byte(`{"resources":[{"uri":"file:///readme"}]}`)})
	templates, _ := ParseTemplates([][]byte{[]byte(`{"resourceTemplates":[{"uriTemplate":"file:///{path}"}]}`)})
	c := BuildResources(map[string]*Offer{"d1": {Resources: resources}, "d2": {Templates: templates}, "d3": {Resources: resources}})
	for _, want := range []struct {
		scope  Scope
		uri    string
		owners []string
	}{
		{Scope{}, "file:///readme", []string{"d1", "d3"}},
		{Scope{}, "file:///other", []string{"d2"}},
		{Scope{}, "file:///{path}", []string{"d2"}},
		{Scope{}, "file:///a/b", nil},
		{Scope{Servers: []string{"d2"}}, "file:///readme", []string{"d2"}},
		{Scope{Tools: []string{"d3__*"}}, "file:///readme", []string{"d3"}},
		{Scope{Tools: []string{}}, "file:///readme", nil},
	} {
		if got := c.Owners(want.scope, want.uri); !slices.Equal(got, want.owners) {
			t.Errorf("%s for %+v: %q, want %q", want.uri, want.scope, got, want.owners)
		}
	}
}

func TestScopeOfToolsDecidesWhoseResourcesAreReached(t *testing.T) {
	for _, c := range []struct {
		tools []string
		want  bool
	}{
		{nil, true}, {[]string{}, false}, {[]string{"*"}, true}, {[]string{"d__*"}, true}, {[]string{"d__read"}, true},
		{[]string{"?__x"}, true}, {[]string{"e__*"}, false}, {[]string{"d"}, false}, {[]string{"dd__*"}, false}, {[]string{"d*"}, true},
	} {
		if got := (Scope{Tools: c.tools}).Touches("d"); got != c.want {
			t.Errorf("tools = %q touches d: %v", c.tools, got)
		}
	}
}

// FuzzResourceURIsComeApart: a uri of ours leads back to server and uri, and no two
// pairs share one. Server names are those that a configuration takes.
func FuzzResourceURIsComeApart(f *testing.F) {
	f.Add("d", "file:///a/b?c#d", "e", "x")
	f.Add("a-b", "mcphub://c/d", "a", "/")
	valid := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	f.Fuzz(func(t *testing.T, s1, u1, s2, u2 string) {
		if !valid.MatchString(s1) || !valid.MatchString(s2) || u1 == "" || u2 == "" {
			return
		}
		one, two := ResourceURI(s1, u1), ResourceURI(s2, u2)
		if s, u, ok := SplitURI(one); !ok || s != s1 || u != u1 {
			t.Fatalf("%q came apart as %q %q", one, s, u)
		}
		if one == two && (s1 != s2 || u1 != u2) {
			t.Fatalf("%q and %q share %q", s1+" "+u1, s2+" "+u2, one)
		}
	})
}

// FuzzTemplatesMatchTheirExpansions: what a client makes of a template is matched by
// it, also under the gateway's own uri, which is a template as well.
func FuzzTemplatesMatchTheirExpansions(f *testing.F) {
	for _, t := range []string{"file:///{path}", "a:{+x}/b{?y}", "x:{#y}", "x:/{/x}{.y}{;x}{&y}", "a{b", "plain"} {
		f.Add(t, "value", "ü/ ?&=")
	}
	f.Fuzz(func(t *testing.T, text, x, y string) {
		template, err := uritemplate.New(text)
		if err != nil {
			return
		}
		page, _ := jsontext.AppendQuote([]byte(`{"resourceTemplates":[{"uriTemplate":`), text)
		all, _ := ParseTemplates([][]byte{append(page, "}]}"...)})
		if len(all) != 1 {
			return
		}
		values := uritemplate.Values{}
		for i, name := range template.Varnames() {
			values.Set(name, uritemplate.String([]string{x, y}[i%2]))
		}
		uri, err := template.Expand(values)
		if err != nil || uri == "" || len(template.Varnames()) == 0 {
			return
		}
		if !all[0].Matches(uri) {
			t.Fatalf("%q expands to %q, which does not match", text, uri)
		}
		exposed, err := uritemplate.New(ResourceURI("d", text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := exposed.Expand(values); err != nil || got != ResourceURI("d", uri) {
			t.Fatalf("%q under its own uri expands to %q, want %q (%v)", text, got, ResourceURI("d", uri), err)
		}
	})
}

// FuzzInstructionsFit: whatever servers say, the whole is bounded, whole characters,
// begins with our own, and tells of every server that is not there in full.
func FuzzInstructionsFit(f *testing.F) {
	f.Add("short", strings.Repeat("é", 2000), uint8(3))
	f.Add("\xff", "", uint8(200))
	f.Fuzz(func(t *testing.T, a, b string, n uint8) {
		var said []Said
		for i := range int(n) {
			said = append(said, Said{fmt.Sprintf("s%d", i), a}, Said{fmt.Sprintf("%s%d", strings.Repeat("t", 36), i), b})
		}
		own := "Our own."
		text, cut := Instructions(own, said)
		if len(text) > MaxInstructions || !utf8.ValidString(text) || !strings.HasPrefix(text, own) {
			t.Fatalf("%d bytes: %q", len(text), text)
		}
		for _, s := range said {
			whole := strings.TrimSpace(strings.ToValidUTF8(s.Text, "\uFFFD"))
			if !slices.Contains(cut, s.Server) && !strings.Contains(text, whole) {
				t.Fatalf("%s is neither whole nor cut: %q", s.Server, text)
			}
		}
	})
}

// FuzzListsOfEntriesAreValid: whatever a server lists, what agents get is valid JSON.
func FuzzListsOfEntriesAreValid(f *testing.F) {
	f.Add([]byte(`{"prompts":[{"name":"a"}],"resources":[{"uri":"a:b"}],"resourceTemplates":[{"uriTemplate":"{a}"}]}`))
	f.Fuzz(func(t *testing.T, page []byte) {
		p, _ := ParsePrompts([][]byte{page})
		r, _ := ParseResources([][]byte{page})
		m, _ := ParseTemplates([][]byte{page})
		prompts, offers := BuildPrompts(map[string][]Prompt{"d": p}), BuildResources(map[string]*Offer{"d": {r, m}})
		rs, ts := offers.ListOf("d")
		for _, list := range [][]byte{prompts.List(Scope{}), prompts.ListOf("d", Scope{}), offers.List(Scope{}, nil), offers.Templates(Scope{}), rs, ts} {
			if !jsontext.Value(list).IsValid(jsontext.AllowDuplicateNames(true)) || bytes.ContainsAny(list, "\r\n") {
				t.Fatalf("%q", list)
			}
		}
	})
}
