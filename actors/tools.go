package actors

import (
	"context"
	"time"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// listPatience is how long the first list of a session waits for servers that
// connect for the first time. It counts from the daemon's start, so a server that
// never comes up costs it once and not for every agent (case C12).
const listPatience = 2 * time.Second

// toolList is the tools of one agent as of one View.
type toolList struct {
	rev  int64
	json []byte
}

// Tools returns the raw JSON array of the tools that this agent sees, the
// gateway's own among them. The same tools give the same bytes.
func (s Session) Tools(ctx context.Context) []byte {
	v := s.hub.View()
	if !settled(v) {
		ctx, cancel := context.WithDeadline(ctx, s.hub.began.Add(listPatience))
		v, _ = s.hub.await(ctx, settled)
		cancel()
	}
	if l := s.desk.tools.Load(); l != nil && l.rev == v.ToolsRev {
		return l.json
	}
	agent, _ := v.Config.Agent(s.agent)
	output := func(e catalog.Entry) catalog.Output { return outputOf(v.Config, ruleOf(v.Config, agent, e)) }
	l := &toolList{v.ToolsRev, v.catalogOf(agent).List(scopeOf(agent), catalog.OwnTools(longest(agent)), output)}
	s.desk.tools.Store(l)
	return l.json
}

// outputOf says what becomes of the outputSchema of a tool whose results r bounds:
// where a receipt could stand for one, clients that validate have to know.
func outputOf(c *config.Config, r budget.Rule) catalog.Output {
	switch {
	case !r.MayStore():
		return catalog.KeepSchema // nothing is ever stored
	case c.OutputSchema == "strip":
		return catalog.StripSchema
	case c.OutputSchema == "keep":
		return catalog.KeepSchema // the owner knows what the clients do
	default:
		return catalog.UniteSchema
	}
}

// Changed returns a channel that is closed when the tools, prompts or resources of
// any server change. Whether this agent's lists changed is seen by comparing bytes.
func (s Session) Changed() <-chan struct{} { return s.hub.View().listsNew }
