package actors

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// A server whose isolation is not shared runs once more for each agent, or each legacy
// session, that uses it: those are its instances. They start with their first call; the
// shared copy only says what the server offers.

const (
	// maxInstances bounds the instances of one server.
	maxInstances = 32
	// instanceIdle is how long an instance may go without a call.
	instanceIdle = 10 * time.Minute
	sweepEvery   = time.Minute
)

const (
	perAgent   = "per_agent"
	perSession = "per_session"
)

// owner is whom an instance belongs to: an agent, or one legacy session of it.
type owner struct{ server, agent, session string }

// sole is who alone uses a server, and what that one can be asked; zero = all agents do.
type sole struct {
	owner
	can []byte
}

// instance is one of them, as the View shows it.
type instance struct {
	ServerFacts
	handle Downstream
	gen    int64
	use    *use
}

// use is noted by calls, without a message.
type use struct {
	last atomic.Int64 // unix nanoseconds
	free atomic.Bool  // somebody without a session uses it: it does not end with one
}

// InstanceLine is what a snapshot says of an instance.
type InstanceLine struct {
	Agent      string    `json:"agent"`
	Session    bool      `json:"session"` // it belongs to one session, not to all of the agent
	State      State     `json:"state"`
	Cause      string    `json:"cause,omitempty"`
	PID        int       `json:"pid,omitempty"`
	Generation int64     `json:"generation"`
	InFlight   int64     `json:"inFlight"`
	LastUsed   time.Time `json:"lastUsed"`
}

type (
	openInstance    struct{ sole }
	instanceChanged struct { // from its Downstream
		owner owner
		gen   int64
		facts ServerFacts
	}
	sessionLeft struct {
		agent, session string
		last           bool
	}
	sweepInstances struct{} // itself
)

func (openInstance) isHubMsg()    {}
func (instanceChanged) isHubMsg() {}
func (sessionLeft) isHubMsg()     {}
func (sweepInstances) isHubMsg()  {}

// Left says that a legacy session of an agent ended, and whether it was the last one.
func (h Hub) Left(agent, session string, last bool) {
	if len(h.View().instances) > 0 {
		h.tell(sessionLeft{agent, session, last})
	}
}

// isolate aims the ticket at the agent's own instance, where the server has such.
func (w *walk) isolate(ctx context.Context) error {
	v := w.hub.View()
	o := owner{server: w.ticket.server.name, agent: w.agent}
	switch v.Servers[o.server].Config.Isolation {
	case perSession:
		o.session = w.call.Wire
	case perAgent:
	default:
		return nil
	}
	i, ok := v.instances[o]
	if !ok {
		var err error
		if i, err = ask[instance, hubMsg](ctx, w.hub.ref, openInstance{sole{o, w.offer(o)}}); err != nil {
			return err
		}
	}
	i.use.last.Store(time.Now().UnixNano())
	if w.call.Wire == "" {
		i.use.free.Store(true)
	}
	w.ticket.server, w.instance = i.handle, o
	return nil
}

// offer is what a copy is told that its agent can be asked: just what the session can that it
// is for. A copy for all sessions of an agent is told what the one can that starts it, but if
// that is nothing, then what every shared server is told: another may come that can.
func (w *walk) offer(o owner) []byte {
	if len(w.call.Can) == 0 && o.session != "" {
		return []byte("{}")
	}
	return w.call.Can
}

func (a *hubActor) openInstance(m openInstance) (any, error) {
	o := m.owner
	v := a.view.Load()
	if i, ok := v.instances[o]; ok {
		return i, nil
	}
	s, ok := v.Servers[o.server]
	switch {
	case v.Stopping:
		return nil, errStopping
	case !ok || !s.Config.Enabled:
		return nil, fmt.Errorf("server %s: %w: it was taken out of the configuration", o.server, ErrNotReady)
	}
	if n := len(instancesOf(v, o.server)); n >= maxInstances {
		return nil, fmt.Errorf("server %s has %d copies for other agents already (isolation = %q); they end with their agents, or after %s without a call",
			o.server, n, s.Config.Isolation, instanceIdle)
	}
	a.gen++
	self, gen := a.self, a.gen
	i := instance{gen: gen, use: &use{}}
	i.State = Connecting
	i.use.last.Store(time.Now().UnixNano())
	i.handle = spawnDownstream(a.sys, fmt.Sprintf("%s@%s.%d", o.server, o.agent, gen), s.Config, a.dial(s.Config), true, s.Info.Protocol, m.sole, nil,
		func(f ServerFacts) { self.tell(instanceChanged{o, gen, f}) })
	if !a.sweeping {
		a.sweeping = true
		after[hubMsg](a.self, sweepEvery, sweepInstances{})
	}
	a.instances(func(all map[owner]instance) { all[o] = i })
	return i, nil
}

// instances publishes a View with other instances.
func (a *hubActor) instances(change func(map[owner]instance)) {
	a.publish(func(v *View) {
		all := maps.Clone(v.instances)
		if all == nil {
			all = map[owner]instance{}
		}
		change(all)
		v.instances = all
	})
}

func (a *hubActor) instanceChanged(m instanceChanged) {
	i, ok := a.view.Load().instances[m.owner]
	if !ok || i.gen != m.gen {
		return
	}
	i.ServerFacts = m.facts
	a.instances(func(all map[owner]instance) { all[m.owner] = i })
}

// endInstances retires those that no longer have a reason to be.
func (a *hubActor) endInstances(over func(owner, instance) bool) {
	v := a.view.Load()
	var gone []owner
	for o, i := range v.instances {
		if over(o, i) {
			gone = append(gone, o)
		}
	}
	if gone == nil {
		return
	}
	a.instances(func(all map[owner]instance) {
		for _, o := range gone {
			delete(all, o)
		}
	})
	for _, o := range gone {
		a.retire(ServerView{Handle: v.instances[o].handle}, v.Config)
	}
}

func (a *hubActor) sessionLeft(m sessionLeft) {
	a.endInstances(func(o owner, i instance) bool {
		return o.agent == m.agent && (o.session != "" && o.session == m.session || o.session == "" && m.last && !i.use.free.Load())
	})
}

func (a *hubActor) sweepInstances() {
	before := time.Now().Add(-instanceIdle).UnixNano()
	a.endInstances(func(_ owner, i instance) bool { return i.use.last.Load() < before && i.handle.InFlight() == 0 })
	if a.sweeping = len(a.view.Load().instances) > 0; a.sweeping {
		after[hubMsg](a.self, sweepEvery, sweepInstances{})
	}
}

// staleInstances ends those of servers that changed, and of agents that are gone.
func (a *hubActor) staleInstances(servers []string) {
	c := a.view.Load().Config
	a.endInstances(func(o owner, _ instance) bool {
		_, known := c.Agent(o.agent)
		return !known || slices.Contains(servers, o.server)
	})
}

// instancesOf are those of one server, in the order in which they were started.
func instancesOf(v *View, server string) (lines []InstanceLine) {
	for o, i := range v.instances {
		if o.server == server {
			lines = append(lines, InstanceLine{o.agent, o.session != "", i.State, i.Cause, i.Info.PID, i.gen, i.handle.InFlight(), time.Unix(0, i.use.last.Load())})
		}
	}
	slices.SortFunc(lines, func(x, y InstanceLine) int { return cmp.Compare(x.Generation, y.Generation) })
	return lines
}
