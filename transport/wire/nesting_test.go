package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// endOf is nesting byte by byte: slow and plain.
func endOf(b []byte) int {
	depth, inStr := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			i++
		case c == '"':
			inStr = !inStr
		case inStr:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return -1
}

func checkNesting(t *testing.T, b []byte, cut func(n int) int) {
	t.Helper()
	var n nesting
	at := 0
	for rest := b; len(rest) > 0; {
		k := min(max(cut(len(rest)), 1), len(rest))
		end, closed, ok := n.skip(rest[:k])
		at += end
		if !ok {
			return
		}
		if closed {
			if want := endOf(b); at != want {
				t.Fatalf("%q ends at %d, want %d", b, at, want)
			}
			return
		}
		rest = rest[k:]
	}
	if want := endOf(b); want >= 0 {
		t.Fatalf("%q does not end, want %d", b, want)
	}
}

func TestNestingEndsWhereTheValueDoes(t *testing.T) {
	alphabet := []byte(`{}[]"\\\\"" ax:,é`)
	for range 200_000 {
		b := make([]byte, 1+rand.IntN(300))
		for i := range b {
			b[i] = alphabet[rand.IntN(len(alphabet))]
		}
		b[0] = '{'
		checkNesting(t, b, func(n int) int { return n })
		checkNesting(t, b, func(int) int { return 1 + rand.IntN(130) })
	}
}

func FuzzNestingEndsWhereTheValueDoes(f *testing.F) {
	f.Add([]byte(`{"a\\":[{"b":"]}\""}]}`), byte(3))
	f.Add(append(append([]byte(`["`), bytes.Repeat([]byte(`\`), 200)...), `"]"]`...), byte(64))
	f.Fuzz(func(t *testing.T, b []byte, k byte) {
		b = append([]byte{'['}, b...)
		checkNesting(t, b, func(n int) int { return n })
		checkNesting(t, b, func(int) int { return int(k) })
	})
}
