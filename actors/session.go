package actors

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// JSON-RPC error codes of refusals.
const (
	CodeInvalidRequest = -32600
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

var errStopping = &RPCError{CodeInternal, "the daemon is stopping; call again in a moment"}

const (
	// maxInFlight bounds the calls of one agent identity.
	maxInFlight = 4096
	// settleEvery is how long records of finished calls are gathered.
	settleEvery = time.Second
)

// Session is one agent identity: what it may see and what it is doing. It belongs
// to the identity, not to a connection.
type Session struct {
	ref[sessionMsg]
	agent string
	hub   Hub
	spool Spool
	desk  *sessionDesk
}

// sessionDesk is what the calls of a session share without a message.
type sessionDesk struct {
	live  liveCalls
	rows  rowBox
	ends  lines                    // of calls whose call_timeout comes
	tools atomic.Pointer[toolList] // the last list that was built
}

// Agent is the identity's name.
func (s Session) Agent() string { return s.agent }

//sumtype:decl
type sessionMsg interface{ isSessionMsg() }

type (
	called struct{} // from calls: rows wait in the box
	settle struct{} // from calls: the box is full; self: its time has come
)

func (called) isSessionMsg() {}
func (settle) isSessionMsg() {}

// A ticket is all that one call needs to know; it does not change while it runs.
type ticket struct {
	entry    catalog.Entry
	server   Downstream
	agent    config.Agent
	rule     budget.Rule
	limit    int64 // bytes of the result, unless it asks for more; 0 = unlimited
	hold     int64 // bytes to keep in memory while it arrives: the most that may pass
	timeout  time.Duration
	idle     time.Duration // without answer or progress; 0 = no such bound
	preview  int64
	failOpen bool
	waitFor  []string // no such tool yet: servers that may still bring it
}

var lastSerial atomic.Int64

func newSerial() int64 { return lastSerial.Add(1) }

func spawnSession(s *System, id, agent string, hub Hub, sp Spool) *Session {
	desk := &sessionDesk{live: liveCalls{m: map[int64]liveCall{}}}
	r := spawn(s, "session", id, "hub", func() behaviour[sessionMsg] {
		return &sessionActor{desk: desk, hub: hub, spool: sp, log: s.log, outcomes: map[string]int64{}}
	})
	return &Session{r, agent, hub, sp, desk}
}

// admit decides over one call with one View.
func (s Session) admit(c Call) (ticket, error) {
	v, name := s.hub.View(), c.Name
	agent, known := v.Config.Agent(s.agent)
	switch {
	case v.Stopping:
		return ticket{}, errStopping
	case !known:
		return ticket{}, &RPCError{CodeInvalidRequest, fmt.Sprintf("agent %q is no longer configured", s.agent)}
	}
	scope := scopeOf(agent)
	if c.Only != "" {
		return admitOnly(v, agent, c)
	}
	entry, ok := v.lookup(agent, name)
	if !ok || !scope.Sees(entry.Server, entry.Exposed) {
		if wait := mayBring(v, agent, name); !ok && len(wait) > 0 {
			return ticket{waitFor: wait}, nil
		}
		return ticket{}, unknownTool(v, agent, name)
	}
	return newTicket(v, agent, entry), nil
}

// admitOnly admits a call under a server's own name of the tool.
func admitOnly(v *View, agent config.Agent, c Call) (ticket, error) {
	entry, ok := v.Catalog.Find(c.Only, c.Name)
	switch {
	case ok && scopeOf(agent).Sees(entry.Server, entry.Exposed):
		return newTicket(v, agent, entry), nil
	case !ok && v.Servers[c.Only].starting():
		return ticket{waitFor: []string{c.Only}}, nil
	}
	return ticket{}, &RPCError{CodeInvalidParams, fmt.Sprintf("unknown tool: %.200s", c.Name)}
}

// A sessionActor keeps the books of one agent.
type sessionActor struct {
	desk  *sessionDesk
	hub   Hub
	spool Spool
	log   zerolog.Logger

	self     ref[sessionMsg]
	armed    bool
	outcomes map[string]int64
	calls    int64
}

func (a *sessionActor) start(self ref[sessionMsg]) {
	a.self = self
	self.line.note("attached", nil)
}

func (a *sessionActor) stop() { a.settle() }

func (a *sessionActor) handle(_ asker, m sessionMsg) {
	switch m.(type) {
	case called:
		a.called()
	case settle:
		a.armed = false
		a.settle()
	}
}

func (a *sessionActor) called() {
	if !a.armed {
		a.armed = true
		after[sessionMsg](a.self, settleEvery, settle{})
	}
}

// settle hands the records of finished calls on, and shows what they came to.
func (a *sessionActor) settle() {
	rows := a.desk.rows.take()
	if len(rows) == 0 {
		return
	}
	for _, r := range rows {
		a.outcomes[r.Outcome]++
	}
	a.calls += int64(len(rows))
	maskErrors(a.hub.View().Config, rows)
	a.spool.Record(rows)
	logCalls(a.log, rows)
	a.self.line.note("attached", sessionDetail{a.calls, maps.Clone(a.outcomes)})
}

// sessionDetail is what the board shows of a session.
type sessionDetail struct {
	Calls    int64            `json:"calls"`
	Outcomes map[string]int64 `json:"outcomes"`
}

func newTicket(v *View, agent config.Agent, e catalog.Entry) ticket {
	s := v.Servers[e.Server]
	rule := ruleOf(v.Config, agent, e)
	t := ticket{entry: e, server: s.Handle, agent: agent, rule: rule, limit: rule.Limit(e.Asked), hold: rule.Highest(),
		timeout: s.Config.CallTimeout, idle: s.Config.IdleTimeout, preview: int64(v.Config.Results.Preview), failOpen: v.Config.FailOpen}
	if t.limit == 0 {
		t.hold = unlimitedHold
	}
	return t
}

// unlimitedHold is how much of a result without a budget is kept in memory; the
// rest takes the way over the spool's rows, so memory stays bounded.
const unlimitedHold = 1 << 20

func ruleOf(c *config.Config, agent config.Agent, e catalog.Entry) budget.Rule {
	return budget.Rule{Base: int64(c.Budget(e.Server, e.Tool)), Ceiling: ceilingOf(agent),
		Override: int64(c.MaxPerCallOverride), Lines: int64(agent.MaxLines), Verbatim: c.Verbatim}
}

// ownLimit bounds what the gateway's own tools answer.
func ownLimit(c *config.Config, agent config.Agent) int64 {
	return budget.Limit(int64(c.ResponseBudget), ceilingOf(agent), false)
}

func ceilingOf(agent config.Agent) int64 {
	if agent.ResponseBudget == nil {
		return 0
	}
	return int64(*agent.ResponseBudget)
}

func scopeOf(agent config.Agent) catalog.Scope {
	return catalog.Scope{Servers: agent.Servers, Tools: agent.Tools}
}

// mayBring lists the servers that were never listed yet, still connect, and whose
// tools would carry this name's prefix.
func mayBring(v *View, agent config.Agent, name string) (servers []string) {
	for n, s := range v.Servers {
		if s.State == Connecting && !s.Listed && couldBe(agent, name, n) {
			servers = append(servers, n)
		}
	}
	return servers
}

// unknownTool says why a name leads nowhere. A tool out of scope is unknown, to
// the letter.
func unknownTool(v *View, agent config.Agent, name string) error {
	for n, s := range v.Servers {
		if !couldBe(agent, name, n) {
			continue
		}
		switch {
		case !s.Config.Enabled:
			return &RPCError{CodeInvalidParams, fmt.Sprintf("tool %s: server %s is disabled in the configuration", name, n)}
		case !s.Listed && s.State == BackingOff:
			return fmt.Errorf("tool %s: server %s: %w: %s; next try in %s", name, n, ErrNotReady, s.Cause,
				max(time.Until(s.NextTry), 0).Round(time.Millisecond))
		case !s.Listed && s.State == Connecting:
			return fmt.Errorf("tool %s: server %s: %w: it is still connecting", name, n, ErrNotReady)
		}
	}
	return &RPCError{CodeInvalidParams, fmt.Sprintf("unknown tool: %.200s", name)}
}
