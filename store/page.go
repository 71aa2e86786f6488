package store

import (
	"context"
	"fmt"
	"io"
	"sync"

	"zombiezen.com/go/sqlite"
)

// ReadAt reads the bytes of k at off as io.ReaderAt does: fewer than len(p) only
// with an error, which is io.EOF at the end of the result. The cost does not
// depend on off. k may be unsealed; then what is committed is there.
func (r *Reader) ReadAt(ctx context.Context, k Key, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read result %d: negative offset %d", k, off)
	}
	atEnd := false
	err = r.snapshot(ctx, func(conn *sqlite.Conn) error {
		size, err := sizeOf(conn, k)
		if err != nil {
			return err
		}
		rest := max(size-off, 0)
		if atEnd = int64(len(p)) > rest; atEnd {
			p = p[:rest]
		}
		for n < len(p) && err == nil {
			var m int
			m, err = r.readChunk(conn, k, size, p[n:], off+int64(n))
			n += m
		}
		return err
	})
	if err != nil {
		return n, fmt.Errorf("read result %d: %w", k, err)
	}
	if atEnd {
		return n, io.EOF
	}
	return n, nil
}

// Copy writes n bytes of k from off to w. It reads one chunk at a time, and no
// transaction is open while w takes it, however long that lasts.
func (r *Reader) Copy(ctx context.Context, w io.Writer, k Key, off, n int64) (written int64, err error) {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	for written < n {
		// Up to the border of a chunk: the following ones are then read whole.
		step := min(n-written, ChunkSize-(off+written)%ChunkSize)
		p := (*buf)[:step]
		m, err := r.ReadAt(ctx, k, p, off+written)
		if err == io.EOF {
			err = fmt.Errorf("copy result %d: it ends at %d: %w", k, off+written+int64(m), io.ErrUnexpectedEOF)
		}
		if err != nil {
			return written, err
		}
		m, err = w.Write(p)
		written += int64(m)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// readChunk fills p with what the chunk at off has of it.
func (r *Reader) readChunk(conn *sqlite.Conn, k Key, size int64, p []byte, off int64) (int, error) {
	seq, from := off/ChunkSize, int(off%ChunkSize)
	length := int(min(size-seq*ChunkSize, ChunkSize))
	at := k.first() + seq
	if from == 0 && len(p) >= length {
		_, err := unpackRow(conn, at, length, p[:0:length])
		return length, err
	}
	raw := r.cache.get(at)
	if len(raw) != length {
		var err error
		if raw, err = unpackRow(conn, at, length, make([]byte, 0, length)); err != nil {
			return 0, err
		}
		r.cache.put(at, raw)
	}
	return copy(p, raw[from:]), nil
}

// unpackRow appends the raw bytes of row at, of which there must be length, to
// dst, which has room for them.
func unpackRow(conn *sqlite.Conn, at int64, length int, dst []byte) (raw []byte, err error) {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	err = fmt.Errorf("%w: chunk %d is missing", ErrDamaged, at&(maxChunks-1))
	readErr := run(conn, chunkGet, func(s *sqlite.Stmt) error {
		c := Chunk{N: s.ColumnInt(0), Zip: s.ColumnBool(1), Sum: uint32(s.ColumnInt64(2))}
		if c.N != length || s.ColumnLen(3) > cap(*buf) {
			err = fmt.Errorf("%w: chunk %d has the wrong length", ErrDamaged, at&(maxChunks-1))
			return nil
		}
		c.Data = (*buf)[:s.ColumnLen(3)]
		s.ColumnBytes(3, c.Data)
		raw, err = c.Unpack(dst)
		return nil
	}, at)
	if readErr != nil {
		return nil, readErr
	}
	return raw, err
}

// sizeOf is how many bytes k has: what its row says, or what is committed of an
// unsealed result.
func sizeOf(conn *sqlite.Conn, k Key) (size int64, err error) {
	err = ErrNotFound
	readErr := run(conn, resultSize, func(s *sqlite.Stmt) error {
		size, err = s.ColumnInt64(0), nil
		if s.ColumnInt64(1) != kept {
			err = ErrExpired
		}
		return nil
	}, int64(k))
	if readErr != nil {
		return 0, readErr
	}
	if err != ErrNotFound {
		return size, err
	}
	readErr = run(conn, chunkLast, func(s *sqlite.Stmt) error {
		size, err = (s.ColumnInt64(0)-k.first())*ChunkSize+s.ColumnInt64(1), nil
		return nil
	}, k.first(), k.end())
	if readErr != nil {
		return 0, readErr
	}
	return size, err
}

// chunkCache keeps the chunks that were read last in parts: an agent that pages in
// small steps meets the same chunk many times. Chunks are never changed after they
// were put here.
type chunkCache struct {
	mu    sync.Mutex
	slots [4]struct { // the newest first
		at  int64
		raw []byte
	}
}

func (c *chunkCache) get(at int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.slots {
		if s.at == at && s.raw != nil {
			copy(c.slots[1:i+1], c.slots[:i])
			c.slots[0] = s
			return s.raw
		}
	}
	return nil
}

func (c *chunkCache) put(at int64, raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	copy(c.slots[1:], c.slots[:])
	c.slots[0].at, c.slots[0].raw = at, raw
}
