package actors

import (
	"context"

	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// View is what the daemon looks like right now. It is never modified after it is
// published, and one call sees one View from admission to receipt.
type View struct {
	Revision int64 // of this View
	ToolsRev int64 // of the View in which the tools last changed
	Config   *config.Config
	Servers  map[string]ServerView
	Catalog  *catalog.Catalog
	Prompts  *catalog.Prompts
	Offers   *catalog.Resources
	Stopping bool

	shorter   map[int]*catalog.Catalog // the same for agents whose names may be only so long
	sessions  map[string]*Session
	instances map[owner]instance
	changed   chan struct{} // closed when the next View is published
	listsNew  chan struct{} // closed when a View with other tools, prompts or resources is published
}

// ServerView is one configured server. A disabled one has no handle.
type ServerView struct {
	ServerFacts
	Config config.Server `json:"-"`
	Handle Downstream    `json:"-"`
	gen    int64
}

// await returns the first View for which ok holds, now or later.
func (h Hub) await(ctx context.Context, ok func(*View) bool) (*View, error) {
	for {
		v := h.View()
		if ok(v) {
			return v, nil
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// welcome returns the session of an agent that was here before, if the configuration
// still lets it in.
func (v *View) welcome(agent string) (*Session, bool) {
	s, ok := v.sessions[agent]
	if ok {
		_, ok = v.Config.Agent(agent)
	}
	return s, ok
}

// settled reports whether every server that may still come up for the first time
// has come up or failed. One whose tools are known from an earlier life is not
// waited for.
func settled(v *View) bool {
	for _, s := range v.Servers {
		if s.starting() && len(s.Tools) == 0 {
			return false
		}
	}
	return true
}

// allFeatured reports whether, besides, the prompts and resources of every server that
// is up were read. It holds for those in scope of nobody too: what is waited for
// must not depend on who asks.
func allFeatured(v *View) bool {
	for _, s := range v.Servers {
		if s.starting() || s.State == Ready && !s.Featured {
			return false
		}
	}
	return true
}

// starting reports whether the server comes up for the first time.
func (s ServerView) starting() bool { return s.State == Connecting && !s.Listed && s.Starts <= 1 }
