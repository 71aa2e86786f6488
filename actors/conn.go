package actors

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrLost is wrapped by the error of every call whose connection died before the
// answer: the call may have run.
var ErrLost = errors.New("server connection lost")

// ErrNotSent is wrapped, beside ErrLost, by the error of a call that met a dead
// connection: it is proven that nothing of it was written.
var ErrNotSent = errors.New("the call was not sent")

// NoMessage stands in the error of a connect before the first line of the server's stdout
// that is no message.
const NoMessage = "on stdout, where only messages may stand"

// ErrSignIn is wrapped by the error of a connection or call that the server refused for want
// of a valid credential.
var ErrSignIn = errors.New("sign-in needed")

// A Connector starts one downstream server. transport/downstream implements it.
type Connector interface {
	// Connect starts the server and does the handshake. It returns within ctx,
	// and leaves nothing behind when it fails. Facts about the connection are
	// told through events until Conn.Done is closed; the funcs must not block.
	Connect(ctx context.Context, events Events) (Conn, error)
}

// Events is what a connection tells its owner unasked. Funcs may be nil.
type Events struct {
	ListChanged func(kind string)              // "tools", "prompts", "resources"
	Renewed     func()                         // the server lost its session: what was said in it is forgotten there
	Noise       func(count int64, last string) // lines on stdout that were no MCP message
	Updated     func(uri string)               // a resource that was subscribed to
	Log         func(params []byte)            // raw params of a log message that belongs to no call

	// Spoke is the revision that was agreed on when the server was last connected, also by
	// another copy of it or in an earlier life of the daemon; "" = not known.
	Spoke string

	// Can is what the one agent that the connection is for can be asked, as a JSON object of
	// client capabilities; empty = it is for many, or that is not known.
	Can []byte
}

// Conn is a live server. It is safe for concurrent use.
type Conn interface {
	// Call sends one request and returns its one answer. It never repeats a
	// request. When ctx ends first, the server is told to cancel, a late answer
	// is dropped, and the connection lives on. When the connection dies first the
	// error wraps ErrLost and says exit code and the last stderr lines.
	Call(ctx context.Context, req Request) (Answer, error)

	// Info says what the handshake found.
	Info() ConnInfo

	// Done is closed when the connection is dead; Err then says why.
	Done() <-chan struct{}
	Err() error

	// Close ends the server: stdin EOF, then TERM, then KILL to its whole process
	// group, with grace times bounded by ctx. It may be called twice.
	Close(ctx context.Context) error

	// Stderr is the bounded tail of what the server wrote there.
	Stderr() string
}

// ConnInfo is what the handshake with a server found.
type ConnInfo struct {
	PID          int             `json:"pid,omitempty"`      // of the child, 0 for a URL
	Protocol     string          `json:"protocol,omitempty"` // negotiated revision
	Name         string          `json:"name,omitempty"`     // serverInfo
	Version      string          `json:"version,omitempty"`
	Instructions string          `json:"-"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"` // as far as the SDK keeps them
}

// Request is one JSON-RPC request towards a server. Params are raw bytes in
// pieces, so that nothing has to be joined to change a name inside them.
type Request struct {
	Method string
	Params [][]byte // concatenated they are one JSON object without raw newlines; empty = no params
	Token  int      // index in Params where the progress token goes (that piece is replaced); -1 = none
	Hold   int64    // result bytes to keep in memory before they flow to the spool
	// Progress is called with the raw params of each progress notification of this
	// call, in order, before Call returns, and where its token stands in them.
	Progress func(params []byte, token Range)
	// Agent is on whose behalf the request is made; "" = the gateway's own.
	Agent  string
	Client // what the server may ask and tell while the request runs
}

// Range is the half-open byte range [A,B) of a message.
type Range struct{ A, B int }

// Empty reports whether r covers nothing.
func (r Range) Empty() bool { return r.B <= r.A }

// Of returns the bytes of b that r covers.
func (r Range) Of(b []byte) []byte { return b[r.A:r.B] }

// Answer is what a server answered: a result, or an error object as it was sent.
type Answer struct {
	Result *Body
	Error  []byte // raw JSON-RPC error object; nil when there is a result
}
