package budget

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// role says what a string in a result is good for.
type role uint8

const (
	noString role = iota
	skipped
	keyString
	textString
)

// esc says where in an escape sequence the scanner is.
type esc uint8

const (
	plain     esc = iota
	backslash     // after a backslash
	hex1          // before the first digit of a \u escape
	hex2
	hex3
	hex4
	afterHigh     // after a high surrogate
	highBackslash // after a high surrogate and a backslash
)

func (s *Scanner) openString() {
	s.str, s.esc, s.high = skipped, plain, 0
	switch {
	case s.below > 0:
	case s.wantKey:
		s.str, s.raw = keyString, append(s.raw[:0], '"')
	case s.key == keyText:
		s.str, s.fresh = textString, true
	}
}

// inString goes on in the string at hand from p[i] and returns where it stopped:
// after the closing quote or at the end of p.
func (s *Scanner) inString(p []byte, i int) int {
	if s.str == textString {
		return s.decode(p, i)
	}
	end, closed := s.skip(p, i)
	if s.str == keyString && len(s.raw) <= maxKey {
		s.raw = append(s.raw, p[i:min(end, i+maxKey)]...)
	}
	if closed {
		if s.str == keyString {
			s.key = s.keyOf()
		}
		s.str = noString
	}
	return end
}

func (s *Scanner) keyOf() key {
	if len(s.raw) > maxKey {
		return otherKey
	}
	name := s.raw[1 : len(s.raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, s.raw)
	}
	return keys[s.place][string(name)]
}

// pass goes over what lies below a place, up to its end, the end of p, or a string
// that needs a closer look.
func (s *Scanner) pass(p []byte, i int) int {
	below := s.below
	for below > 0 && i < len(p) {
		c := p[i]
		i++
		switch {
		case structural[c]&1 == 0:
		case c == '"':
			end := i + quiet(p[i:])
			if end == len(p) || p[end] != '"' {
				s.below, s.str, s.esc = below, skipped, plain
				return i
			}
			i = end + 1
		case c == '{', c == '[':
			below++
		default:
			below--
		}
	}
	s.below = below
	return i
}

// skip finds the end of a string that nobody reads.
func (s *Scanner) skip(p []byte, i int) (end int, closed bool) {
	for i < len(p) {
		if s.esc != plain {
			s.esc = plain
			i++
			continue
		}
		i += quiet(p[i:])
		switch {
		case i == len(p):
		case p[i] == '"':
			return i + 1, true
		default:
			s.esc = backslash
			i++
		}
	}
	return i, false
}

// quiet returns how many leading bytes of p are neither quote nor backslash.
func quiet(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		if m := loud(binary.LittleEndian.Uint64(p[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(p) && p[i] != '"' && p[i] != '\\'; i++ {
	}
	return i
}

// loud marks the quotes and backslashes among eight bytes by their highest bits.
// The lowest mark is exact; one above it may be false.
func loud(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	q, b := w^ones*'"', w^ones*'\\'
	return ((q-ones)&^q | (b-ones)&^b) & tops
}
