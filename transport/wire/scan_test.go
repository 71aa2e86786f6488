package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEnvelopeMembersAreFound(t *testing.T) {
	msg := []byte(`  {"result" : {"a":"}\"]","b":[1,{"c":null}]} ,"jsonrpc":"2.0", "id":4294967296}` + "\r")
	e, err := ScanEnvelope(msg)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		at         Span
	}{
		{"result", `{"a":"}\"]","b":[1,{"c":null}]}`, e.Result},
		{"jsonrpc", `"2.0"`, e.Version},
		{"id", `4294967296`, e.ID},
		{"method", ``, e.Method},
	} {
		if got := string(c.at.Of(msg)); got != c.want {
			t.Errorf("%s = %s, want %s", c.name, got, c.want)
		}
	}
	if e.Odd {
		t.Error("a plain message is odd")
	}
}

func TestDuplicateAndEscapedMembersAreOdd(t *testing.T) {
	for msg, odd := range map[string]bool{
		`{"id":1,"result":{}}`:                                        false,
		`{"id":1,"id":2,"result":{}}`:                                 true,
		`{"\u0069d":1,"result":{}}`:                                   true,
		`{"id":1,"\u0069\u0064":2,"result":{}}`:                       true,
		`{"id":1,"r\u0065sult":{}}`:                                   true,
		`{"id":1,"a\u0069d":2,"x\n":3}`:                               false,
		`{"id":1,"params":{"id":2,"id":3}}`:                           false,
		`{"id":1,"\u006A\u0073\u006F\u006E\u0072\u0070\u0063":"2.0"}`: true,
	} {
		e, err := ScanEnvelope([]byte(msg))
		if err != nil || e.Odd != odd {
			t.Errorf("%s: odd=%v err=%v, want odd=%v", msg, e.Odd, err, odd)
		}
	}
}

func TestCutMessageStillShowsItsID(t *testing.T) {
	msg := []byte(`{"jsonrpc":"2.0","id":4294967297,"result":{"content":[`)
	e, err := ScanEnvelope(msg)
	if !errors.Is(err, ErrScan) || string(e.ID.Of(msg)) != "4294967297" {
		t.Errorf("id %q, err %v", e.ID.Of(msg), err)
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, msg := range []string{
		"", " ", "null", "[1,2]", `"x"`, "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a":1}x`, `{"a":1}{"b":2}`,
		`{"a":"`, `{"a":"\"}`, `{"a":[1}`, strings.Repeat("[", 100000), `{"a":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "}",
	} {
		if _, err := ScanEnvelope([]byte(msg)); !errors.Is(err, ErrScan) {
			t.Errorf("%.40q: err %v", msg, err)
		}
	}
}

func TestFlattenKeepsTheCallersBytes(t *testing.T) {
	in := []byte("{\r\n \"a\":\n1}")
	got := Flatten([]byte("\n"), in)
	if string(got) != "\n{   \"a\": 1}" || string(in) != "{\r\n \"a\":\n1}" {
		t.Errorf("got %q, input now %q", got, in)
	}
}

// FuzzScannerNeverPanics also holds the scanner to encoding/json: what is valid
// there has the same members here.
func FuzzScannerNeverPanics(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":[1,2,{"b":"\\\""}]}}`, `{"\u0069d":1,"id":2}`, `{"a":"\\\\\\"}`, `{}`, ` { } `, `[[[`, `{"a":1e5,"b":-0}`, "{\"a\"\n:\t{}\r}", `{"a":tru`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ScanEnvelope(b)
		for _, s := range []Span{e.Version, e.ID, e.Method, e.Params, e.Result, e.Error} {
			s.Of(b)
		}
		if !json.Valid(b) || len(bytes.TrimSpace(b)) == 0 || bytes.TrimSpace(b)[0] != '{' {
			return
		}
		if err != nil {
			t.Fatalf("valid object refused: %q", b)
		}
		seen := map[string]json.RawMessage{}
		dup := false
		_ = ScanObject(b, func(key []byte, v Span) bool {
			var k string
			if err := json.Unmarshal([]byte(`"`+string(key)+`"`), &k); err != nil {
				t.Fatalf("key %q of %q", key, b)
			}
			_, twice := seen[k]
			dup = dup || twice
			seen[k] = v.Of(b)
			return true
		})
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if len(want) != len(seen) {
			t.Fatalf("%q: %d members, want %d", b, len(seen), len(want))
		}
		for k, v := range want {
			if !bytes.Equal(bytes.TrimSpace(v), seen[k]) {
				t.Fatalf("%q: %s is %q, want %q", b, k, seen[k], v)
			}
		}
		if id, ok := want["id"]; ok && !e.Odd && !bytes.Equal(id, e.ID.Of(b)) {
			t.Fatalf("%q: id %q, want %q", b, e.ID.Of(b), id)
		}
	})
}

func BenchmarkScanEnvelope(b *testing.B) {
	text := `{"jsonrpc":"2.0","id":4294967296,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`line of \"text\" here\n`, 1500) + `"}]}}`
	rows := `{"result":{"content":[],"structuredContent":{"rows":[` + strings.Repeat(`{"file":"a.go","line":12,"text":"x y z"},`, 800) + `0]}},"jsonrpc":"2.0","id":4294967296}`
	small := `{"jsonrpc":"2.0","id":4294967296,"result":{"content":[{"type":"text","text":"hello"}]}}`
	for name, msg := range map[string]string{"text31K": text, "rows33K": rows, "small": small} {
		b.Run(name, func(b *testing.B) {
			m := []byte(msg)
			b.SetBytes(int64(len(m)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ScanEnvelope(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
