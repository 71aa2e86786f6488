package excerpt

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// FuzzGrepFindsWhatRegexpFinds: the lines that are shown are those that match, one by
// one, whatever is done to find them sooner.
func FuzzGrepFindsWhatRegexpFinds(f *testing.F) {
	text := "Error: disk\nall WELL\nmaſter \u212Aelvin Kelvin\n\nerror\tagain\r\nx.y\naab\n"
	for _, p := range []string{"error", "(?i)error", "(?i)kelvin", "(?i)master", "k[a-z]+n", "^$", "\\bdisk$", "(?i)well|x", "a{2}b", "(ab)+", "\\.", "[^a]\\n", "(?s).*", "(?i:ERR)or"} {
		f.Add(text, p)
	}
	f.Fuzz(func(t *testing.T, text, pattern string) {
		re, err := regexp.Compile(pattern)
		raw := textResult(text)
		d := deskOf(t, raw, 0)
		if err != nil || len(pattern) > 200 || pattern == "" || len(text) > 50_000 {
			return
		}
		doc, v, err := d.reading.view(partAuto)
		if err != nil || doc.as != "text" {
			return
		}
		all := string(cursorAt(v, d.reading.Src, 0).take(nil, int(v.n)))
		var want, got []string
		for i, l := range strings.Split(strings.TrimSuffix(all, "\n"), "\n") {
			if v.n > 0 && re.MatchString(strings.TrimSuffix(l, "\r")) {
				want = append(want, fmt.Sprint(i+1))
			}
		}
		for _, page := range d.all(string(append(append([]byte(`{"grep":`), quoted(pattern)...), '}'))) {
			for l := range strings.Lines(page) {
				n := l[:strings.IndexAny(l, ":@")]
				if len(got) == 0 || got[len(got)-1] != n { // a long line is shown in pieces
					got = append(got, n)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("grep %q in %q: lines %v, want %v", pattern, all, got, want)
		}
	})
}

func TestLiteralsAreInEveryMatch(t *testing.T) {
	for pattern, want := range map[string]string{
		"error": "error", "(?i)ErrOr": "error", "(?i)disk": "di", "a|b": "", "(abc)+x?": "abc", "(abc){0,3}": "", "(abc){2}": "abc", "x.*hello": "hello", "(?i)ÄÖab": "ab",
	} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if l := literalOf(tree); string(l.text) != want {
			t.Errorf("%s: %q, want %q", pattern, l.text, want)
		}
	}
}
