package downstream

import (
	"math/bits"
	"sync"
)

// Buffers hold one line or one message each. They come in powers of two, so that a
// small answer does not hold a big buffer while its agent reads.
const (
	smallest = 9 // 512 bytes
	largest  = 18
	maxLine  = 1 << largest // a longer line flows
)

type buffer struct {
	b    []byte
	home *sync.Pool // nil: the garbage collector's
}

var buffers [largest + 1]sync.Pool

// take returns an empty buffer with room for n bytes, at most maxLine.
func take(n int) *buffer {
	class := max(smallest, bits.Len(uint(max(n, 1)-1)))
	pool := &buffers[class]
	if buf, ok := pool.Get().(*buffer); ok {
		return buf
	}
	return &buffer{b: make([]byte, 0, 1<<class), home: pool}
}

// grow moves what buf holds to a buffer with room for n more bytes.
func (buf *buffer) grow(n int) *buffer {
	if len(buf.b)+n <= cap(buf.b) {
		return buf
	}
	next := take(len(buf.b) + n)
	next.b = append(next.b, buf.b...)
	buf.free()
	return next
}

// free gives buf back; nobody may look at its bytes after that.
func (buf *buffer) free() {
	if buf.home == nil {
		return
	}
	buf.b = buf.b[:0]
	buf.home.Put(buf)
}
