package wire

import (
	"math/bits"

	"mcphubd/actors/mask"
)

// nesting finds the end of an array or an object whose bytes come in pieces. It
// looks at 64 bytes at a time (package mask). The zero value stands before the first
// byte of the value.
type nesting struct {
	depth   int
	inStr   uint64 // all ones inside a string
	escapes mask.Escapes
}

// skip returns how far the value goes in p and whether it ends there. ok is false
// when it nests deeper than MaxDepth.
func (n *nesting) skip(p []byte) (end int, closed, ok bool) {
	at := 0
	for ; len(p)-at >= 64; at += 64 {
		if end, closed, ok = n.block((*mask.Block)(p[at:])); closed || !ok {
			return at + end, closed, ok
		}
	}
	for ; at < len(p); at++ {
		if closed, ok = n.byte(p[at]); closed || !ok {
			return at + 1, closed, ok
		}
	}
	return at, false, true
}

// block is skip for 64 bytes.
func (n *nesting) block(p *mask.Block) (end int, closed, ok bool) {
	quotes, slashes, opens, closes := mask.Structure(p)
	escaped := n.escapes.Of(slashes)
	quotes &^= escaped
	if n.inStr != 0 && quotes == 0 {
		return 64, false, true // the whole block is inside a string
	}
	// A quote turns the inside into the outside for all that follows.
	in := quotes
	for s := 1; s < 64; s <<= 1 {
		in ^= in << s
	}
	in ^= n.inStr
	n.inStr = uint64(int64(in) >> 63)
	opens, closes = opens&^in&^escaped, closes&^in&^escaped
	up, down := bits.OnesCount64(opens), bits.OnesCount64(closes)
	if n.depth > down && n.depth+up <= MaxDepth {
		n.depth += up - down
		return 64, false, true
	}
	for both := opens | closes; both != 0; both &= both - 1 {
		bit := both & -both
		if closed, ok = n.turn(opens&bit != 0); closed || !ok {
			return bits.TrailingZeros64(bit) + 1, closed, ok
		}
	}
	return 64, false, true
}

// turn takes one bracket outside strings.
func (n *nesting) turn(open bool) (closed, ok bool) {
	if open {
		n.depth++
		return false, n.depth <= MaxDepth
	}
	n.depth--
	return n.depth <= 0, true
}

// byte is skip for one byte.
func (n *nesting) byte(c byte) (closed, ok bool) {
	switch {
	case n.escapes.Next != 0:
		n.escapes.Next = 0
	case c == '\\':
		n.escapes.Next = 1
	case c == '"':
		n.inStr = ^n.inStr
	case n.inStr != 0:
	case c|0x20 == '{':
		return n.turn(true)
	case c|0x20 == '}':
		return n.turn(false)
	}
	return false, true
}
