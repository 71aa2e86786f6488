package actors

import (
	"context"
	"errors"
	"time"
)

// Call is one tools/call of an agent with its bytes untouched, or another request
// that is relayed.
type Call struct {
	Method  string // "" = tools/call
	Ref     string // what a completion is about
	Only    string // the one server whose own names are used; "" = names are exposed ones
	Name    string // the exposed tool name, decoded; of other requests the name or uri
	Params  []byte // raw params object, without raw newlines
	NameAt  Range  // the value of that name in Params
	ArgsAt  Range  // the value of "arguments"; empty when the member is absent
	TokenAt Range  // the value of "_meta"."progressToken"; empty when absent
	MetaAt  Range  // the value of "_meta"; empty when absent
	// Progress gets the raw params of each progress notification and where the
	// server-side token stands in them; nil when the agent gave no token.
	Progress func(params []byte, token Range)
	// Gone ends when the agent's connection went away although the call goes
	// on (legacy sessions); its result is then kept in the store. May be nil.
	Gone context.Context
	// Cancel ends the context that the call was made with; the call uses it when its
	// time is over, which costs less than a context of its own. May be nil.
	Cancel context.CancelCauseFunc
	// Ceiling is the most bytes of a result that the agent's client takes; 0 = any. What is
	// larger is stored.
	Ceiling int64
	Wire    string    // the legacy session that it was made in; "" = none
	Stated  bool      // it carries a requestState, as given by a server of the newest revision
	Extra   int64     // bytes that the wire adds to a result of ours: the agent's budget counts them
	At      time.Time // when it came; zero = now

	Client // what the agent takes besides the answer
}

// began is when the call came. Reading the clock is not free.
func (c *Call) began() time.Time {
	if c.At.IsZero() {
		return time.Now()
	}
	return c.At
}

// ErrCannot is wrapped by the error of a question that its agent cannot answer.
var ErrCannot = errors.New("the agent cannot be asked this")

// Client is what may be asked of the agent behind a call, and told to it, while the
// call runs.
type Client struct {
	// Ask puts a server's request (elicitation/create, sampling/createMessage,
	// roots/list) to the agent and returns the raw result. A RawError is the agent's own
	// refusal, an ErrCannot says that this agent cannot do this. It returns when ctx
	// ends. nil = the agent can be asked nothing.
	Ask func(ctx context.Context, method string, params []byte) (result []byte, err error)
	// Notify gets the raw params of a notification that a server sends about the call.
	// It does not wait for the agent, and may come from any goroutine, also after the
	// call has ended. nil = the agent wants none.
	Notify func(method string, params []byte)
	// Session is told what a server says to the agent about a question when the call is over.
	// nil = nobody is there then.
	Session Listener
	// Can is what the agent can be asked, as a JSON object of client capabilities;
	// empty = nothing.
	Can []byte
	// LogLevel is the least level of log messages that the agent wants; "" = none.
	LogLevel string
	// Rounds says that the agent itself understands results of type input_required.
	Rounds bool
}

// A Listener is there between calls. It does not wait for the agent.
type Listener interface {
	Later(method string, params []byte)
}

// RPCError is a refusal that the agent gets as a JSON-RPC error. Every other
// error of a call becomes a tool result with isError, so that a model reads it.
type RPCError struct {
	Code    int
	Message string
}

func (e *RPCError) Error() string { return e.Message }

// RawError is a JSON-RPC error object as the other side sent it.
type RawError []byte

func (e RawError) Error() string { return clip(string(e), 500) }

// Reply is what the agent gets: a result value, or the server's own error object.
type Reply struct {
	Result *Body
	Error  []byte
	Keep   func() // stores a result that could not be delivered; nil = it is stored, or nobody may come back for it
	Room   int64  // beside an error: the most that a result with its text may take; 0 = no limit
}
