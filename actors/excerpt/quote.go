package excerpt

import (
	"math"
	"unicode/utf8"
)

// What stands around the text of an answer.
const (
	frameOpen  = `{"content":[{"type":"text","text":"`
	frameClose = `"}]}`
	frameSize  = len(frameOpen) + len(frameClose)
)

// encodedSize is what the first character of s takes in a JSON string, and how many
// bytes of s it is. A byte that is no UTF-8 is shown as U+FFFD.
func encodedSize(s []byte) (enc, n int) {
	switch c := s[0]; {
	case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f':
		return 2, 1
	case c < 0x20:
		return 6, 1
	case c < utf8.RuneSelf:
		return 1, 1
	}
	r, n := utf8.DecodeRune(s)
	if r == utf8.RuneError && n == 1 {
		return 3, 1
	}
	return n, n
}

// appendEncoded appends s as the inside of a JSON string.
func appendEncoded(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	for len(s) > 0 {
		c := s[0]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRune(s)
			dst = utf8.AppendRune(dst, r)
			s = s[n:]
			continue
		}
		s = s[1:]
	}
	return dst
}

// encodedLen is how many bytes s takes inside of a JSON string.
func encodedLen(s string) (n int) {
	for b := []byte(s); len(b) > 0; {
		e, k := encodedSize(b)
		n += e
		b = b[k:]
	}
	return n
}

// wholeRunes returns how many of at most n leading bytes of s are whole characters.
func wholeRunes(s []byte, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for k := n; k > n-utf8.UTFMax && k > 0; k-- {
		if utf8.RuneStart(s[k]) {
			return k
		}
	}
	return n
}

// A page is the body of an answer while it is filled.
type page struct {
	body   []byte
	room   int // bytes left, encoded
	breaks int // line breaks left
}

// fits returns how many leading bytes of s the page has room for, in whole
// characters. more says that s goes on, so that its last character may be cut.
func (p *page) fits(s []byte, more bool) int {
	room, breaks, i := p.room, p.breaks, 0
	for i < len(s) {
		if more && len(s)-i < utf8.UTFMax && !utf8.FullRune(s[i:]) {
			break
		}
		enc, n := encodedSize(s[i:])
		if s[i] == '\n' {
			breaks--
		}
		if room -= enc; room < 0 || breaks < 0 {
			break
		}
		i += n
	}
	return i
}

// add puts s on the page; it was asked whether it fits.
func (p *page) add(s []byte) {
	for b := s; len(b) > 0; {
		enc, n := encodedSize(b)
		if b[0] == '\n' {
			p.breaks--
		}
		p.room -= enc
		b = b[n:]
	}
	p.body = append(p.body, s...)
}

// whole puts all of s on the page, or nothing.
func (p *page) whole(s []byte) bool {
	if p.fits(s, false) < len(s) {
		return false
	}
	p.add(s)
	return true
}

const noBound = math.MaxInt32

// textAnswer is the value of a result with one text block.
func textAnswer(parts ...[]byte) []byte {
	n := frameSize
	for _, p := range parts {
		n += len(p) + len(p)/8
	}
	b := append(make([]byte, 0, n), frameOpen...)
	for _, p := range parts {
		b = appendEncoded(b, p)
	}
	return append(b, frameClose...)
}

// AppendRaw appends s as the inside of a JSON string; bytes that are no UTF-8 stay
// as they are, so that decoding gives s back.
func AppendRaw(dst, s []byte) []byte {
	for len(s) > 0 {
		n := quiet(s)
		dst = append(dst, s[:n]...)
		if s = s[n:]; len(s) > 0 {
			dst = appendEncoded(dst, s[:1])
			s = s[1:]
		}
	}
	return dst
}
