package excerpt

import (
	"slices"
	"strconv"
	"strings"

	"mcphubd/actors/shape"
)

const (
	surveyDepth = 512 // levels of nesting that are looked into
	surveyList  = 16  // arrays and strings that are kept of each sort
)

// A survey is what one reading of a document as JSON tells.
type survey struct {
	valid  bool
	values int64 // at the top: 1 is JSON, more are JSON Lines
	first  byte  // the kind of the first of them
	shape  *shape.Shape
	arrays []array // outside of other arrays, the largest first, ties in their order
	inner  []array // inside of other arrays, likewise
	texts  []array // strings that may hold JSON, likewise
}

// An array is where a JSON array stands, with its brackets; or a string, with its
// quotes.
type array struct {
	pointer string
	in      doc
	at      span
	order   int64 // offset in the outermost document
	count   int64
}

// frame is an open object or array.
type frame struct {
	object bool
	key    []byte // of the member at hand, raw
	start  int64
	count  int64
	shape  *shape.Shape
}

type surveyor struct {
	survey
	lexer
	in     doc
	sketch sketch
	stack  []frame
	arrs   int // open arrays
}

// surveyOf reads a document as JSON, to its end or to what is no JSON.
func surveyOf(src Source, d doc) (*survey, error) {
	s := &surveyor{lexer: *lexerAt(d, src, 0), in: d}
	s.shape = s.sketch.node()
	s.valid = s.all()
	return &s.survey, s.c.fault()
}

// all reads values up to the end.
func (s *surveyor) all() bool {
	for {
		t := s.next()
		if t.kind == endToken {
			return s.values > 0
		}
		at := s.shape
		if s.values >= shapeSample {
			at = nil
		}
		if s.values == 0 {
			s.first = t.kind
		}
		if s.values > 0 && s.first != '{' && s.first != '[' || !s.value(t, at) {
			return false
		}
		s.values++
	}
}

// value reads the value that begins with t. It is one loop, not a recursion: what
// servers nest may be deep.
func (s *surveyor) value(t token, at *shape.Shape) bool {
	base := len(s.stack)
	for {
		switch {
		case t.kind == '{' || t.kind == '[':
			if len(s.stack) >= surveyDepth {
				s.c.restOfBrackets()
				break
			}
			s.push(t, at)
			var closed bool
			if t, at, closed = s.opening(); !closed {
				if t.kind == badToken {
					return false
				}
				continue
			}
			s.pop(t.end)
		case t.kind == '"':
			at.Scalar('"', nil)
			s.string(t)
		case t.kind == number:
			at.Scalar('0', s.text)
		case t.kind == word:
			at.Scalar(s.text[0], nil)
		default:
			return false
		}
		// A value ended: close what it was the last of.
		for {
			if len(s.stack) == base {
				return true
			}
			f := &s.stack[len(s.stack)-1]
			f.count++
			t = s.next()
			if t.kind == ',' {
				if t, at = s.following(f); t.kind == badToken {
					return false
				}
				break
			}
			if t.kind != '}' && t.kind != ']' || (t.kind == '}') != f.object {
				return false
			}
			s.pop(t.end)
		}
	}
}

func (s *surveyor) push(t token, at *shape.Shape) {
	f := frame{object: t.kind == '{', start: t.start, shape: at}
	if n := len(s.stack); n < cap(s.stack) {
		f.key = s.stack[:n+1][n].key[:0]
	}
	s.stack = append(s.stack, f)
	if !f.object {
		s.arrs++
	}
	if f.object {
		at.Object()
	} else {
		at.Array()
	}
}

// opening reads what stands behind an opening bracket: the closing one, or the first
// token of a value.
func (s *surveyor) opening() (t token, at *shape.Shape, closed bool) {
	f := &s.stack[len(s.stack)-1]
	t = s.next()
	if f.object && t.kind == '}' || !f.object && t.kind == ']' {
		return t, nil, true
	}
	if f.object {
		t, at = s.member(f, t)
		return t, at, false
	}
	return t, s.sketch.element(f.shape, 0), false
}

// following reads up to the first token of the value behind a comma.
func (s *surveyor) following(f *frame) (token, *shape.Shape) {
	t := s.next()
	if f.object {
		return s.member(f, t)
	}
	return t, s.sketch.element(f.shape, f.count)
}

// member reads a key that begins with t, and the first token of its value.
func (s *surveyor) member(f *frame, t token) (token, *shape.Shape) {
	if t.kind != '"' {
		return token{kind: badToken}, nil
	}
	f.key = append(f.key[:0], s.text...)
	var at *shape.Shape
	if f.shape != nil {
		at = f.shape.Member(s.decoded(), s.sketch.node)
	}
	if s.next().kind != ':' {
		return token{kind: badToken}, nil
	}
	return s.next(), at
}

func (s *surveyor) pop(end int64) {
	f := &s.stack[len(s.stack)-1]
	if f.shape != nil && !f.object {
		f.shape.Count = f.count
	}
	if !f.object {
		s.arrs--
		list := &s.arrays
		if s.arrs > 0 {
			list = &s.inner
		}
		if l := *list; len(l) < surveyList || end-f.start > l[surveyList-1].at.size() {
			a := array{in: s.in, at: span{f.start, end}, order: f.start, count: f.count}
			keepLargest(list, a, func() string { return s.pointer(len(s.stack) - 1) })
		}
	}
	s.stack = s.stack[:len(s.stack)-1]
}

// string notes a string that may hold JSON and is worth a look.
func (s *surveyor) string(t token) {
	n := t.end - t.start
	if len(s.stack) > 0 && (n < 64 || n < s.in.size()/64 || len(s.text) == 0 || s.text[0] != '{' && s.text[0] != '[') {
		return
	}
	a := array{in: s.in, at: span{t.start, t.end}, order: t.start}
	keepLargest(&s.texts, a, func() string { return s.pointer(len(s.stack)) })
}

// pointer is the JSON Pointer of the value inside the first n frames.
func (s *surveyor) pointer(n int) string {
	var b strings.Builder
	for _, f := range s.stack[:n] {
		b.WriteByte('/')
		if !f.object {
			b.WriteString(strconv.FormatInt(f.count, 10))
			continue
		}
		r := rendering{how: unquoted}
		b.WriteString(pointerEscape.Replace(string(r.end(r.feed(nil, f.key)))))
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// keepLargest adds a to a list of the largest, if it is among them.
func keepLargest(list *[]array, a array, pointer func() string) {
	l := *list
	i, _ := slices.BinarySearchFunc(l, a, compareArrays)
	if i == surveyList {
		return
	}
	a.pointer = pointer()
	if len(l) == surveyList {
		l = l[:surveyList-1]
	}
	*list = slices.Insert(l, i, a)
}

// compareArrays puts the larger first, then the one that comes first.
func compareArrays(x, y array) int {
	switch {
	case x.at.size() != y.at.size():
		return int(min(max(y.at.size()-x.at.size(), -1), 1))
	default:
		return int(min(max(x.order-y.order, -1), 1))
	}
}
