package excerpt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// rebuild puts the records of all pages together, each ended by a line break.
func (d *desk) rebuild(args string) string {
	d.t.Helper()
	var b strings.Builder
	for range 1_000_000 {
		head, body := d.ask(args)
		if i := strings.LastIndexByte(strings.TrimSuffix(body, "\n"), '\n'); d.reading.Limits.Lines == 0 || d.reading.Limits.Lines > 3 {
			body = body[:i+1] // without the line of totals
		}
		var no, of, at, n, size int64
		if _, w, ok := strings.Cut(head, ": record "); ok {
			if _, err := fmt.Sscanf(w, "%d of %d, bytes %d+%d of %d", &no, &of, &at, &n, &size); err != nil {
				d.t.Fatal(head, err)
			}
			if at+n < size {
				body = strings.TrimSuffix(body, "\n")
			}
		}
		b.WriteString(body)
		next := nextOf(head)
		if next == "" {
			return b.String()
		}
		args = fmt.Sprintf(`{"next":%q}`, next)
	}
	d.t.Fatal("next never ends")
	return ""
}

func TestRecordsAreTheExactBytesOfEachElement(t *testing.T) {
	records := []string{`{"n":9007199254740993,"n":1.0}`, `-0`, `1e400`, `"\ud800"`, `[ ]`, `{ "a" : [1, 2] }`, `"` + strings.Repeat("x", 3000) + `"`, `null`}
	doc := `{"k.a[0]/~":{"rows":[` + strings.Join(records, " ,\n ") + ` ]},"small":[1]}`
	for name, raw := range map[string][]byte{
		"structured": []byte(`{"content":[],"structuredContent":` + doc + `}`),
		"text":       textResult(doc),
		"string":     textResult(string(quoted(doc))),
		"nested":     textResult(`{"data":` + string(quoted(doc)) + `}`),
	} {
		pointer := "/k.a[0]~1~0/rows"
		if name == "nested" {
			pointer = "/data" + pointer
		}
		for _, args := range []string{`{"records":"` + pointer + `"}`, `{"records":"auto"}`, `{"records":""}`} {
			d := deskOf(t, raw, 700)
			if got, want := d.rebuild(args), strings.Join(records, "\n")+"\n"; got != want {
				t.Errorf("%s %s:\n%s\nwant\n%s", name, args, got, want)
			}
		}
	}
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

func TestTheLargestArrayIsChosenAlways(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":[1,2],"b":[3,4]}`:   "/a",
		`{"a":[1],"b":[[3,4],5]}`: "/b",
		`{"a":[],"b":{"c":[]}}`:   "/a",
		`[[1,2,3],[4]]`:           "the top array",
		`{"x":"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28]","y":[1]}`: "/x",
	} {
		d := deskOf(t, textResult(doc), 4096)
		if head, _ := d.ask(`{"records":""}`); !strings.Contains(head, "part 0, "+want+":") {
			t.Errorf("%s: %s", doc, head)
		}
	}
}

func TestRecordsPastTheEndAndOfEmptyArraysAreNoError(t *testing.T) {
	d := deskOf(t, textResult(`{"a":[1,2,3],"e":[]}`), 4096)
	for _, args := range []string{`{"records":"/a","offset":3}`, `{"records":"/a","offset":99,"limit":5}`, `{"records":"/e"}`, `{"records":"/e","limit":10}`} {
		head, body := d.ask(args)
		if !strings.Contains(head, "no records") || !strings.HasPrefix(body, "[") || !strings.Contains(body, "in all]") {
			t.Errorf("%s: %s %q", args, head, body)
		}
	}
}

func TestUnknownPointersNameThoseThatExist(t *testing.T) {
	d := deskOf(t, textResult(issues(20)), 4096)
	for pointer, want := range map[string]string{
		"/itmes": "items", "items": "/items (20)", "/items/3/label": "labels", "/items/99/labels": "array of 20",
		"/total/x": "no members", "/items/3/user": "login", "/total": "no array",
	} {
		_, _, _, err := d.try(`{"records":"` + pointer + `"}`)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "/items (20)") {
			t.Errorf("%s: %v", pointer, err)
		}
	}
}

func TestRowsOfTablesLinesAndValuesAreRecords(t *testing.T) {
	csv := "id,name,note\r\n1,a,\"x\ny, \"\"z\"\"\"\r\n\r\n2,5\" pipe,b\r\n3,c,d"
	d := deskOf(t, textResult(csv), 4096)
	if head, body := d.ask(`{"records":""}`); !strings.Contains(head, "CSV rows: records 0-2 of 3") ||
		body != "id,name,note\r\n1,a,\"x\ny, \"\"z\"\"\"\r\n2,5\" pipe,b\r\n3,c,d\n[3 records, 34 bytes in all]" {
		t.Errorf("%s\n%q", head, body)
	}
	if _, body := d.ask(`{"records":"","offset":2}`); !strings.HasPrefix(body, "id,name,note\r\n3,c,d\n[") {
		t.Errorf("%q", body)
	}
	d = deskOf(t, textResult("{\"a\":1}\n{\"a\":[2]}\r\n\n{\"b\":3}"), 4096)
	if head, body := d.ask(`{"records":"","offset":1}`); !strings.Contains(head, "JSON lines: records 1-2 of 3") || !strings.HasPrefix(body, "{\"a\":[2]}\n{\"b\":3}\n[") {
		t.Errorf("%s\n%q", head, body)
	}
	d = deskOf(t, textResult("one\n\nthree"), 4096)
	if head, body := d.ask(`{"records":"auto","limit":2}`); !strings.Contains(head, "lines: records 0-1 of 3") || body != "one\n\n[3 records, 8 bytes in all]" {
		t.Errorf("%s\n%q", head, body)
	}
	if head, _ := d.ask(`{"records":"/content"}`); !strings.Contains(head, "the whole result, /content: records 0-0 of 1") {
		t.Error(head)
	}
}

// TestRecordsOfTextThatServersCutInBlocks: many blocks with a JSON object each.
func TestRecordsOfTextThatServersCutInBlocks(t *testing.T) {
	var blocks []string
	for i := range 300 {
		blocks = append(blocks, `{"type":"text","text":`+string(quoted(fmt.Sprintf(`{"id":%d}`, i)))+`}`)
	}
	d := deskOf(t, []byte(`{"content":[`+strings.Join(blocks, ",")+`]}`), 4096)
	head, body := d.ask(`{"records":"","offset":299}`)
	if !strings.Contains(head, "all text blocks, JSON lines: records 299-299 of 300") || !strings.HasPrefix(body, `{"id":299}`) {
		t.Errorf("%s\n%s", head, body)
	}
	if _, body := d.ask(`{"lines":"150"}`); body != "{\"id\":149}\n" {
		t.Errorf("%q", body)
	}
}

// TestAnExplicitLimitThatDoesNotFitIsDerived, and reads on as a result of its own,
// three levels deep; one record is never derived.
func TestAnExplicitLimitThatDoesNotFitIsDerived(t *testing.T) {
	raw := textResult(issues(400))
	var all []json.RawMessage
	var doc struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(issues(400)), &doc); err != nil {
		t.Fatal(err)
	}
	all = doc.Items
	pointer := "/items"
	for _, cut := range [][2]int{{10, 300}, {5, 200}, {1, 100}} {
		d := deskOf(t, raw, 1000)
		args := fmt.Sprintf(`{"records":%q,"offset":%d,"limit":%d}`, pointer, cut[0], cut[1])
		a, _, _, err := d.try(args)
		if err != nil || a.Derived == nil {
			t.Fatal(args, err)
		}
		b, _, _, _ := d.try(args)
		if a.Derived.Query != b.Derived.Query {
			t.Error("the query is not stable:", a.Derived.Query, b.Derived.Query)
		}
		var out bytes.Buffer
		if n, err := a.Derived.WriteTo(&out); err != nil || n != int64(out.Len()) {
			t.Fatal(n, err)
		}
		raw, pointer, all = out.Bytes(), "", all[cut[0]:cut[0]+cut[1]]
		d = deskOf(t, raw, 1000)
		d.reading.Derived = true
		var want bytes.Buffer
		for _, r := range all {
			want.Write(append(r, '\n'))
		}
		if got := d.rebuild(`{"records":""}`); got != want.String() {
			t.Errorf("records changed:\n%.300s\n%.300s", got, want.String())
		}
		if a, _, _, _ := d.try(`{"records":"","limit":9999}`); a.Derived != nil {
			t.Error("all of a derived result was derived once more")
		}
	}
	d := deskOf(t, textResult(`[{"a":"`+strings.Repeat("é", 5000)+`"},1]`), 700)
	if a, _, _, err := d.try(`{"records":"","limit":1}`); err != nil || a.Derived != nil {
		t.Error("one record was derived:", err)
	}
}

func TestDerivedRowsAndLinesKeepBytesThatAreNoUTF8(t *testing.T) {
	raw := []byte("{\"content\":[{\"type\":\"text\",\"text\":\"a,b\\n1,\xff\\n2,\xc3\\n3,x\"}]}")
	d := deskOf(t, raw, 0)
	_, s, err := d.reading.sequenceOf(partAuto, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := (&Derived{src: d.reading.Src, seq: s, from: 0, to: 2}).WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if want := "{\"content\":[{\"type\":\"text\",\"text\":\"a,b\\n1,\xff\\n2,\xc3\\n\"}]}"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

func TestTextWithCommasIsNoTable(t *testing.T) {
	for text, want := range map[string]kind{
		"Dear Bob, thank you\nfor the fish, and more": kindText, "2026-01-02 INFO a,b,c\n2026-01-02 INFO d,e,f\n": kindText,
		"a,b,c\n1,2\n": kindText, "id;name\n1;x\n2;y": kindCSV, "id\tname\tsize\n1\tx\t3": kindCSV, "a,b\n1,2\n3,4,5\n": kindText,
		"{\"a\":1}\nnot json\n": kindText, "{\"a\":1}\n{\"a\":2}": kindLines, "[1]": kindJSON, "42": kindText, "\"text\"": kindText,
	} {
		d := deskOf(t, textResult(text), 0)
		if doc, err := d.reading.doc(d.reading.Src, partAuto); err != nil || doc.kind != want {
			t.Errorf("%q is %s, %v", text, doc.kind, err)
		}
	}
}
