package excerpt

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Parts that are no content block.
const (
	partAuto       = -1 // the text of all text blocks, or what comes nearest
	partStructured = -2
	partResult     = -3
)

// An Index is what was found out about one result so far: where its parts stand,
// where lines and records begin. It holds no bytes of the result, and may be used
// by several goroutines; they wait for each other while something is found out.
type Index struct {
	mu     sync.Mutex
	root   root
	layout *layout
	docs   map[int]*document
	cost   int64
}

// NewIndex returns the index of a result of n bytes, of which nothing is known yet.
func NewIndex(n int64) *Index { return &Index{root: root{n}, docs: map[int]*document{}, cost: 512} }

// Cost is about how many bytes of memory the index takes.
func (x *Index) Cost() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cost
}

// A kind says how a document is read as records.
type kind string

const (
	kindText  kind = "text"
	kindJSON  kind = "JSON"
	kindLines kind = "JSON Lines"
	kindCSV   kind = "CSV"
)

// A document is one part of a result as text.
type document struct {
	part    int
	text    *view // its bytes, outside of any JSON string that holds them all
	wrapped int   // JSON strings that were taken off
	kind    kind
	comma   byte    // of CSV
	survey  *survey // nil unless it is JSON
	arrays  []array // of it and of JSON in its strings, the largest first

	shown *view  // what lines and grep read
	as    string // what that is
	seqs  map[string]*sequence
}

// parts returns the layout.
func (x *Index) parts(src Source) (*layout, error) {
	if x.layout == nil {
		l, err := layoutOf(src, x.root)
		if err != nil {
			return nil, err
		}
		x.layout = l
		x.cost += int64(len(l.parts)) * 128
	}
	return x.layout, nil
}

// doc returns the document of a part.
func (x *Index) doc(src Source, part int) (*document, error) {
	l, err := x.parts(src)
	if err != nil {
		return nil, err
	}
	if part == partAuto {
		part = l.auto()
	}
	if d := x.docs[part]; d != nil {
		return d, nil
	}
	d := &document{part: part, seqs: map[string]*sequence{}}
	if d.text, err = x.partText(src, l, part); err != nil {
		return nil, err
	}
	if err := d.recognise(src); err != nil {
		return nil, err
	}
	x.docs[part] = d
	x.cost += d.text.cost() + 4096
	return d, nil
}

// maxWrapped is how many JSON strings around a document are taken off.
const maxWrapped = 4

// recognise finds out what kind of text the document is.
func (d *document) recognise(src Source) error {
	for {
		c := cursorAt(d.text, src, 0)
		if c.space(); c.fault() != nil {
			return c.fault()
		}
		if len(c.p) > 0 && (c.p[0] == '{' || c.p[0] == '[' || c.p[0] == '"' && d.wrapped < maxWrapped) {
			break
		}
		return d.recogniseText(src)
	}
	s, err := surveyOf(src, d.text)
	switch {
	case err != nil:
		return err
	case !s.valid:
		return d.recogniseText(src)
	case s.first == '"':
		at := s.texts[0].at
		v, err := newView(src, d.text, at.a+1, at.b-1, unquoted)
		if err != nil {
			return err
		}
		d.text, d.wrapped = v, d.wrapped+1
		return d.recognise(src)
	}
	d.survey, d.kind = s, kindJSON
	if s.values > 1 {
		d.kind = kindLines
		return nil
	}
	return d.listArrays(src)
}

func (d *document) recogniseText(src Source) (err error) {
	d.kind = kindText
	if d.comma, err = sniffCSV(src, d.text); err == nil && d.comma != 0 {
		d.kind = kindCSV
	}
	return err
}

// pointerName shows a JSON Pointer, which may be empty or very long.
func pointerName(p string) string {
	if p == "" {
		return "the top array"
	}
	return oneLine(p)
}

// oneLine shows a text that anybody may have written in a line of ours.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 {
			return '\uFFFD'
		}
		return r
	}, clip(s))
}

// data returns the document that records and jq see: structuredContent, else JSON
// in a text block, else the text.
func (x *Index) data(src Source, part int) (*document, error) {
	l, err := x.parts(src)
	if err != nil {
		return nil, err
	}
	if part != partAuto {
		return x.doc(src, part)
	}
	if l.structured.size() > 0 {
		return x.doc(src, partStructured)
	}
	all, err := x.doc(src, partAuto)
	if err != nil || all.part != partAuto || all.survey != nil {
		return all, err
	}
	texts := l.texts()
	slices.SortStableFunc(texts, func(i, j int) int { return cmp.Compare(l.parts[j].text.size(), l.parts[i].text.size()) })
	for _, i := range texts[:min(nestedTexts, len(texts))] {
		if d, err := x.doc(src, i); err != nil || d.survey != nil {
			return d, err
		}
	}
	return all, nil
}
