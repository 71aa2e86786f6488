package actors

import (
	"context"
	"errors"
	"fmt"
	"io"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/config"
	"mcphubd/store"
)

// own answers the gateway's own tools. They read past the mailboxes: the store's
// readers disturb nobody.
func (s Session) own(ctx context.Context, tool string, c Call) (Reply, error) {
	v := s.hub.View()
	agent, known := v.Config.Agent(s.agent)
	if !known {
		return Reply{}, &RPCError{CodeInvalidRequest, fmt.Sprintf("agent %q is no longer configured", s.agent)}
	}
	agent = c.under(agent)
	switch tool {
	case catalog.GetResult:
		s.hub.sys.ledger.read("page")
		b, err := s.getResult(ctx, v.Config, agent, room(ownLimit(v.Config, agent), c.Extra), c.ArgsAt.Of(c.Params))
		if err != nil {
			return Reply{}, err
		}
		return Reply{Result: HeldBody(b, nil)}, nil
	case catalog.ReadResult:
		b, err := s.readResult(ctx, v.Config, agent, c)
		return Reply{Result: b}, err
	default:
		return Reply{}, &RPCError{CodeInvalidParams, "unknown tool: " + tool}
	}
}

// getResult answers one exact page of a stored result.
func (s Session) getResult(ctx context.Context, c *config.Config, agent config.Agent, limit int64, args []byte) ([]byte, error) {
	id, cursor, err := budget.ParsePageArgs(args)
	if err != nil {
		_, own := catalog.OwnNames(longest(agent))
		return budget.ErrorResult(own+": "+err.Error(), limit), nil
	}
	r, err := s.stored(ctx, c, agent, store.ID(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return budget.Unknown(id), nil
	case errors.Is(err, store.ErrExpired):
		return budget.Expired(id), nil
	case err != nil:
		return budget.ErrorResult(err.Error(), limit), nil
	case cursor > r.Bytes:
		return budget.OutOfRange(id, cursor, r.Bytes), nil
	}
	page := make([]byte, min(int64(budget.PageSize(limit)), r.Bytes-cursor))
	n, err := s.spool.reader.ReadAt(ctx, r.Key, page, cursor)
	if n < len(page) {
		return nil, fmt.Errorf("read result %s at %d: %w", id, cursor, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return budget.Page(budget.PageReq{CallID: id, Cursor: cursor, Data: page, Total: r.Bytes}), nil
}

// errScope names neither server nor tool: it may not tell what is out of scope.
var errScope = errors.New("this stored result is not in the scope of this agent")

// stored finds a result that this agent may read, as of now. That one has expired is
// told only to who could have read it; to others it is unknown.
func (s Session) stored(ctx context.Context, c *config.Config, agent config.Agent, id store.ID) (store.Result, error) {
	if !id.Valid() {
		return store.Result{}, store.ErrNotFound
	}
	r, err := s.spool.reader.Get(ctx, id, s.spool.now())
	expired := errors.Is(err, store.ErrExpired)
	switch {
	case err != nil && !expired:
		return r, err
	case c.Results.OwnerOnly && r.Agent != s.agent:
		return store.Result{}, store.ErrNotFound
	case scopeOf(agent).Sees(r.Server, r.Exposed):
		return r, err
	case expired:
		return store.Result{}, store.ErrNotFound
	}
	return store.Result{}, errScope
}
