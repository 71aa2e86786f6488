package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcphubd/actors/catalog"
	"mcphubd/store"
)

// issuesServer answers with n issues as JSON in a text block; n is its argument.
func issuesServer() *fakeServer {
	return &fakeServer{answer: func(_ context.Context, _ string, p []byte) (string, error) {
		var a struct{ Arguments struct{ N int } }
		if err := json.Unmarshal(p, &a); err != nil {
			return "", err
		}
		b, err := json.Marshal(issuesOf(a.Arguments.N))
		return `{"content":[{"type":"text","text":` + string(b) + `}]}`, err
	}}
}

func issuesOf(n int) string {
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i := range n {
		fmt.Fprintf(&b, `%s{"id":%d,"title":"Issue %d"}`, strings.Repeat(",", min(i, 1)), i, i)
	}
	return b.String() + `]}`
}

// stored makes agent store n issues, and returns the callId.
func (r *rig) stored(agent string, n int) string {
	r.t.Helper()
	got, err := r.call(r.t.Context(), agent, "d__echo", fmt.Sprintf(`{"N":%d}`, n))
	if err != nil {
		r.t.Fatal(err)
	}
	id, _ := receiptOf(r.t, got)["callId"].(string)
	if id == "" {
		r.t.Fatalf("no receipt: %.300s", got)
	}
	return id
}

// read calls mcphub_read_result and returns its text.
func (r *rig) read(agent, args string) (text string, isError bool) {
	r.t.Helper()
	got, err := r.call(r.t.Context(), agent, "mcphub_read_result", args)
	if err != nil {
		r.t.Fatal(err)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal([]byte(got), &result); err != nil || len(result.Content) != 1 {
		r.t.Fatalf("%v: %.300s", err, got)
	}
	return result.Content[0].Text, result.IsError
}

// derived reads with args and returns the callId of the receipt that came.
func (r *rig) derived(agent, args string) string {
	r.t.Helper()
	got, err := r.call(r.t.Context(), agent, "mcphub_read_result", args)
	if err != nil || !strings.Contains(got, `"mcphub/receipt"`) {
		r.t.Fatalf("%s: no receipt: %v %.300s", args, err, got)
	}
	return receiptOf(r.t, got)["callId"].(string)
}

type filterFunc func(ctx context.Context, program string, doc io.Reader, out io.Writer) error

func (f filterFunc) Run(ctx context.Context, program string, doc io.Reader, out io.Writer) error {
	return f(ctx, program, doc, out)
}

// TestC84TheReceiptsNextCallWorksWordForWord, for an agent whose scope holds nothing
// but one tool.
func TestC84TheReceiptsNextCallWorksWordForWord(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"
[agents.b]
tools = ["d__echo"]
`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	got, err := r.call(t.Context(), "b", "d__echo", `{"N":500}`)
	if err != nil {
		t.Fatal(err)
	}
	next, _ := receiptOf(t, got)["nextAction"].(string)
	calls := regexp.MustCompile(`(mcphub_\w+) with (\{[^{}]*\})`).FindAllStringSubmatch(next, -1)
	if len(calls) == 0 || calls[0][1] != catalog.ReadResult {
		t.Fatalf("nextAction %q", next)
	}
	s, err := r.Hub.Open(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	list := string(s.Tools(t.Context()))
	for _, c := range calls {
		if !strings.Contains(list, `"name":"`+c[1]+`"`) {
			t.Errorf("%s is not in the list of this agent", c[1])
		}
		if got, err := r.call(t.Context(), "b", c[1], c[2]); err != nil || strings.Contains(got, `"isError":true`) || len(got) > 4096 {
			t.Errorf("%s: %v %.300s", c[0], err, got)
		}
	}
}

// TestC83EveryAnswerOfReadResultIsBounded, errors and lists too.
func TestC83EveryAnswerOfReadResultIsBounded(t *testing.T) {
	r := newRig(t, `[agents.small]
response_budget = "512B"
[agents.lines]
response_budget = "2KB"
max_lines = 5
`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	r.Hub.library.filter = filterFunc(func(context.Context, string, io.Reader, io.Writer) error {
		return errors.New(strings.Repeat("a long story\n", 1000))
	})
	for agent, limit := range map[string]int{"small": 512, "lines": 2048} {
		var id string
		for range 30 {
			id = r.stored(agent, 300)
		}
		for _, args := range []string{
			`{}`, `{"callId":"ID"}`, `{"callId":"ID","lines":"1-"}`, `{"callId":"ID","grep":"Issue","around":5}`, `{"callId":"ID","records":""}`,
			`{"callId":"ID","records":"/items","limit":200}`, `{"callId":"ID","records":"/` + strings.Repeat("x", 900) + `"}`, `{"callId":"ID","grep":"` + strings.Repeat("y", 900) + `"}`,
			`{"callId":"ID","jq":"."}`, `{"callId":"` + strings.Repeat("z", 900) + `"}`, `{"callId":"ID","lines":"` + strings.Repeat("w", 900) + `"}`, `[]`, `{"callId":"ID","part":9}`,
		} {
			got, err := r.call(t.Context(), agent, "mcphub_read_result", strings.ReplaceAll(args, "ID", id))
			if err != nil {
				t.Fatal(err)
			}
			var result struct{ Content []struct{ Text string } }
			if err := json.Unmarshal([]byte(got), &result); err != nil {
				t.Fatalf("%.100s: %v", args, err)
			}
			if len(got) > limit {
				t.Errorf("%s, %.100s: %d bytes", agent, args, len(got))
			}
			if n := strings.Count(result.Content[0].Text, "\n") + 1; agent == "lines" && n > 5 {
				t.Errorf("%.100s: %d lines", args, n)
			}
		}
	}
}

// TestReadingRespectsTheScopeOfNow and results.owner_only.
func TestReadingRespectsTheScopeOfNow(t *testing.T) {
	conf := `response_budget = "4KB"
[agents.a]
[agents.b]
servers = []
[agents.c]
` + oneServer
	r := newRig(t, conf, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 500)
	if text, bad := r.read("b", `{"callId":"`+id+`","lines":"1-"}`); !bad || strings.Contains(text, "d__") || strings.Contains(text, "echo") || !strings.Contains(text, "scope") {
		t.Errorf("out of scope: %q", text)
	}
	if text, bad := r.read("c", `{"callId":"`+id+`","lines":"1"}`); bad {
		t.Errorf("another agent in scope: %q", text)
	}
	if text, bad := r.read("a", `{}`); bad || !strings.Contains(text, id+" d__echo, ") || !strings.Contains(text, "stored results 1-1 of 1") {
		t.Errorf("the list: %q", text)
	}
	if text, _ := r.read("c", `{}`); strings.Contains(text, id) {
		t.Errorf("another agent's list: %q", text)
	}
	if _, err := r.Hub.Reload(t.Context(), parse(t, strings.Replace(conf, "[agents.a]", "[results]\nowner_only = true\n[agents.a]\nservers = []", 1))); err != nil {
		t.Fatal(err)
	}
	unknown, _ := r.read("c", `{"callId":"`+string(store.NewID())+`"}`)
	if text, bad := r.read("c", `{"callId":"`+id+`","lines":"1"}`); !bad || text != unknown {
		t.Errorf("with owner_only: %q, an unknown one: %q", text, unknown)
	}
	if text, _ := r.read("a", `{}`); strings.Contains(text, id) {
		t.Errorf("the list, out of scope: %q", text)
	}
}

// TestTheSameSelectionIsStoredOnce, however many ask at once, and reads on for three
// levels with the same records in the same order.
func TestTheSameSelectionIsStoredOnce(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 2000)
	from := 0
	for level, cut := range [][2]int{{100, 1500}, {10, 1000}, {1, 500}} {
		args := fmt.Sprintf(`{"callId":%q,"records":"","offset":%d,"limit":%d}`, id, cut[0], cut[1])
		ids := make([]string, 12)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() { ids[i] = r.derived(fmt.Sprint("agent", i%3), args) })
		}
		wg.Wait()
		for _, other := range ids {
			if other != ids[0] {
				t.Fatalf("level %d: the same question gave %s and %s", level, ids[0], other)
			}
		}
		from += cut[0]
		id = ids[0]
		if text, bad := r.read("a", fmt.Sprintf(`{"callId":%q,"records":"","offset":%d,"limit":2}`, id, cut[1]-2)); bad ||
			!strings.Contains(text, fmt.Sprintf("\n{\"id\":%d,", from+cut[1]-2)) || !strings.Contains(text, fmt.Sprintf("[%d records, ", cut[1])) {
			t.Errorf("level %d: %q", level, text)
		}
	}
	var back struct{ StructuredContent []struct{ ID int } }
	if err := json.Unmarshal(r.readBack(t.Context(), "a", id), &back); err != nil || len(back.StructuredContent) != 500 || back.StructuredContent[0].ID != 111 {
		t.Error("the exact bytes of a derived result:", err, len(back.StructuredContent))
	}
	if err := r.Spool.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.Spool.Usage().Results; n != 4 {
		t.Errorf("%d results are stored, want the source and three derived", n)
	}
	text, _ := r.read("a", `{"callId":"`+id+`"}`)
	if !strings.Contains(text, "derived from ") {
		t.Error("the outline does not tell where it comes from:", text)
	}
}

// TestReadingStoresNothing but for records with a limit and jq.
func TestReadingStoresNothing(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 2000)
	for _, args := range []string{`{"callId":"ID"}`, `{"callId":"ID","lines":"1-"}`, `{"callId":"ID","grep":"."}`, `{"callId":"ID","records":""}`, `{"callId":"ID","records":"","offset":5,"limit":3}`} {
		if text, bad := r.read("a", strings.ReplaceAll(args, "ID", id)); bad {
			t.Error(args, text)
		}
	}
	r.readBack(t.Context(), "a", id)
	if err := r.Spool.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.Spool.Usage().Results; n != 1 {
		t.Errorf("%d results are stored", n)
	}
}

func TestJQAnswersShortOutputAndStoresLongOutput(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 2000)
	if text, bad := r.read("a", `{"callId":"`+id+`","jq":"."}`); !bad || !strings.Contains(text, "jq is not available") {
		t.Errorf("without a filter: %q", text)
	}
	runs := 0
	long := strings.Repeat(`{"title":"é \"quoted\" \\ 😀"}`+"\n", 5000)
	r.Hub.library.filter = filterFunc(func(_ context.Context, program string, doc io.Reader, out io.Writer) error {
		runs++
		all, err := io.ReadAll(doc)
		if err != nil || string(all) != issuesOf(2000) {
			t.Errorf("the document of %d bytes is not the JSON in the text: %v", len(all), err)
		}
		switch program {
		case "short":
			io.WriteString(out, "1\n\"two\"\n")
			return nil
		case "long":
			for rest := long; rest != ""; { // in pieces that cut characters
				n := min(777, len(rest))
				if _, err := io.WriteString(out, rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		}
		io.WriteString(out, strings.Repeat("lost ", 5000))
		return errors.New("jq: no key titel; there are: id, title")
	})
	ask := func(program string) string { return `{"callId":"` + id + `","jq":"` + program + `"}` }
	if text, bad := r.read("a", ask("short")); bad || text != "[jq on part 0: 2 values, 8 bytes]\n1\n\"two\"\n" {
		t.Errorf("%q", text)
	}
	if text, bad := r.read("a", ask("wrong")); !bad || !strings.Contains(text, "there are: id, title") || strings.Contains(text, "lost") {
		t.Errorf("%q", text)
	}
	first := r.derived("a", ask("long"))
	before := runs
	if again := r.derived("a", ask("long")); again != first || runs != before {
		t.Errorf("the same program gave %s, then %s, in %d runs more", first, again, runs-before)
	}
	var got bytes.Buffer
	args := `{"callId":"` + first + `","lines":"1-"}`
	for args != "" {
		text, bad := r.read("a", args)
		if bad {
			t.Fatal(text)
		}
		head, body, _ := strings.Cut(text, "\n")
		got.WriteString(body)
		args = ""
		if _, next, ok := strings.Cut(head, "next="); ok {
			args = `{"callId":"` + first + `","next":"` + strings.TrimSuffix(next, "]") + `"}`
		}
	}
	if got.String() != long {
		t.Errorf("%d bytes of output came back as %d", len(long), got.Len())
	}
	if text, _ := r.read("a", `{"callId":"`+first+`","records":"","offset":4999}`); !strings.Contains(text, "[5000 records, ") {
		t.Errorf("values of the output as records: %.200q", text)
	}
}

// TestASelectionThatCannotBeStoredIsGivenInPages.
func TestASelectionThatCannotBeStoredIsGivenInPages(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"
`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 2000)
	r.Spool.bound(1)
	if err := r.Spool.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, bad := r.read("a", `{"callId":"`+id+`","records":"","offset":10,"limit":1000}`)
	if bad || !strings.Contains(text, "\n{\"id\":10,") || !strings.Contains(text, "next=") {
		t.Errorf("%.300q", text)
	}
}

// TestJQOutputThatCannotBeStoredSaysWhatToDo: there is no first page of it to give.
func TestJQOutputThatCannotBeStoredSaysWhatToDo(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 2000)
	r.Hub.library.filter = filterFunc(func(_ context.Context, _ string, _ io.Reader, out io.Writer) error {
		_, err := io.WriteString(out, strings.Repeat("1\n", 5000))
		return err
	})
	r.Spool.bound(1)
	if err := r.Spool.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, bad := r.read("a", `{"callId":"`+id+`","jq":"."}`)
	for _, want := range []string{"cannot be stored", "store is full", "select less"} {
		if !bad || !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
}

func TestReadingAnExpiredResultSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": issuesServer()})
		id := r.stored("a", 500)
		derived := r.derived("a", `{"callId":"`+id+`","records":"","limit":400}`)
		time.Sleep(24*time.Hour + time.Second)
		for _, id := range []string{id, derived} {
			if text, bad := r.read("a", `{"callId":"`+id+`","lines":"1"}`); !bad || !strings.Contains(text, "expired") {
				t.Errorf("%q", text)
			}
		}
		if text, _ := r.read("a", `{}`); !strings.Contains(text, "no stored results") {
			t.Errorf("the list: %q", text)
		}
	})
}

// TestACancelledReadEnds with the error of its context, and leaves nothing behind.
func TestACancelledReadEnds(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": issuesServer()})
	r.ready("d")
	id := r.stored("a", 2000)
	ctx, cancel := context.WithCancel(t.Context())
	r.Hub.library.filter = filterFunc(func(ctx context.Context, _ string, _ io.Reader, out io.Writer) error {
		io.WriteString(out, strings.Repeat("x", 3<<20))
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if got, err := r.call(ctx, "a", "mcphub_read_result", `{"callId":"`+id+`","jq":"."}`); !errors.Is(err, context.Canceled) {
		t.Errorf("%v %.100s", err, got)
	}
	if err := r.Spool.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.Spool.Usage().Results; n != 1 {
		t.Errorf("%d results are stored", n)
	}
}
