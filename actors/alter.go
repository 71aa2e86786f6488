package actors

import (
	"maps"
	"reflect"
	"slices"

	"mcphubd/config"
)

// Changes says what a reload did to which servers. Altered ones took their new settings
// over while they run.
type Changes struct{ Added, Removed, Changed, Altered []string }

// diff compares the servers of two configurations.
func diff(old, now *config.Config) Changes {
	var c Changes
	for _, n := range slices.Sorted(maps.Keys(now.Servers)) {
		was, had := old.Servers[n]
		is := now.Servers[n]
		switch {
		case !had:
			c.Added = append(c.Added, n)
		case !reflect.DeepEqual(launch(was), launch(is)):
			c.Changed = append(c.Changed, n)
		case !reflect.DeepEqual(was, is):
			c.Altered = append(c.Altered, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(old.Servers)) {
		if _, keep := now.Servers[n]; !keep {
			c.Removed = append(c.Removed, n)
		}
	}
	return c
}

// launch is what of a server's settings its process or connection is made of. The rest
// is looked up at each call, or given to the Downstream.
func launch(s config.Server) config.Server {
	s.CallTimeout, s.IdleTimeout, s.ConnectTimeout = 0, 0, 0
	s.ResponseBudget, s.Store = nil, false
	s.Tools, s.Tool = config.ToolFilter{}, nil
	return s
}

// configured gives a Downstream the settings that it can take over.
type configured struct{ cfg config.Server }

func (configured) isDownstreamMsg() {}

func (a *downstreamActor) configured(m configured) { a.cfg = m.cfg }

// alter gives every server that goes on its settings.
func alter(servers map[string]ServerView, c *config.Config) {
	for n, s := range servers {
		s.Config = c.Servers[n]
		servers[n] = s
		if s.Handle.engine != nil {
			s.Handle.tell(configured{s.Config})
		}
	}
}
