package actors

import (
	"context"
	"io"

	"mcphubd/actors/budget"
	"mcphubd/store"
)

// Body is one JSON value as a server wrote it, whole: in memory when it is
// small; else its head is in committed rows of the spool and its tail in memory.
// Whoever gets a Body closes it. One goroutine uses it.
type Body struct {
	pieces []*piece // what follows the rows of a value that flowed
	held   []byte   // a value that did not flow
	free   func()   // takes held back

	spool  Spool
	key    store.Key // of a value that flowed
	rows   int64     // bytes that are in committed rows and no longer in memory
	fault  error     // why the spool took no more
	sealed bool
	facts  *budget.Facts
}

// HeldBody is a Body in memory. free, if not nil, takes the bytes back once the
// Body is closed.
func HeldBody(b []byte, free func()) *Body { return &Body{held: b, free: free} }

// Size is the number of bytes of the value.
func (b *Body) Size() int64 {
	n := b.rows + int64(len(b.held))
	for _, p := range b.pieces {
		n += int64(p.n)
	}
	return n
}

// Held returns the bytes if they are in memory in one piece. They are valid until Close.
func (b *Body) Held() ([]byte, bool) { return b.held, b.rows == 0 && len(b.pieces) == 0 }

// Facts says what a receipt needs to know of the value. It scans the bytes when
// that was not done while they arrived.
func (b *Body) Facts() budget.Facts {
	if b.facts == nil {
		var s budget.Scanner
		s.Write(b.held)
		f := s.Facts()
		b.facts = &f
	}
	return *b.facts
}

// WriteTo writes the value to w, byte for byte, in bounded memory.
func (b *Body) WriteTo(w io.Writer) (n int64, err error) {
	if b.rows > 0 {
		if n, err = b.spool.reader.Copy(context.Background(), w, b.key, 0, b.rows); err != nil {
			return n, err
		}
	}
	for _, p := range b.pieces {
		m, err := p.WriteTo(w)
		if n += m; err != nil {
			return n, err
		}
	}
	m, err := w.Write(b.held)
	return n + int64(m), err
}

// seal has what is not yet in rows committed, and the row of the result. r needs all but
// its key. done waits for that whatever happens to the call, since the rows to come alias
// the bytes that are in memory; the body is not to be used before.
func (b *Body) seal(s Spool, r store.Result) (done func() error) {
	if b.fault != nil {
		return func() error { return b.fault }
	}
	if b.key == 0 {
		b.spool, b.key = s, s.newKey()
	}
	r.Key = b.key
	var chunks []store.Chunk
	for rest := b.held; len(rest) > 0; {
		n := min(len(rest), store.ChunkSize)
		chunks = append(chunks, store.Pack(rest[:n]))
		rest = rest[n:]
	}
	b.handed()
	committed := s.seal(r, chunks)
	return func() error {
		_, b.fault = committed.wait(context.Background())
		b.sealed = b.fault == nil
		for _, c := range chunks {
			c.Free()
		}
		return b.fault
	}
}

// handed waits until the spool has been sent all pieces: what it is told next comes
// behind them.
func (b *Body) handed() {
	for _, p := range b.pieces {
		if p.sent != nil {
			<-p.sent
		}
	}
}

// Close gives back memory and drops rows that were not sealed. It may be called twice.
func (b *Body) Close() {
	if b == nil {
		return
	}
	b.handed()
	if (b.rows > 0 || len(b.pieces) > 0) && !b.sealed {
		b.spool.Drop(b.key) // which is also when the spool answers for them
	}
	for _, p := range b.pieces {
		if p.sent != nil {
			_ = p.settle()
		}
		p.free()
	}
	if b.free != nil {
		b.free()
	}
	b.rows, b.pieces, b.free, b.held = 0, nil, nil, nil
}
