package excerpt

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxAnswer = 128 << 10 // of text, when no limit says less
	maxMedia  = 8 << 20   // of a block in its own type, likewise
	minRoom   = 64        // bytes that a page must have room for, so that it goes on
)

// An Answer is the value of a tool result. If Derived is not nil, what was asked
// for does not fit: it may be stored and answered by a receipt; Result is its first
// page, for when that fails.
type Answer struct {
	Result  []byte
	Derived *Derived
}

// Reading is one reading of a result.
type Reading struct {
	*Index
	Src     Source
	Limits  Limits
	CallID  string
	GetTool string // what gives exact bytes, as the agent sees it
	Derived bool   // the result is itself derived from another
	Note    string // one line for the outline: where the result comes from
}

// Read answers a request, but for jq. Its error is for the agent to read.
func (r Reading) Read(q Request) (Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Limits.Lines == 1 {
		return Answer{}, fmt.Errorf("max_lines = 1 leaves no room for text under the header: set it to 2 or more for this agent")
	}
	if q.Next != "" {
		return r.goOn(q.Next)
	}
	switch {
	case q.lines != "":
		return r.lines(q.Part, q.lines)
	case q.grep != "":
		return r.grep(q.Part, grepPlace{pattern: q.grep, around: min(q.around, maxAround), limit: q.limit})
	case q.records != nil:
		return r.records(q.Part, *q.records, q.offset, q.limit)
	case q.named:
		return r.block(q.Part)
	}
	return r.outline()
}

// goOn continues at a place.
func (r Reading) goOn(token string) (Answer, error) {
	p, err := placeOf(r.CallID, token)
	switch {
	case err != nil:
		return Answer{}, err
	case p.kind == nextLines && p.has(2):
		return r.linesAt(p.part, p.n[0], p.n[1])
	case p.kind == nextGrep && (p.has(7) || p.has(8)):
		return r.grep(p.part, grepPlaceOf(p))
	case p.kind == nextRecords && p.has(3):
		return r.recordsAt(p)
	}
	return Answer{}, errToken
}

// page begins a page under a header that is at most as long as worst. tail is the
// text of a last line, "" without one; it is given up where lines are scarce.
func (l Limits) page(worst string, tail *string) (*page, error) {
	p := &page{room: maxAnswer, breaks: noBound}
	if l.Bytes > 0 {
		p.room = int(min(l.Bytes, maxAnswer))
	}
	switch {
	case l.Lines == 2:
		p.breaks = 1
	case l.Lines > 2:
		p.breaks = l.Lines - 2
	}
	if tail != nil && p.breaks < 2 {
		*tail = ""
	}
	p.room -= frameSize + encodedLen(worst) + len(`\n`)
	if tail != nil && *tail != "" {
		p.room -= encodedLen(*tail) + len(`\n`)
		p.breaks--
	}
	if p.room < minRoom {
		return nil, fmt.Errorf("the budget of %d bytes leaves no room under the header of such a page: ask for less at once, or with a shorter pattern", l.Bytes)
	}
	return p, nil
}

// lines answers a range of lines.
func (r Reading) lines(part int, s string) (Answer, error) {
	_, v, err := r.view(part)
	if err != nil {
		return Answer{}, err
	}
	first, last, err := lineRange(s, v.lines)
	if err != nil {
		return Answer{}, err
	}
	from, err := v.lineStart(r.Src, first-1)
	if err != nil {
		return Answer{}, err
	}
	end, err := v.lineStart(r.Src, last)
	if err != nil {
		return Answer{}, err
	}
	return r.linesAt(part, from, end)
}

func (r Reading) view(part int) (*document, *view, error) {
	d, err := r.doc(r.Src, part)
	if err != nil {
		return nil, nil, err
	}
	v, err := r.show(r.Src, d)
	return d, v, err
}

// linesAt answers with the bytes of a view, from an offset to another.
func (r Reading) linesAt(part int, from, end int64) (Answer, error) {
	d, v, err := r.view(part)
	if err != nil {
		return Answer{}, err
	}
	if from > end || end > v.n {
		return Answer{}, errToken
	}
	head := func(first, last, n int64, next int64) string {
		s := fmt.Sprintf("[%s, %s: lines %d-%d of %d, bytes %d+%d of %d", d.label(), d.as, first, last, v.lines, from, n, v.n)
		if n == 0 {
			s = fmt.Sprintf("[%s, %s: no lines there, it has %d, in %d bytes", d.label(), d.as, v.lines, v.n)
		}
		if next < end {
			s += "; next=" + place{kind: nextLines, part: part, n: []int64{next, end}}.token(r.CallID)
		}
		return s + "]"
	}
	p, err := r.Limits.page(head(v.lines, v.lines, v.n, max(end-1, 0)), nil)
	if err != nil {
		return Answer{}, err
	}
	c := cursorAt(v, r.Src, from)
	text := c.take(nil, int(min(end-from, int64(p.room))))
	if c.fault() != nil {
		return Answer{}, c.fault()
	}
	more := from+int64(len(text)) < end
	n := p.fits(text, more)
	if n < len(text) || more {
		// Rather end with a line than in one.
		if i := bytes.LastIndexByte(text[:n], '\n'); i >= n/2 {
			n = i + 1
		}
	}
	p.add(text[:n])
	line, err := v.lineOf(r.Src, from)
	if err != nil {
		return Answer{}, err
	}
	last := line + 1
	if n > 0 {
		last += int64(bytes.Count(text[:n-1], lineBreak))
	}
	return Answer{Result: textAnswer([]byte(head(line+1, last, int64(n), from+int64(n))), lineBreak, p.body)}, nil
}

// block answers a part without a selector: text from its beginning, anything else in
// its own type. What is no block that a client could take is shown as text.
func (r Reading) block(part int) (Answer, error) {
	l, err := r.parts(r.Src)
	if err != nil {
		return Answer{}, err
	}
	if part < 0 || part >= len(l.parts) || l.parts[part].hasText || l.parts[part].kind == "" {
		return r.lines(part, "1-")
	}
	open, end := `{"content":[`, `]}`
	if l.parts[part].bare {
		open, end = open+`{"type":"resource","resource":`, "}"+end
	}
	p, limit := l.parts[part], r.Limits.Bytes
	if limit <= 0 {
		limit = maxMedia
	}
	if p.at.size()+int64(len(open)+len(end)) > limit {
		return Answer{}, fmt.Errorf("part %d (%s) takes %d bytes, more than the %d that fit: read its bytes with %s from cursor %d to %d",
			part, p.what(), p.at.size(), limit, r.GetTool, p.at.a, p.at.b)
	}
	c := cursorAt(section{r.root, p.at.a, p.at.b}, r.Src, 0)
	b := append(c.take([]byte(open), int(p.at.size())), end...)
	if c.fault() == nil && !jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return r.lines(part, "1-")
	}
	return Answer{Result: b}, c.fault()
}

// what says what a part is.
func (p part) what() string {
	s := p.kind
	if s == "" {
		s = "block without a type"
	}
	if p.mime != "" {
		s += " " + p.mime
	}
	if p.uri != "" {
		s += " " + p.uri
	}
	return oneLine(s)
}

// Document returns the document that jq sees, and what it is. The reader must be
// used up before the Source ends.
func (r Reading) Document(q Request) (io.Reader, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.data(r.Src, q.Part)
	if err != nil {
		return nil, "", err
	}
	if d.survey == nil && q.Part == partAuto {
		if d, err = r.doc(r.Src, partResult); err != nil {
			return nil, "", err
		}
	}
	if d.survey == nil {
		return nil, "", fmt.Errorf("jq: %s is %s, not JSON: read it with lines, grep or records", d.label(), d.kind)
	}
	return reader{cursorAt(d.text, r.Src, 0)}, d.label(), nil
}
