package budget

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const stageSize = 1 << 10

// simple maps the letter of an escape of two bytes to what it means.
var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decode reads a string of text: it counts lines and feeds both ends of the text.
func (s *Scanner) decode(p []byte, i int) int {
	n := 0   // bytes staged
	far := i // where to look for the next leap
	for i < len(p) {
		if n > stageSize-16 {
			s.flush(n)
			n = 0
		}
		if s.esc != plain {
			var used int
			used, n = s.escape(p[i], n)
			i += used
			continue
		}
		if i >= far && len(p)-i > leapFrom && len(s.text.head) == headMax && !s.fresh {
			s.flush(n)
			n = 0
			i, far = s.leap(p, i)
		}
		if i, n = s.words(p, i, n); i == len(p) {
			break
		}
		switch c := p[i]; {
		case c == '"':
			s.flush(n)
			s.endText()
			return i + 1
		case c != '\\':
			s.stage[n] = c
			i, n = i+1, n+1
		case i+1 < len(p) && simple[p[i+1]] != 0:
			n = s.letter(p[i+1], n)
			i += 2
		default:
			s.esc = backslash
			i++
		}
	}
	s.flush(n)
	return i
}

// words is decode's way through ordinary text, eight bytes at a time. It stops at
// what needs a closer look.
func (s *Scanner) words(p []byte, i, n int) (int, int) {
	for i+9 <= len(p) && n <= stageSize-16 {
		w := binary.LittleEndian.Uint64(p[i:])
		binary.LittleEndian.PutUint64(s.stage[n:], w)
		m := loud(w)
		if m == 0 {
			i, n = i+8, n+8
			continue
		}
		k := bits.TrailingZeros64(m) >> 3
		i, n = i+k, n+k
		c := simple[p[i+1]]
		if p[i] != '\\' || c == 0 {
			break
		}
		if c == '\n' {
			s.f.Lines++
		}
		s.stage[n] = c
		i, n = i+2, n+1
	}
	return i, n
}

// escape takes the byte c inside of an escape. It returns how many bytes it used,
// 0 when c does not belong to the escape, and how many are staged.
func (s *Scanner) escape(c byte, n int) (used, staged int) {
	switch s.esc {
	case backslash:
		return 1, s.afterBackslash(c, n)
	case afterHigh:
		if c == '\\' {
			s.esc = highBackslash
			return 1, n
		}
		s.esc, s.high = plain, 0
		return 0, s.rune(utf8.RuneError, n)
	case highBackslash:
		if c != 'u' {
			n = s.rune(utf8.RuneError, n)
			s.high = 0
		}
		return 1, s.afterBackslash(c, n)
	}
	d := digit(c)
	if d < 0 {
		return 0, s.badEscape(n)
	}
	s.hex = s.hex<<4 | d
	if s.esc < hex4 {
		s.esc++
		return 1, n
	}
	return 1, s.unit(n)
}

func (s *Scanner) afterBackslash(c byte, n int) int {
	switch {
	case c == 'u':
		s.esc, s.hex = hex1, 0
		return n
	case simple[c] != 0:
		s.esc = plain
		return s.letter(c, n)
	default:
		return s.badEscape(n)
	}
}

func (s *Scanner) badEscape(n int) int {
	if s.high != 0 {
		n = s.rune(utf8.RuneError, n)
	}
	s.esc, s.high = plain, 0
	return s.rune(utf8.RuneError, n)
}

// unit takes a complete \u escape: a character, or half of one.
func (s *Scanner) unit(n int) int {
	high, u := s.high, s.hex
	s.esc, s.high = plain, 0
	if high != 0 {
		if r := utf16.DecodeRune(high, u); r != utf8.RuneError {
			return s.rune(r, n)
		}
		n = s.rune(utf8.RuneError, n)
	}
	if 0xD800 <= u && u < 0xDC00 {
		s.esc, s.high = afterHigh, u
		return n
	}
	if u == '\n' {
		s.f.Lines++
	}
	return s.rune(u, n)
}

func (s *Scanner) letter(c byte, n int) int {
	if c == 'n' {
		s.f.Lines++
	}
	s.stage[n] = simple[c]
	return n + 1
}

// rune stages r; a lone half of a surrogate pair becomes U+FFFD.
func (s *Scanner) rune(r rune, n int) int { return n + utf8.EncodeRune(s.stage[n:], r) }

// flush moves n staged bytes to the text. Texts of several blocks stand on lines
// of their own.
func (s *Scanner) flush(n int) {
	if n == 0 {
		return
	}
	if s.fresh && s.text.n > 0 && s.last != '\n' {
		s.text.put([]byte{'\n'})
	}
	s.fresh = false
	s.last = s.stage[n-1]
	s.text.put(s.stage[:n])
}

// endText counts a last line that nothing ends.
func (s *Scanner) endText() {
	if !s.fresh && s.last != '\n' {
		s.f.Lines++
	}
	s.str = noString
}

func digit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}
