package excerpt

import (
	"errors"
	"fmt"
	"io"
	"sort"
)

// Source is the bytes of one stored result. They never change.
type Source interface {
	io.ReaderAt
	Size() int64
}

// A doc is a sequence of bytes that can be read from any offset on.
type doc interface {
	size() int64
	open(src Source, off int64) flow
}

// A flow gives bytes in their order, a block at a time. A block is never empty,
// and is valid until the next call; after the last one comes io.EOF.
type flow interface {
	next() ([]byte, error)
}

// The sizes of blocks are variables so that tests can put a border anywhere.
var (
	// readSize is how much is read at once. Reads end at multiples of it: that is how
	// the store cuts its chunks, and whole ones are read without a detour.
	readSize int64 = 256 << 10
	// markEvery is how many bytes of a document lie between two marks on it.
	markEvery int64 = 64 << 10
	// feedSize is how much is rendered at once; it bounds what that can become.
	feedSize = 16 << 10
	// grepWindow is how much of the text is in memory at once. Lines longer than that
	// are searched in windows that overlap; a match longer than the overlap may be missed.
	grepWindow, grepOverlap = 1 << 20, 64 << 10
)

// root is the raw result.
type root struct{ n int64 }

func (r root) size() int64 { return r.n }

func (r root) open(src Source, off int64) flow { return &rawFlow{src: src, at: off, end: r.n} }

type rawFlow struct {
	src     Source
	at, end int64
	buf     []byte
}

func (f *rawFlow) next() ([]byte, error) {
	n := int(min(f.end-f.at, readSize-f.at%readSize))
	if n <= 0 {
		return nil, io.EOF
	}
	if len(f.buf) < n {
		f.buf = make([]byte, n)
	}
	m, err := f.src.ReadAt(f.buf[:n], f.at)
	if m < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read stored result at %d: %w", f.at, err)
	}
	f.at += int64(n)
	return f.buf[:n], nil
}

// section is bytes a to b of another document.
type section struct {
	in   doc
	a, b int64
}

func (s section) size() int64 { return s.b - s.a }

func (s section) open(src Source, off int64) flow {
	if _, ok := s.in.(root); ok {
		return &rawFlow{src: src, at: s.a + off, end: s.b} // reads no byte too many
	}
	return &cutFlow{in: s.in.open(src, s.a+off), left: s.b - s.a - off}
}

// cutFlow ends after some bytes.
type cutFlow struct {
	in   flow
	left int64
}

func (f *cutFlow) next() ([]byte, error) {
	if f.left <= 0 {
		return nil, io.EOF
	}
	p, err := f.in.next()
	if err != nil {
		return nil, cutShort(err)
	}
	p = p[:min(int64(len(p)), f.left)]
	f.left -= int64(len(p))
	return p, nil
}

// cutShort is what the end of a document means where more was promised.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// joined is documents one after the other. Where one does not end its last line,
// a line break stands between it and the next.
type joined struct {
	parts  []doc
	gaps   []bool  // a line break stands behind the part
	starts []int64 // where each part begins, and the end
}

var lineBreak = []byte{'\n'}

// sum sets the starts.
func (j *joined) sum() {
	at := int64(0)
	j.starts = []int64{0}
	for i, p := range j.parts {
		if at += p.size(); j.gaps[i] {
			at++
		}
		j.starts = append(j.starts, at)
	}
}

func (j joined) size() int64 { return j.starts[len(j.parts)] }

func (j joined) open(src Source, off int64) flow {
	i := sort.Search(len(j.parts), func(i int) bool { return j.starts[i+1] > off })
	return &joinedFlow{j: j, src: src, i: i, off: off - j.starts[i]}
}

type joinedFlow struct {
	j   joined
	src Source
	i   int
	off int64 // in part i, until it is opened
	in  flow
}

func (f *joinedFlow) next() ([]byte, error) {
	for f.i < len(f.j.parts) {
		if f.in == nil {
			f.in = f.j.parts[f.i].open(f.src, f.off)
		}
		p, err := f.in.next()
		if err != io.EOF {
			return p, err
		}
		gap := f.j.gaps[f.i]
		f.i, f.in, f.off = f.i+1, nil, 0
		if gap {
			return lineBreak, nil
		}
	}
	return nil, io.EOF
}

// A cursor reads a document forward, over block borders.
type cursor struct {
	f   flow
	at  int64  // offset of what comes next
	p   []byte // what is left of the block
	err error
}

func cursorAt(d doc, src Source, off int64) *cursor { return &cursor{f: d.open(src, off), at: off} }

// more makes sure that p is not empty; false at the end or after an error.
func (c *cursor) more() bool {
	if len(c.p) == 0 && c.err == nil {
		c.p, c.err = c.f.next()
	}
	return len(c.p) > 0
}

func (c *cursor) skip(n int) { c.p, c.at = c.p[n:], c.at+int64(n) }

// fault is the error that ended the cursor, nil at a proper end.
func (c *cursor) fault() error {
	if c.err == io.EOF {
		return nil
	}
	return c.err
}

// seek goes forward to off.
func (c *cursor) seek(off int64) {
	for c.at < off && c.more() {
		c.skip(int(min(int64(len(c.p)), off-c.at)))
	}
}

// take appends the next n bytes to dst, fewer at the end.
func (c *cursor) take(dst []byte, n int) []byte {
	for n > 0 && c.more() {
		k := min(n, len(c.p))
		dst = append(dst, c.p[:k]...)
		c.skip(k)
		n -= k
	}
	return dst
}

// reader makes an io.Reader of a cursor.
type reader struct{ c *cursor }

func (r reader) Read(p []byte) (int, error) {
	if !r.c.more() {
		return 0, r.c.err
	}
	n := copy(p, r.c.p)
	r.c.skip(n)
	return n, nil
}
