package downstream

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxControl = 256 // messages that wait for the SDK
	maxAsked   = 256 // requests of one server that may be open
)

// control is the SDK's connection to the server: its messages go the same way as
// ours. What the SDK reads here was decoded before, because one bad message would end
// its session. It is transport and connection in one.
type control struct {
	send    func(msg jsonrpc.Message, b []byte) error // b is msg as bytes; an error ends the SDK's session
	greeted func(hello []byte)                        // told of the result of initialize before the SDK is; may be nil
	in      chan jsonrpc.Message
	closed  chan struct{}
	closing sync.Once

	mu    sync.Mutex
	open  map[jsonrpc.ID]bool // requests of the SDK
	asked int                 // requests of the server
	greet jsonrpc.ID          // the latest one of open that is a handshake
	older bool                // that is initialize
	hello []byte              // its result; a server may answer an earlier one with nonsense
	no    string              // why the latest that failed did
}

func newControl(send func(jsonrpc.Message, []byte) error) *control {
	return &control{send: send, in: make(chan jsonrpc.Message, maxControl), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{}}
}

func (t *control) Connect(context.Context) (mcp.Connection, error) { return t, nil }

func (t *control) SessionID() string { return "" }

func (t *control) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-t.in:
		return msg, nil
	case <-t.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *control) Write(ctx context.Context, msg jsonrpc.Message) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	t.mu.Lock()
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if msg.IsCall() {
			t.open[msg.ID] = true
		}
		if msg.Method == "initialize" || msg.Method == "server/discover" {
			t.greet, t.older = msg.ID, msg.Method == "initialize"
		}
	case *jsonrpc.Response:
		t.asked--
	}
	t.mu.Unlock()
	return t.send(msg, b)
}

func (t *control) Close() error {
	t.closing.Do(func() { close(t.closed) })
	return nil
}

// verdict says what became of a line.
type verdict int

const (
	taken   verdict = iota
	refused         // a message, but not one that anybody waits for or has room for
	invalid         // no message
)

// take gives a line to the SDK. It does not wait.
func (t *control) take(line []byte) verdict {
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(line))
	if err != nil {
		return invalid
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if msg.IsCall() && t.asked >= maxAsked {
			return refused
		}
	case *jsonrpc.Response:
		msg.ID = t.plain(msg.ID)
		if !t.open[msg.ID] {
			return refused
		}
		if msg.ID == t.greet {
			if t.hello = msg.Result; t.older && t.greeted != nil {
				t.greeted(msg.Result)
			}
		}
		if msg.Error != nil {
			t.no = msg.Error.Error()
		}
	}
	select {
	case t.in <- msg:
	default:
		return refused
	}
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if msg.IsCall() {
			t.asked++
		}
	case *jsonrpc.Response:
		delete(t.open, msg.ID)
	}
	return taken
}

// plain returns the number that a server echoed as a string (case C90); the SDK
// numbers its requests.
func (t *control) plain(id jsonrpc.ID) jsonrpc.ID {
	text, ok := id.Raw().(string)
	if !ok {
		return id
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return id
	}
	number, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		return id
	}
	return number
}

// waits reports whether the SDK has a request open.
func (t *control) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open) > 0
}

// lacks reports whether the answer to a request of the SDK is still to come.
func (t *control) lacks(id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// refusal is why the latest request of the SDK that failed did.
func (t *control) refusal() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.no
}

// first returns the raw result of the handshake.
func (t *control) first() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hello
}
