package excerpt

import (
	"bytes"
	"fmt"
)

// A sequence is the records of a document: elements of an array, values of JSON
// Lines, rows of CSV, lines of text. Its marks make every record cheap to reach.
type sequence struct {
	name    string // of what
	pointer string // of an array in JSON
	json    bool   // records are JSON values
	in      doc    // records and what separates them, nothing else
	next    func(*cursor) (span, bool)
	header  span // of CSV, in in
	count   int64
	bytes   int64 // of all records
	marks   []recordMark
}

type recordMark struct{ index, at int64 }

// index reads all records once and makes the marks.
func (s *sequence) index(src Source, from int64) error {
	w := s.walk(src, recordMark{0, from})
	due := from
	for {
		at := w.c.at
		r, ok := s.next(w.c)
		if !ok {
			break
		}
		if at >= due {
			s.marks = append(s.marks, recordMark{s.count, at})
			due = at + markEvery
		}
		s.count++
		s.bytes += r.size()
	}
	return w.c.fault()
}

// A walk goes from record to record.
type walk struct {
	s     *sequence
	c     *cursor
	index int64
}

func (s *sequence) walk(src Source, m recordMark) *walk {
	return &walk{s, cursorAt(s.in, src, m.at), m.index}
}

// from returns a walk whose next record is the one numbered index.
func (s *sequence) from(src Source, index int64) *walk {
	m := recordMark{}
	for lo, hi := 0, len(s.marks); lo < hi; {
		mid := (lo + hi) / 2
		if s.marks[mid].index <= index {
			m, lo = s.marks[mid], mid+1
		} else {
			hi = mid
		}
	}
	w := s.walk(src, m)
	for w.index < index {
		if _, ok := w.next(); !ok {
			break
		}
	}
	return w
}

func (w *walk) next() (span, bool) {
	r, ok := w.s.next(w.c)
	if ok {
		w.index++
	}
	return r, ok
}

// nextValue finds the next of JSON values that commas or white space separate.
func nextValue(c *cursor) (span, bool) {
	for c.space() && c.p[0] == ',' {
		c.skip(1)
	}
	if !c.more() {
		return span{}, false
	}
	a := c.at
	c.value()
	return span{a, c.at}, c.at > a
}

// nextLine finds the next line, without its line break.
func nextLine(c *cursor) (span, bool) {
	if !c.more() {
		return span{}, false
	}
	a := c.at
	for c.more() {
		if i := bytes.IndexByte(c.p, '\n'); i >= 0 {
			c.skip(i + 1)
			return span{a, c.at - 1}, true
		}
		c.skip(len(c.p))
	}
	return span{a, c.at}, true
}

// nextRow returns what finds the next row of CSV that is not empty.
func nextRow(comma byte) func(*cursor) (span, bool) {
	return func(c *cursor) (span, bool) {
		for c.more() {
			a, r, done := c.at, rowScan{comma: comma}, false
			for !done && c.more() {
				var n int
				n, done = r.scan(c.p)
				c.skip(n)
			}
			b := c.at
			if done {
				b--
			}
			if b > a && !(b == a+1 && r.cr) {
				return span{a, b}, true
			}
		}
		return span{}, false
	}
}

// records returns the sequence that pointer names in a document.
func (x *Index) records(src Source, d *document, pointer string) (*sequence, error) {
	if pointer == "auto" || pointer == "/" && d.survey == nil {
		pointer = ""
	}
	if s := d.seqs[pointer]; s != nil {
		return s, nil
	}
	s, from, err := d.sequence(src, pointer)
	if err != nil {
		return nil, err
	}
	if err := s.index(src, from); err != nil {
		return nil, err
	}
	if len(d.seqs) < 16 {
		d.seqs[pointer] = s
		x.cost += int64(len(s.marks))*16 + 256
	}
	return s, nil
}

// sequence finds the records, and where the first may begin.
func (d *document) sequence(src Source, pointer string) (*sequence, int64, error) {
	whole := func(name string, next func(*cursor) (span, bool)) *sequence {
		return &sequence{name: name, in: d.text, next: next}
	}
	switch {
	case d.kind == kindJSON:
		a, err := d.array(src, pointer)
		if err != nil {
			return nil, 0, err
		}
		name := pointerName(a.pointer)
		return &sequence{name: name, pointer: a.pointer, json: true, in: section{a.in, a.at.a + 1, a.at.b - 1}, next: nextValue}, 0, nil
	case pointer != "":
		return nil, 0, fmt.Errorf("records %s: %s is %s, in which JSON Pointers lead nowhere; give records \"\" for its %s",
			pointerName(pointer), d.label(), d.kind, d.recordName())
	case d.kind == kindLines:
		s := whole("JSON lines", nextValue)
		s.json = true
		return s, 0, nil
	case d.kind == kindCSV:
		s := whole("CSV rows", nextRow(d.comma))
		c := cursorAt(d.text, src, 0)
		s.header, _ = s.next(c)
		return s, c.at, c.fault()
	}
	return whole("lines", nextLine), 0, nil
}

func (d *document) recordName() string {
	switch d.kind {
	case kindLines:
		return "values"
	case kindCSV:
		return "rows"
	}
	return "lines"
}

// array finds the array that pointer names; "" is the largest.
func (d *document) array(src Source, pointer string) (array, error) {
	if pointer == "" {
		if a, ok := d.largest(); ok {
			return a, nil
		}
		return array{}, fmt.Errorf("records: there is no array in the JSON of %s, whose shape is %s; read it with lines or jq",
			d.label(), d.survey.shape.Text("", 300))
	}
	return d.resolve(src, pointer)
}
