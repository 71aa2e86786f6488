package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// subscribers is which sessions of one identity listen to which resources. The SDK
// knows whom to tell; this table holds what ends their subscriptions, and tells of
// changes: those of one uri that come faster than they are told are told once.
type subscribers struct {
	mu    sync.Mutex
	all   map[*mcp.ServerSession]map[string]func() // what ends a subscription, by uri
	dirty map[string]bool                          // uris whose change is still to be told
	busy  bool                                     // a goroutine tells
}

// maxSubscriptions bounds those of one session.
const maxSubscriptions = 1000

func (s *Server) subscribe(id *identity) func(context.Context, *mcp.SubscribeRequest) error {
	return func(ctx context.Context, r *mcp.SubscribeRequest) error {
		uri := r.Params.URI
		n, again := id.subs.has(r.Session, uri)
		switch {
		case again:
			return nil
		case n >= maxSubscriptions:
			return &jsonrpc.Error{Code: codeInvalidRequest, Message: "this session has 1000 subscriptions already"}
		}
		agent, err := s.open(ctx, id.name)
		if err != nil {
			return wireError(err)
		}
		end, err := agent.Subscribe(ctx, uri, func() { id.changed(uri) })
		if err != nil {
			return wireError(err)
		}
		if !id.subs.add(r.Session, uri, end) {
			end()
		}
		return nil
	}
}

func (s *Server) unsubscribe(id *identity) func(context.Context, *mcp.UnsubscribeRequest) error {
	return func(_ context.Context, r *mcp.UnsubscribeRequest) error {
		id.subs.end(r.Session, r.Params.URI)
		return nil
	}
}

// wireError is err as the SDK passes it on.
func wireError(err error) error {
	var no *actors.RPCError
	var raw actors.RawError
	var missing *actors.NotFound
	e := &jsonrpc.Error{Code: codeInternal, Message: err.Error()}
	switch {
	case errors.As(err, &no):
		e.Code, e.Message = int64(no.Code), no.Message
	case errors.As(err, &raw):
		var theirs jsonrpc.Error
		if json.Unmarshal(raw, &theirs) == nil && theirs.Code != 0 {
			return &theirs
		}
	case errors.As(err, &missing):
		data, _ := json.Marshal(map[string]string{"uri": missing.URI}) // texts always marshal
		e.Code, e.Message, e.Data = codeInvalidParams, "Resource not found", data
	}
	return e
}

func (t *subscribers) has(ss *mcp.ServerSession, uri string) (n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok = t.all[ss][uri]
	return len(t.all[ss]), ok
}

// add notes a subscription; it reports false when there is one already.
func (t *subscribers) add(ss *mcp.ServerSession, uri string, end func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[*mcp.ServerSession]map[string]func(){}
	}
	if t.all[ss] == nil {
		t.all[ss] = map[string]func(){}
		go func() { // a session that ends unsubscribes
			_ = ss.Wait()
			t.leave(ss)
		}()
	}
	if t.all[ss][uri] != nil {
		return false
	}
	t.all[ss][uri] = end
	return true
}

func (t *subscribers) end(ss *mcp.ServerSession, uri string) {
	t.mu.Lock()
	end := t.all[ss][uri]
	delete(t.all[ss], uri)
	t.mu.Unlock()
	if end != nil {
		end()
	}
}

func (t *subscribers) leave(ss *mcp.ServerSession) {
	t.mu.Lock()
	ends := t.all[ss]
	delete(t.all, ss)
	t.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// changed has the subscribers of uri told. It does not wait for them.
func (id *identity) changed(uri string) {
	t := &id.subs
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirty == nil {
		t.dirty = map[string]bool{}
	}
	t.dirty[uri] = true
	if !t.busy {
		t.busy = true
		go id.tellUpdates()
	}
}

func (id *identity) tellUpdates() {
	t := &id.subs
	for {
		t.mu.Lock()
		dirty := t.dirty
		t.dirty = nil
		if len(dirty) == 0 {
			t.busy = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		for uri := range dirty {
			_ = id.mcp.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri}) // it never fails
		}
	}
}
