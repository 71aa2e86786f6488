package budget

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// scan feeds b in pieces of the given sizes, the last one again and again.
func scan(b []byte, sizes ...int) Facts {
	var s Scanner
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(sizes) > 0 {
			n = min(n, max(1, sizes[min(i, len(sizes)-1)]))
		}
		piece := bytes.Clone(b[:n])
		s.Write(piece)
		clear(piece) // the scanner may not keep what it was given
		b = b[n:]
	}
	return s.Facts()
}

// textResultOf is a result with one text block, as encoding/json writes it.
func textResultOf(text string) []byte {
	q, _ := json.Marshal(text)
	return []byte(`{"content":[{"type":"text","text":` + string(q) + `}]}`)
}

func TestFactsSayWhatTheResultHolds(t *testing.T) {
	type want struct {
		lines      int64
		isError    bool
		meta, kind string
		structured bool
		head       string
	}
	for name, c := range map[string]struct {
		in string
		want
	}{
		"text":                  {`{"content":[{"type":"text","text":"a\nb"}]}`, want{lines: 2, head: "a\nb"}},
		"ended line":            {`{"content":[{"type":"text","text":"a\nb\n"}]}`, want{lines: 2, head: "a\nb\n"}},
		"empty text":            {`{"content":[{"type":"text","text":""}]}`, want{}},
		"type after text":       {`{"content":[{"text":"a","type":"text"}]}`, want{lines: 1, head: "a"}},
		"blocks on own lines":   {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"},{"type":"text","text":"c"}]}`, want{lines: 3, head: "a\nb\nc"}},
		"escaped line break":    {`{"content":[{"type":"text","text":"a\u000ab\\nc"}]}`, want{lines: 2, head: "a\nb\\nc"}},
		"embedded resource":     {`{"content":[{"type":"resource","resource":{"uri":"x","text":"a\nb"}}]}`, want{lines: 2, head: "a\nb"}},
		"text elsewhere":        {`{"text":"no","content":[{"type":"x","deep":{"text":"no"}},["text","no"]],"more":{"content":[{"text":"no"}]}}`, want{}},
		"structured only":       {`{"content":[],"structuredContent": {"a":[1,2]} }`, want{structured: true, head: `{"a":[1,2]}`}},
		"structured first":      {`{"structuredContent":{"content":[{"text":"no"}]},"content":[{"type":"text","text":"yes"}]}`, want{structured: true, lines: 1, head: "yes"}},
		"structured null":       {`{"content":[],"structuredContent": null }`, want{}},
		"error":                 {`{"content":[],"isError": true }`, want{isError: true}},
		"last isError counts":   {`{"isError":true,"content":[],"isError":false}`, want{}},
		"isError inside":        {`{"content":[{"isError":true}],"structuredContent":{"isError":true}}`, want{structured: true, head: `{"isError":true}`}},
		"isError of other type": {`{"isError":"true"}`, want{}},
		"escaped key":           {`{"\u0069sError":true,"cont\u0065nt":[{"\u0074ext":"a"}]}`, want{isError: true, lines: 1, head: "a"}},
		"meta":                  {`{"_meta": {"a":[{"_meta":1}],"b":"}"} ,"content":[]}`, want{meta: `{"a":[{"_meta":1}],"b":"}"}`}},
		"meta not an object":    {`{"_meta":[1],"content":[]}`, want{}},
		"meta too large":        {`{"_meta":{"a":"` + strings.Repeat("x", maxMeta) + `"}}`, want{}},
		"last content counts":   {`{"content":[{"text":"a\nb"}],"content":[{"text":"c"}]}`, want{lines: 1, head: "c"}},
		"result type":           {`{"resultType":"input_required","inputRequests":{}}`, want{kind: "input_required"}},
		"surrogate pair":        {`{"content":[{"text":"\ud83d\ude00"}]}`, want{lines: 1, head: "😀"}},
		"lone surrogates":       {`{"content":[{"text":"\ud83d|\udc00\ud800|\ud800\n\ud800\\"}]}`, want{lines: 2, head: "\ufffd|\ufffd\ufffd|\ufffd\n\ufffd\\"}},
		"malformed escapes":     {`{"content":[{"text":"\x|\u12|\u12G|\u1"}],"isError":true}`, want{lines: 1, isError: true, head: "\ufffd|\ufffd|\ufffdG|\ufffd"}},
		"not an object":         {`[{"isError":true,"content":[{"text":"no"}]}]`, want{}},
		"cut":                   {`{"isError":true,"content":[{"text":"a\nb`, want{isError: true, lines: 1, head: "a\nb"}},
		"nothing":               {``, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := scan([]byte(c.in))
			got := want{f.Lines, f.IsError, string(f.Meta), f.ResultType, f.Structured, f.Head}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			sum := sha256.Sum256([]byte(c.in))
			if f.SHA256 != hex.EncodeToString(sum[:]) || f.Bytes != int64(len(c.in)) {
				t.Errorf("hash or size is not of the bytes that passed")
			}
		})
	}
}

func TestBlocksAreListedInOrderUpToABound(t *testing.T) {
	image := `{"data":"QUJD","type":"image","mimeType":"image/png"}`
	odd := `{ "type": "x\u002dy" , "n": [1, {}] }`
	in := `{"content":[` + image + `, ` + odd + strings.Repeat(`,{}`, maxBlocks) + `]}`
	f := scan([]byte(in))
	at := func(s string) int64 { return int64(strings.Index(in, s)) }
	want := []Block{
		{Type: "image", Mime: "image/png", Bytes: int64(len(image)), At: at(image), Data: Span{at(`"QUJD"`), at(`"QUJD"`) + 6}},
		{Type: "x-y", Bytes: int64(len(odd)), At: at(odd)},
		{Bytes: 2, At: at(odd) + int64(len(odd)) + 1},
	}
	if !reflect.DeepEqual(f.Blocks[:3], want) || len(f.Blocks) != maxBlocks || f.More != 2 {
		t.Errorf("blocks %+v, %d of them, %d more", f.Blocks[:3], len(f.Blocks), f.More)
	}
}

func TestC46PreviewEndsOnWholeCharacters(t *testing.T) {
	for _, unit := range []string{"é", "読", "😀", "e\u0301", "\r\n", "a"} {
		for shift := range 9 {
			text := strings.Repeat("x", shift) + strings.Repeat(unit, 20_000)
			f := scan(textResultOf(text), 1000)
			if !strings.HasPrefix(text, f.Head) || !strings.HasSuffix(text, f.Tail) ||
				!utf8.ValidString(f.Head) || !utf8.ValidString(f.Tail) {
				t.Fatalf("%q shifted by %d: ends are not ends of the text", unit, shift)
			}
			if len(f.Head) <= headMax-utf8.UTFMax || len(f.Tail) <= tailMax-utf8.UTFMax {
				t.Errorf("%q shifted by %d: more was dropped than a split character", unit, shift)
			}
			if n := int64(len(f.Head)+len(f.Tail)) + f.Between; n != int64(len(text)) {
				t.Errorf("%q shifted by %d: %d bytes of text, want %d", unit, shift, n, len(text))
			}
		}
	}
}

func TestHeadAndTailJoinWhereNothingLiesBetween(t *testing.T) {
	for n := headMax - 5; n < headMax+tailMax+5; n += 3 {
		text := strings.Repeat("読", n/3) + "end"
		f := scan(textResultOf(text), 777)
		if f.Between == 0 && f.Head+f.Tail != text {
			t.Fatalf("%d bytes: ends do not give the text", len(text))
		}
		if f.Between == 0 != (len(text) <= headMax+tailMax) {
			t.Fatalf("%d bytes: %d between", len(text), f.Between)
		}
	}
}

func TestC103ControlsAndBrokenTextAreCountedAsBytesAndShownAsCharacters(t *testing.T) {
	in := []byte("{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000b\\ud83d\\u2028\ufeff\x7f\x1b[0m\xff\xfe\"}]}")
	f := scan(in)
	if f.Head != "a\x00b\ufffd\u2028\ufeff\x7f\x1b[0m\ufffd" {
		t.Errorf("preview %q", f.Head)
	}
	sum := sha256.Sum256(in)
	if f.SHA256 != hex.EncodeToString(sum[:]) {
		t.Error("hash is not of the bytes that passed")
	}
}

func TestScannerMemoryIsBounded(t *testing.T) {
	var s Scanner
	s.Write([]byte(`{"content":[{"type":"text","text":"`))
	piece := bytes.Repeat([]byte(`line of text\n`), 1<<12)
	for range 16 {
		s.Write(piece)
	}
	if n := testing.AllocsPerRun(20, func() { s.Write(piece) }); n != 0 {
		t.Errorf("%v allocations for another piece", n)
	}
}

// TestALeapOverTheMiddleMissesNothing: fed byte by byte there is nothing to leap over.
func TestALeapOverTheMiddleMissesNothing(t *testing.T) {
	plain := []string{"a", "some words ", `\n`, `\"`, `\\\\`, `\t`, `\/`, "日本語", "n", `{\"k\":[1,2]}`}
	odd := []string{`\u00e9`, `\ud83d\ude00`, `\ud83d`, `\x`, `\u000a`, "\xff", "\n"}
	for round := range 60 {
		var text strings.Builder
		for size := 10_000 + rand.IntN(60_000); text.Len() < size; {
			if rand.IntN(2000) < round/10 {
				text.WriteString(odd[rand.IntN(len(odd))])
			} else {
				text.WriteString(plain[rand.IntN(len(plain))])
			}
		}
		b := []byte(`{"content":[{"type":"text","text":"` + text.String() + `"},{"type":"text","text":"` + text.String()[:rand.IntN(9000)] + `"}]}`)
		want := scan(b, 1)
		for _, sizes := range [][]int{{len(b)}, {20_000}, {9_000, 17}, {1 + rand.IntN(len(b)), 64 << 10}} {
			if got := scan(b, sizes...); !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, in pieces of %v:\n%+v\nbyte by byte:\n%+v", round, sizes, got, want)
			}
		}
	}
}

// FuzzFactsIgnoreChunking: how the bytes are cut makes no difference, and what
// the facts say of valid JSON is what a decoder says.
func FuzzFactsIgnoreChunking(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a\n\ud83d\ude00\\\"b"},{"type":"resource","resource":{"text":"c"}}],"isError":true}`), uint8(1), uint8(3))
	f.Add([]byte(`{"_meta":{"a":"\u12"},"structuredContent": [1,"x"] ,"resultType":"complete"}`), uint8(7), uint8(2))
	f.Add([]byte(`{"content":[{"text":"\ud83d\ud83d\ude00\x\u1"`), uint8(5), uint8(1))
	f.Add([]byte("{\"content\":[{\"text\":\"\xff\xf0\x9f\"}],\"structuredContent\":null}"), uint8(2), uint8(9))
	f.Fuzz(func(t *testing.T, b []byte, first, then uint8) {
		whole := scan(b)
		for _, sizes := range [][]int{{1}, {int(first), int(then)}, {len(b) / 2, 3}} {
			if cut := scan(b, sizes...); !reflect.DeepEqual(whole, cut) {
				t.Fatalf("in pieces of %v:\n%+v\nin one:\n%+v", sizes, cut, whole)
			}
		}
		if !utf8.ValidString(whole.Head) || !utf8.ValidString(whole.Tail) {
			t.Fatal("preview is not text")
		}
		agree(t, b, whole)
	})
}

// agree compares f with what encoding/json makes of b, as far as the two treat
// keys in the same way.
func agree(t *testing.T, b []byte, f Facts) {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil || m == nil {
		return
	}
	if f.IsError != (string(m["isError"]) == "true") {
		t.Fatalf("isError is %v in %s", f.IsError, b)
	}
	sc, ok := m["structuredContent"]
	if f.Structured != (ok && string(sc) != "null") {
		t.Fatalf("structured is %v in %s", f.Structured, b)
	}
	if meta := m["_meta"]; len(meta) > 0 && meta[0] == '{' && len(meta) <= maxMeta && !bytes.Equal(meta, f.Meta) {
		t.Fatalf("meta is %s in %s", f.Meta, b)
	}
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(m["content"], &blocks) != nil || len(blocks) != 1 {
		return
	}
	var text string
	if raw := blocks[0]["text"]; len(blocks[0]) > 1 || len(raw) == 0 || raw[0] != '"' ||
		json.Unmarshal(raw, &text) != nil || bytes.Count(b, []byte("text")) > 1 || bytes.Contains(b, []byte(`\u`)) || !utf8.Valid(b) {
		return
	}
	if f.Head+f.Tail != text && f.Between == 0 && text != "" {
		t.Fatalf("text is %q, want %q", f.Head+f.Tail, text)
	}
	lines := int64(strings.Count(text, "\n"))
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	if f.Lines != lines {
		t.Fatalf("%d lines in %q, want %d", f.Lines, text, lines)
	}
}

func BenchmarkScan(b *testing.B) {
	row := `{"id":1234567,"name":"some name","tags":["a","b"],"score":0.25,"note":"a longer piece of text that stands here"},`
	minified := "[" + strings.Repeat(row, 8000) + "0]"
	for _, c := range []struct {
		name string
		in   []byte
	}{
		{"log text", textResultOf(strings.Repeat("2026-01-02 03:04:05 INFO some component said something worth a line\n", 14000))},
		{"JSON in text", textResultOf(minified)},
		{"structured", []byte(`{"content":[],"structuredContent":` + minified + `}`)},
		{"image", []byte(`{"content":[{"type":"image","data":"` + strings.Repeat("QUJD", 250_000) + `"}]}`)},
		{"numbers", []byte(`{"content":[],"structuredContent":[` + strings.Repeat("12345,", 160_000) + `0]}`)},
	} {
		for _, size := range []int{16 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%s/%dK", c.name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(c.in)))
				for b.Loop() {
					var s Scanner
					for in := c.in; len(in) > 0; {
						n := min(size, len(in))
						s.scan(in[:n]) // without the hash, which is the hardware's business
						s.f.Bytes += int64(n)
						in = in[n:]
					}
				}
			})
		}
	}
}
