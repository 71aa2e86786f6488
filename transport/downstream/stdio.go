package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/transport/wire"
)

// Stdio starts one stdio server. It implements actors.Connector.
type Stdio struct {
	Server   config.Server
	MaxFrame int64        // of a line; 0 = no bound
	Spool    actors.Spool // takes results that do not fit in memory
	Log      zerolog.Logger
	Version  string        // of the daemon, for the handshake
	Grace    time.Duration // between stdin EOF, TERM and KILL; 0 = 2 s
	Stall    time.Duration // how long a child may neither read nor write while its stdin is full; 0 = 60 s

	era   atomic.Pointer[string] // found by an earlier handshake
	tried atomic.Bool            // what was known from before was used
}

// protocol is the newest revision that is negotiated by a handshake.
const protocol = "2025-11-25"

// open starts the child and everything that serves it.
func (s *Stdio) open(events actors.Events, era string) (*Conn, error) {
	proc, err := start(s.Server)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(proc.stdin, orElse(s.Stall, 60*time.Second))
	if err != nil {
		proc.signal(9)
		return nil, err
	}
	mask := maskerOf(s.Server)
	c := &Conn{
		exchange: exchange{
			server: s.Server.Name, spool: s.Spool, maxFrame: orMost(s.MaxFrame),
			log:  s.Log.With().Str("server", s.Server.Name).Logger(),
			mask: mask, noise: &noise{mask: mask, tell: events.Noise}, dropped: &Dropped{},
			calls: map[uint64]*call{}, next: firstID, events: events,
		},
		proc: proc, w: w, grace: orElse(s.Grace, 2*time.Second),
		done: make(chan struct{}), gone: make(chan struct{}),
	}
	c.control = newControl(func(m jsonrpc.Message, b []byte) error {
		if era == eraModern && c.denied(m) {
			return nil
		}
		return w.send(&frame{bufs: [][]byte{append(b, '\n')}})
	})
	c.hurry, c.hurried = context.WithCancel(context.Background())
	c.stderr = &tail{mask: mask, log: c.log, life: &c.life, drained: make(chan struct{})}
	w.life = func() time.Time { return time.Unix(0, c.life.Load()) }
	w.dead = c.unwritable
	go c.stderr.drain(proc.stderr)
	go c.run()
	return c, nil
}

// orMost is n, or no bound.
func orMost(n int64) int64 {
	if n > 0 {
		return n
	}
	return math.MaxInt64
}

func orElse(d, standard time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return standard
}

// newClient is the SDK's half of a connection.
func newClient(version string, events actors.Events) *mcp.Client {
	changed := func(kind string) {
		if events.ListChanged != nil {
			events.ListChanged(kind)
		}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "mcphubd", Version: version}, &mcp.ClientOptions{
		Capabilities:               offered(events.Can),
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { changed("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { changed("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed("resources") },
	})
}

// offered is what a server is told that it may ask. The older revisions say so once, for all
// calls to come, so only a server that runs for one agent can be told what that one can.
// All others are told what can be carried to an agent, and what that one cannot do is declined
// when it is asked. Sampling with tools is not among it: servers that are not offered it sample
// without, while one that takes the offer and is refused fails the call of every agent that
// cannot. Roots are never offered: some servers take them in place of their own arguments.
func offered(can []byte) *mcp.ClientCapabilities {
	var agent mcp.ClientCapabilities
	if len(can) > 0 && json.Unmarshal(can, &agent) == nil {
		return &mcp.ClientCapabilities{Elicitation: agent.Elicitation, Sampling: agent.Sampling}
	}
	return &mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		Sampling:    &mcp.SamplingCapabilities{},
	}
}

// infoOf says what the handshake found.
func infoOf(session *mcp.ClientSession, t *control) actors.ConnInfo {
	hello := session.InitializeResult()
	info := actors.ConnInfo{Protocol: hello.ProtocolVersion, Instructions: hello.Instructions, Capabilities: capabilities(t.first())}
	if hello.ServerInfo != nil {
		info.Name, info.Version = hello.ServerInfo.Name, hello.ServerInfo.Version
	}
	return info
}

// handshakeError says why there was no handshake, and what stood on stdout in its place.
func (c *Conn) handshakeError(ctx context.Context, err error) error {
	err = c.noHandshake(ctx, err)
	if n, lines := c.Noise(); n > 0 {
		err = fmt.Errorf("%w; %s: %q", err, actors.NoMessage, lines[0])
	}
	return err
}

// noHandshake is the death of the child if it died, else what the SDK found, with what
// the child said on stderr.
func (c *Conn) noHandshake(ctx context.Context, err error) error {
	var refusal *jsonrpc.Error
	if ctx.Err() == nil && !errors.As(err, &refusal) {
		select { // the SDK may have heard of the death first, by a failed write
		case <-c.done:
		case <-time.After(time.Second):
			if c.proc.exiting() {
				select {
				case <-c.done:
				case <-ctx.Done():
				}
			}
		}
	}
	if lost := c.Err(); lost != nil {
		return fmt.Errorf("initialize: %w", lost)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer: %w", context.Cause(ctx))
	} else {
		err = errors.New(c.mask.mask(clip(err.Error(), errorChars)))
	}
	if last := c.stderr.last(); last != "" {
		err = fmt.Errorf("%w; stderr: %s", err, last)
	}
	if refusal != nil {
		return &refusedHello{c.server, err}
	}
	return fmt.Errorf("initialize %s: %w", c.server, err)
}

// capabilities returns that member of the server's answer as it was written.
func capabilities(hello []byte) (raw []byte) {
	_ = wire.ScanObject(hello, func(key []byte, v wire.Span) bool {
		if string(key) == "capabilities" {
			raw = v.Of(hello)
		}
		return raw == nil
	})
	return raw
}
