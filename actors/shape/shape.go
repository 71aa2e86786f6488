// Package shape says in one line how JSON is built: {items:[400×{id:int,title:str}]}.
// A Shape is filled by whoever reads the JSON, since a receipt looks at the beginning
// alone, while it passes (budget), and an outline at everything, in bounded memory
// (excerpt). It is pure.
package shape

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// Depth is how many levels are shown.
	Depth = 8
	// maxFields is how many fields of one object are told apart.
	maxFields = 40
	maxName   = 48 // bytes of a field's name
)

// The kinds of values that were seen in one place.
const (
	sawNull = 1 << iota
	sawBool
	sawInt
	sawNum
	sawStr
	sawObject
	sawArray
)

// Shape is what the values in one place have in common: of objects their fields, of
// arrays what the elements are like. A nil one is a place where nobody looks.
type Shape struct {
	Count int64  // elements of the last array
	Open  bool   // what was seen ends inside it
	Elem  *Shape // what elements are like; nil while there are none

	saw     uint8
	objects int // how many were seen
	fields  []field
	more    bool // there are fields besides these
	arrays  int
}

type field struct {
	name string
	seen int
	of   *Shape
}

// Object adds an object.
func (s *Shape) Object() {
	if s != nil {
		s.saw |= sawObject
		s.objects++
	}
}

// Array adds an array.
func (s *Shape) Array() {
	if s != nil {
		s.saw |= sawArray
		s.arrays++
		s.Count = 0
	}
}

// Scalar adds a value that is neither, by its first byte, where 0 is for all numbers.
// text is that of a number.
func (s *Shape) Scalar(kind byte, text []byte) {
	if s == nil {
		return
	}
	switch kind {
	case '"':
		s.saw |= sawStr
	case 'n':
		s.saw |= sawNull
	case 't', 'f':
		s.saw |= sawBool
	case '0':
		s.saw |= sawInt
		if strings.ContainsAny(string(text), ".eE") {
			s.saw |= sawNum
		}
	}
}

// Member is the place of a member of an object; node makes it, if it is new. nil when
// nobody looks there.
func (s *Shape) Member(name string, node func() *Shape) *Shape {
	if s == nil {
		return nil
	}
	for i := range s.fields {
		if s.fields[i].name == name {
			s.fields[i].seen++
			return s.fields[i].of
		}
	}
	if len(s.fields) < maxFields {
		if of := node(); of != nil {
			s.fields = append(s.fields, field{name, 1, of})
			return of
		}
	}
	s.more = true
	return nil
}

// Text renders s behind head in at most limit bytes, leaving out what lies deepest and
// comes last; "" when nothing fits.
func (s *Shape) Text(head string, limit int) string {
	for _, try := range []struct{ depth, fields int }{
		{Depth, maxFields}, {6, 24}, {5, 16}, {4, 12}, {4, 8}, {3, 8}, {3, 5}, {2, 5}, {2, 3}, {2, 1}, {1, 1},
	} {
		if b := s.append([]byte(head), try.depth, try.fields, true); len(b) <= limit {
			return string(b)
		}
	}
	return ""
}

// append writes s. once says that there is one such value, so that its count means
// something.
func (s *Shape) append(b []byte, depth, fields int, once bool) []byte {
	if s == nil || s.saw == 0 {
		return append(b, "…"...)
	}
	sep := false
	next := func() {
		if sep {
			b = append(b, '|')
		}
		sep = true
	}
	if s.saw&sawObject != 0 {
		next()
		b = s.appendObject(b, depth, fields, once)
	}
	if s.saw&sawArray != 0 {
		next()
		b = s.appendArray(b, depth, fields, once)
	}
	for _, k := range [...]struct {
		bit  uint8
		text string
	}{{sawStr, "str"}, {sawNum, "num"}, {sawInt, "int"}, {sawBool, "bool"}, {sawNull, "null"}} {
		if s.saw&k.bit != 0 && !(k.bit == sawInt && s.saw&sawNum != 0) {
			next()
			b = append(b, k.text...)
		}
	}
	return b
}

func (s *Shape) appendArray(b []byte, depth, fields int, once bool) []byte {
	b = append(b, '[')
	if s.arrays == 1 && once {
		b = strconv.AppendInt(b, s.Count, 10)
		switch {
		case s.Open:
			b = append(b, "+×"...)
		case s.Count > 0:
			b = append(b, "×"...)
		}
	}
	switch {
	case s.Count == 0 && (s.Elem == nil || s.Elem.saw == 0):
	case depth <= 1:
		b = append(b, "…"...)
	default:
		b = s.Elem.append(b, depth-1, fields, false)
	}
	return append(b, ']')
}

func (s *Shape) appendObject(b []byte, depth, fields int, once bool) []byte {
	b = append(b, '{')
	more := s.more || s.Open && s.objects == 1
	for i, f := range s.fields {
		if i >= fields || depth <= 1 {
			more = true
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, f.name)
		if f.seen < s.objects && !(s.Open && f.seen == s.objects-1) {
			b = append(b, '?')
		}
		b = f.of.append(append(b, ':'), depth-1, fields, once && s.objects == 1)
	}
	if more {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, "…"...)
	}
	return append(b, '}')
}

// Name shows the name of a field as it is where it could not be misread.
func Name(name string) string { return string(appendName(nil, name)) }

func appendName(b []byte, name string) []byte {
	if n := maxName; len(name) > n {
		for n > maxName-utf8.UTFMax && !utf8.RuneStart(name[n]) {
			n--
		}
		name = name[:n] + "…"
	}
	for i, c := range name {
		letter := c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '…' && (c < '0' || c > '9')) {
			b, _ = jsontext.AppendQuote(b, name) // what is no UTF-8 becomes U+FFFD
			return b
		}
	}
	if name == "" {
		return append(b, `""`...)
	}
	return append(b, name...)
}
