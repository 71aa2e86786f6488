package actors

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mcphubd/actors/catalog"
)

// This file finds out where a relayed request goes.

// maxStoredName is how much of a uri is kept with a stored answer: enough to know it
// again, and its server, in a header that has to fit a small budget.
const maxStoredName = 120

// aim is where a relayed request goes.
type aim struct {
	server  string
	own     string   // the name or uri as the server knows it
	exposed string   // and as agents see it
	waitFor []string // not known yet: servers that may still bring it
	text    string   // the answer is a text of the gateway's own
}

// aim finds out where the request goes, and waits for servers that may still bring
// what it names.
func (w *walk) aim(ctx context.Context) (to aim, err error) {
	for {
		v := w.hub.View()
		agent, known := v.Config.Agent(w.agent)
		switch {
		case v.Stopping:
			return to, errStopping
		case !known:
			return to, &RPCError{CodeInvalidRequest, fmt.Sprintf("agent %q is no longer configured", w.agent)}
		}
		if to, err = aimAt(v, scopeOf(agent), w.call); err != nil {
			return to, err
		}
		if to.waitFor == nil {
			w.row.Server = to.server
			w.ticket = newTicket(v, agent, catalog.Entry{Server: to.server, Tool: w.call.Method, Exposed: clip(to.exposed, maxStoredName)})
			w.plain(v)
			w.capped()
			if to.text != "" {
				return to, nil
			}
			return to, w.isolate(ctx)
		}
		// Bounded by connect_timeout, in which a server is up and listed, or failed.
		if _, err := w.hub.await(ctx, func(v *View) bool { return !anyUnlisted(v, to.waitFor) }); err != nil {
			return to, fmt.Errorf("server %s is still connecting: %w", to.waitFor[0], err)
		}
	}
}

// plain takes the budget off a call on one server's own endpoint, where nothing is
// stored unless the configuration says so.
func (w *walk) plain(v *View) {
	if only := w.call.Only; only != "" && !v.Servers[only].Config.Store {
		w.ticket.rule.Verbatim, w.ticket.limit, w.ticket.hold = true, 0, unlimitedHold
		w.call.Gone = nil
	}
}

// hasOwn reports whether the gateway's own tools are there: on the endpoint of one
// server only when it can store.
func (s Session) hasOwn(only string) bool {
	return only == "" || s.hub.View().Servers[only].Config.Store
}

// unlisted reports whether prompts and resources of s may still become known.
func (s ServerView) unlisted() bool { return s.starting() || s.State == Ready && !s.Featured }

func anyUnlisted(v *View, servers []string) bool {
	return !v.Stopping && slices.ContainsFunc(servers, func(n string) bool { return v.Servers[n].unlisted() })
}

func aimAt(v *View, scope catalog.Scope, c Call) (aim, error) {
	if c.Method == GetPrompt || c.Ref == RefPrompt {
		return aimAtPrompt(v, scope, c)
	}
	return aimAtResource(v, scope, c)
}

func aimAtPrompt(v *View, scope catalog.Scope, c Call) (aim, error) {
	unknown := &RPCError{CodeInvalidParams, fmt.Sprintf("unknown prompt: %.200s", c.Name)}
	if c.Only != "" {
		e, ok := v.Prompts.Find(c.Only, c.Name)
		switch {
		case ok && scope.Sees(c.Only, e.Exposed):
			return aim{server: c.Only, own: c.Name, exposed: e.Exposed}, nil
		case !ok && v.Servers[c.Only].unlisted():
			return aim{waitFor: []string{c.Only}}, nil
		case ok || scope.Tools != nil || !scope.Touches(c.Only):
			return aim{}, unknown
		}
		return aim{server: c.Only, own: c.Name, exposed: c.Name}, nil // the server says it best
	}
	if e, ok := v.Prompts.Lookup(c.Name); ok {
		if !scope.Sees(e.Server, e.Exposed) {
			return aim{}, unknown
		}
		return aim{server: e.Server, own: e.Prompt, exposed: e.Exposed}, nil
	}
	var wait []string
	for n, s := range v.Servers {
		if s.unlisted() && strings.HasPrefix(c.Name, n+"__") && scope.Sees(n, c.Name) {
			wait = append(wait, n)
		}
	}
	if wait != nil {
		return aim{waitFor: wait}, nil
	}
	return aim{}, unknown
}

// aimAtResource takes a uri of ours apart. A server's own uri leads somewhere too,
// when it is clear where: links in results are passed as the server wrote them.
func aimAtResource(v *View, scope catalog.Scope, c Call) (aim, error) {
	if c.Only != "" {
		return aim{server: c.Only, own: c.Name, exposed: catalog.ResourceURI(c.Only, c.Name)}, nil
	}
	if server, ok := catalog.InstructionsOf(c.Name); ok && c.Method == ReadResource {
		s := v.Servers[server]
		if text := s.Info.Instructions; text != "" && s.Config.Enabled && scope.Touches(server) {
			return aim{server: server, exposed: c.Name, text: text}, nil
		}
		return aim{}, &NotFound{c.Name}
	}
	if server, uri, ok := catalog.SplitURI(c.Name); ok {
		if s, known := v.Servers[server]; known && s.Config.Enabled && scope.Touches(server) {
			return aim{server: server, own: uri, exposed: c.Name}, nil
		}
	}
	owners := v.Offers.Owners(scope, c.Name)
	if len(owners) == 0 {
		var wait []string
		for n, s := range v.Servers {
			switch {
			case !s.Config.Enabled || !scope.Touches(n):
			case s.unlisted():
				wait = append(wait, n)
			case declaredIn(s.Info.Capabilities).resources:
				owners = append(owners, n)
			}
		}
		if wait != nil {
			return aim{waitFor: wait}, nil
		}
		if len(owners) != 1 || catalog.IsResourceURI(c.Name) {
			return aim{}, &NotFound{c.Name}
		}
	}
	if len(owners) > 1 {
		slices.Sort(owners)
		uris := make([]string, len(owners))
		for i, n := range owners {
			uris[i] = catalog.ResourceURI(n, c.Name)
		}
		return aim{}, &RPCError{CodeInvalidParams, clip("several servers have this resource; ask for one of "+strings.Join(uris, ", "), 1000)}
	}
	return aim{server: owners[0], own: c.Name, exposed: catalog.ResourceURI(owners[0], c.Name)}, nil
}
