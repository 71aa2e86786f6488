package downstream

import (
	"bytes"
	"io"
	"sync"
	"time"

	"mcphubd/transport/wire"
)

// reader cuts the stdout of a child into lines.
type reader struct {
	c     *Conn
	block *[blockBytes]byte // what is read into
	line  *buffer           // the beginning of a short line
	flow  *flow             // the long line that is being read
	room  chan struct{}     // holds one for each block that waits for a splitter
	flows sync.WaitGroup
}

const (
	blockBytes = 64 << 10
	maxBlocks  = 72 // that wait for splitters, on one connection: 4.5 MiB
)

var blocks = sync.Pool{New: func() any { return new([blockBytes]byte) }}

func newReader(c *Conn) *reader {
	return &reader{c: c, room: make(chan struct{}, maxBlocks)}
}

// read reads src to its end.
func (r *reader) read(src io.Reader) {
	r.block = blocks.Get().(*[blockBytes]byte)
	for {
		n, err := src.Read(r.block[:])
		if n > 0 {
			r.c.life.Store(time.Now().UnixNano())
			r.take(r.block[:n])
		}
		if err != nil {
			r.end()
			return
		}
	}
}

// take handles the bytes of one read.
func (r *reader) take(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			r.part(p, true)
			return
		}
		r.part(p[:i], false)
		r.ended()
		p = p[i+1:]
	}
}

// part takes more of the current line. last says that the block holds nothing behind it.
func (r *reader) part(p []byte, last bool) {
	if len(p) == 0 {
		return
	}
	if r.flow == nil {
		have := 0
		if r.line != nil {
			have = len(r.line.b)
		}
		if int64(have+len(p)) <= min(maxLine, r.c.maxFrame) {
			r.keep(p)
			return
		}
		r.flow = newFlow(r)
		if r.line != nil {
			r.hand(piece{data: r.line.b, line: r.line})
			r.line = nil
		}
	}
	if last { // the block goes along, without a copy
		r.hand(piece{data: p, block: r.block})
		r.block = blocks.Get().(*[blockBytes]byte)
		return
	}
	block := blocks.Get().(*[blockBytes]byte)
	r.hand(piece{data: block[:copy(block[:], p)], block: block})
}

func (r *reader) keep(p []byte) {
	if r.line == nil {
		r.line = take(len(p))
	}
	r.line = r.line.grow(len(p))
	r.line.b = append(r.line.b, p...)
}

// hand gives a piece to the splitter of the current line. It waits while too much
// of this connection waits already.
func (r *reader) hand(p piece) {
	f := r.flow
	f.size += int64(len(p.data))
	p.over = f.size > r.c.maxFrame
	r.room <- struct{}{}
	f.pieces <- p
}

// ended follows the last byte of a line.
func (r *reader) ended() {
	switch {
	case r.flow != nil:
		close(r.flow.pieces)
		r.flow = nil
	case r.line != nil:
		line := r.line
		r.line = nil
		if !r.c.route(line) {
			line.free()
		}
	}
}

// end follows the last byte of the stream. A line that was cut by it is left out:
// the death of the child says more. A whole one that lacks only its newline counts.
func (r *reader) end() {
	if r.flow != nil {
		r.flow.cut = true
	}
	if r.line != nil {
		if _, err := wire.ScanEnvelope(r.line.b); err != nil {
			r.line.free()
			r.line = nil
		}
	}
	r.ended()
	blocks.Put(r.block)
	r.block = nil
}
