package payload

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestAResultHasItsSizeAndIsTheSameHoweverItIsRead(t *testing.T) {
	for _, kind := range []string{"json", "text", "random"} {
		for _, size := range []int64{Small, 257, 1000, 31 << 10, 1<<20 + 7} {
			r, err := New(kind, size)
			if err != nil {
				t.Fatal(err)
			}
			var streamed bytes.Buffer
			if n, err := r.WriteTo(&streamed); n != size || err != nil {
				t.Fatalf("%s of %d: wrote %d bytes, %v", kind, size, n, err)
			}
			if !bytes.Equal(streamed.Bytes(), r.Bytes()) {
				t.Fatalf("%s of %d: the stream and the bytes differ", kind, size)
			}
			part := make([]byte, min(size, 777))
			for off := int64(0); off < size; off += 501 {
				n, _ := r.ReadAt(part, off)
				if !bytes.Equal(part[:n], r.Bytes()[off:off+int64(n)]) {
					t.Fatalf("%s of %d: bytes at %d differ", kind, size, off)
				}
			}
			text := textOf(t, r.Bytes())
			if kind == "json" {
				var records []struct{ ID json.Number }
				if err := json.Unmarshal([]byte(text), &records); err != nil {
					t.Fatalf("json of %d: %v", size, err)
				}
			}
		}
	}
}

func textOf(t *testing.T, result []byte) string {
	t.Helper()
	var v struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &v); err != nil || len(v.Content) != 1 {
		t.Fatalf("not a result: %v", err)
	}
	return v.Content[0].Text
}

func BenchmarkWriteTo(b *testing.B) {
	for _, kind := range []string{"json", "text", "random"} {
		b.Run(kind, func(b *testing.B) {
			r, _ := New(kind, 16<<20)
			b.SetBytes(r.Size)
			for b.Loop() {
				_, _ = r.WriteTo(discard{})
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
