package excerpt

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Derived is a selection that does not fit an answer. Its text is a function of the
// result and the query.
type Derived struct {
	Query string
	src   Source
	seq   *sequence
	from  int64
	to    int64
}

// records answers records from offset on, at most limit (0 is all).
func (r Reading) records(part int, pointer string, offset, limit int64) (Answer, error) {
	d, s, err := r.sequenceOf(part, pointer)
	if err != nil {
		return Answer{}, err
	}
	from, to := min(offset, s.count), s.count
	if limit > 0 {
		to = min(to, from+min(limit, s.count))
	}
	a, done, err := r.recordPage(d, s, recordPlace{part, pointer, from, 0, to, true})
	if err != nil || done || limit <= 0 || to-from < 2 {
		return a, err
	}
	if r.Derived && from == 0 && to == s.count {
		return a, nil // to derive all of it once more would lead nowhere
	}
	query, err := json.Marshal(map[string]any{"records": s.pointer, "part": partName(d.part), "offset": from, "limit": to - from})
	if err != nil {
		return a, err
	}
	a.Derived = &Derived{string(query), r.Src, s, from, to}
	return a, nil
}

// sequenceOf finds the records of a part. A pointer that is meant for the whole
// result is understood where the text of the result is no JSON.
func (r Reading) sequenceOf(part int, pointer string) (*document, *sequence, error) {
	d, err := r.data(r.Src, part)
	if err != nil {
		return nil, nil, err
	}
	if part == partAuto && d.survey == nil && pointer != "" && pointer != "auto" {
		if d, err = r.doc(r.Src, partResult); err != nil {
			return nil, nil, err
		}
	}
	s, err := r.Index.records(r.Src, d, pointer)
	return d, s, err
}

// A recordPlace is where a page of records begins: at a byte of a record.
type recordPlace struct {
	part     int
	pointer  string
	index    int64
	byte     int64
	to       int64
	isHeaded bool // the header of a table comes first
}

func (p recordPlace) token(callID string) string {
	return place{nextRecords, p.part, []int64{p.index, p.byte, p.to}, p.pointer}.token(callID)
}

func (r Reading) recordsAt(p place) (Answer, error) {
	d, s, err := r.sequenceOf(p.part, p.text)
	if err != nil {
		return Answer{}, err
	}
	at := recordPlace{part: p.part, pointer: p.text, index: p.n[0], byte: p.n[1], to: p.n[2]}
	if at.index >= at.to || at.to > s.count {
		return Answer{}, errToken
	}
	a, _, err := r.recordPage(d, s, at)
	return a, err
}

// recordPage fills a page; done when it reaches the last record that was asked for.
func (r Reading) recordPage(d *document, s *sequence, at recordPlace) (a Answer, done bool, err error) {
	what := fmt.Sprintf("[%s, %s", d.label(), s.name)
	tail := fmt.Sprintf("[%d records, %d bytes in all]", s.count, s.bytes)
	head := func(is string, next recordPlace) string {
		is = what + ": " + is
		if next.index < next.to {
			is += "; next=" + next.token(r.CallID)
		}
		return is + "]"
	}
	far := at
	far.index, far.byte, far.to = max(at.to-1, 0), s.in.size(), at.to+1
	p, err := r.Limits.page(head(fmt.Sprintf("record %d of %d, bytes %d+%d of %d", far.index, s.count, far.byte, far.byte, far.byte), far), &tail)
	if err != nil {
		return a, false, err
	}
	if at.isHeaded && s.header.size() > 0 && s.header.size() < int64(p.room/2) {
		c := cursorAt(s.in, r.Src, s.header.a)
		p.whole(append(c.take(nil, int(s.header.size())), '\n'))
	}
	next, is, err := r.fill(p, s, at)
	if err != nil {
		return a, false, err
	}
	text := [][]byte{[]byte(head(is, next)), lineBreak, p.body}
	if tail != "" {
		if n := len(p.body); n > 0 && (next.byte > 0 || at.byte > 0 || p.body[n-1] != '\n') {
			text = append(text, lineBreak)
		}
		text = append(text, []byte(tail))
	}
	return Answer{Result: textAnswer(text...)}, next.index >= next.to, nil
}

// fill puts records on the page, each on lines of its own, or a window of the first
// when it alone does not fit. It says where to go on, and what is on the page.
func (r Reading) fill(p *page, s *sequence, at recordPlace) (next recordPlace, is string, err error) {
	next = at
	next.isHeaded = false
	w := s.from(r.Src, at.index)
	c := cursorAt(s.in, r.Src, w.c.at)
	for next.index < at.to {
		rec, ok := w.next()
		if !ok {
			break
		}
		n := rec.size()
		if n <= int64(p.room) && next.byte == 0 {
			c.seek(rec.a)
			if p.whole(append(c.take(nil, int(n)), '\n')) {
				next.index++
				continue
			}
			c = cursorAt(s.in, r.Src, rec.a)
		}
		if next.index > at.index {
			break
		}
		c.seek(rec.a + next.byte)
		text := c.take(nil, int(min(n-next.byte, int64(p.room))))
		k := p.fits(text, next.byte+int64(len(text)) < n)
		p.add(text[:k])
		is = fmt.Sprintf("record %d of %d, bytes %d+%d of %d", next.index, s.count, next.byte, k, n)
		if next.byte += int64(k); next.byte >= n {
			next.index, next.byte = next.index+1, 0
		}
		break
	}
	if err := firstOf(w.c.fault(), c.fault()); err != nil {
		return next, "", err
	}
	switch {
	case is != "":
	case next.index == at.index:
		next.index = next.to
		is = fmt.Sprintf("no records from %d on, there are %d", at.index, s.count)
	default:
		is = fmt.Sprintf("records %d-%d of %d", at.index, next.index-1, s.count)
	}
	return next, is, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteTo writes the selection as the value of a tool result: JSON records as an
// array in structuredContent, each with its exact bytes; lines and rows as text.
func (d *Derived) WriteTo(w io.Writer) (int64, error) {
	b := &counter{w: bufio.NewWriterSize(w, 256<<10)}
	text := frameOpen
	end := frameClose
	if d.seq.json {
		text, end = `{"content":[],"structuredContent":[`, `]}`
	}
	b.Write([]byte(text))
	walk := d.seq.from(d.src, d.from)
	c := cursorAt(d.seq.in, d.src, min(walk.c.at, d.seq.header.a))
	if d.seq.header.size() > 0 {
		d.copy(b, c, d.seq.header)
	}
	for i := d.from; i < d.to; i++ {
		rec, ok := walk.next()
		if !ok {
			break
		}
		if d.seq.json && i > d.from {
			b.Write([]byte{','})
		}
		c.seek(rec.a)
		d.copy(b, c, rec)
	}
	b.Write([]byte(end))
	return b.n, firstOf(walk.c.fault(), c.fault(), b.w.Flush())
}

// copy writes one record. Bytes that are no UTF-8 stay as they are.
func (d *Derived) copy(b *counter, c *cursor, rec span) {
	c.seek(rec.a)
	for left := rec.size(); left > 0 && c.more(); {
		k := int(min(left, int64(len(c.p)), int64(feedSize)))
		if d.seq.json {
			b.Write(c.p[:k])
		} else {
			b.Write(AppendRaw(nil, c.p[:k]))
		}
		c.skip(k)
		left -= int64(k)
	}
	if !d.seq.json {
		b.Write([]byte(`\n`))
	}
}

// counter counts what is written. A bufio.Writer keeps the first error.
type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(p []byte) {
	n, _ := c.w.Write(p)
	c.n += int64(n)
}
