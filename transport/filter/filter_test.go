package filter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mcphubd/transport/filter"
)

// TestMain makes the test binary what the daemon is: able to be its own child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case filter.Command:
			if !filter.Work(os.Stdin, os.Stdout, os.Stderr) {
				os.Exit(1)
			}
			os.Exit(0)
		case daemonCommand:
			beDaemon()
		}
	}
	os.Exit(m.Run())
}

// patient is a Filter with the usual limits but that of time, for a busy machine is slow.
func patient(o filter.Options) *filter.Filter {
	if o.Wall == 0 {
		o.Wall = time.Minute
	}
	return filter.New(o)
}

// jq runs program over doc.
func jq(t *testing.T, program, doc string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := patient(filter.Options{}).Run(t.Context(), program, strings.NewReader(doc), &out)
	return out.String(), err
}

const issues = `{"total":2,"items":[{"id":1,"title":"one","user":{"login":"a"}},{"id":2,"title":"two","user":{"login":"b"}}],"empty":[],"none":null}`

func TestResultsComeCompactAndAValueALine(t *testing.T) {
	for _, v := range []struct{ program, doc, want string }{
		{".items[].title", issues, "\"one\"\n\"two\"\n"},
		{".items[0]", issues, `{"id":1,"title":"one","user":{"login":"a"}}` + "\n"},
		{"empty", issues, ""},
		{".", "", ""},
		{".", "\"<é\u2028>\\n\"", "\"<é\u2028>\\n\"\n"},
		{".a", "{\"a\":1}\n{\"a\":2}\n", "1\n2\n"},
		{`.a`, `{"a":1,"a":2}`, "2\n"},
		{"limit(2; repeat(1))", "null", "1\n1\n"},
		{"first(range(1e12))", "null", "0\n"},
		{`getpath(["items",1,"user","login"])`, issues, "\"b\"\n"},
		{"[.items[] | select(.id > 1)] | length", issues, "1\n"},
		{"reduce range(100000) as $i (0; . + $i)", "null", "4999950000\n"},
		{"[recurse(if . < 20000 then .+1 else empty end)] | length", "0", "20001\n"},
		{"1, halt, 2", "null", "1\n"},
		{"nan", "null", "null\n"},
		{"[env, $ENV]", "null", "[{},{}]\n"},
		{`"YWJj" | @base64d`, "null", "\"abc\"\n"},
		{"0 | localtime | mktime", "null", "0\n"},
	} {
		got, err := jq(t, v.program, v.doc)
		if err != nil || got != v.want {
			t.Errorf("%s over %.40s gives %q, %v; want %q", v.program, v.doc, got, err, v.want)
		}
	}
}

func TestNumbersThatArePassedOnKeepTheirSpelling(t *testing.T) {
	const doc = `[9007199254740993,1.0,1e400,-0,-0.0,0.10,1E2,123456789012345678901234567890,0.1234567890123456789]`
	if got, err := jq(t, ".", doc); err != nil || got != doc+"\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, v := range []struct{ program, doc, want string }{
		{". + 1", "9007199254740993", "9007199254740994\n"},
		{". + 1", "9223372036854775807", "9223372036854775808\n"},
		{". * 10", "123456789012345678901234567890", "1234567890123456789012345678900\n"},
		{". == 9007199254740992", "9007199254740993", "false\n"},
		{"[.[] | tostring]", "[1.0,1e400]", `["1.0","1e400"]` + "\n"},
	} {
		if got, err := jq(t, v.program, v.doc); err != nil || got != v.want {
			t.Errorf("%s over %s gives %q, %v; want %q", v.program, v.doc, got, err, v.want)
		}
	}
	for _, program := range []string{". * 10", "{a: [. + 1]}", "infinite"} {
		if got, err := jq(t, program, "1e400"); err == nil || !strings.Contains(err.Error(), "larger than a 64-bit float") {
			t.Errorf("%s over 1e400 gives %q, %v", program, got, err)
		}
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	for _, v := range []struct{ program, doc, want string }{
		{".a |", issues, "at line 1, column 5: unexpected EOF"},
		{".a\n| ü é ) x", issues, "at line 2, column 3: "},
		{".items[ | 1", issues, `at line 1, column 9: unexpected token "|"`},
		{"foo(1)", issues, "function not defined: foo/1"},
		{"$nope", issues, "variable not defined: $nope"},
		{"$__loc__", issues, "variable not defined: $__loc__"},
		{`"MFRGG===" | @base32d`, issues, "format not defined: @base32d"},
		{"input", issues, "the document is . already"},
		{"[inputs]", issues, "the document is . already"},
		{"input_filename", issues, "function not defined"},
		{`import "a" as a; .`, issues, "module"},
		{`include "a"; .`, issues, "module"},
		{`"a" | modulemeta`, issues, "module"},
		{`error("own words")`, issues, "own words"},
		{`"bye" | halt_error`, issues, "bye"},
		{".", "plain text", "not JSON"},
		{".", `{"a":`, "not JSON"},
		{".", `[1,2`, "not JSON"},
		{".", strings.Repeat("[", 20_000), "not JSON"},
	} {
		got, err := jq(t, v.program, v.doc)
		if err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s over %.40s gives %q, %v; want %q", v.program, v.doc, got, err, v.want)
		}
	}
}

func TestAnErrorNamesTheKeysThatExist(t *testing.T) {
	for _, v := range []struct{ program, doc, want string }{
		{".itmes[]", issues, `. has no key "itmes" but the keys empty, items, none, total`},
		{`.["itmes"][]`, issues, `. has no key "itmes" but the keys empty, items, none, total`},
		{`."itmes" | .[]`, issues, `. has no key "itmes" but`},
		{".items[].labels[]", issues, `.items[] has no key "labels" but the keys id, title, user`},
		{".items[0].user.name | test(\"x\")", issues, `.items[].user has no key "name" but the keys login`},
		{".items | map(.name | ltrimstr(1) | explode)", issues, `.items[] has no key "name" but the keys id, title, user`},
		{"[.items[] | select(.nam | test(\"x\"))]", issues, `.items[] has no key "nam" but`},
		{".items as $x | $x[].title + .totl.x + 1", issues, `. has no key "totl" but`},
		{".items | sort_by(.id) | .[].tags[]", issues, `.items[] has no key "tags" but`},
		{".items.title", issues, ".items is an array, take its elements with []; the first has the keys id, title, user"},
		{".none[]", issues, "the document has the keys empty, items, none, total"},
		{".x", `[{"b":1},{"c":1}]`, ". is an array, take its elements with []; the first has the keys b"},
		{".result.items[]", `{"result":" {\"items\":[1]}"}`, ".result is a string that holds JSON: go into it with .result|fromjson"},
		{".[].text[]", `[{"text":"[1]"}]`, ".[].text is a string that holds JSON: go into it with .[].text|fromjson"},
		{".result.items", `{"result":"[no"}`, "the document has the keys result"},
		{".result.items", `{"result":"12"}`, "the document has the keys result"},
		{".x", `[[1]]`, "the document is an array of 1"},
		{".a[]", `{}`, `. has no key "a" but no keys`},
	} {
		got, err := jq(t, v.program, v.doc)
		if err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s gives %q, %v; want %q", v.program, got, err, v.want)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var wide strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, `,"key-%d-%s":1`, i, strings.Repeat("é", i%300))
	}
	doc := "{" + wide.String()[1:] + "}"
	for _, program := range []string{
		`error("é" * 100000)`,
		`error([range(100000)])`,
		".nope[]",
		"." + strings.Repeat("x", 50_000) + "[]",
		strings.Repeat("y", 50_000),
		`"` + strings.Repeat(`\q`, 50_000),
		"." + strings.Repeat(`["key-0-"]`, 5000),
	} {
		_, err := jq(t, program, doc)
		if err == nil || len(err.Error()) > 1100 || strings.ToValidUTF8(err.Error(), "") != err.Error() {
			t.Errorf("%.30s gives %d bytes: %v", program, len(fmt.Sprint(err)), err)
		}
	}
}

func TestLimitsAreNamed(t *testing.T) {
	for _, v := range []struct {
		limits             filter.Options
		program, doc, want string
	}{
		{filter.Options{Document: 10}, ".", `"123456789"`, "document is over its limit of 10B"},
		{filter.Options{Output: 2048}, "range(1e12)", "1", "limit of 2KB of output"},
		{filter.Options{Wall: 300 * time.Millisecond}, "def f: f; f", "1", "limit of 300ms"},
	} {
		var out strings.Builder
		err := patient(v.limits).Run(t.Context(), v.program, strings.NewReader(v.doc), &out)
		if err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: %v, want %q", v.program, err, v.want)
		}
		if v.limits.Output > 0 && int64(out.Len()) != v.limits.Output {
			t.Errorf("%d bytes came out", out.Len())
		}
	}
	// What fits exactly is not over.
	var out strings.Builder
	if err := patient(filter.Options{Document: 2, Output: 3}).Run(t.Context(), ".", strings.NewReader("12"), &out); err != nil || out.String() != "12\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// A run whose time is over before its child began says no less than one that was stopped.
func TestALimitIsNamedAlsoBeforeTheStart(t *testing.T) {
	err := patient(filter.Options{Wall: time.Nanosecond}).Run(t.Context(), ".", strings.NewReader("1"), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "stopped at its limit of 1ns") {
		t.Error(err)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("disk on fire")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWhatFailsOnOurSideIsTheError(t *testing.T) {
	f := patient(filter.Options{})
	doc := io.MultiReader(strings.NewReader("1 2 "), iotest.ErrReader(errBroken))
	if err := f.Run(t.Context(), ".", doc, io.Discard); !errors.Is(err, errBroken) {
		t.Errorf("reading: %v", err)
	}
	if err := f.Run(t.Context(), "1, (def f: f; range(1e6), f)", strings.NewReader("1"), brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("writing: %v", err)
	}
}

func TestTheEndOfTheCallersContextIsTheError(t *testing.T) {
	errBored := errors.New("the agent went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	g := newGate()
	done := make(chan error)
	go func() {
		done <- patient(filter.Options{}).Run(ctx, "range(1e12)", strings.NewReader("1"), g)
	}()
	<-g.reached
	cancel(errBored)
	close(g.open)
	if err := <-done; !errors.Is(err, errBored) {
		t.Error(err)
	}
}
