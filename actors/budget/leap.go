package budget

import (
	"math/bits"

	"mcphubd/actors/mask"
)

const (
	// leapBack is how many blocks of what was passed over are read again, for the end of
	// the text: decoded it may be half as long.
	leapBack = 2 * tailMax / 64
	// leapFrom is from how many bytes on it is worth looking for a leap.
	leapFrom = 2 * leapBack * 64
)

// leap passes over the middle of a long text, of which only its length and its lines
// count: its beginning is known, its end is yet to come, and p[i] is in no escape. It
// returns where decoding goes on, in no escape either, and before where it is of no use
// to look for another leap.
func (s *Scanner) leap(p []byte, i int) (next, stop int) {
	var trail [leapBack + 16]struct { // before the latest blocks
		text, lines int64
		escaped     bool
	}
	var escapes mask.Escapes
	var text, lines int64
	k := 0
	for ; i+64*(k+1) <= len(p); k++ {
		at := &trail[k%len(trail)]
		at.text, at.lines, at.escaped = text, lines, escapes.Next != 0
		b := (*mask.Block)(p[i+64*k:])
		quotes, slashes, _, _ := mask.Structure(b)
		escaped := escapes.Of(slashes)
		breaks := mask.Equal(b, 'n') & escaped
		if quotes&^escaped != 0 || !simpleOnly(b, escaped&^(quotes|slashes|breaks)) {
			break
		}
		text += int64(64 - bits.OnesCount64(escaped))
		lines += int64(bits.OnesCount64(breaks))
	}
	stop = i + 64*(k+1)
	for j := k - leapBack; j > max(0, k-len(trail)); j-- {
		if at := trail[j%len(trail)]; !at.escaped {
			s.text.n += at.text
			s.f.Lines += at.lines
			return i + 64*j, stop
		}
	}
	return i, stop
}

// simpleOnly reports whether each byte of b that is marked stands, after its backslash,
// for one byte.
func simpleOnly(b *mask.Block, marked uint64) bool {
	for ; marked != 0; marked &= marked - 1 {
		if simple[b[bits.TrailingZeros64(marked)]] == 0 {
			return false
		}
	}
	return true
}
