package actors

import (
	"maps"
	"slices"

	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// Names are made once for all agents, and once more for each lesser length that agents
// are configured with. Scope and store go by the common ones.

// shorter makes the catalogs for the lengths that agents are configured with.
func shorter(c *config.Config, all *catalog.Catalog) map[int]*catalog.Catalog {
	var m map[int]*catalog.Catalog
	for _, a := range c.Agents {
		if n := a.MaxToolName; n > 0 && n < catalog.MaxName && m[n] == nil {
			if m == nil {
				m = map[int]*catalog.Catalog{}
			}
			m[n] = all.Within(n)
		}
	}
	return m
}

// longest is how long the names may be that agent sees.
func longest(agent config.Agent) int {
	if agent.MaxToolName > 0 {
		return agent.MaxToolName
	}
	return catalog.MaxName
}

// catalogOf is the tools under the names that agent sees.
func (v *View) catalogOf(agent config.Agent) *catalog.Catalog {
	if c := v.shorter[agent.MaxToolName]; c != nil {
		return c
	}
	return v.Catalog
}

// lookup finds the tool that agent calls name. The common names are good as well: none
// is short enough to be taken for another of the agent's own.
func (v *View) lookup(agent config.Agent, name string) (catalog.Entry, bool) {
	if c := v.shorter[agent.MaxToolName]; c != nil {
		if e, ok := c.Lookup(name); ok {
			return e, ok
		}
	}
	return v.Catalog.Lookup(name)
}

// shown is what agent calls a tool whose common name is exposed, as far as there still
// is such a tool.
func (v *View) shown(agent config.Agent, server, tool, exposed string) string {
	if e, ok := v.catalogOf(agent).Find(server, tool); ok && e.Exposed == exposed {
		return e.Shown
	}
	return exposed
}

// couldBe reports whether a name that is in no table can be that of a tool of server
// which this agent may see. What is left of a name does not tell whether the whole one
// is in scope, so then the server decides.
func couldBe(agent config.Agent, name, server string) bool {
	scope, most := scopeOf(agent), longest(agent)
	if most == catalog.MaxName && scope.Sees(server, name) {
		return catalog.CanBe(name, server, most)
	}
	return most < catalog.MaxName && scope.Touches(server) && catalog.CanBe(name, server, most)
}

// NameLine is one tool whose name is not simply server__tool: it was too long,
// held characters that models refuse, or met another one.
type NameLine struct {
	Exposed string `json:"exposed"`
	Longest int    `json:"max_tool_name,omitempty"` // what agents sees it so; 0 = those without a limit of their own
	Server  string `json:"server"`
	Tool    string `json:"tool"` // as the server calls it
}

// names are the tools that agents see under another name than server__tool, and of
// agents that need shorter names, those that others see under another one.
func names(v *View) []NameLine {
	lines := []NameLine{}
	for _, e := range v.Catalog.Entries() {
		if e.Exposed != e.Server+"__"+e.Tool {
			lines = append(lines, NameLine{e.Exposed, 0, e.Server, e.Tool})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(v.shorter)) {
		for _, e := range v.shorter[n].Entries() {
			if e.Shown != e.Exposed {
				lines = append(lines, NameLine{e.Shown, n, e.Server, e.Tool})
			}
		}
	}
	return lines
}
