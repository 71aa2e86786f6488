package actors

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"

	"mcphubd/actors/budget"
	"mcphubd/store"
)

const (
	// flowAhead is how many chunks of a result may be in memory because they are not
	// committed; then whoever writes waits for the oldest. It bounds the memory of one
	// result.
	flowAhead = 8
	// flowDue is from how many on the spool is asked to commit, so that nobody has to
	// wait. A smaller result takes one commit, which is that of its row.
	flowDue = 6
)

// Intake receives the bytes of one result while they arrive. Up to its hold they
// stay in memory; what exceeds it flows to the spool in chunks, so memory does
// not grow with the result. Chunks are packed, summed and written beside the
// goroutine that receives. One goroutine uses it.
type Intake struct {
	spool Spool
	hold  int64
	buf   []byte // what is held; when flowing, the chunk that is being filled
	body  Body   // what was cut off as chunks, and where it is
	scan  *budget.Scanner
	seq   int // of the next chunk
	sum   hash.Hash
	// When the latest piece was summed, and when it was sent.
	summed, sent <-chan struct{}
}

// already is the channel of what needs no waiting.
var already = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Intake starts the intake of one result. A zero Spool keeps all in memory.
func (s Spool) Intake(hold int64) *Intake { return &Intake{spool: s, hold: hold} }

// Write takes the next bytes; p may be reused afterwards. It waits while the
// spool is behind, and never fails: when the spool cannot take the bytes they
// stay in memory.
func (in *Intake) Write(p []byte) (int, error) {
	n := len(p)
	if in.scan == nil {
		if int64(len(in.buf)+len(p)) <= in.hold || in.spool.pub == nil {
			in.buf = append(in.buf, p...)
			return n, nil
		}
		in.flow()
	}
	in.cut(p)
	return n, nil
}

// flow turns from holding to flowing.
func (in *Intake) flow() {
	in.scan, in.sum = new(budget.Scanner), sha256.New()
	in.summed, in.sent = already, already
	in.body.spool, in.body.key = in.spool, in.spool.newKey()
	held := in.buf
	in.buf = nil
	in.cut(held)
}

// cut fills chunks with p, and hands every full one over.
func (in *Intake) cut(p []byte) {
	for len(p) > 0 {
		if in.buf == nil {
			in.buf = newChunk()
		}
		n := min(len(p), store.ChunkSize-len(in.buf))
		in.scan.Scan(p[:n])
		in.buf = append(in.buf, p[:n]...)
		p = p[n:]
		if len(in.buf) == store.ChunkSize {
			in.reap()
			in.hand(in.buf)
			in.buf = nil
		}
	}
}

// hand makes raw the next piece, which owns it from then on. After the first refusal all
// that follows stays in memory: the result will fail open.
func (in *Intake) hand(raw []byte) {
	p := &piece{n: len(raw), raw: raw}
	if in.seq < abreast {
		p.add(in.sum, in.summed)
	} else {
		p.add(in.sum, in.summed, in.sent)
	}
	in.summed = p.summed
	if in.body.fault == nil {
		due := len(in.body.pieces)+1 >= flowDue
		p.send(in.spool, appendChunk{key: in.body.key, seq: in.seq, due: due}, in.sent)
		in.sent = p.sent
	}
	in.seq++
	in.body.pieces = append(in.body.pieces, p)
}

// reap lets go of the oldest pieces, as far as they are committed. It waits when too
// many are not: at least one behind the oldest asked for a commit then. What has to stay
// stays packed.
func (in *Intake) reap() {
	b := &in.body
	for _, p := range b.pieces {
		p.shrink()
	}
	for b.fault == nil && len(b.pieces) > 0 && (len(b.pieces) >= flowAhead || b.pieces[0].over()) {
		oldest := b.pieces[0]
		if b.fault = oldest.settle(); b.fault != nil {
			return
		}
		b.rows += int64(oldest.n)
		oldest.free()
		b.pieces = slices.Delete(b.pieces, 0, 1)
	}
}

// Body ends the intake of a whole value and returns it.
func (in *Intake) Body() *Body {
	if in.scan != nil && in.buf != nil {
		in.hand(in.buf)
		in.buf = nil
	}
	b := in.body
	b.held = in.buf
	if in.scan != nil {
		f := in.scan.Facts()
		<-in.summed
		f.SHA256 = hex.EncodeToString(in.sum.Sum(nil))
		b.facts = &f
	}
	return &b
}

// Abandon ends the intake of a value that nobody wants or that was cut.
func (in *Intake) Abandon() {
	in.body.Close()
	if in.scan != nil {
		freeChunk(in.buf)
	}
	in.buf = nil
}
