package budget

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShapeTellsHowTheDataIsBuilt(t *testing.T) {
	row := `{"id":1,"title":"` + strings.Repeat("x", 80) + `","tags":["a"],"n":1.5}`
	rows := func(n int) string { return strings.TrimSuffix(strings.Repeat(row+",", n), ",") }
	for in, want := range map[string]string{
		`{"items":[` + rows(3) + `],"total":3}`: `{items:[3×{id:int,title:str,tags:[str],n:num}],total:int}`,
		`[1,2,3]`:                               `[3×int]`,
		`[]`:                                    `[0]`,
		`{}`:                                    `{}`,
		`{"a":[],"b":{},"c":null,"d":true}`:     `{a:[0],b:{},c:null,d:bool}`,
		`[1,2.5,"x",null,{"a":1},[2]]`:          `[6×{a:int}|[int]|str|num|null]`,
		`[{"a":1},{"a":"x","b":2}]`:             `[2×{a:str|int,b?:int}]`,
		`{"a b":1,"":2,"1x":3,"é":4,"x-y":5,"$r":6}`:   `{"a b":int,"":int,"1x":int,"é":int,x-y:int,$r:int}`,
		"{\"a\":1}\n{\"a\":2}\n":                       `2×{a:int}`,
		`[` + rows(500) + `]`:                          `[67+×{id:int,title:str,tags:[str],n:num}]`,
		`{"items":[` + rows(500) + `],"total":9}`:      `{items:[67+×{id:int,title:str,tags:[str],n:num}],…}`,
		strings.Repeat(row+"\n", 500):                  `67+×{id:int,title:str,tags:[str],n:num}`,
		`plain text`:                                   ``,
		`{not json}`:                                   ``,
		`[2026-01-02] log line`:                        ``,
		`{"a":1} and then text`:                        ``,
		`["a"` + strings.Repeat(" x", 9000):            ``,
		`[info] ` + strings.Repeat("log line\n", 9000): ``,
		`{"a":"` + strings.Repeat("x", 20000) + `"}`:   `{a:str,…}`,
		`"a"`: ``,
		``:    ``,
	} {
		for _, f := range []Facts{scan(textResultOf(in)), scan([]byte(`{"content":[],"structuredContent":` + in + `}`))} {
			if f.Structured && !strings.HasPrefix(want, "{") && !strings.HasPrefix(want, "[") {
				continue // no JSON
			}
			if got := f.Shape(300); got != want {
				t.Errorf("%.60s: %q, want %q", in, got, want)
			}
		}
	}
}

func TestShapeIsCutToWhatFits(t *testing.T) {
	f := scan([]byte(`{"content":[],"structuredContent":{"one":{"two":{"three":[{"four":1}]}},"five":2,"six":3,"seven":[4]}}`))
	last := 1 << 30
	for limit := 100; limit > 0; limit-- {
		got := f.Shape(limit)
		if len(got) > limit || len(got) > last {
			t.Fatalf("limit %d: %s", limit, got)
		}
		last = len(got)
	}
	if got := f.Shape(40); !strings.HasPrefix(got, "{one:{") || !strings.Contains(got, "…") {
		t.Errorf("%s", got)
	}
}

// FuzzShapeFitsAndNeverPanics: whatever a result begins with.
func FuzzShapeFitsAndNeverPanics(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"a":2}`), uint8(100))
	f.Add([]byte("{\"\xff\":[[[[[[[[[[1]]]]]]]]]]}\n{\"x\":"), uint8(9))
	f.Fuzz(func(t *testing.T, text []byte, limit uint8) {
		facts := Facts{Head: clean(string(text))}
		for _, facts.Between = range []int64{0, 99} {
			if s := facts.Shape(int(limit)); len(s) > int(limit) || !utf8.ValidString(s) {
				t.Fatalf("limit %d: %q", limit, s)
			}
		}
	})
}

func BenchmarkShape(b *testing.B) {
	f := scan([]byte(`{"content":[],"structuredContent":[` + strings.Repeat(`{"id":1234567,"name":"some name","tags":["a","b"],"score":0.25},`, 8000) + `0]}`))
	for b.Loop() {
		f.Shape(300)
	}
}
