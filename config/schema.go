package config

import "sort"

// This file is the list of everything that can be configured, a line a key.

func (r *reader) topFields(c *Config) fields {
	return fields{
		"listen":                r.textTo(&c.Listen),
		"socket":                r.pathTo(&c.Socket),
		"response_budget":       r.sizeTo(&c.ResponseBudget, budgetFault),
		"max_per_call_override": r.sizeTo(&c.MaxPerCallOverride, noFault),
		"verbatim":              r.boolTo(&c.Verbatim),
		"fail_open":             r.boolTo(&c.FailOpen),
		"output_schema":         r.choiceTo(&c.OutputSchema, "union", "strip", "keep"),
		"max_frame":             r.sizeTo(&c.MaxFrame, frameFault),
		"max_request":           r.sizeTo(&c.MaxRequest, frameFault),
		"connect_timeout":       r.durationTo(&c.ConnectTimeout),
		"call_timeout":          r.durationTo(&c.CallTimeout),
		"idle_timeout":          r.durationOrNoneTo(&c.IdleTimeout),
		"drain_timeout":         r.durationTo(&c.DrainTimeout),
		"session_idle":          r.durationOrNoneTo(&c.SessionIdle),
		"results": {table: fields{
			"preview":    r.sizeTo(&c.Results.Preview, noFault),
			"owner_only": r.boolTo(&c.Results.OwnerOnly),
		}},
		"spool": {table: fields{
			"max_bytes": r.sizeTo(&c.Spool.MaxBytes, noFault),
		}},
		"log": {table: fields{
			"level": r.choiceTo(&c.Log.Level, "debug", "info", "warn", "error"),
		}},
		"debug": {table: fields{
			"enabled": r.boolTo(&c.Debug.Enabled),
			"token":   r.textTo(&c.Debug.Token),
		}},
		"servers": {named: r.serverTo(c)},
		"agents":  {named: r.agentTo(c)},
	}
}

func (r *reader) serverTo(c *Config) entry {
	return func(n node) (fields, func()) {
		s := Server{
			Name:      n.name(),
			Isolation: "shared",
			Enabled:   true,
			Tools:     ToolFilter{Allow: []string{"*"}},
			Tool:      map[string]Tool{},
		}
		secretsBefore := len(r.expander.secrets)
		return r.serverFields(&s), func() {
			r.checkServer(n, &s)
			s.Secrets = SecretSet(append(serverSecrets(s), r.expander.secrets[secretsBefore:]...))
			c.Servers[s.Name] = s
		}
	}
}

func (r *reader) serverFields(s *Server) fields {
	return fields{
		"command":         r.pathTo(&s.Command),
		"args":            r.listTo(&s.Args),
		"env":             r.textsTo(&s.Env),
		"cwd":             r.pathTo(&s.Cwd),
		"url":             r.textTo(&s.URL),
		"transport":       r.choiceTo(&s.Transport, "http", "sse"),
		"headers":         r.textsTo(&s.Headers),
		"isolation":       r.choiceTo(&s.Isolation, "shared", "per_agent", "per_session"),
		"era":             r.choiceTo(&s.Era, "legacy", "modern"),
		"enabled":         r.boolTo(&s.Enabled),
		"store":           r.boolTo(&s.Store),
		"response_budget": r.optionalSizeTo(&s.ResponseBudget, budgetFault),
		"call_timeout":    r.durationTo(&s.CallTimeout),
		"idle_timeout":    r.durationOrNoneTo(&s.IdleTimeout),
		"connect_timeout": r.durationTo(&s.ConnectTimeout),
		"oauth": {table: fields{
			"grant":         r.pathTo(&s.OAuth.Grant),
			"client_id":     r.textTo(&s.OAuth.ClientID),
			"client_secret": r.textTo(&s.OAuth.ClientSecret),
			"scopes":        r.listTo(&s.OAuth.Scopes),
		}},
		"tools": {table: fields{
			"allow": r.listTo(&s.Tools.Allow),
			"deny":  r.listTo(&s.Tools.Deny),
		}},
		"tool": {named: r.toolTo(s)},
	}
}

func (r *reader) toolTo(s *Server) entry {
	return func(n node) (fields, func()) {
		var t Tool
		return fields{
			"response_budget": r.optionalSizeTo(&t.ResponseBudget, budgetFault),
		}, func() { s.Tool[n.name()] = t }
	}
}

func (r *reader) agentTo(c *Config) entry {
	return func(n node) (fields, func()) {
		a := Agent{Name: n.name()}
		return r.agentFields(&a), func() {
			r.checkAgent(n, a)
			c.Agents[a.Name] = a
		}
	}
}

func (r *reader) agentFields(a *Agent) fields {
	return fields{
		"servers":         r.listTo(&a.Servers),
		"tools":           r.listTo(&a.Tools),
		"response_budget": r.optionalSizeTo(&a.ResponseBudget, budgetFault),
		"max_lines":       r.countTo(&a.MaxLines, 1, 1<<30),
		"max_tool_name":   r.countTo(&a.MaxToolName, 16, 64),
		"token":           r.textTo(&a.Token),
	}
}

// Keys is every key that a configuration may hold, dotted, with * for a name of
// the user's choice, sorted.
func Keys() []string {
	r := &reader{}
	keys := r.keys("", r.topFields(&Config{}))
	sort.Strings(keys)
	return keys
}

func (r *reader) keys(prefix string, level fields) []string {
	var keys []string
	for name, f := range level {
		switch {
		case f.value != nil:
			keys = append(keys, prefix+name)
		case f.table != nil:
			keys = append(keys, r.keys(prefix+name+".", f.table)...)
		default:
			known, _ := f.named(node{key: []string{"*"}})
			keys = append(keys, r.keys(prefix+name+".*.", known)...)
		}
	}
	return keys
}
