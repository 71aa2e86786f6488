package downstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// firstID is our first request id. The SDK counts from 1 and never gets here; a
// double holds every id we will ever use.
const firstID = 1 << 32

// maxHold bounds what a long line may keep in memory before it flows to the spool.
const maxHold = 1 << 20

// Conn is a running stdio server after its handshake.
type Conn struct {
	exchange
	grace   time.Duration
	info    actors.ConnInfo
	version string // of the daemon

	proc   *process
	w      *writer
	stderr *tail
	life   atomic.Int64 // unix nanoseconds of the last output

	done     chan struct{} // the connection is dead
	gone     chan struct{} // and everything it had is given back
	stopping sync.Once
	hurry    context.Context // ends when whoever closes has no more time
	hurried  context.CancelFunc
}

// call is one request that waits for its answer.
type call struct {
	frame    frame
	pieces   [16][]byte  // room for the bufs of frame
	buf      *buffer     // holds the message, or its beginning
	answer   chan answer // of one: whoever takes the call out of the map sends once
	progress chan note   // nil when nobody wants it
	hold     int64
	id       uint64
	asks     bool // the server may ask something meanwhile
	agent    string
	client   actors.Client
	abort    func(error) // ends what the call waits in, over HTTP
}

type answer struct {
	actors.Answer
	err error
}

// note is one progress notification; line holds the bytes of params.
type note struct {
	params []byte
	token  actors.Range
	line   *buffer
}

// maxNotes is how many notifications wait for a slow agent before more are dropped.
const maxNotes = 64

var calls = sync.Pool{New: func() any { return &call{answer: make(chan answer, 1)} }}

// newCall is the call of req, with all that is known before it has an id.
func newCall(req actors.Request) *call {
	p := calls.Get().(*call)
	p.hold, p.asks, p.agent, p.client = req.Hold, mayAsk(req.Method), req.Agent, req.Client
	if req.Progress != nil {
		p.progress = make(chan note, maxNotes)
	}
	return p
}

// Call sends req and waits for its answer.
func (c *Conn) Call(ctx context.Context, req actors.Request) (actors.Answer, error) {
	if ctx.Err() != nil {
		return actors.Answer{}, context.Cause(ctx)
	}
	p := newCall(req)
	id, err := c.open(p)
	if err != nil {
		p.recycle()
		return actors.Answer{}, fmt.Errorf("%w; %w", err, actors.ErrNotSent)
	}
	if c.info.Protocol >= modern {
		req = c.stamped(id, req)
	} else {
		req = older(id, req)
	}
	p.compose(id, req)
	// A broken pipe ends the connection, and that answers the call.
	_ = c.w.send(&p.frame)
	for {
		select {
		case n := <-p.progress:
			n.tell(req.Progress)
		case a := <-p.answer:
			return c.finish(p, a, req.Progress)
		case <-ctx.Done():
			if !c.giveUp(id) { // its answer is on its way
				return c.finish(p, <-p.answer, req.Progress)
			}
			if p.release(c.w) {
				c.cancel(id)
			}
			return actors.Answer{}, context.Cause(ctx)
		}
	}
}

// finish ends a call that has its answer: first what came before it.
func (c *Conn) finish(p *call, a answer, progress func([]byte, actors.Range)) (actors.Answer, error) {
	for len(p.progress) > 0 {
		n := <-p.progress
		n.tell(progress)
	}
	sent := p.release(c.w)
	if errors.Is(a.err, actors.ErrLost) {
		if !sent {
			return actors.Answer{}, fmt.Errorf("%w; %w", a.err, actors.ErrNotSent)
		}
		return actors.Answer{}, fmt.Errorf("%w; the call may have run and was not repeated", a.err)
	}
	return a.Answer, a.err
}

// release gives back all that p holds, and p itself. It reports whether any of the
// request was written.
func (p *call) release(w *writer) (sent bool) {
	sent = w.detach(&p.frame)
	p.buf.free()
	p.recycle()
	return sent
}

// recycle empties p and puts it back for the next call.
func (p *call) recycle() {
	for len(p.progress) > 0 {
		(<-p.progress).line.free()
	}
	p.frame, p.pieces, p.buf, p.progress, p.abort = frame{}, [16][]byte{}, nil, nil, nil
	p.asks, p.client = false, actors.Client{}
	calls.Put(p)
}

func (n note) tell(f func([]byte, actors.Range)) {
	f(n.params, n.token)
	n.line.free()
}

// joined is up to where a message is copied together to be written at once.
const joined = 64 << 10

// compose makes the frame of req.
func (p *call) compose(id uint64, req actors.Request) {
	size := 128 + len(req.Method)
	for _, piece := range req.Params {
		size += len(piece)
	}
	small := size <= joined
	if !small {
		size = 256 + len(req.Method)
	}
	p.buf = take(size)
	b := append(p.buf.b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, req.Method...)
	b = append(b, '"')
	if len(req.Params) > 0 {
		b = append(b, `,"params":`...)
	}
	p.frame.bufs = p.pieces[:0]
	cut := 0
	for i, piece := range req.Params {
		switch {
		case i == req.Token && req.Progress != nil:
			b = strconv.AppendUint(b, id, 10)
		case small || len(piece) < 64:
			b = wire.Flatten(b, piece)
		case len(piece) > 0:
			if cut < len(b) {
				p.frame.bufs = append(p.frame.bufs, b[cut:])
			}
			p.frame.bufs = append(p.frame.bufs, oneLine(piece))
			cut = len(b)
		}
	}
	b = append(b, "}\n"...)
	p.buf.b = b
	p.frame.bufs = append(p.frame.bufs, b[cut:])
}

// oneLine is piece without raw line breaks: one would cut the message in two.
func oneLine(piece []byte) []byte {
	if bytes.IndexByte(piece, '\n') < 0 && bytes.IndexByte(piece, '\r') < 0 {
		return piece
	}
	return wire.Flatten(nil, piece)
}

// cancel tells the server that nobody waits for id any more.
func (c *Conn) cancel(id uint64) {
	msg := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.FormatUint(id, 10) + "}}\n"
	_ = c.w.send(&frame{bufs: [][]byte{[]byte(msg)}})
}

// Info says what the handshake found.
func (c *Conn) Info() actors.ConnInfo { return c.info }

// Done is closed when the connection is dead.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stderr is the end of what the server wrote there.
func (c *Conn) Stderr() string { return c.stderr.text() }
