package mask

import (
	"math/rand/v2"
	"testing"
)

func TestMasksAreTheSameWithAndWithoutSpecialInstructions(t *testing.T) {
	check := func(b *Block) {
		q, s, o, c := Structure(b)
		wq, ws, wo, wc := load(b).structure()
		if q != wq || s != ws || o != wo || c != wc {
			t.Fatalf("%q: %x %x %x %x, want %x %x %x %x", b[:], q, s, o, c, wq, ws, wo, wc)
		}
		for _, c := range []byte{'n', 0, 0x80, b[0], b[63]} {
			if got, want := Equal(b, c), load(b).equal(c); got != want {
				t.Fatalf("%q: %q at %x, want %x", b[:], c, got, want)
			}
		}
	}
	for c := range 256 { // every byte at every place, among its neighbours
		for at := range 64 {
			var b Block
			for i := range b {
				b[i] = byte(c + i - at)
			}
			check(&b)
		}
	}
	for range 100_000 {
		var b Block
		for i := range b {
			b[i] = `"\{}[]`[rand.IntN(6)] ^ byte(rand.IntN(2)*0x80)
		}
		check(&b)
	}
}

func TestEscapesAreThoseThatALookAtEachByteFinds(t *testing.T) {
	for range 20_000 {
		text := make([]byte, 64*(1+rand.IntN(4)))
		for i := range text {
			text[i] = `\\\a`[rand.IntN(4)]
		}
		var e Escapes
		escaped := false
		for at := 0; at < len(text); at += 64 {
			b := (*Block)(text[at:])
			_, slashes, _, _ := Structure(b)
			got := e.Of(slashes)
			for i, c := range b {
				if got>>i&1 == 1 != escaped {
					t.Fatalf("%q: byte %d of the block at %d: escaped %v", text, i, at, escaped)
				}
				escaped = c == '\\' && !escaped
			}
		}
	}
}
