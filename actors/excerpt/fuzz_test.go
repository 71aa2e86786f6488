package excerpt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile are texts that tools may answer with.
var hostile = []string{
	"", "a", "\n", "\n\n", "one\r\ntwo\r\n", "é読😀\r\n", "\xff\xfe\xc3", "[1,2,3]", `{"a":[1,2],"b":"[3,4]"}`, `"\"\\\"nested\\\"\""`,
	"{\"a\":1}\n{\"a\":2}\n", "a,b\n1,2\n3,4\n", `{"a":`, "[[[[[[", `[1,]`, `{"a":[{"b":[]},{"b":[null,true,1e5]}]}`, strings.Repeat("x", 300),
	`{"k":"` + strings.Repeat("\\ud83d\\ude00", 40) + `"}`, strings.Repeat("[", 600) + strings.Repeat("]", 600), "\x01\x02\"\\", `[{"x":"a,b]"},{"y":"}"}]`,
}

var selectors = []string{
	`{}`, `{"lines":"1-"}`, `{"lines":"-3"}`, `{"grep":"."}`, `{"grep":"^a|b$","around":3}`, `{"grep":"b","around":1,"limit":2}`, `{"grep":"\\b1"}`, `{"records":""}`, `{"records":"/a"}`,
	`{"records":"","offset":1,"limit":3}`, `{"part":0}`, `{"part":"structured"}`, `{"part":"result","lines":"2+2"}`, `{"part":1}`, `{"records":"/content","part":"result"}`,
}

// FuzzReadFitsBudget: whatever is stored and asked for, the answer is a result that
// fits, in bytes and in lines.
func FuzzReadFitsBudget(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte(s), uint8(i), uint16(i*50), uint8(i%5), false)
		f.Add(textResult(s), uint8(i), uint16(i*3), uint8(0), true)
	}
	for i, s := range []string{`{"contents":[{"uri":"x","text":"a\nb"},{"uri":"y","blob":"QUJD"}]}`, `{"messages":[{"role":"user","content":{"type":"text","text":"a\nb"}},{"content":[{"type":"image"}]}]}`} {
		f.Add([]byte(s), uint8(10+3*i), uint16(0), uint8(0), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, sel uint8, limit uint16, lines uint8, raw bool) {
		borders(t)
		if !raw {
			data = textResult(string(data))
		}
		d := deskOf(t, data, 512+int64(limit))
		if lines > 0 {
			d.reading.Limits.Lines = int(lines) + 1
		}
		args := selectors[int(sel)%len(selectors)]
		for range 20 {
			q, err := ParseRequest([]byte(args))
			if err != nil {
				t.Fatal(args, err)
			}
			a, err := d.reading.Read(q)
			if err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("an error of several lines: %q", err)
				}
				return
			}
			if int64(len(a.Result)) > d.reading.Limits.Bytes {
				t.Fatalf("%s: %d bytes under a limit of %d", args, len(a.Result), d.reading.Limits.Bytes)
			}
			if bytes.HasPrefix(a.Result, []byte(frameOpen)) {
				head, _ := d.open(a.Result)
				next := nextOf(head)
				if next == "" {
					return
				}
				args = fmt.Sprintf(`{"next":%q}`, next)
				continue
			}
			if !json.Valid(a.Result) || !bytes.HasPrefix(a.Result, []byte(`{"content":[{`)) {
				t.Fatalf("%s: %q is no block in its own type", args, a.Result)
			}
			return
		}
	})
}

// FuzzLinesRebuildText: all pages put together are the view; the view of a text is
// the text.
func FuzzLinesRebuildText(f *testing.F) {
	for i, s := range hostile {
		f.Add(s, uint16(i*17), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, limit uint16, small bool) {
		if small {
			borders(t)
		}
		raw := textResult(text)
		want := strings.ToValidUTF8(text, "\uFFFD")
		json.Unmarshal(raw[len(`{"content":[{"type":"text","text":`):len(raw)-3], &want) // what the encoder made of it
		d := deskOf(t, raw, 512+int64(limit))
		doc, v, err := d.reading.view(partAuto)
		if err != nil {
			t.Fatal(err)
		}
		if doc.as != "text" { // another view: read it in one piece
			c := cursorAt(v, d.reading.Src, 0)
			want = string(c.take(nil, int(v.n)))
			if doc.as == "indented JSON" {
				var flat, again bytes.Buffer
				if json.Compact(&flat, []byte(want)) == nil {
					c = cursorAt(doc.text, d.reading.Src, 0)
					if json.Compact(&again, c.take(nil, int(doc.text.n))) != nil || flat.String() != again.String() {
						t.Fatalf("indented to other JSON:\n%s\n%s", want, again.String())
					}
				}
			}
		}
		if got := strings.Join(d.all(`{"lines":"1-"}`), ""); got != want {
			t.Fatalf("%s, limit %d:\n%q\n%q", doc.as, d.reading.Limits.Bytes, got, want)
		}
		if !utf8.ValidString(want) {
			t.Fatal("the view is no UTF-8")
		}
		// Lines one by one are the same text.
		if v.lines < 50 {
			var b strings.Builder
			for i := range v.lines {
				b.WriteString(strings.Join(d.all(fmt.Sprintf(`{"lines":"%d"}`, i+1)), ""))
			}
			if b.String() != want {
				t.Fatalf("line by line:\n%q\n%q", b.String(), want)
			}
		}
	})
}

// FuzzRecordsRebuildArray: all pages put together are the elements of the array, with
// their exact bytes; and so is what is derived.
func FuzzRecordsRebuildArray(f *testing.F) {
	for i, s := range append(hostile, `[1, "a\u0041", {"b" :2}]`, `["`+strings.Repeat("é", 500)+`",1,[]]`, `[1.0,-0,1e400,9007199254740993]`) {
		f.Add([]byte(s), uint16(i*11), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, doc []byte, limit uint16, structured bool) {
		borders(t)
		var want []json.RawMessage
		if json.Unmarshal(doc, &want) != nil || want == nil || !utf8.Valid(doc) {
			return
		}
		raw := []byte(`{"structuredContent":` + string(doc) + `}`)
		if !structured {
			raw = textResult(string(doc))
		}
		d := deskOf(t, raw, 512+int64(limit))
		var all strings.Builder
		for _, r := range want {
			all.WriteString(string(r) + "\n")
		}
		got := d.rebuild(`{"records":""}`)
		if got != all.String() {
			t.Fatalf("%q\n%q", got, all.String())
		}
		a, _, _, err := d.try(fmt.Sprintf(`{"records":"","limit":%d}`, max(len(want), 1)))
		if err != nil {
			t.Fatal(err)
		}
		if a.Derived == nil {
			return
		}
		var out bytes.Buffer
		var derived struct{ StructuredContent []json.RawMessage }
		if _, err := a.Derived.WriteTo(&out); err != nil || json.Unmarshal(out.Bytes(), &derived) != nil || len(derived.StructuredContent) != len(want) {
			t.Fatalf("%v %q", err, out.String())
		}
		for i, r := range derived.StructuredContent {
			if string(r) != string(want[i]) {
				t.Fatalf("record %d: %q, was %q", i, r, want[i])
			}
		}
	})
}

// FuzzNextNeverLoops: however often next is followed, it comes to an end.
func FuzzNextNeverLoops(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte(s), uint8(i), uint8(i*7), uint8(i%4), i%2 == 0)
	}
	f.Add([]byte(strings.Repeat("abc\nlong line with abc in it, and again abc\n", 40)), uint8(4), uint8(0), uint8(1), true)
	f.Fuzz(func(t *testing.T, data []byte, sel, limit, lines uint8, small bool) {
		if small {
			borders(t)
		}
		if len(data) > 4096 {
			return
		}
		d := deskOf(t, textResult(string(data)), 512+int64(limit))
		if lines > 0 {
			d.reading.Limits.Lines = int(lines) + 1
		}
		args := selectors[int(sel)%len(selectors)]
		seen := map[string]bool{}
		for range 20 * (len(data) + 10) {
			_, head, _, err := d.try(args)
			next := nextOf(head)
			if err != nil || next == "" {
				return
			}
			if seen[next] {
				t.Fatalf("%s comes back", next)
			}
			seen[next] = true
			args = fmt.Sprintf(`{"next":%q}`, next)
		}
		t.Fatal("it does not come to an end")
	})
}

// FuzzShapeNeverPanics, and is as short as it was asked to be.
func FuzzShapeNeverPanics(f *testing.F) {
	for _, s := range hostile {
		f.Add([]byte(s), uint16(40))
		f.Add(textResult(s), uint16(300))
	}
	f.Fuzz(func(t *testing.T, result []byte, limit uint16) {
		borders(t)
		if s := deskOf(t, result, 0).reading.Shape(int(limit)); len(s) > int(limit) || !utf8.ValidString(s) {
			t.Errorf("limit %d: %d bytes: %q", limit, len(s), s)
		}
	})
}

// FuzzSurveyAgreesWithEncodingJSON on what is one JSON object or array.
func FuzzSurveyAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range hostile {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		borders(t)
		src := bytes.NewReader(data)
		s, err := surveyOf(src, root{src.Size()})
		if err != nil {
			t.Fatal(err)
		}
		first := bytes.TrimLeft(data, " \t\r\n")
		if len(first) == 0 || first[0] != '{' && first[0] != '[' {
			return
		}
		// Escapes are not checked, nor is what lies very deep.
		if is := json.Valid(data); is && !(s.valid && s.values == 1) || !is && s.valid && s.values == 1 && !bytes.ContainsAny(data, `\`) && !bytes.Contains(data, []byte("[[[[")) && !bytes.Contains(data, []byte("{{{{")) {
			t.Errorf("%q: %v, encoding/json says %v", data, s.valid, is)
		}
	})
}

// FuzzTokensAreChecked: a token that was not made for this result is refused, and no
// token does harm.
func FuzzTokensAreChecked(f *testing.F) {
	good := place{nextGrep, 0, []int64{1, 2, 3, 0, 5, 6, 7}, "a"}.token(callID)
	f.Add(good)
	f.Add(place{nextLines, -1, []int64{5, 900}, ""}.token(callID))
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		d := deskOf(t, textResult("some text\nof two lines"), 600)
		p, err := placeOf(callID, token)
		if err == nil && p.token(callID) != token {
			return // another spelling of the same
		}
		if _, err := placeOf("another", token); err == nil {
			t.Errorf("%q holds for another result", token)
		}
		d.reading.Read(Request{Next: token})
		// Whatever a place says, reading at it ends.
		for kind := nextLines; kind <= nextRecords; kind++ {
			for n := range 9 {
				var at []int64
				for i := range n {
					at = append(at, int64(len(token)*i*i))
				}
				d.reading.Read(Request{Next: place{kind, len(token) - 3, at, token}.token(callID)})
			}
		}
	})
}

func TestEveryOffsetOfEveryViewReadsOn(t *testing.T) {
	borders(t)
	for _, s := range append(hostile, issues(5)) {
		d := deskOf(t, textResult(s), 4096)
		_, v, err := d.reading.view(partAuto)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(reader{cursorAt(v, d.reading.Src, 0)})
		if err != nil || int64(len(all)) != v.n {
			t.Fatalf("%q: %d of %d bytes, %v", s, len(all), v.n, err)
		}
		for off := range v.n + 1 {
			c := cursorAt(v, d.reading.Src, off)
			if rest := c.take(nil, 20); c.fault() != nil || !bytes.HasPrefix(all[off:], rest) || len(rest) < int(min(20, v.n-off)) {
				t.Fatalf("%q from %d: %q, %v", s, off, rest, c.fault())
			}
		}
	}
}
