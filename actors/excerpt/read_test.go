package excerpt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const callID = "0123456789abcdef0123456789abcdef"

// textResult is a stored result with one text block.
func textResult(text string) []byte {
	b, _ := json.Marshal(text)
	return []byte(`{"content":[{"type":"text","text":` + string(b) + `}]}`)
}

// bench is one result under reading.
type desk struct {
	t       testing.TB
	reading Reading
}

func deskOf(t testing.TB, result []byte, limit int64) *desk {
	src := bytes.NewReader(result)
	return &desk{t, Reading{Index: NewIndex(src.Size()), Src: src, CallID: callID, GetTool: "mcphub_get_result", Limits: Limits{Bytes: limit}}}
}

// ask reads with raw arguments and returns the header and the body.
func (d *desk) ask(args string) (head, body string) {
	d.t.Helper()
	_, head, body, err := d.try(args)
	if err != nil {
		d.t.Fatalf("%s: %v", args, err)
	}
	return head, body
}

func (d *desk) try(args string) (a Answer, head, body string, err error) {
	d.t.Helper()
	q, err := ParseRequest([]byte(args))
	if err != nil {
		return a, "", "", err
	}
	if a, err = d.reading.Read(q); err != nil {
		return a, "", "", err
	}
	head, body = d.open(a.Result)
	return a, head, body, nil
}

// open takes an answer apart and holds it to its limits.
func (d *desk) open(result []byte) (head, body string) {
	d.t.Helper()
	l := d.reading.Limits
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) != 1 {
		d.t.Fatalf("answer is no result: %v: %.200s", err, result)
	}
	if l.Bytes > 0 && int64(len(result)) > l.Bytes {
		d.t.Errorf("answer of %d bytes under a limit of %d: %.200s", len(result), l.Bytes, result)
	}
	text := r.Content[0].Text
	if n := strings.Count(text, "\n") + 1; l.Lines > 2 && n > l.Lines {
		d.t.Errorf("answer of %d lines under a limit of %d", n, l.Lines)
	}
	head, body, _ = strings.Cut(text, "\n")
	return head, body
}

func nextOf(head string) string {
	_, s, ok := strings.Cut(head, "next=")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(s, "]")
}

// all follows next to the end and returns the bodies.
func (d *desk) all(args string) (bodies []string) {
	d.t.Helper()
	for range 1_000_000 {
		head, body := d.ask(args)
		bodies = append(bodies, body)
		next := nextOf(head)
		if next == "" {
			return bodies
		}
		args = fmt.Sprintf(`{"next":%q,"lines":"1","grep":"ignored","jq":".","part":{},"limit":-1}`, next)
	}
	d.t.Fatal("next never ends")
	return nil
}

// borders puts block borders everywhere for one test.
func borders(t testing.TB) {
	a, b, c, d, e := readSize, markEvery, feedSize, grepWindow, grepOverlap
	t.Cleanup(func() { readSize, markEvery, feedSize, grepWindow, grepOverlap = a, b, c, d, e })
	readSize, markEvery, feedSize, grepWindow, grepOverlap = 7, 5, 3, 64, 16
}

// issues is a page of issues as one line of JSON.
func issues(n int) string {
	var b strings.Builder
	b.WriteString(`{"total":` + fmt.Sprint(n) + `,"items":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"title":"Issue number %d","labels":["bug","p%d"],"user":{"login":"u%d"}}`, i, i, i%3, i%7)
	}
	return b.String() + `],"next":null}`
}

func TestOutlineNamesPartsArraysShapeAndFirstLines(t *testing.T) {
	d := deskOf(t, []byte(`{"content":[{"type":"text","text":"before\nafter"},{"type":"image","mimeType":"image/png","data":"AAAA"},`+
		`{"type":"resource","resource":{"uri":"x://1","mimeType":"application/pdf","blob":"AAAAAAAA"}}],"structuredContent":`+issues(400)+`}`), 4096)
	head, body := d.ask(`{}`)
	for _, want := range []string{
		"part 0: text, 12 bytes, 2 lines, text\n", "part 1: image image/png, ", "(4 of base64)", "part 2: resource application/pdf x://1", "(8 of base64)",
		`part "structured": structuredContent, 32615 bytes`,
		"{total:int,items:[400×{id:int,title:str,labels:[str],user:{login:str}}],next:null}",
		`records "/items": 400 in 32581 bytes`, "\nbefore\nafter\n",
	} {
		if !strings.Contains(head+"\n"+body, want) {
			t.Errorf("%q is missing in\n%s\n%s", want, head, body)
		}
	}
}

func TestOutlineTellsHowLongItsLinesAre(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("é", 3000):                             "… (6000 bytes)",
		strings.Repeat("x", 161):                              "… (161 bytes)",
		strings.Repeat("x", 300<<10) + "\n\nend":              "… (307200 bytes)\n\nend",
		strings.Repeat("x", 162) + "\r\n" + "second\r\nthird": "… (163 bytes)\nsecond\nthird",
	} {
		if _, body := deskOf(t, textResult(text), 4096).ask(`{}`); !strings.HasSuffix(body, want+"\n") {
			t.Errorf("%.9s…: %q", text, body)
		}
	}
}

func TestMinifiedJSONIsShownOneElementALine(t *testing.T) {
	d := deskOf(t, textResult(issues(400)), 4096)
	head, body := d.ask(`{"lines":"-1"}`)
	if want := `{"id":399,"title":"Issue number 399","labels":["bug","p0"],"user":{"login":"u0"}}` + "\n"; body != want {
		t.Errorf("%q", body)
	}
	if !strings.Contains(head, "one element of /items a line") || !strings.Contains(head, "of 400") {
		t.Error(head)
	}
	head, body = d.ask(`{"grep":"number 39\\d","around":1}`)
	if lines := strings.Split(body, "\n"); len(lines) != 12 || !strings.HasPrefix(lines[0], `390-{"id":389,`) || !strings.HasPrefix(lines[1], `391:{"id":390,`) {
		t.Errorf("%s\n%s", head, body)
	}
	d = deskOf(t, textResult(`{"a":{"b":[1,{"c":[]}],"d":"x,y"},"e":{}}`), 4096)
	head, body = d.ask(`{"lines":"1-"}`)
	if want := "{\n  \"a\": {\n    \"b\": [\n      1,\n      {\n        \"c\": []\n      }\n    ],\n    \"d\": \"x,y\"\n  },\n  \"e\": {}\n}\n"; body != want {
		t.Errorf("%s\n%s", head, body)
	}
	if !strings.Contains(head, "indented JSON") {
		t.Error(head)
	}
}

func TestLinesTakesRangesCountsAndTheEnd(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "line %d\r\n", i+1)
	}
	d := deskOf(t, textResult(b.String()), 32<<10)
	for args, want := range map[string]string{
		`{"lines":"120-121"}`:             "line 120\r\nline 121\r\n",
		`{"lines":"120+2"}`:               "line 120\r\nline 121\r\n",
		`{"lines":"-2"}`:                  "line 1999\r\nline 2000\r\n",
		`{"lines":1}`:                     "line 1\r\n",
		`{"lines":"2000-"}`:               "line 2000\r\n",
		`{"lines":"1999-9999"}`:           "line 1999\r\nline 2000\r\n",
		`{"lines":"3000-3010"}`:           "",
		`{"lines":"1","grep":"","jq":""}`: "line 1\r\n",
	} {
		if head, body := d.ask(args); body != want {
			t.Errorf("%s: %s %q", args, head, body)
		}
	}
	for _, bad := range []string{`{"lines":"0-3"}`, `{"lines":"x"}`, `{"lines":"9-3"}`, `{"lines":"3+0"}`, `{"lines":"-"}`, `{"lines":"--3"}`, `{"lines":{}}`,
		`{"lines":"1","grep":"x"}`, `{"grep":"a(b"}`, `{"part":5}`, `{"part":"x"}`, `{"offset":-1,"records":""}`, `{"next":"AAAA"}`, `[]`, `{`} {
		if _, _, _, err := d.try(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, _, _, err := d.try(`{"grep":"a(b[c"}`); err == nil || !strings.Contains(err.Error(), "byte 3") {
		t.Error("the place of a mistake:", err)
	}
}

// TestC46PagesNeverCutACharacter: at every size, every page is valid text and all of
// them together are the text.
func TestC46PagesNeverCutACharacter(t *testing.T) {
	text := strings.Repeat("é読😀é\u0301a\r\n\x01\"\\", 40) + strings.Repeat("読😀", 200)
	for limit := int64(512); limit < 532; limit++ {
		d := deskOf(t, textResult(text), limit)
		if got := strings.Join(d.all(`{"lines":"1-"}`), ""); got != text {
			t.Fatalf("limit %d: %d bytes came back as %d", limit, len(text), len(got))
		}
	}
}

// TestC14NoAnswerHasMoreLinesOrBytesThanTheAgentTakes, the header counted.
func TestC14NoAnswerHasMoreLinesOrBytesThanTheAgentTakes(t *testing.T) {
	for name, text := range map[string]string{
		"many":  strings.Repeat("ab\n", 600),
		"one":   strings.Repeat("x", 1<<20),
		"short": strings.Repeat("line of text\n", 30_000),
	} {
		for _, lines := range []int{2, 3, 4, 256} {
			if lines < 256 && len(text) > 10_000 {
				continue
			}
			d := deskOf(t, textResult(text), 10_000)
			d.reading.Limits.Lines = lines
			if got := strings.Join(d.all(`{"lines":"1-"}`), ""); got != text {
				t.Errorf("%s, %d lines: %d bytes came back as %d", name, lines, len(text), len(got))
			}
			for _, args := range []string{`{}`, `{"grep":"."}`, `{"records":""}`} {
				if _, _, _, err := d.try(args); err != nil {
					t.Errorf("%s, %d lines, %s: %v", name, lines, args, err)
				}
			}
		}
	}
	d := deskOf(t, textResult("x"), 0)
	d.reading.Limits.Lines = 1
	if _, _, _, err := d.try(`{"lines":"1"}`); err == nil || !strings.Contains(err.Error(), "max_lines") {
		t.Error(err)
	}
}

// TestC13ALargeTextIsReadWithItsHeadTailAndSize
func TestC13ALargeTextIsReadWithItsHeadTailAndSize(t *testing.T) {
	var b strings.Builder
	for i := 1; b.Len() < 540<<10; i++ {
		fmt.Fprintf(&b, "- node %d:\n    role: link # %d\n", i, i*7)
	}
	n := strings.Count(b.String(), "\n")
	d := deskOf(t, textResult(b.String()), 10_000)
	head, body := d.ask(`{}`)
	if !strings.Contains(body, fmt.Sprintf("%d bytes, %d lines", b.Len(), n)) || !strings.Contains(body, "- node 1:") || !strings.Contains(head, callID) {
		t.Errorf("%s\n%s", head, body)
	}
	if _, body := d.ask(`{"lines":"-1"}`); !strings.HasSuffix(b.String(), body) || body == "" {
		t.Errorf("tail %q", body)
	}
	if got := strings.Join(d.all(`{"part":0}`), ""); got != b.String() {
		t.Errorf("%d bytes came back as %d", b.Len(), len(got))
	}
}

// TestC36MediaComeInTheirOwnType, exactly as the server wrote the block.
func TestC36MediaComeInTheirOwnType(t *testing.T) {
	image := `{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("QUJD", 500) + `","annotations":{"audience":["user"]}}`
	raw := []byte(`{"content":[{"type":"text","text":"before"},` + image + `,{"type":"audio","mimeType":"audio/wav","data":"` + strings.Repeat("A", 50_000) + `"},{"type":"text","text":"after"}]}`)
	d := deskOf(t, raw, 4096)
	q, err := ParseRequest([]byte(`{"part":1}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.reading.Read(q)
	if err != nil || string(a.Result) != `{"content":[`+image+`]}` {
		t.Errorf("%v %.200s", err, a.Result)
	}
	_, _, _, err = d.try(`{"part":"2"}`)
	var from, to int
	if err == nil || !strings.Contains(err.Error(), "audio audio/wav") {
		t.Fatal("a block over the limit:", err)
	}
	if _, e := fmt.Sscanf(err.Error()[strings.Index(err.Error(), "cursor "):], "cursor %d to %d", &from, &to); e != nil || !bytes.HasPrefix(raw[from:], []byte(`{"type":"audio"`)) || raw[to-1] != '}' {
		t.Error("where its bytes are:", err)
	}
	if head, body := d.ask(`{"lines":"1-"}`); body != "before\nafter" {
		t.Errorf("the text around: %s %q", head, body)
	}
	if head, body := d.ask(`{"part":3}`); body != "after" {
		t.Errorf("a text part: %s %q", head, body)
	}
}

// TestC37EmptyTextDoesNotHideTheData: a reader who names no part gets to see what the
// receipt showed.
func TestC37EmptyTextDoesNotHideTheData(t *testing.T) {
	for _, content := range []string{`[]`, `[{"type":"text","text":""}]`, `[{"type":"text","text":""},{"type":"image","data":"QUJD"},{"type":"text","text":""}]`} {
		d := deskOf(t, []byte(`{"content":`+content+`,"structuredContent":{"projects":[{"id":1},{"id":2}]}}`), 4096)
		for _, args := range []string{`{"lines":"1-"}`, `{"grep":"2"}`, `{"records":""}`} {
			if head, body := d.ask(args); !strings.HasPrefix(head, "[structuredContent, ") || !strings.Contains(body, `{"id":2}`) {
				t.Errorf("%s, %s: %s\n%s", content, args, head, body)
			}
		}
	}
	d := deskOf(t, []byte(`{"content":[{"type":"text","text":"2 projects"}],"structuredContent":{"projects":[{"id":1},{"id":2}]}}`), 4096)
	for args, want := range map[string]bool{`{"grep":"id"}`: true, `{"grep":"2"}`: false, `{"grep":"id","part":0}`: false, `{"grep":"none","part":"structured"}`: false} {
		if head, _ := d.ask(args); strings.Contains(head, `; part "structured" has more]`) != want {
			t.Errorf("%s: %s", args, head)
		}
	}
}

// TestResourcesAndPromptsAreReadLikeTools: what stands in contents and in messages are
// parts, too.
func TestResourcesAndPromptsAreReadLikeTools(t *testing.T) {
	log := strings.Repeat("a line\n", 99) + "the last"
	text, _ := json.Marshal(log)
	blob := `{"uri":"x://b","mimeType":"application/pdf","blob":"QUJDRA=="}`
	for result, args := range map[string]string{
		`{"contents":[` + blob + `,{"uri":"x://a","mimeType":"text/plain","text":` + string(text) + `}],"_meta":{"content":1}}`:                   `1`,
		`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":` + string(text) + `}}]}`:                                  `0`,
		`{"messages":[{"content":[{"type":"image","data":"QUJD"},{"type":"text","text":` + string(text) + `}],"role":"user"},{"role":"user"},7]}`: `1`,
		`{"messages":[{"x":1}],"content":[{"type":"text","text":` + string(text) + `}],"contents":[` + blob + `]}`:                                `0`,
	} {
		d := deskOf(t, []byte(result), 4096)
		for _, args := range []string{`{"lines":"-1"}`, `{"part":` + args + `,"lines":"-1"}`, `{"grep":"last"}`, `{"records":"","offset":99}`} {
			if head, body := d.ask(args); !strings.Contains(body, "the last") || !strings.Contains(head, "of 100") || !strings.HasPrefix(head, "[part ") {
				t.Errorf("%.30s, %s: %s\n%s", result, args, head, body)
			}
		}
	}
	d := deskOf(t, []byte(`{"contents":[`+blob+`]}`), 4096)
	q, _ := ParseRequest([]byte(`{"part":0}`))
	if a, err := d.reading.Read(q); err != nil || string(a.Result) != `{"content":[{"type":"resource","resource":`+blob+`}]}` {
		t.Errorf("%v %s", err, a.Result)
	}
	if _, body := d.ask(`{}`); !strings.Contains(body, "part 0: resource application/pdf x://b, ") {
		t.Error(body)
	}
}

func TestGrepShowsWhatIsAroundMatchesInAVeryLongLine(t *testing.T) {
	line := strings.Repeat("abcdefghij", 500_000)
	at := []int{0, 99_990, 1_048_570, 3_000_000, 4_999_990}
	b := []byte(line)
	for i, a := range at {
		copy(b[a:], fmt.Sprintf("NEEDLE%04d", i))
	}
	for name, text := range map[string]string{"alone": string(b), "among": "first\n" + string(b) + "\nNEEDLE last\n"} {
		d := deskOf(t, textResult(text), 700)
		got := ""
		for args, most := range map[string]int{`{"grep":"NEEDLE\\d+"}`: 5, `{"grep":"NEEDLE\\d+","limit":2}`: 2} {
			pages := d.all(args)
			got = strings.Join(pages, "")
			for i := range at {
				if n := strings.Count(got, fmt.Sprintf("NEEDLE%04d", i)); n != 1 {
					t.Errorf("%s, %s: match %d is shown %d times", name, args, i, n)
				}
			}
			if strings.Contains(got, "NEEDLE last") {
				t.Error("a line that does not match is shown")
			}
			for _, p := range pages {
				if n := strings.Count(p, "NEEDLE"); n > most {
					t.Errorf("%s, %s: %d matches on a page", name, args, n)
				}
			}
		}
		got = strings.Join(d.all(`{"grep":"(?i)needle"}`), "")
		if n := strings.Count(got, "NEEDLE"); n != 5+strings.Count(name, "among") {
			t.Errorf("%s: %d matches", name, n)
		}
	}
}

func TestGrepCountsAndGoesOnWithoutGapOrOverlap(t *testing.T) {
	var b strings.Builder
	want := map[int]bool{}
	for i := 1; i <= 5000; i++ {
		if i%17 == 0 {
			fmt.Fprintf(&b, "%d ERROR something happened\n", i)
			for j := i - 2; j <= i+2; j++ {
				want[j] = j >= 1 && j <= 5000
			}
		} else {
			fmt.Fprintf(&b, "%d all is well\n", i)
		}
	}
	for _, pattern := range []string{"ERROR", "(?i)error", "E[R]ROR.*ed$", "^\\\\d+ ERROR"} {
		for _, small := range []bool{false, true} {
			t.Run(fmt.Sprint(pattern, small), func(t *testing.T) {
				if small {
					borders(t)
				}
				d := deskOf(t, textResult(b.String()), 900)
				head, _ := d.ask(`{"grep":"` + pattern + `"}`)
				if !strings.Contains(head, "of 294,") {
					t.Error(head)
				}
				seen := map[int]bool{}
				last := 0
				for _, page := range d.all(`{"grep":"` + pattern + `","around":2}`) {
					for l := range strings.Lines(page) {
						var n, m int
						var sign byte
						if l == "--\n" {
							continue
						}
						if _, err := fmt.Sscanf(l, "%d%c%d ", &n, &sign, &m); err != nil || n != m || n <= last || (sign == ':') != (n%17 == 0) {
							t.Fatalf("line %q after %d: %v", l, last, err)
						}
						last, seen[n] = n, true
					}
				}
				for n := range want {
					if want[n] && !seen[n] {
						t.Fatalf("line %d is missing", n)
					}
				}
				if len(seen) > len(want) {
					t.Errorf("%d lines are shown, %d wanted", len(seen), len(want))
				}
			})
		}
	}
}

// TestGrepWithALimitShowsSoManyMatchesAPage, and all of them in the end, each with
// the lines around it. In a long line each place counts.
func TestGrepWithALimitShowsSoManyMatchesAPage(t *testing.T) {
	var b strings.Builder
	long := strings.Repeat("x", 4000)
	for i := 1; i <= 300; i++ {
		switch {
		case i%7 == 0 || i == 50: // 49 and 50 stand side by side
			fmt.Fprintf(&b, "%d HIT\n", i)
		case i == 120: // 119 too
			fmt.Fprintf(&b, "%d HIT %s HIT\n", i, long)
		default:
			fmt.Fprintf(&b, "%d\n", i)
		}
	}
	for _, small := range []bool{false, true} {
		for _, around := range []int{0, 2, 9} {
			for _, limit := range []int{1, 2, 3, 100} {
				if small {
					borders(t)
				}
				d := deskOf(t, textResult(b.String()), 8<<10)
				args := fmt.Sprintf(`{"grep":"HIT","around":%d,"limit":%d}`, around, limit)
				if head, _ := d.ask(args); !strings.Contains(head, fmt.Sprintf("matching lines 1-%d of 44,", min(limit, 44))) {
					t.Errorf("%s: %s", args, head)
				}
				hits, lines, last := 0, map[int]bool{}, 0
				for _, page := range d.all(args) {
					on := 0
					for l := range strings.Lines(page) {
						var n int
						if l == "--\n" {
							continue
						}
						if _, err := fmt.Sscan(l[:strings.IndexAny(l, ":@-")], &n); err != nil || n < last || n == last && n != 120 {
							t.Fatalf("%s: line %.50q after %d: %v", args, l, last, err)
						}
						if last++; around == 9 && n > last && n > 7 {
							t.Fatalf("%s: lines %d to %d are missing", args, last, n-1)
						}
						last = n
						if strings.Contains(l, "HIT") {
							on++
							lines[n] = true
						}
					}
					if hits += on; on > limit {
						t.Errorf("%s: %d matches on a page", args, on)
					}
				}
				if hits != 45 || len(lines) != 44 {
					t.Errorf("%s: %d matches in %d lines on all pages", args, hits, len(lines))
				}
			}
		}
	}
}
