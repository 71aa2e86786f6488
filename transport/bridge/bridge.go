package bridge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/transport/wire"
)

const (
	// DefaultMaxLine is the longest line that every known client takes: the official
	// TypeScript reader closes the connection above it.
	DefaultMaxLine = 10 << 20
	// maxIn bounds one line of the client; the daemon has its own limit below it.
	maxIn = 1 << 30
	// maxBusy bounds requests under way.
	maxBusy = 512
	// smallLine is what each request may hold while the client does not read; of longer
	// lines there are at most maxLarge.
	smallLine = 256 << 10
	maxLarge  = 8
)

// Options is what a bridge is made of.
type Options struct {
	URL      string       // the daemon's endpoint of this agent
	HTTP     *http.Client // reaches it, over the socket or not
	Ensure   func(context.Context) error
	MaxLine  int           // of what is written to the client; 0 = DefaultMaxLine
	Patience time.Duration // how long a request waits for a daemon that is down; 0 = 30 s
	Log      zerolog.Logger

	farewell time.Duration // how long answers may still come after the last line; 0 = 500 ms
}

// Bridge relays between one client and the daemon.
type Bridge struct {
	o    Options
	out  *lines
	link link
	busy chan struct{}
	// large are the messages that are too large for everybody to hold one at a time.
	large chan struct{}
	work  sync.WaitGroup

	renewing sync.Mutex
}

// Run relays until in ends or ctx does. Requests under way then get a moment, and are
// abandoned.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.farewell <= 0 {
		o.farewell = farewell
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &Bridge{o: o, out: &lines{w: out}, busy: make(chan struct{}, maxBusy), large: make(chan struct{}, maxLarge)}
	b.link.b = b
	input := b.read(ctx, cancel, in)
	for line := range input.lines {
		if ctx.Err() == nil {
			b.take(ctx, line)
		}
	}
	b.finish(ctx)
	cancel()
	b.wait(b.link.end)
	return input.err
}

const (
	// farewell is the usual one, parting is how long the daemon may take to hear that we go,
	// and goodbye is how long we wait for the end of what was abandoned, beside that: a client
	// that closes our stdin wants us gone within a second, also when the daemon stands still.
	farewell = 500 * time.Millisecond
	parting  = 400 * time.Millisecond
	goodbye  = 200 * time.Millisecond
)

// finish waits a moment for the answers to what was asked last.
func (b *Bridge) finish(ctx context.Context) {
	for range maxBusy {
		select {
		case b.busy <- struct{}{}: // once all places are ours, nothing is under way
		case <-ctx.Done():
			return
		}
	}
}

// wait returns when last and all work have ended, or the work cannot: a client that does not
// read keeps a write for ever.
func (b *Bridge) wait(last func()) {
	done := make(chan struct{})
	go func() {
		b.work.Wait()
		close(done)
	}()
	patience := time.After(goodbye)
	last()
	select {
	case <-done:
	case <-patience:
	}
}

// input is what the client says. err is to be read when lines is closed.
type input struct {
	lines chan []byte
	err   error
}

// maxAhead is how many lines may wait for their turn.
const maxAhead = 256

// read takes the client's lines one by one, ahead of those that are worked on, so that
// the end of the input is seen at once. It ends ctx a moment after that.
func (b *Bridge) read(ctx context.Context, cancel context.CancelFunc, in io.Reader) *input {
	heard := make(chan []byte, maxAhead)
	failed := make(chan error, 1)
	go func() {
		defer close(heard)
		failed <- b.eachLine(in, func(line []byte) bool {
			select {
			case heard <- line:
				return true
			case <-ctx.Done():
				return false
			}
		})
		time.AfterFunc(b.o.farewell, cancel)
	}()
	i := &input{lines: make(chan []byte)}
	go func() { // a reader that is stuck in a read must not keep us after ctx ended
		defer close(i.lines)
		for {
			select {
			case line, more := <-heard:
				if !more {
					i.err = <-failed
					return
				}
				i.lines <- line
			case <-ctx.Done():
				return
			}
		}
	}()
	return i
}

// eachLine gives the lines of in to f, until it returns false.
func (b *Bridge) eachLine(in io.Reader, f func([]byte) bool) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for first := true; ; first = false {
		line, err := readLine(r, maxIn)
		if first {
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && !f(line) {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTooLong):
			b.out.write(errorLine(nil, codeInvalid, "the line is longer than 1 GiB"))
		case err != nil:
			return err
		}
	}
}

var errTooLong = errors.New("line is too long")

// readLine reads one line of up to limit bytes; of a longer one it skips the rest.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			for err == bufio.ErrBufferFull {
				_, err = r.ReadSlice('\n')
			}
			if err != nil && err != io.EOF {
				return nil, err
			}
			return nil, errTooLong
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// take decides what a line is. Notifications and answers keep their order, requests
// run side by side; a handshake runs alone.
func (b *Bridge) take(ctx context.Context, line []byte) {
	m := read(line)
	switch {
	case m.fault != nil:
		b.out.write(m.fault)
	case m.method == "initialize":
		b.initialize(ctx, m)
	case m.id == nil:
		b.tell(ctx, m)
	default:
		select {
		case b.busy <- struct{}{}:
		case <-ctx.Done():
			return
		}
		b.work.Go(func() {
			defer func() { <-b.busy }()
			b.request(ctx, m)
		})
	}
}

// lines is the client's end: one message a line, never two at once.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(message []byte) {
	b := append(wire.Flatten(make([]byte, 0, len(message)+1), bytes.TrimSpace(message)), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.Write(b) // a client that is gone closes stdin too
}
