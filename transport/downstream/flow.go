package downstream

import (
	"bytes"
	"fmt"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// maxHead bounds what a long line may hold beside its result, and maxToSDK the
// result of a long line that is for the SDK.
const (
	maxHead  = 16 << 20
	maxToSDK = 64 << 20
)

// sieve parts a long message from its result: the result goes to the spool while it
// arrives, the rest is kept. Who waits for it may stand at its end.
type sieve struct {
	x      *exchange
	split  wire.Splitter
	intake *actors.Intake // nil once nobody can want the result
	over   bool           // longer than max_frame
	told   bool           // the call that it answers has failed already
}

// newSieve keeps hold bytes of the result in memory before they flow to the spool.
func newSieve(x *exchange, hold int64) *sieve {
	f := &sieve{x: x, intake: x.spool.Intake(hold)}
	f.split = wire.Splitter{MaxHead: maxHead, Result: func(p []byte) { _, _ = f.intake.Write(p) }}
	return f
}

// take handles the next bytes. over says that the message is now longer than max_frame.
func (f *sieve) take(p []byte, over bool) {
	if over && !f.over {
		f.over = true
		f.split.Discard()
		f.abandon()
	}
	if !f.told {
		f.split.Feed(p)
		f.tellOver()
	}
}

// flow is one long line of a pipe. The reader feeds it; it runs in a goroutine of its
// own until the line has ended.
type flow struct {
	*sieve
	pieces chan piece // closed at the end of the line
	size   int64      // of the line so far; the reader's
	cut    bool       // the stream ended in the line; set before pieces is closed
}

// piece is a part of a line, in a block or a buffer that goes back to its pool.
type piece struct {
	data  []byte
	over  bool // the line is now longer than max_frame
	block *[blockBytes]byte
	line  *buffer
}

func newFlow(r *reader) *flow {
	f := &flow{sieve: newSieve(&r.c.exchange, r.c.hold()), pieces: make(chan piece, maxBlocks)}
	r.flows.Go(func() { f.run(r.room) })
	return f
}

func (f *flow) run(room <-chan struct{}) {
	for p := range f.pieces {
		f.take(p.data, p.over)
		if p.block != nil {
			blocks.Put(p.block)
		}
		if p.line != nil {
			p.line.free()
		}
		<-room
	}
	f.end(f.cut)
}

// tellOver fails the call of a line that is too long, as soon as its id is known.
func (f *sieve) tellOver() {
	if !f.over {
		return
	}
	if raw, ok := f.split.ID(); ok {
		f.told = true
		f.fail(raw, f.x.tooLong())
	}
}

// fail ends the call with this id, if it is one of ours.
func (f *sieve) fail(raw []byte, err error) {
	if id, ok := ourID(raw); ok {
		f.x.deliver(id, answer{err: err})
		return
	}
	f.x.dropped.Control.Add(1)
}

// end decides what the whole message was. cut says that the stream broke off in it.
func (f *sieve) end(cut bool) {
	defer f.abandon()
	if f.told {
		return
	}
	head := f.split.Head
	if err := f.split.End(); err != nil {
		if cut { // the end of the connection says more
			return
		}
		if raw, ok := f.split.ID(); ok && !f.over {
			f.fail(raw, fmt.Errorf("%s: the answer cannot be used: %w", f.x.server, err))
			return
		}
		f.x.noise.add(head)
		return
	}
	e, err := wire.ScanEnvelope(head)
	switch {
	case err != nil || !e.Result.OK() || f.split.ResultAt == 0: // all of it is in the head
		f.x.route(&buffer{b: head})
	case e.Method.OK() || e.Odd || isForeign(head, e):
		f.x.refuse(head, e)
	default:
		f.answer(head, e)
	}
}

// answer hands the result to the call that waits for it.
func (f *sieve) answer(head []byte, e wire.Envelope) {
	raw := e.ID.Of(head)
	id, ours := ourID(raw)
	switch {
	case ours && hasValue(e.Error, head):
		f.fail(raw, fmt.Errorf("%s: the answer holds a result and an error", f.x.server))
	case ours:
		body := f.intake.Body()
		f.intake = nil
		f.x.deliver(id, answer{Answer: actors.Answer{Result: body}})
	case f.x.control.waits():
		f.toSDK(head)
	default:
		f.x.dropped.Answers.Add(1)
	}
}

// toSDK puts the line together again for the SDK.
func (f *sieve) toSDK(head []byte) {
	body := f.intake.Body()
	f.intake = nil
	defer body.Close()
	if body.Size() > maxToSDK {
		f.x.dropped.Control.Add(1)
		return
	}
	var line bytes.Buffer
	line.Write(head[:f.split.ResultAt])
	if _, err := body.WriteTo(&line); err != nil {
		f.x.log.Warn().Err(err).Msg("read back a control message")
		return
	}
	line.Write(head[f.split.ResultAt+len("null"):])
	f.x.toControl(line.Bytes())
}

func (f *sieve) abandon() {
	f.split.Result = nil
	if f.intake != nil {
		f.intake.Abandon()
		f.intake = nil
	}
}
