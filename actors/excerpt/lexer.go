package excerpt

// maxWord is how many raw bytes of a string or a number are looked at. A longer key
// is not told apart from others that begin alike.
const maxWord = 1 << 10

// The kinds of tokens that are no single character of punctuation.
const (
	endToken byte = 0
	badToken byte = '!'
	number   byte = '0'
	word     byte = 'a' // true, false, null
)

// A token is one lexical piece of JSON: its first byte or kind, and where it stands.
type token struct {
	kind       byte
	start, end int64
}

// A lexer cuts JSON into tokens. It checks what tells JSON from other text: the
// order of tokens is the caller's business.
type lexer struct {
	c *cursor
	// text holds the leading raw bytes of the last string (without quotes), number or
	// word; whole says that it is all of it.
	text  []byte
	whole bool
	spare []byte
	loose bool // control bytes in strings are not held against them
}

func lexerAt(d doc, src Source, off int64) *lexer { return &lexer{c: cursorAt(d, src, off)} }

// space passes over white space and reports whether something follows.
func (c *cursor) space() bool {
	for c.more() {
		for i, b := range c.p {
			if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
				c.skip(i)
				return true
			}
		}
		c.skip(len(c.p))
	}
	return false
}

func (l *lexer) next() token {
	c := l.c
	if (len(c.p) == 0 || c.p[0] <= ' ') && !c.space() {
		return token{endToken, c.at, c.at}
	}
	t := token{kind: c.p[0], start: c.at}
	switch b := c.p[0]; {
	case b == '"':
		c.skip(1)
		if !l.string() {
			t.kind = badToken
		}
	case b == '{', b == '}', b == '[', b == ']', b == ',', b == ':':
		c.skip(1)
	case b == '-', '0' <= b && b <= '9':
		t.kind = number
		if l.run(); l.whole && !isNumber(l.text) {
			t.kind = badToken
		}
	case 'a' <= b && b <= 'z':
		t.kind = word
		if l.run(); string(l.text) != "true" && string(l.text) != "false" && string(l.text) != "null" {
			t.kind = badToken
		}
	default:
		t.kind = badToken
	}
	t.end = c.at
	return t
}

// keep adds bytes of the token at hand to what is remembered of it.
func (l *lexer) keep(p []byte) {
	if room := maxWord - len(l.text); len(p) > room {
		p, l.whole = p[:room], false
	}
	l.text = append(l.text, p...)
	l.spare = l.text
}

// string passes over a string behind its opening quote; false when it is none.
func (l *lexer) string() bool {
	c := l.c
	l.text, l.whole = l.spare[:0], true
	for first := true; c.more(); first = false {
		i, esc := 0, false
		for i < len(c.p) {
			if i += quiet(c.p[i:]); i == len(c.p) {
				break
			}
			if c.p[i] == '"' {
				if first && i <= maxWord { // all in one block: no copy
					l.text = c.p[:i:i]
				} else {
					l.keep(c.p[:i])
				}
				c.skip(i + 1)
				return true
			}
			if c.p[i] != '\\' {
				if !l.loose {
					return false
				}
				i++
				continue
			}
			if i++; i == len(c.p) {
				esc = true
				break
			}
			i++
		}
		l.keep(c.p)
		c.skip(len(c.p))
		if esc && c.more() {
			l.keep(c.p[:1])
			c.skip(1)
		}
	}
	return false
}

// run passes over a number or a word.
func (l *lexer) run() {
	c := l.c
	l.text, l.whole = l.spare[:0], true
	for c.more() {
		i := 0
		for i < len(c.p) && runByte[c.p[i]] {
			i++
		}
		l.keep(c.p[:i])
		done := i < len(c.p)
		c.skip(i)
		if done {
			return
		}
	}
}

var runByte = func() (t [256]bool) {
	for _, c := range "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_" {
		t[c] = true
	}
	return t
}()

// isNumber reports whether s is a number as JSON writes it.
func isNumber(s []byte) bool {
	digits := func() (n int) {
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return n
	}
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	n := digits()
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	if s = s[n:]; len(s) > 0 && s[0] == '.' {
		s = s[1:]
		if n = digits(); n == 0 {
			return false
		}
		s = s[n:]
	}
	if len(s) > 0 && s[0]|0x20 == 'e' {
		if s = s[1:]; len(s) > 0 && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if n = digits(); n == 0 {
			return false
		}
		s = s[n:]
	}
	return len(s) == 0
}

// value passes over one JSON value that stands at the cursor, and over nothing
// behind it. It trusts the brackets to match.
func (c *cursor) value() {
	if !c.space() {
		return
	}
	switch c.p[0] {
	case '"':
		c.skip(1)
		c.restOfString()
	case '{', '[':
		c.skip(1)
		c.restOfBrackets()
	default:
		for c.more() {
			i := 0
			for i < len(c.p) && runByte[c.p[i]] {
				i++
			}
			if i < len(c.p) {
				if c.skip(i); i == 0 { // no value: do not stand still
					switch c.p[0] {
					case ',', ']', '}', ' ', '\t', '\r', '\n':
					default:
						c.skip(1)
						continue
					}
				}
				return
			}
			c.skip(i)
		}
	}
}

func (c *cursor) restOfString() {
	for c.more() {
		i := 0
		for i < len(c.p) {
			if i += quiet(c.p[i:]); i == len(c.p) {
				break
			}
			if i++; c.p[i-1] == '"' {
				c.skip(i)
				return
			}
			if c.p[i-1] == '\\' {
				if i == len(c.p) {
					c.skip(i)
					if c.more() {
						c.skip(1)
					}
					i = 0
					if !c.more() {
						return
					}
					continue
				}
				i++
			}
		}
		c.skip(len(c.p))
	}
}

// bracket marks what matters between brackets.
var bracket = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

func (c *cursor) restOfBrackets() {
	for depth := 1; c.more(); {
		i, inString := 0, false
		for i < len(c.p) {
			b := c.p[i]
			i++
			if !bracket[b] {
				continue
			}
			if b == '"' {
				if k := i + quiet(c.p[i:]); k < len(c.p) && c.p[k] == '"' {
					i = k + 1
					continue
				}
				inString = true
				break
			}
			if b == '{' || b == '[' {
				depth++
			} else if depth--; depth == 0 {
				c.skip(i)
				return
			}
		}
		if c.skip(i); inString {
			c.restOfString()
		}
	}
}
