package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// split feeds msg in pieces of the lengths of cuts, over and over.
func split(msg []byte, maxHead int, cuts []byte) (*Splitter, []byte) {
	var result []byte
	s := &Splitter{MaxHead: maxHead}
	s.Result = func(p []byte) { result = append(result, p...) }
	for i := 0; len(msg) > 0; i++ {
		n := len(msg)
		if len(cuts) > 0 {
			n = min(n, int(cuts[i%len(cuts)])+1)
		}
		s.Feed(bytes.Clone(msg[:n]))
		msg = msg[n:]
	}
	return s, result
}

func TestSplitterFindsTheIDBehindTheResult(t *testing.T) {
	msg := []byte(`{ "result" : {"a":"\\\"}"} , "jsonrpc":"2.0","id":4294967296}`)
	s, result := split(msg, 1<<10, []byte{0})
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	if string(result) != `{"a":"\\\"}"}` {
		t.Errorf("result %s", result)
	}
	if id, ok := s.ID(); !ok || string(id) != "4294967296" {
		t.Errorf("id %s", id)
	}
	if string(s.Head) != `{ "result" : null , "jsonrpc":"2.0","id":4294967296}` {
		t.Errorf("head %s", s.Head)
	}
}

func TestSplitterKeepsABoundedHeadAndStillFindsTheID(t *testing.T) {
	msg := []byte(`{"error":{"data":"` + strings.Repeat("x", 5000) + `"},"id":"7"}`)
	s, _ := split(msg, 1<<10, []byte{99})
	if err := s.End(); !errors.Is(err, ErrHead) {
		t.Errorf("err %v", err)
	}
	if id, ok := s.ID(); !ok || string(id) != `"7"` || len(s.Head) != 0 {
		t.Errorf("id %s, head of %d bytes", id, len(s.Head))
	}
}

func TestDiscardStopsTheResultButNotTheSearchForTheID(t *testing.T) {
	n := 0
	s := &Splitter{MaxHead: 1 << 10, Result: func(p []byte) { n += len(p) }}
	s.Feed([]byte(`{"result":[1,2`))
	before := n
	s.Discard()
	s.Feed([]byte(`,3,4],"id":5}`))
	if id, ok := s.ID(); n != before || !ok || string(id) != "5" {
		t.Errorf("%d bytes after the discard, id %s", n-before, id)
	}
}

// FuzzSplitterAgreesWithScan holds the Splitter to ScanEnvelope, whatever the
// pieces: the same messages are whole, the same members are seen, and head and
// result together are the message.
func FuzzSplitterAgreesWithScan(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":[1,2,{"b":"\\\""}]}}`, `{"result":[{}],"id":"x\"y"}`, `{"id":1,"result":1}`, ` { } `, `{"a":1}x`, `{"result":"\\","id":2}`, `{"a":`, `{"result":null ,"result":[]}`, `{"a"b}`,
	} {
		f.Add([]byte(s), []byte{0})
		f.Add([]byte(s), []byte{3, 1, 7})
	}
	f.Fuzz(func(t *testing.T, msg, cuts []byte) {
		e, want := ScanEnvelope(msg)
		s, result := split(msg, 1<<20, cuts)
		if got := s.End(); (got == nil) != (want == nil) {
			t.Fatalf("%q: splitter %v, scanner %v", msg, got, want)
		}
		if want != nil {
			return
		}
		h, err := ScanEnvelope(s.Head)
		if err != nil || h.Odd != e.Odd {
			t.Fatalf("%q: head %q: odd %v, err %v", msg, s.Head, h.Odd, err)
		}
		if e.Odd {
			return
		}
		if id, ok := s.ID(); ok != e.ID.OK() || e.ID.B-e.ID.A <= maxKept && !bytes.Equal(id, e.ID.Of(msg)) {
			t.Fatalf("%q: id %q", msg, id)
		}
		if !bytes.Equal(result, e.Result.Of(msg)) {
			t.Fatalf("%q: result %q", msg, result)
		}
		whole := bytes.Clone(s.Head)
		if s.ResultAt > 0 {
			whole = append(append(bytes.Clone(s.Head[:s.ResultAt]), result...), s.Head[s.ResultAt+4:]...)
		}
		if !bytes.Equal(whole, msg) {
			t.Fatalf("%q: rebuilt %q", msg, whole)
		}
	})
}

func BenchmarkSplitter(b *testing.B) {
	text := `{"result":{"content":[{"type":"text","text":"` + strings.Repeat(`line of \"text\" here\n`, 50000) + `"}]},"jsonrpc":"2.0","id":4294967296}`
	rows := `{"result":{"structuredContent":{"rows":[` + strings.Repeat(`{"file":"a.go","line":12,"text":"x y z"},`, 25000) + `0]}},"jsonrpc":"2.0","id":4294967296}`
	for name, msg := range map[string]string{"text1M": text, "rows1M": rows} {
		b.Run(name, func(b *testing.B) {
			m := []byte(msg)
			b.SetBytes(int64(len(m)))
			b.ReportAllocs()
			for b.Loop() {
				s := Splitter{MaxHead: 1 << 20, Result: func([]byte) {}}
				for at := 0; at < len(m); at += 64 << 10 {
					s.Feed(m[at:min(len(m), at+64<<10)])
				}
				if err := s.End(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
