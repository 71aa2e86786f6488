package excerpt

import (
	"bytes"
	"fmt"
	"io"
)

// An Output takes what a program prints and writes it on as the value of a tool
// result with one text block.
type Output struct {
	w     io.Writer
	begun bool
	buf   []byte
	n     int64 // bytes printed
	lines int64
	last  byte
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

func (o *Output) Write(p []byte) (int, error) {
	o.buf = o.buf[:0]
	if !o.begun {
		o.begun = true
		o.buf = append(o.buf, frameOpen...)
	}
	o.buf = AppendRaw(o.buf, p)
	o.n += int64(len(p))
	o.lines += int64(bytes.Count(p, lineBreak))
	if len(p) > 0 {
		o.last = p[len(p)-1]
	}
	if _, err := o.w.Write(o.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the value.
func (o *Output) Close() error {
	if !o.begun {
		if _, err := o.Write(nil); err != nil {
			return err
		}
	}
	_, err := io.WriteString(o.w, frameClose)
	return err
}

// Answer is the answer that shows all that was printed under a header. written is
// what was written on; nil when it does not fit.
func (o *Output) Answer(written []byte, label string, l Limits) []byte {
	lines := o.lines
	if o.n > 0 && o.last != '\n' {
		lines++
	}
	head := fmt.Sprintf("[jq on %s: %d values, %d bytes]\n", label, lines, o.n)
	limit := l.Bytes
	if limit <= 0 {
		limit = maxAnswer
	}
	if int64(len(written)+encodedLen(head)) > limit || l.Lines > 1 && lines+2 > int64(l.Lines) {
		return nil
	}
	b := append(make([]byte, 0, limit), frameOpen...)
	b = appendEncoded(b, []byte(head))
	return append(b, written[len(frameOpen):]...)
}

// Shape is the shape of the document that records and jq see, in at most limit bytes;
// "" when there is none or it cannot be read.
func (r Reading) Shape(limit int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.data(r.Src, partAuto)
	if err != nil || d.survey == nil {
		return ""
	}
	head := ""
	if d.kind == kindLines {
		head = fmt.Sprintf("%d×", d.survey.values)
	}
	return d.survey.shape.Text(head, limit)
}
