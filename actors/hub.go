package actors

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// agentName is what an identity may be called.
var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Hub starts and stops everything else, and publishes the View.
type Hub struct {
	ref[hubMsg]
	sys   *System
	view  *atomic.Pointer[View]
	spool Spool
	began time.Time

	library *library
}

// View returns the current View. It asks nobody.
func (h Hub) View() *View { return h.view.Load() }

// Open returns the session of an agent identity. Its error is an *RPCError that
// says what to do when the identity may not be used.
func (h Hub) Open(ctx context.Context, agent string) (*Session, error) {
	if s, ok := h.View().welcome(agent); ok {
		return s, nil
	}
	return ask[*Session, hubMsg](ctx, h.ref, openSession{agent})
}

// Reload makes the running servers match c. Only servers that changed are
// restarted; calls in flight on the old ones finish within the drain timeout.
func (h Hub) Reload(ctx context.Context, c *config.Config) (Changes, error) {
	return ask[Changes, hubMsg](ctx, h.ref, reload{c})
}

//sumtype:decl
type hubMsg interface{ isHubMsg() }

type (
	openSession   struct{ agent string }
	reload        struct{ config *config.Config }
	drain         struct{}
	serverChanged struct { // from a Downstream
		name  string
		gen   int64
		facts ServerFacts
	}
)

func (openSession) isHubMsg()   {}
func (reload) isHubMsg()        {}
func (drain) isHubMsg()         {}
func (serverChanged) isHubMsg() {}

func spawnHub(s *System, sp Spool, dial func(config.Server) Connector) Hub {
	view := new(atomic.Pointer[View])
	view.Store(&View{Config: &config.Config{}, Catalog: catalog.Build(nil),
		changed: make(chan struct{}), listsNew: make(chan struct{})})
	// The hub's state outlives a crash of its handler: it is who knows everybody.
	a := &hubActor{sys: s, spool: sp, dial: dial, view: view, known: recall(s, sp)}
	a.hub = Hub{sys: s, view: view, spool: sp, began: time.Now(), library: newLibrary()}
	a.hub.ref = spawn(s, "hub", "root", "", func() behaviour[hubMsg] { return a })
	return a.hub
}

type hubActor struct {
	sys   *System
	spool Spool
	dial  func(config.Server) Connector
	view  *atomic.Pointer[View]
	hub   Hub

	self ref[hubMsg]
	gen  int64

	crowded  bool                // identities were forgotten
	sweeping bool                // a sweep of instances is on its way
	known    map[string]recalled // what servers listed in an earlier life of the daemon
}

func (a *hubActor) start(self ref[hubMsg]) { a.self, a.hub.ref = self, self }
func (a *hubActor) stop()                  {}

func (a *hubActor) handle(from asker, m hubMsg) {
	switch m := m.(type) {
	case openSession:
		from.answer(a.openSession(m.agent))
	case reload:
		from.answer(a.reload(m.config), nil)
	case serverChanged:
		a.serverChanged(m)
	case openInstance:
		from.answer(a.openInstance(m))
	case instanceChanged:
		a.instanceChanged(m)
	case sessionLeft:
		a.sessionLeft(m)
	case sweepInstances:
		a.sweepInstances()
	case forgotten:
		a.forgotten(m)
	case drain:
		from.answer(a.drain(), nil)
	case restart:
		from.answer(a.restart(m.name))
	}
}

func (a *hubActor) openSession(agent string) (any, error) {
	v := a.view.Load()
	if s, ok := v.welcome(agent); ok {
		return s, nil
	}
	switch _, known := v.Config.Agent(agent); {
	case v.Stopping:
		return nil, errStopping
	case !agentName.MatchString(agent):
		return nil, &RPCError{CodeInvalidRequest, fmt.Sprintf("agent name %.80q cannot be used: letters, digits, . _ -, at most 64", agent)}
	case !known:
		return nil, &RPCError{CodeInvalidRequest, fmt.Sprintf("no agent %q is configured; add [agents.%s] to the configuration", agent, agent)}
	case len(v.sessions) >= maxSessions && !a.makeRoom():
		return nil, &RPCError{CodeInvalidRequest, fmt.Sprintf("%d agents have calls in flight already", maxSessions)}
	}
	id := agent
	if a.crowded { // one of that name may not be gone yet
		a.gen++
		id = fmt.Sprintf("%s.%d", agent, a.gen)
	}
	s := spawnSession(a.sys, id, agent, a.hub, a.spool)
	a.publish(func(v *View) {
		v.sessions = maps.Clone(v.sessions)
		if v.sessions == nil {
			v.sessions = map[string]*Session{}
		}
		v.sessions[agent] = s
	})
	return s, nil
}

func (a *hubActor) reload(c *config.Config) Changes {
	v := a.view.Load()
	changes := diff(v.Config, c)
	servers := maps.Clone(v.Servers)
	if servers == nil {
		servers = map[string]ServerView{}
	}
	for _, n := range slices.Concat(changes.Removed, changes.Changed) {
		a.retire(servers[n], v.Config)
		delete(servers, n)
	}
	alter(servers, c)
	for _, n := range slices.Concat(changes.Added, changes.Changed) {
		servers[n] = a.serve(c.Servers[n], v.Servers[n])
	}
	a.spool.bound(int64(c.Spool.MaxBytes))
	a.publish(func(v *View) { v.Config, v.Servers = c, servers })
	a.staleInstances(slices.Concat(changes.Removed, changes.Changed))
	return changes
}

// serve starts one server under a generation of its own, so that a replacement
// never meets its predecessor. What the predecessor offered, or the same server in
// an earlier life of the daemon, is kept until it listed.
func (a *hubActor) serve(c config.Server, was ServerView) ServerView {
	a.gen++
	v := ServerView{Config: c, gen: a.gen}
	if !c.Enabled {
		v.State, v.Cause = Stopped, "disabled in the configuration"
		return v
	}
	v.keep(was.ServerFacts)
	v.State = Connecting
	spoke := ""
	if was.Handle.engine != nil && originOf(was.Config) == originOf(c) {
		spoke = was.Info.Protocol
	}
	if known, ok := a.known[c.Name]; ok && len(v.Tools) == 0 && known.origin == originOf(c) {
		v.Tools, spoke, v.Info.Instructions = known.tools, known.protocol, known.instructions
	}
	delete(a.known, c.Name)
	self, gen := a.self, a.gen
	v.Handle = spawnDownstream(a.sys, fmt.Sprintf("%s.%d", c.Name, gen), c, a.dial(c), len(v.Tools) > 0, spoke, sole{}, was.Handle.subs,
		func(f ServerFacts) { self.tell(serverChanged{c.Name, gen, f}) })
	return v
}

func (a *hubActor) retire(s ServerView, c *config.Config) {
	if s.Handle.engine == nil {
		return
	}
	d, grace := s.Handle, c.DrainTimeout
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace+2*closeGrace)
		defer cancel()
		d.Retire(ctx, grace, closeGrace)
		stopActor(ctx, d.ref)
	}()
}

func (a *hubActor) serverChanged(m serverChanged) {
	v := a.view.Load()
	s, ok := v.Servers[m.name]
	if !ok || s.gen != m.gen {
		return // a predecessor's farewell
	}
	m.facts.Cause, m.facts.Stderr = config.Mask(m.facts.Cause, s.Config.Secrets), config.Mask(m.facts.Stderr, s.Config.Secrets)
	m.facts.keep(s.ServerFacts)
	if !sameSlice(m.facts.Tools, s.Tools) || m.facts.Info.Instructions != s.Info.Instructions {
		a.spool.remember(known(s.Config, m.facts.Info, m.facts.Tools))
	}
	s.ServerFacts = m.facts
	a.problem(m, s.Config)
	a.publish(func(v *View) {
		v.Servers = maps.Clone(v.Servers)
		v.Servers[m.name] = s
	})
}

func (a *hubActor) problem(m serverChanged, c config.Server) {
	const down, refused = "server-down", "server-unauthorized"
	switch m.facts.State {
	case BackingOff:
		p := Problem{Code: down, Subject: m.name,
			Text: fmt.Sprintf("server %s is down: %s", m.name, m.facts.Cause),
			Fix:  "mcphubd doctor tells what to do about it; it is started again by itself"}
		other := refused
		if m.facts.SignIn {
			p.Code, p.Fix, other = refused, signInFix(c), down
		}
		a.sys.problems.Clear(other, m.name)
		a.sys.problems.Raise(p)
	case Ready, Stopped, Draining:
		a.sys.problems.Clear(down, m.name)
		a.sys.problems.Clear(refused, m.name)
	case Connecting:
	}
}

// signInFix is what lets us into a server that refuses us.
func signInFix(c config.Server) string {
	if c.HasCredential() {
		return fmt.Sprintf("put a valid credential into headers of [servers.%s]", c.Name)
	}
	return "mcphubd server login " + c.Name
}

// drain begins the end: no new sessions, no new calls. It answers with all handles.
func (a *hubActor) drain() *View {
	a.publish(func(v *View) { v.Stopping = true })
	return a.view.Load()
}

// hubDetail is what the board shows of the hub.
type hubDetail struct {
	View      int64 `json:"view"`  // its revision
	Tools     int64 `json:"tools"` // that in which the tools last changed
	Servers   int   `json:"servers"`
	Agents    int   `json:"agents"`
	Instances int   `json:"instances"`
}

// publish replaces the View by a changed copy and wakes whoever waits for one.
func (a *hubActor) publish(change func(*View)) {
	old := a.view.Load()
	v := *old
	v.Revision++
	v.changed = make(chan struct{})
	change(&v)
	tools := v.Config != old.Config || !sameTools(old, &v)
	if tools {
		v.Catalog = buildCatalog(&v)
		v.shorter = shorter(v.Config, v.Catalog)
		v.ToolsRev = v.Revision
	}
	features := v.Config != old.Config || !sameFeatures(old, &v)
	if features {
		v.Prompts, v.Offers = buildFeatures(&v)
	}
	if tools || features {
		v.listsNew = make(chan struct{})
	}
	a.view.Store(&v)
	state := "running"
	if v.Stopping {
		state = "stopping"
	}
	a.self.line.note(state, hubDetail{v.Revision, v.ToolsRev, len(v.Servers), len(v.sessions), len(v.instances)})
	close(old.changed)
	if tools || features {
		close(old.listsNew)
	}
}

// sameTools reports whether two Views offer the same tools.
func sameTools(a, b *View) bool {
	return maps.EqualFunc(a.Servers, b.Servers, func(x, y ServerView) bool {
		return x.Listed == y.Listed && sameSlice(x.Tools, y.Tools) && reflect.DeepEqual(x.Config.Tools, y.Config.Tools)
	})
}

// sameFeatures reports whether two Views offer the same prompts and resources, and
// whether the same servers are in them.
func sameFeatures(a, b *View) bool {
	return maps.EqualFunc(a.Servers, b.Servers, func(x, y ServerView) bool {
		return x.Featured == y.Featured && sameSlice(x.Prompts, y.Prompts) && x.Offer == y.Offer &&
			x.Info.Instructions == y.Info.Instructions
	})
}

// sameSlice reports whether both are the very same slice: lists are replaced only
// when a byte of them changed.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// buildCatalog names the tools of all servers, without those a filter leaves out.
func buildCatalog(v *View) *catalog.Catalog {
	var servers []catalog.Server
	for _, n := range slices.Sorted(maps.Keys(v.Servers)) {
		s := v.Servers[n]
		if !s.Config.Enabled {
			continue
		}
		var tools []catalog.Tool
		for _, t := range s.Tools {
			if catalog.Allowed(s.Config.Tools.Allow, s.Config.Tools.Deny, t.Name) {
				tools = append(tools, t)
			}
		}
		servers = append(servers, catalog.Server{Name: n, Tools: tools})
	}
	return catalog.Build(servers)
}

// buildFeatures names the prompts and resources of all servers.
func buildFeatures(v *View) (*catalog.Prompts, *catalog.Resources) {
	prompts, offers := map[string][]catalog.Prompt{}, map[string]*catalog.Offer{}
	for n, s := range v.Servers {
		if !s.Config.Enabled {
			continue
		}
		prompts[n] = s.Prompts
		if !s.Offer.Empty() {
			offers[n] = s.Offer
		}
	}
	return catalog.BuildPrompts(prompts), catalog.BuildResources(offers)
}
