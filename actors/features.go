package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// List is a kind of list besides tools.
type List int

const (
	PromptList List = iota
	ResourceList
	TemplateList
)

// Hello is what an agent is told when it attaches.
type Hello struct {
	Instructions string
	Capabilities []byte // as the one server declared them; nil = the gateway's own
}

// ownInstructions comes first in what agents are told; at most 500 bytes (case C108).
func ownInstructions(getTool string) string {
	return "mcphub: tools of several MCP servers behind one endpoint, each named server__tool. " +
		"A result too large for your context is stored for 24 hours and answered by a receipt with a callId: " +
		"make the call that its nextAction shows to read what you need of it; " +
		getTool + " gives the exact bytes page by page. " +
		"Text under a server's name below comes from that server."
}

// List returns the raw JSON array of the prompts, resources or templates that this
// agent sees. The same entries give the same bytes.
func (s Session) List(ctx context.Context, kind List) []byte {
	v := s.patient(ctx, allFeatured)
	agent, _ := v.Config.Agent(s.agent)
	scope := scopeOf(agent)
	switch kind {
	case PromptList:
		return v.Prompts.List(scope)
	case TemplateList:
		return v.Offers.Templates(scope)
	}
	_, cut := instructions(v, agent)
	own := make([][]byte, len(cut))
	for i, server := range cut {
		own[i] = instructionsEntry(server)
	}
	return v.Offers.List(scope, own)
}

// helloPatience is how long an agent's handshake waits for servers that connect for the
// first time in the daemon's first moments, so that what they say is in it: case C12 has it
// answered within 100 ms.
const helloPatience = 50 * time.Millisecond

// Hello returns what this agent is told.
func (s Session) Hello(ctx context.Context) (Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	v := s.patient(ctx, settled)
	agent, _ := v.Config.Agent(s.agent)
	text, _ := instructions(v, agent)
	return Hello{Instructions: text}, nil
}

// patient returns the View for which ok holds, or the present one when the daemon's
// first moments are over.
func (s Session) patient(ctx context.Context, ok func(*View) bool) *View {
	v := s.hub.View()
	if !ok(v) {
		ctx, cancel := context.WithDeadline(ctx, s.hub.began.Add(listPatience))
		v, _ = s.hub.await(ctx, ok)
		cancel()
	}
	return v
}

// instructions joins what the servers in scope say.
func instructions(v *View, agent config.Agent) (text string, cut []string) {
	scope := scopeOf(agent)
	_, get := catalog.OwnNames(longest(agent))
	var said []catalog.Said
	for n, s := range v.Servers {
		if s.Config.Enabled && scope.Touches(n) {
			said = append(said, catalog.Said{Server: n, Text: s.Info.Instructions})
		}
	}
	return catalog.Instructions(ownInstructions(get), said)
}

func instructionsEntry(server string) []byte {
	b := quoteTo([]byte(`{"uri":`), catalog.InstructionsURI(server))
	b = quoteTo(append(b, `,"name":`...), "Instructions of "+server)
	return append(b, `,"description":"What this server says about itself, whole.","mimeType":"text/plain"}`...)
}

func instructionsResult(uri, text string) []byte {
	b := quoteTo([]byte(`{"contents":[{"uri":`), uri)
	b = quoteTo(append(b, `,"mimeType":"text/plain","text":`...), text)
	return append(b, "}]}"...)
}

func quoteTo(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // what is no UTF-8 is replaced
	return b
}

// One is one server alone as an agent sees it: its own names, its own capabilities,
// and nothing stored unless the configuration says so.
type One struct {
	Session
	server string
}

// One returns the server called name as this agent sees it. One that is out of its
// scope is unknown, to the letter.
func (s Session) One(name string) (One, error) {
	v := s.hub.View()
	agent, _ := v.Config.Agent(s.agent)
	sv, ok := v.Servers[name]
	if !ok || !scopeOf(agent).Touches(name) {
		return One{}, &RPCError{CodeInvalidRequest, fmt.Sprintf("no server %.80q here; add [servers.%.80s] to the configuration, or to what this agent may see", name, name)}
	}
	if !sv.Config.Enabled {
		return One{}, &RPCError{CodeInvalidRequest, fmt.Sprintf("server %s is disabled in the configuration", name)}
	}
	return One{s, name}, nil
}

// Call makes one tool call under the server's own name of the tool.
func (o One) Call(ctx context.Context, c Call) (Reply, error) {
	c.Only = o.server
	return o.Session.Call(ctx, c)
}

// Request relays one other request.
func (o One) Request(ctx context.Context, c Call) (Reply, error) {
	c.Only = o.server
	return o.Session.Request(ctx, c)
}

// Subscribe is that of Session, under the server's own uri.
func (o One) Subscribe(ctx context.Context, uri string, heard func()) (cancel func(), err error) {
	return o.subscribe(ctx, Call{Method: ReadResource, Name: uri, Only: o.server}, heard)
}

// Hello waits for the server's first connect, and fails when it comes to nothing.
func (o One) Hello(ctx context.Context) (Hello, error) {
	v, err := o.up(ctx)
	if err != nil {
		return Hello{}, err
	}
	s := v.Servers[o.server]
	if s.Info.Capabilities == nil {
		return Hello{}, fmt.Errorf("server %s: %w: %s", o.server, ErrNotReady, orElse(s.Cause, "it is "+string(s.State)))
	}
	return Hello{s.Info.Instructions, s.Info.Capabilities}, nil
}

// up waits until the server has come up or failed.
func (o One) up(ctx context.Context) (*View, error) {
	v, err := o.hub.await(ctx, func(v *View) bool { return v.Stopping || !v.Servers[o.server].starting() })
	if err != nil {
		return v, fmt.Errorf("server %s is still connecting: %w", o.server, err)
	}
	return v, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Tools returns the raw JSON array of the server's tools in scope. The gateway's
// own are among them only when results can be stored here.
func (o One) Tools(ctx context.Context) []byte {
	v, _ := o.up(ctx)
	agent, _ := v.Config.Agent(o.agent)
	if !v.Servers[o.server].Config.Store {
		return v.Catalog.ListOf(o.server, scopeOf(agent), nil, nil)
	}
	output := func(e catalog.Entry) catalog.Output { return outputOf(v.Config, ruleOf(v.Config, agent, e)) }
	return v.Catalog.ListOf(o.server, scopeOf(agent), catalog.OwnTools(longest(agent)), output)
}

// List returns the server's own list.
func (o One) List(ctx context.Context, kind List) []byte {
	ctx, cancel := context.WithTimeout(ctx, max(o.hub.View().Servers[o.server].Config.ConnectTimeout, time.Second))
	defer cancel()
	v, _ := o.hub.await(ctx, func(v *View) bool { return v.Stopping || !v.Servers[o.server].unlisted() })
	agent, _ := v.Config.Agent(o.agent)
	if kind == PromptList {
		return v.Prompts.ListOf(o.server, scopeOf(agent))
	}
	resources, templates := v.Offers.ListOf(o.server)
	if kind == TemplateList {
		return templates
	}
	return resources
}
