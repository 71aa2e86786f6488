package actors

import (
	"mcphubd/actors/budget"
	"mcphubd/config"
)

// minCeiling is what the smallest receipt needs; a client that takes less is out of luck.
const minCeiling = 512

// under is the agent as it is in this call: what its client takes is a ceiling too.
func (c Call) under(a config.Agent) config.Agent {
	own := ceilingOf(a)
	if c.Ceiling <= 0 || own > 0 && own <= c.Ceiling {
		return a
	}
	size := config.Size(max(c.Ceiling, minCeiling))
	a.ResponseBudget = &size
	return a
}

// capped bounds the ticket by what the client takes, whatever the budgets say: more than
// that would be lost on its way.
func (w *walk) capped() {
	most, t := max(w.call.Ceiling, minCeiling), &w.ticket
	switch {
	case w.call.Ceiling <= 0 || !w.hasOwn(w.call.Only): // what it cannot read back is not stored
	case t.limit == 0:
		t.rule = budget.Rule{Base: most, Ceiling: most, Lines: t.rule.Lines}
		t.limit, t.hold = most, min(most, unlimitedHold)
	case t.rule.Ceiling == 0 || t.rule.Ceiling > most:
		t.rule.Ceiling = most
		t.limit = t.rule.Limit(t.entry.Asked)
		t.hold = t.rule.Highest()
	}
}
