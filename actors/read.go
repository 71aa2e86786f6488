package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/actors/excerpt"
	"mcphubd/config"
	"mcphubd/store"
)

const (
	// listLimit is how many stored results a list looks at.
	listLimit = 2000
	// readPatience is how long one answer may take: a pattern that is hard to match
	// over a result of a gigabyte takes longer.
	readPatience = time.Minute
)

var errPatience = fmt.Errorf("this took longer than %s and was stopped: ask for less of the result, or with a simpler pattern", readPatience)

// A visitor reads one stored result for one call.
type visitor struct {
	Session
	ctx     context.Context
	reading excerpt.Reading
	of      store.Result
	shown   string // what the tool of that result is called here
	longest int    // a name that this agent can bear
	preview int64
	extra   int64
	limit   int64 // what the answer may take, extra included; 0 = no limit
}

// readResult answers mcphub_read_result. What goes wrong is told in the result, for
// the model to read.
func (s Session) readResult(ctx context.Context, c *config.Config, agent config.Agent, call Call) (*Body, error) {
	limit := ownLimit(c, agent)
	limits := excerpt.Limits{Bytes: room(limit, call.Extra), Lines: agent.MaxLines}
	patient, cancel := context.WithTimeoutCause(ctx, readPatience, errPatience)
	defer cancel()
	b, err := s.read(patient, c, agent, call, limits)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && patient.Err() != nil {
		err = errPatience
	}
	if err != nil {
		own, _ := catalog.OwnNames(longest(agent))
		text := own + ": " + err.Error()
		if agent.MaxLines > 0 {
			text = strings.ReplaceAll(text, "\n", " ")
		}
		b = budget.ErrorResult(text, limits.Bytes)
	}
	return HeldBody(b, nil), nil
}

func (s Session) read(ctx context.Context, c *config.Config, agent config.Agent, call Call, l excerpt.Limits) ([]byte, error) {
	q, err := excerpt.ParseRequest(call.ArgsAt.Of(call.Params))
	if err != nil {
		return nil, err
	}
	s.hub.sys.ledger.read(q.Selector())
	if q.CallID == "" {
		return s.listStored(ctx, c, agent, q.Next, l)
	}
	r, err := s.stored(ctx, c, agent, store.ID(q.CallID))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errors.New("no stored result has this callId: use the callId of a receipt exactly as it was given, or call without callId for a list")
	case errors.Is(err, store.ErrExpired):
		return nil, errors.New("this result was kept for 24 hours and has expired: run the tool again to get a new one")
	case err != nil:
		return nil, err
	}
	_, get := catalog.OwnNames(longest(agent))
	lib := s.hub.library
	x := lib.shelf.take(r.ID, r.Bytes)
	defer lib.shelf.put(r.ID, x)
	v := visitor{Session: s, ctx: ctx, of: r, shown: s.hub.View().shown(agent, r.Server, r.Tool, r.Exposed), longest: longest(agent), preview: int64(c.Results.Preview), extra: call.Extra, limit: ownLimit(c, agent)}
	v.reading = excerpt.Reading{Index: x, Src: storedBytes{ctx, s.spool.reader, r.Key, r.Bytes}, Limits: l,
		CallID: string(r.ID), GetTool: get, Derived: r.Parent != "", Note: noteOn(r, v.shown)}
	if q.JQ != "" {
		return v.jq(q)
	}
	a, err := v.reading.Read(q)
	if err != nil || a.Derived == nil {
		return a.Result, err
	}
	return v.selection(a)
}

// noteOn says in an outline where a result comes from.
func noteOn(r store.Result, shown string) string {
	s := ", of " + shown
	if r.IsError {
		s += ", an error"
	}
	if r.Parent != "" {
		s += ", derived from " + string(r.Parent)
	}
	return s + ", kept until " + r.Expires.UTC().Format(time.RFC3339)
}

// listStored lists this agent's own results, as far as they are in its scope now.
func (s Session) listStored(ctx context.Context, c *config.Config, agent config.Agent, next string, l excerpt.Limits) ([]byte, error) {
	all, err := s.spool.reader.List(ctx, s.agent, s.spool.now(), listLimit)
	if err != nil {
		return nil, err
	}
	v := s.hub.View()
	var entries []excerpt.Entry
	for _, r := range all {
		if scopeOf(agent).Sees(r.Server, r.Exposed) {
			entries = append(entries, excerpt.Entry{CallID: string(r.ID), Tool: v.shown(agent, r.Server, r.Tool, r.Exposed), Parent: string(r.Parent),
				Bytes: r.Bytes, Lines: r.Lines, IsError: r.IsError, Stored: r.Stored, Expires: r.Expires})
		}
	}
	return excerpt.List(entries, next, l)
}

// storedBytes is a stored result as a Source, for as long as one call lasts.
type storedBytes struct {
	ctx    context.Context
	reader *store.Reader
	key    store.Key
	size   int64
}

func (s storedBytes) Size() int64 { return s.size }

func (s storedBytes) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.reader.ReadAt(s.ctx, s.key, p, off)
	if err != nil && n < len(p) {
		err = fmt.Errorf("stored bytes at %d: %w", off, err)
	}
	return n, err
}
