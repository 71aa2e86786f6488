package actors

import (
	"context"
	"hash"
	"io"
	"sync"

	"mcphubd/store"
)

// abreast is how many chunks of a result are summed and packed as soon as they are there:
// most results have no more, and somebody waits for them. Those of a longer one take turns,
// so that it leaves the processors to the calls beside it.
const abreast = 4

// A piece is one chunk of a result on its way into the store. It is summed, packed and
// sent to the spool beside whoever receives the result; each of the two steps waits for the
// same step of the piece before, so that both come in order, and behind the first pieces
// for both. Neither waits for anything else, so a result that is given up leaves no
// goroutine behind.
type piece struct {
	n      int    // bytes
	raw    []byte // nil when chunk holds them as well, and shorter
	summed <-chan struct{}
	sent   <-chan struct{} // nil: it stays in memory
	chunk  store.Chunk     // once sent
	reply  reply[struct{}] // of the spool, once sent
	asked  bool            // the reply was waited for
	fault  error           // and says this
}

// add adds the piece to sum, after what came before.
func (p *piece) add(sum hash.Hash, before ...<-chan struct{}) {
	done := make(chan struct{})
	p.summed = done
	go func() {
		defer close(done)
		for _, step := range before {
			<-step
		}
		sum.Write(p.raw)
	}()
}

// send packs the piece and sends it as m, after the one before.
func (p *piece) send(s Spool, m appendChunk, before <-chan struct{}) {
	done := make(chan struct{})
	p.sent = done
	go func() {
		defer close(done)
		if m.seq >= abreast {
			<-p.summed // which waits for the one before
		}
		p.chunk = store.Pack(p.raw)
		m.chunk = p.chunk
		<-before
		p.reply = s.append(m)
	}()
}

// done reports whether the piece is summed and sent, and waits for neither.
func (p *piece) done() bool {
	for _, step := range []<-chan struct{}{p.summed, p.sent} {
		select {
		case <-step:
		default:
			return false
		}
	}
	return true
}

// shrink keeps the packed bytes alone, once nothing needs the others.
func (p *piece) shrink() {
	if p.raw != nil && p.done() && p.chunk.Zip {
		freeChunk(p.raw)
		p.raw = nil
	}
}

// over reports whether all is done with the piece, and nothing waits any more.
func (p *piece) over() bool { return p.done() && p.reply.here() }

// settle waits until the piece is committed, or returns why it is not.
func (p *piece) settle() error {
	if !p.asked {
		<-p.sent
		_, p.fault = p.reply.wait(context.Background())
		p.asked = true
	}
	return p.fault
}

// WriteTo writes the bytes of the piece.
func (p *piece) WriteTo(w io.Writer) (int64, error) {
	raw := p.raw
	if raw == nil {
		room := newChunk()
		defer freeChunk(room)
		var err error
		if raw, err = p.chunk.Unpack(room); err != nil {
			return 0, err
		}
	}
	n, err := w.Write(raw)
	return int64(n), err
}

// free gives the memory back; nobody may look at the piece any more.
func (p *piece) free() {
	<-p.summed
	freeChunk(p.raw)
	p.chunk.Free()
	p.raw, p.chunk = nil, store.Chunk{}
}

var chunkPool = sync.Pool{New: func() any { return new([store.ChunkSize]byte) }}

func newChunk() []byte { return chunkPool.Get().(*[store.ChunkSize]byte)[:0] }

func freeChunk(b []byte) {
	if cap(b) == store.ChunkSize {
		chunkPool.Put((*[store.ChunkSize]byte)(b[:store.ChunkSize]))
	}
}
