package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// Most stdio servers know the older revisions, and some of those exit, hang or shout
// when the first thing they read is not initialize (case C56). So that is what every
// server reads first. One that answers it with an error may know only the newest
// revision: it is started anew and asked server/discover. What was found is kept as long
// as the configuration of the server; the setting era pins it.

// Connect starts the child and agrees with it on a revision.
func (s *Stdio) Connect(ctx context.Context, events actors.Events) (actors.Conn, error) {
	era, known := s.wanted(events.Spoke)
	c, err := s.begin(ctx, events, era)
	var refused *refusedHello
	if !known && errors.As(err, &refused) {
		era = otherEra(era)
		c2, err2 := s.begin(ctx, events, era)
		if errors.As(err2, &refused) {
			era = eraLegacy // it wants neither: it is not asked twice again
		} else if err2 != nil {
			return nil, err
		}
		if err2 == nil {
			c, err = c2, nil
		}
		s.era.Store(&era)
	}
	if err != nil { // not c: an interface that holds a nil pointer is not nil
		return nil, err
	}
	if era == eraModern {
		s.era.Store(&era)
	}
	return c, nil
}

// wanted is the era to begin with, and whether that is settled. What the server spoke
// before this connector knew it is tried once: it may be another program by now.
func (s *Stdio) wanted(spoke string) (era string, known bool) {
	if s.Server.Era != "" {
		return s.Server.Era, true
	}
	if e := s.era.Load(); e != nil {
		return *e, true
	}
	if !s.tried.Swap(true) && spoke >= modern {
		return eraModern, false
	}
	return eraLegacy, false
}

func otherEra(era string) string {
	if era == eraModern {
		return eraLegacy
	}
	return eraModern
}

// begin makes one attempt in one era.
func (s *Stdio) begin(ctx context.Context, events actors.Events, era string) (*Conn, error) {
	c, err := s.open(events, era)
	if err != nil {
		return nil, err
	}
	version := protocol
	if era == eraModern {
		version = modern
	}
	session, err := newClient(s.Version, events).Connect(ctx, c.control, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		err = c.handshakeError(ctx, err)
		_ = c.Close(ctx)
		return nil, err
	}
	c.info = infoOf(session, c.control)
	c.info.PID, c.version = c.proc.pid, s.Version
	return c, nil
}

// refusedHello is the answer of a server that refused the handshake with an error.
type refusedHello struct {
	server string
	err    error
}

func (e *refusedHello) Error() string { return fmt.Sprintf("initialize %s: %v", e.server, e.err) }

func (e *refusedHello) Unwrap() error { return e.err }

// denied keeps the SDK from falling back to the older handshake in a process that was
// begun with the newest revision. It reports whether the message was one of that kind.
func (c *Conn) denied(m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	if !ok || r.Method != "initialize" {
		return false
	}
	id, _ := json.Marshal(r.ID.Raw())
	why := quote("server/discover: " + c.control.refusal())
	c.toControl([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":` + strconv.Itoa(codeBadVersion) + `,"message":` + why + `}}`))
	return true
}

// stamped is req with what the newest revision demands in its _meta.
func (c *Conn) stamped(id uint64, req actors.Request) actors.Request {
	params := withMeta(paramsOf(id, req), c.info.Protocol, c.version, req)
	req.Params, req.Token = [][]byte{params}, -1
	return req
}
