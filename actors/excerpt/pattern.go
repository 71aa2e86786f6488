package excerpt

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// pattern compiles what an agent sent; the error says where it is wrong.
func pattern(s string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(s)
	var bad *syntax.Error
	if errors.As(err, &bad) {
		at := strings.Index(s, bad.Expr)
		if bad.Expr == s {
			at = openBracket(s)
		}
		return nil, fmt.Errorf("grep is no regular expression (RE2): %s at byte %d: %s; put \\ before a character that is meant as it is",
			bad.Code, max(at, 0), clip(show(s[max(at, 0):])))
	}
	return re, err
}

// openBracket is where the last parenthesis stands that nothing closes.
func openBracket(s string) int {
	var open []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			open = append(open, i)
		case ')':
			open = open[:max(len(open)-1, 0)]
		}
	}
	if len(open) == 0 {
		return 0
	}
	return open[len(open)-1]
}

// A literal is a text that every match contains. Where case does not matter it is
// in lower case.
type literal struct {
	text []byte
	fold bool
	rare int // the byte of text that is looked for first
}

// literalOf finds the longest literal of re; its text is nil when none is worth it.
func literalOf(re *syntax.Regexp) (l literal) {
	switch re.Op {
	case syntax.OpLiteral:
		l = literal{text: []byte(string(re.Rune))}
		if re.Flags&syntax.FoldCase != 0 {
			l = literal{text: foldable(re.Rune), fold: true}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literalOf(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, s := range re.Sub {
			if k := literalOf(s); len(k.text) > len(l.text) {
				l = k
			}
		}
	}
	if len(l.text) < 2 {
		return literal{}
	}
	for i, c := range l.text {
		if rarity(c) > rarity(l.text[l.rare]) {
			l.rare = i
		}
	}
	return l
}

// foldable is the longest piece in lower case whose letters have no other case than
// the two of ASCII: k and s have a third.
func foldable(runes []rune) (best []byte) {
	var at []byte
	for _, r := range append(runes[:len(runes):len(runes)], 0) {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r == 0 || r == 'k' || r == 's' || r >= utf8.RuneSelf {
			if len(at) > len(best) {
				best = at
			}
			at = nil
			continue
		}
		at = append(at, byte(r))
	}
	return best
}

// rarity says roughly how seldom a byte stands in text.
func rarity(c byte) int {
	if i := strings.IndexByte(" etaoinsrhldcumfgpwybv,.\"'0123456789-:_/", c|0x20*(c>>6&1)); i >= 0 {
		return i
	}
	return 100
}

// index finds the literal in p, -1 when it is not there.
func (l *literal) index(p []byte) int {
	if !l.fold {
		return bytes.Index(p, l.text)
	}
	c := l.text[l.rare]
	for from := l.rare; from < len(p); from++ {
		k := indexFold(p[from:], c)
		if k < 0 {
			break
		}
		from += k
		a := from - l.rare
		if a+len(l.text) > len(p) {
			break
		}
		if equalFold(p[a:a+len(l.text)], l.text) {
			return a
		}
	}
	return -1
}

// indexFold finds a byte in either case.
func indexFold(p []byte, c byte) int {
	if c < 'a' || c > 'z' {
		return bytes.IndexByte(p, c)
	}
	for i, b := range p {
		if b|0x20 == c {
			return i
		}
	}
	return -1
}

func equalFold(p, lower []byte) bool {
	for i, c := range lower {
		b := p[i]
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		if b != c {
			return false
		}
	}
	return true
}

// hasBorders reports whether re looks at what stands around a match.
func hasBorders(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, s := range re.Sub {
		if hasBorders(s) {
			return true
		}
	}
	return false
}
