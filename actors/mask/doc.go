// Package mask looks at JSON text 64 bytes at a time: masks of bits, one for each byte,
// say where the characters stand that matter, and arithmetic on masks which of them
// count. So the speed of a scan hardly depends on what the text is made of. Where the
// processor has AVX2 the masks come from that, else from arithmetic on words.
package mask

import "encoding/binary"

// A Block is what is looked at at once.
type Block [64]byte

// Escapes knows which bytes of a text are escaped by backslashes, from block to block.
// The zero value stands before the first byte.
type Escapes struct {
	Next uint64 // 1 if the byte that comes next is escaped
}

const odd = 0xaaaaaaaaaaaaaaaa

// Of returns which bytes of the block are escaped whose backslashes stand in slashes.
// Runs of backslashes are told apart by adding at their odd ends: a carry runs through
// each.
func (e *Escapes) Of(slashes uint64) uint64 {
	if slashes == 0 {
		all := e.Next
		e.Next = 0
		return all
	}
	starts := slashes &^ e.Next
	maybe := starts << 1
	codes := ((maybe | odd) - starts) ^ odd
	all := codes ^ (slashes | e.Next)
	e.Next = codes & slashes >> 63
	return all
}

// words is a block. Its methods are written out, since that is much faster than loops.
type words struct{ a, b, c, d, e, f, g, h uint64 }

func load(p *Block) words {
	le := binary.LittleEndian
	return words{le.Uint64(p[0:8]), le.Uint64(p[8:16]), le.Uint64(p[16:24]), le.Uint64(p[24:32]),
		le.Uint64(p[32:40]), le.Uint64(p[40:48]), le.Uint64(p[48:56]), le.Uint64(p[56:64])}
}

// structure is Structure without special instructions.
func (w words) structure() (quotes, slashes, opens, closes uint64) {
	quotes, slashes = w.equal('"'), w.equal('\\')
	w = w.or(0x20) // makes a brace of a bracket
	return quotes, slashes, w.equal('{'), w.equal('}')
}

const (
	low7 = 0x7f7f7f7f7f7f7f7f
	ones = 0x0101010101010101
)

// equal returns a mask of the bytes that equal c.
func (w words) equal(c byte) uint64 {
	x := uint64(c) * ones
	return equal8(w.a^x) | equal8(w.b^x)<<8 | equal8(w.c^x)<<16 | equal8(w.d^x)<<24 |
		equal8(w.e^x)<<32 | equal8(w.f^x)<<40 | equal8(w.g^x)<<48 | equal8(w.h^x)<<56
}

// or sets the bits of c in every byte.
func (w words) or(c byte) words {
	x := uint64(c) * ones
	return words{w.a | x, w.b | x, w.c | x, w.d | x, w.e | x, w.f | x, w.g | x, w.h | x}
}

// equal8 returns 8 bits: which bytes of w are zero.
func equal8(w uint64) uint64 {
	w = ^((w&low7 + low7) | w | low7) // 0x80 in each byte that was zero, and nowhere else
	return w >> 7 * 0x0102040810204080 >> 56
}
