package excerpt

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

const (
	outlineParts  = 20
	outlineArrays = 10
	outlineShape  = 500 // bytes
	outlineLines  = 8   // first lines of the text
	outlineLine   = 160 // bytes of one
)

// outline says what is in a result and how to read it, in order of use: what does
// not fit any more is left out, and the page says so.
func (r Reading) outline() (Answer, error) {
	l, err := r.parts(r.Src)
	if err != nil {
		return Answer{}, err
	}
	head := fmt.Sprintf("[outline of %s: %d bytes%s]", r.CallID, r.root.n, r.Note)
	p, err := r.Limits.page(head, nil)
	if err != nil {
		return Answer{}, err
	}
	d, v, err := r.view(partAuto)
	if err != nil {
		return Answer{}, err
	}
	data, err := r.data(r.Src, partAuto)
	if err != nil {
		return Answer{}, err
	}
	lines, err := r.outlineParts(l)
	if err != nil {
		return Answer{}, err
	}
	lines = append(lines, data.describe()...)
	lines = append(lines, fmt.Sprintf("text: %s, %s: %d lines, %d bytes", d.label(), d.as, v.lines, v.n))
	for _, s := range lines {
		if !p.whole([]byte(s + "\n")) {
			p.whole([]byte("…\n"))
			break
		}
	}
	c := cursorAt(v, r.Src, 0)
	for range outlineLines {
		s, ok := firstLine(c)
		if !ok || !p.whole([]byte(s+"\n")) {
			break
		}
	}
	return Answer{Result: textAnswer([]byte(head), lineBreak, p.body)}, c.fault()
}

// outlineParts is a line for each part.
func (r Reading) outlineParts(l *layout) (lines []string, err error) {
	for i, p := range l.parts {
		if i == outlineParts {
			lines = append(lines, fmt.Sprintf("… %d more parts, up to part %d", len(l.parts)-i, len(l.parts)-1))
			break
		}
		s := fmt.Sprintf("part %d: %s, %d bytes", i, p.what(), p.at.size())
		if p.hasText {
			d, err := r.doc(r.Src, i)
			if err != nil {
				return nil, err
			}
			s = fmt.Sprintf("part %d: %s, %d bytes, %d lines, %s", i, p.what(), d.text.n, d.text.lines, d.kind)
		} else if p.data > 0 {
			s += fmt.Sprintf(" (%d of base64)", p.data)
		}
		lines = append(lines, s)
	}
	if l.more > 0 {
		lines = append(lines, fmt.Sprintf("%d parts more can only be read with %s", l.more, r.GetTool))
	}
	if n := l.structured.size(); n > 0 {
		lines = append(lines, fmt.Sprintf("part \"structured\": structuredContent, %d bytes", n))
	}
	return lines, nil
}

// describe says what records and jq find in the document.
func (d *document) describe() (lines []string) {
	if d.kind == kindCSV || d.kind == kindText {
		return nil
	}
	shape := d.survey.shape.Text("", outlineShape)
	if d.kind == kindLines {
		return []string{fmt.Sprintf("records \"\": %d JSON lines in %s, each %s", d.survey.values, d.label(), shape)}
	}
	lines = append(lines, fmt.Sprintf("JSON of %s: %s", d.label(), shape))
	for i, a := range d.arrays {
		if i == outlineArrays {
			lines = append(lines, fmt.Sprintf("… %d smaller arrays", len(d.arrays)-i))
			break
		}
		name := show(a.pointer)
		if len(name) > 200 {
			name = show(clip(a.pointer))
		}
		lines = append(lines, fmt.Sprintf("records %s: %d in %d bytes", name, a.count, a.at.size()))
	}
	return lines
}

// firstLine reads the next line, as much as an outline shows of it.
func firstLine(c *cursor) (string, bool) {
	if !c.more() {
		return "", false
	}
	a, end := c.at, c.at
	var b []byte
	for c.more() {
		n := bytes.IndexByte(c.p[:min(len(c.p), outlineLine+utf8.UTFMax)], '\n')
		if n >= 0 {
			b = append(b, c.p[:n]...)
			end = c.at + int64(n)
			c.skip(n + 1)
			break
		}
		if len(b) > outlineLine {
			rest, _ := nextLine(c)
			end = rest.b
			break
		}
		n = min(len(c.p), outlineLine+utf8.UTFMax)
		b = append(b, c.p[:n]...)
		c.skip(n)
		end = c.at
	}
	b = trimCR(b)
	if n := wholeRunes(b, outlineLine); n < len(b) {
		return fmt.Sprintf("%s… (%d bytes)", b[:n], end-a), true
	}
	return string(b), true
}
