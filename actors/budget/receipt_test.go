package budget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const callID = "0123456789abcdef0123456789abcdef"

// answer is a result as a client reads it.
type answer struct {
	Content           []struct{ Type, Text string }
	StructuredContent json.RawMessage
	IsError           bool
	Meta              map[string]json.RawMessage `json:"_meta"`
	object            map[string]any             // the JSON in the text
	keys              []string                   // its members as they stand
}

func read(t testing.TB, result []byte) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal(result, &a); err != nil || !utf8.Valid(result) {
		t.Fatalf("clients cannot read %q: %v", result, err)
	}
	if bytes.ContainsAny(result, "\r\n") {
		t.Fatalf("result has a raw line break: %q", result)
	}
	if len(a.Content) != 1 || a.Content[0].Type != "text" {
		t.Fatalf("not one block of text: %s", result)
	}
	text := a.Content[0].Text
	if json.Unmarshal([]byte(text), &a.object) == nil {
		d := json.NewDecoder(strings.NewReader(text))
		d.Token()
		for d.More() {
			k, _ := d.Token()
			a.keys = append(a.keys, k.(string))
			var v any
			d.Decode(&v)
		}
	}
	return a
}

func receiptFor(limit int64, f Facts) Receipt {
	return Receipt{CallID: callID, Server: "vecgrep", Tool: "search", Namespaced: "vecgrep__search",
		Limit: limit, Preview: 2048, GetTool: "mcphub_get_result", Facts: f}
}

func TestReceiptIsCompleteInBothHalves(t *testing.T) {
	f := scan(textResultOf(strings.Repeat("line \"of\" <text> & é\n", 5000)))
	result := receiptFor(10<<10, f).Result()
	a := read(t, result)
	if string(a.StructuredContent) != a.Content[0].Text {
		t.Errorf("halves differ:\n%s\n%s", a.StructuredContent, a.Content[0].Text)
	}
	want := []string{"status", "callId", "server", "tool", "namespaced", "originalBytes", "budgetBytes", "sha256", "lines", "preview", "nextAction"}
	if !slices.Equal(a.keys, want) {
		t.Errorf("members %v", a.keys)
	}
	for k, v := range map[string]any{
		"status": "stored", "callId": callID, "server": "vecgrep", "tool": "search", "namespaced": "vecgrep__search",
		"originalBytes": float64(f.Bytes), "budgetBytes": float64(10 << 10), "sha256": f.SHA256, "lines": 5000.0,
		"nextAction": `call mcphub_get_result with {"callId":"` + callID + `","cursor":0}`,
	} {
		if a.object[k] != v {
			t.Errorf("%s is %v, want %v", k, a.object[k], v)
		}
	}
	if string(a.Meta[Mark]) != `{"callId":"`+callID+`"}` {
		t.Errorf("mark is %s", a.Meta[Mark])
	}
	if a.IsError || bytes.Contains(result, []byte(`\u`)) {
		t.Errorf("more is escaped than JSON demands, or it became an error: %s", result)
	}
}

func TestC86ErrorReceiptIsAllTextAndShowsBothEnds(t *testing.T) {
	q, _ := json.Marshal("first: cause\n" + strings.Repeat("at frame\n", 50_000) + "last: cause")
	f := scan([]byte(`{"isError":true,"structuredContent":{"code":7},"content":[{"type":"text","text":` + string(q) + `}]}`))
	for _, limit := range []int64{2048, 4096, 10 << 10} {
		a := read(t, receiptFor(limit, f).Result())
		preview := fmt.Sprint(a.object["preview"])
		if !a.IsError || a.StructuredContent != nil {
			t.Errorf("limit %d: isError %v, structuredContent %s", limit, a.IsError, a.StructuredContent)
		}
		if !strings.HasPrefix(preview, "first: cause") || !strings.HasSuffix(preview, "last: cause") {
			t.Errorf("limit %d: preview %q", limit, preview)
		}
	}
}

func TestC37StructuredOnlyResultShowsItsJSON(t *testing.T) {
	f := scan([]byte(`{"content":[],"structuredContent":{"projects":[` + strings.Repeat(`{"id":1},`, 100_000) + `{"id":2}]}}`))
	a := read(t, receiptFor(32<<10, f).Result())
	preview := fmt.Sprint(a.object["preview"])
	if !strings.HasPrefix(preview, `{"projects":[{"id":1}`) || !strings.HasSuffix(preview, `{"id":2}]}`) || len(preview) > 2048 {
		t.Errorf("preview %q", preview)
	}
}

// TestC37AReceiptSaysThatTheDataIsBesideTheText: a summary alone would lead a model to
// search the summary.
func TestC37AReceiptSaysThatTheDataIsBesideTheText(t *testing.T) {
	data := `{"projects":[` + strings.Repeat(`{"id":1},`, 100_000) + `{"id":2}],"total":2}`
	for text, want := range map[string]bool{"returned 100001 items": true, data: false} {
		q, _ := json.Marshal(text)
		f := scan([]byte(`{"content":[{"type":"text","text":` + string(q) + `}],"structuredContent":` + data + `}`))
		r := receiptFor(32<<10, f)
		r.ReadTool, r.Shape = "read", f.Shape(300)
		a := read(t, r.Result())
		next := fmt.Sprint(a.object["nextAction"])
		if got := strings.Contains(next, `most of it is structuredContent: add "records":"auto","limit":20 or "part":"structured",`); got != want {
			t.Errorf("%.30s: nextAction %s", text, next)
		}
		if shape := fmt.Sprint(a.object["shape"]); !strings.HasPrefix(shape, "{projects:[") || !strings.Contains(shape, "+×{id:int}]") {
			t.Errorf("%.30s: shape %s", text, shape)
		}
		if preview := fmt.Sprint(a.object["preview"]); !strings.HasPrefix(preview, text[:20]) {
			t.Errorf("%.30s: preview %.60s", text, preview)
		}
	}
}

func TestShortTextIsShownWhole(t *testing.T) {
	f := scan([]byte(`{"content":[{"type":"text","text":"2 images"},{"type":"image","data":"` + strings.Repeat("A", 50_000) + `"}]}`))
	if a := read(t, receiptFor(32<<10, f).Result()); a.object["preview"] != "2 images" {
		t.Errorf("preview %q", a.object["preview"])
	}
}

func TestReceiptGivesUpMembersInTheirOrder(t *testing.T) {
	order := []string{"shape", "preview", "lines", "nextAction", "namespaced", "tool", "server", "sha256", "budgetBytes", "originalBytes"}
	r := receiptFor(0, scan(textResultOf(strings.Repeat("some text\n", 5000))))
	r.Shape, r.ReadTool = "[5000×str]", "mcphub_read_result"
	r.Server, r.Tool = strings.Repeat("s", 64), strings.Repeat("t", 128)
	r.Namespaced = strings.Repeat("n", 64)
	seen := map[int]bool{}
	for limit := int64(8 << 10); limit >= 300; limit -= 1 + limit/400 {
		r.Limit = limit
		a := read(t, r.Result())
		given := 0
		for given < len(order) && a.object[order[given]] == nil {
			given++
		}
		for _, k := range order[given:] {
			if a.object[k] == nil {
				t.Fatalf("limit %d: %s was given up before %s", limit, k, order[given])
			}
		}
		if given > 2 && limit >= 4<<10 {
			t.Fatalf("limit %d: more than shape and preview were given up: %v", limit, a.keys)
		}
		seen[given] = true
	}
	for n := range order {
		if !seen[n] {
			t.Errorf("no limit gives up exactly %v", order[:n])
		}
	}
}

func TestFrom4KUpOnlyShapeAndPreviewAreGivenUp(t *testing.T) {
	f := scan(textResultOf(strings.Repeat("x\n", 1<<20)))
	f.Meta = []byte(`{"k":"` + strings.Repeat("x", 8000) + `"}`)
	for _, char := range []string{"a", `"`, "é", "\u2028", "😀"} {
		r := receiptFor(4<<10, f)
		r.ReadTool, r.Extra = "mcphub_read_result", 24
		r.Server, r.Tool, r.Namespaced = strings.Repeat("s", 64), strings.Repeat(char, 128), strings.Repeat("n", 64)
		a := read(t, r.Result())
		if next := fmt.Sprint(a.object["nextAction"]); !strings.Contains(next, "mcphub_get_result") || a.object["lines"] == nil {
			t.Errorf("tool of 128 times %q: only %v", char, a.keys)
		}
	}
}

func TestReceiptCarriesMetaWhereItFits(t *testing.T) {
	f := scan(textResultOf(strings.Repeat("x\n", 50_000)))
	f.Meta = []byte("{ \"n\": 9007199254740993,\n\"n\":1.0, \"mcphub\\u002freceipt\":{\"callId\":\"theirs\"} ,\"x\":{\"deep\":[1]} }")
	result := receiptFor(4<<10, f).Result()
	want := `"_meta":{"n":9007199254740993,"n":1.0,"x":{"deep":[1]},"mcphub/receipt":{"callId":"` + callID + `"}}`
	if !bytes.Contains(result, []byte(want)) {
		t.Errorf("meta was altered: %s", result)
	}
	f.Meta = []byte(`{"big":"` + strings.Repeat("x", 4000) + `"}`)
	a := read(t, receiptFor(4<<10, f).Result())
	if len(a.Meta) != 1 || a.object["preview"] == nil {
		t.Errorf("a _meta that does not fit costs more than itself: %v", a.keys)
	}
	for _, broken := range []string{`{"a":`, `{"a":1}}`, `{"a" 1}`, "{\"a\":\"\xff\"}", `[1]`, `7`} {
		f.Meta = []byte(broken)
		if a := read(t, receiptFor(4<<10, f).Result()); len(a.Meta) != 1 {
			t.Errorf("meta of %q became %v", broken, a.Meta)
		}
	}
}

func TestPreviewIsAsLongAsAllowed(t *testing.T) {
	f := scan(textResultOf(strings.Repeat("é", 50_000)))
	for _, n := range []int64{0, 1, 2, 3, 255, 256, 257, 1000, 2048, 4096} {
		r := receiptFor(64<<10, f)
		r.Preview = n
		p, _ := read(t, r.Result()).object["preview"].(string)
		if int64(len(p)) > n || int64(len(p)) < n-16 || strings.Contains(p, "\ufffd") {
			t.Errorf("preview of %d bytes where %d are allowed", len(p), n)
		}
	}
}

func TestC84NextActionNamesTheToolsAsThisAgentSeesThem(t *testing.T) {
	r := receiptFor(32<<10, scan(textResultOf(strings.Repeat("a line\n", 9000))))
	r.ReadTool, r.GetTool = "hub_read", "hub_get"
	next := func() string { return read(t, r.Result()).object["nextAction"].(string) }
	if got, want := next(), `call hub_read with {"callId":"`+callID+`"} for an outline; add "lines":"1-200" or "grep":"WORD","limit":20 to read a part. `+
		`For the exact bytes call hub_get with {"callId":"`+callID+`","cursor":0}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Facts = scan([]byte(`{"content":[],"structuredContent":[` + strings.Repeat("1,", 50_000) + `1]}`))
	if got := next(); !strings.Contains(got, `add "records":"auto","limit":20 or "grep":"WORD","limit":20 to`) {
		t.Errorf("for JSON: %s", got)
	}
	r.Limit = 1100
	if got, want := next(), `call hub_read with {"callId":"`+callID+`"}`; got != want {
		t.Errorf("in little room: %s", got)
	}
}

func TestShapeStandsBesideAPreviewWorthReading(t *testing.T) {
	f := scan(textResultOf(strings.Repeat("\"quoted\"\n", 5000)))
	for limit, want := range map[int64]bool{32 << 10: true, 4 << 10: true, 2 << 10: false} {
		r := receiptFor(limit, f)
		r.Shape = strings.Repeat("s", 200)
		a := read(t, r.Result())
		preview, _ := a.object["preview"].(string)
		if got := a.object["shape"] != nil; got != want || got && len(preview) < minBeside || preview == "" {
			t.Errorf("limit %d: shape %v beside %d bytes of preview", limit, got, len(preview))
		}
	}
}

// FuzzReceiptFitsBudget: for every input the receipt fits, can be read, and says
// what may never be given up.
func FuzzReceiptFitsBudget(f *testing.F) {
	f.Add("fs", "tool", "fs__tool", "mcphub_get_result", []byte("text\n"), uint16(900), []byte(`{"a":1}`), uint16(512), uint16(2048), false, "")
	f.Add("s\"", "t\x01\xff", "読", "", []byte("\"\\\x01\u2028😀"), uint16(9000), []byte(`{"mcphub/receipt":1}`), uint16(4096), uint16(9999), true, "{a:[9×{b:str}]}")
	f.Add("s", "t", "n", "g", []byte{0xff, 0xf0, 0x9f}, uint16(60000), []byte(`{`), uint16(700), uint16(1), true, "\xff\"")
	f.Fuzz(func(t *testing.T, server, tool, name, get string, text []byte, repeat uint16, meta []byte, limit, preview uint16, isError bool, shape string) {
		text = bytes.Repeat(text, int(repeat)/max(1, len(text))+1)
		facts := scan(textResultOf(string(text)))
		facts.Meta, facts.IsError, facts.Bytes = meta, isError, facts.Bytes<<(repeat%40)
		r := Receipt{CallID: callID, Server: server, Tool: tool, Namespaced: name, GetTool: get,
			Limit: max(MinBudget, int64(limit)), Preview: int64(preview), Facts: facts,
			Shape: shape, ReadTool: get, Extra: int64(limit % 65)}
		result := r.Result()
		if int64(len(result))+r.Extra > r.Limit {
			t.Fatalf("%d bytes in a budget of %d", len(result), r.Limit)
		}
		a := read(t, result)
		if a.object["status"] != "stored" || a.object["callId"] != callID || a.Meta[Mark] == nil || a.IsError != isError {
			t.Fatalf("receipt is not one: %s", result)
		}
		if !isError && string(a.StructuredContent) != a.Content[0].Text {
			t.Fatal("halves differ")
		}
		if again := r.Result(); !bytes.Equal(again, result) {
			t.Fatal("the same facts give another receipt")
		}
	})
}

func BenchmarkReceipt(b *testing.B) {
	r := receiptFor(4<<10, scan(textResultOf(strings.Repeat("\"quoted\"\n", 5000))))
	for b.Loop() {
		r.Result()
	}
}
