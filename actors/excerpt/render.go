package excerpt

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// how says what a rendering makes of bytes.
type how uint8

const (
	asIs     how = iota
	unquoted     // the inside of a JSON string becomes its text
	elements     // the inside of a JSON array becomes its elements, one a line
	indented     // JSON becomes one member a line
)

// A rendering turns bytes into other bytes, a block at a time. It is a value: a
// copy goes on from where the original stood.
type rendering struct {
	how     how
	escaped bool  // in a JSON string, behind a backslash
	inside  bool  // elements, indented: in a string
	opened  bool  // indented: a bracket was opened and nothing came yet
	begun   bool  // elements: something of the element came
	hexes   uint8 // unquoted: digits seen of a \u escape, +1; 0 is none
	hex     rune
	high    rune // unquoted: a high surrogate that waits for its other half
	depth   int32
}

// feed appends to dst what p becomes.
func (r *rendering) feed(dst, p []byte) []byte {
	switch r.how {
	case unquoted:
		return r.unquote(dst, p)
	case elements:
		return r.element(dst, p)
	case indented:
		return r.indent(dst, p)
	}
	return append(dst, p...)
}

// end appends what is still due after the last byte.
func (r *rendering) end(dst []byte) []byte {
	switch {
	case r.how == unquoted && r.high != 0:
		dst = utf8.AppendRune(dst, utf8.RuneError)
	case r.how == elements && r.begun, r.how == indented:
		dst = append(dst, '\n')
	}
	*r = rendering{how: asIs}
	return dst
}

// letters maps the letter of an escape to what it means.
var letters = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote decodes the inside of a JSON string. Half a surrogate pair, and an
// escape that JSON does not know, become U+FFFD; bytes that are no UTF-8 stay.
func (r *rendering) unquote(dst, p []byte) []byte {
	for i := 0; i < len(p); {
		switch {
		case r.hexes > 0:
			var ok bool
			if dst, ok = r.digit(dst, p[i]); ok {
				i++
			}
		case r.escaped:
			dst = r.escape(dst, p[i])
			if p[i] < utf8.RuneSelf { // else no escape began, and a character goes on
				i++
			}
		case p[i] == '\\' && (r.high != 0 || i+1 == len(p) || letters[p[i+1]] == 0):
			r.escaped = true
			i++
		default:
			if r.high != 0 {
				dst = r.lone(dst)
			}
			var n int
			dst, n = ordinary(dst, p[i:])
			i += n
		}
	}
	return dst
}

// ordinary appends text and escapes of one letter, and says how much of p it took:
// all but an escape that needs a closer look. It goes eight bytes at a time.
func ordinary(dst, p []byte) ([]byte, int) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	dst = slices.Grow(dst, len(p)+8)
	out := dst[:cap(dst)]
	i, n := 0, len(dst)
	for i+8 <= len(p) {
		w := binary.LittleEndian.Uint64(p[i:])
		binary.LittleEndian.PutUint64(out[n:], w)
		x := w ^ ones*'\\'
		m := (x - ones) &^ x & tops
		if m == 0 {
			i, n = i+8, n+8
			continue
		}
		k := bits.TrailingZeros64(m) >> 3
		i, n = i+k, n+k
		if i+1 == len(p) || letters[p[i+1]] == 0 {
			return out[:n], i
		}
		out[n] = letters[p[i+1]]
		i, n = i+2, n+1
	}
	for ; i < len(p); i, n = i+1, n+1 {
		out[n] = p[i]
		if p[i] == '\\' {
			if i+1 == len(p) || letters[p[i+1]] == 0 {
				break
			}
			i++
			out[n] = letters[p[i]]
		}
	}
	return out[:n], i
}

// lone gives up the other half of a surrogate pair.
func (r *rendering) lone(dst []byte) []byte {
	if r.high == 0 {
		return dst
	}
	r.high = 0
	return utf8.AppendRune(dst, utf8.RuneError)
}

func (r *rendering) escape(dst []byte, c byte) []byte {
	r.escaped = false
	if c == 'u' {
		r.hexes, r.hex = 1, 0
		return dst
	}
	dst = r.lone(dst)
	if l := letters[c]; l != 0 {
		return append(dst, l)
	}
	return utf8.AppendRune(dst, utf8.RuneError)
}

// digit takes one digit of a \u escape; not ok when c is none.
func (r *rendering) digit(dst []byte, c byte) (_ []byte, ok bool) {
	d := hexDigit(c)
	if d < 0 {
		r.hexes = 0
		return utf8.AppendRune(r.lone(dst), utf8.RuneError), false
	}
	r.hex = r.hex<<4 | d
	if r.hexes++; r.hexes <= 4 {
		return dst, true
	}
	high, u := r.high, r.hex
	r.hexes, r.high = 0, 0
	if high != 0 {
		if c := utf16.DecodeRune(high, u); c != utf8.RuneError {
			return utf8.AppendRune(dst, c), true
		}
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	if 0xD800 <= u && u < 0xDC00 {
		r.high = u
		return dst, true
	}
	return utf8.AppendRune(dst, u), true
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// element puts every element of an array on a line of its own, as it stands.
func (r *rendering) element(dst, p []byte) []byte {
	for i := 0; i < len(p); {
		if r.inside {
			n := r.string(p[i:])
			dst = append(dst, p[i:i+n]...)
			i += n
			continue
		}
		c := p[i]
		i++
		switch c {
		case ' ', '\t', '\r', '\n':
			if r.depth == 0 {
				continue
			}
		case ',':
			if r.depth == 0 {
				c, r.begun = '\n', false
				dst = append(dst, c)
				continue
			}
		case '{', '[':
			r.depth++
		case '}', ']':
			r.depth--
		case '"':
			r.inside = true
		}
		r.begun = true
		dst = append(dst, c)
	}
	return dst
}

// string goes on in a string at hand and returns how many bytes of p belong to it.
func (r *rendering) string(p []byte) int {
	for i := 0; i < len(p); {
		if r.escaped {
			r.escaped = false
			i++
			continue
		}
		i += quiet(p[i:])
		if i == len(p) {
			break
		}
		i++
		switch p[i-1] {
		case '"':
			r.inside = false
			return i
		case '\\':
			r.escaped = true
		}
	}
	return len(p)
}

// maxIndent bounds what deep nesting costs.
const maxIndent = 32

// indent puts every member and every element on a line of its own.
func (r *rendering) indent(dst, p []byte) []byte {
	for i := 0; i < len(p); {
		if r.inside {
			n := r.string(p[i:])
			dst = append(dst, p[i:i+n]...)
			i += n
			continue
		}
		c := p[i]
		i++
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			continue
		}
		opened := r.opened
		r.opened = false
		if c == '}' || c == ']' {
			if r.depth--; !opened {
				dst = r.newLine(dst)
			}
			dst = append(dst, c)
			continue
		}
		if opened {
			dst = r.newLine(dst)
		}
		dst = append(dst, c)
		switch c {
		case '{', '[':
			r.depth++
			r.opened = true
		case ',':
			dst = r.newLine(dst)
		case ':':
			dst = append(dst, ' ')
		case '"':
			r.inside = true
		}
	}
	return dst
}

func (r *rendering) newLine(dst []byte) []byte {
	const blanks = "                                                                "
	dst = append(dst, '\n')
	return append(dst, blanks[:2*min(max(int(r.depth), 0), maxIndent)]...)
}

// quiet returns how many leading bytes of p are ordinary in a JSON string: no
// quote, no backslash, no control byte.
func quiet(p []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		q, b := w^ones*'"', w^ones*'\\'
		m := ((q-ones)&^q | (b-ones)&^b | (w-ones*0x20)&^w) & tops
		if m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(p) && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20 {
		i++
	}
	return i
}
