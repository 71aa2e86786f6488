package excerpt

import (
	"bytes"
	"io"
)

// A view is a rendering of bytes a to b of another document. Its marks make every
// offset and every line of it cheap to reach.
type view struct {
	in    doc
	a, b  int64
	marks []mark
	n     int64 // bytes
	lines int64
	cut   bool // the last line is not ended by a line break
}

// A mark is a place from which the view can be read on.
type mark struct {
	in    int64 // offset in the document below
	out   int64 // offset in the view
	lines int64 // line breaks before it
	state rendering
}

// newView reads in from a to b once and makes the marks.
func newView(src Source, in doc, a, b int64, h how) (*view, error) {
	v := &view{in: in, a: a, b: b}
	state := rendering{how: h}
	c := &cursor{f: section{in, a, b}.open(src, 0), at: a}
	var breaks int64
	var out []byte
	last := byte('\n')
	count := func(p []byte) {
		if len(p) == 0 {
			return
		}
		breaks += int64(bytes.Count(p, lineBreak))
		v.n += int64(len(p))
		last = p[len(p)-1]
	}
	for due := a; c.more(); {
		if c.at >= due {
			v.marks = append(v.marks, mark{c.at, v.n, breaks, state})
			due = c.at + markEvery
		}
		k := min(len(c.p), feedSize)
		if h == asIs {
			count(c.p[:k])
		} else {
			out = state.feed(out[:0], c.p[:k])
			count(out)
		}
		c.skip(k)
	}
	if err := c.fault(); err != nil {
		return nil, err
	}
	count(state.end(out[:0]))
	v.lines, v.cut = breaks, last != '\n'
	if v.cut {
		v.lines++
	}
	if len(v.marks) == 0 {
		v.marks = []mark{{a, 0, 0, rendering{how: h}}}
	}
	return v, nil
}

func (v *view) size() int64 { return v.n }

// cost is about how many bytes of memory v takes.
func (v *view) cost() int64 { return 128 + int64(len(v.marks))*56 }

func (v *view) open(src Source, off int64) flow {
	m := v.marks[v.before(func(m mark) bool { return m.out <= off })]
	f := &viewFlow{in: section{v.in, m.in, v.b}.open(src, 0), state: m.state}
	f.drop = off - m.out
	return f
}

// before returns the last mark for which ok holds; it holds for the first, and for
// none after one for which it does not.
func (v *view) before(ok func(mark) bool) int {
	lo, hi := 0, len(v.marks)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; ok(v.marks[mid]) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// lineStart returns the offset at which line n begins, counted from 0; the size of
// the view when it has no such line.
func (v *view) lineStart(src Source, n int64) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	if n >= v.lines {
		return v.n, nil
	}
	m := v.marks[v.before(func(m mark) bool { return m.lines < n })]
	c := cursorAt(v, src, m.out)
	for left := n - m.lines; c.more(); {
		i := bytes.IndexByte(c.p, '\n')
		if i < 0 {
			c.skip(len(c.p))
			continue
		}
		c.skip(i + 1)
		if left--; left == 0 {
			return c.at, nil
		}
	}
	return v.n, c.fault()
}

// lineOf returns the line in which the byte at off stands, counted from 0.
func (v *view) lineOf(src Source, off int64) (int64, error) {
	m := v.marks[v.before(func(m mark) bool { return m.out <= off })]
	n := m.lines
	c := cursorAt(v, src, m.out)
	for c.at < off && c.more() {
		k := int(min(int64(len(c.p)), off-c.at))
		n += int64(bytes.Count(c.p[:k], lineBreak))
		c.skip(k)
	}
	return n, c.fault()
}

type viewFlow struct {
	in    flow
	state rendering
	p     []byte // what is left of the block below
	out   []byte
	drop  int64 // bytes to leave out at the beginning
	ended bool
}

func (f *viewFlow) next() ([]byte, error) {
	for {
		p, err := f.render()
		if err != nil {
			return nil, err
		}
		k := min(int64(len(p)), f.drop)
		f.drop -= k
		if p = p[k:]; len(p) > 0 {
			return p, nil
		}
	}
}

func (f *viewFlow) render() (p []byte, err error) {
	if f.ended {
		return nil, io.EOF
	}
	if len(f.p) == 0 {
		if f.p, err = f.in.next(); err != nil && err != io.EOF {
			return nil, err
		}
	}
	if len(f.p) == 0 {
		f.ended = true
		f.out = f.state.end(f.out[:0])
		return f.out, nil
	}
	if f.state.how == asIs {
		p, f.p = f.p, nil
		return p, nil
	}
	k := min(len(f.p), feedSize)
	f.out = f.state.feed(f.out[:0], f.p[:k])
	f.p = f.p[k:]
	return f.out, nil
}
