package agent

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newEra is the first revision without sessions.
const newEra = "2026-07-28"

// known are the revisions of the SDK, split into those with sessions and those without.
var knownLegacy, knownModern = func() (legacy, modern []string) {
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < newEra {
			legacy = append(legacy, v)
		} else {
			modern = append(modern, v)
		}
	}
	return legacy, modern
}()

// offered is what an agent gets that asks for revision v in a handshake.
func offered(v string) string {
	if slices.Contains(knownLegacy, v) {
		return v
	}
	return slices.Max(knownLegacy)
}

// eras are the two SDK handlers behind the one URL.
type eras struct{ legacy, modern http.Handler }

// newEras makes both. Their limit on bodies is a formality: what they get was read
// within the same limit. The guard stands in for the SDK's own Host check.
func newEras(lookup func(*http.Request) *mcp.Server, limit int64, log *slog.Logger) eras {
	o := mcp.StreamableHTTPOptions{MaxRequestBodyBytes: limit + 1, DisableLocalhostProtection: true, Logger: log}
	legacy := mcp.NewStreamableHTTPHandler(lookup, &o)
	o.Stateless, o.PropagateRequestCancellation = true, true
	return eras{legacy, mcp.NewStreamableHTTPHandler(lookup, &o)}
}

// identity is what the SDK knows of one agent name, at all servers or at one: a server
// that offers nothing, because lists and calls never get there.
type identity struct {
	name  string // of the agent; at one server followed by aside and the server
	token string // that opened it; "" = it needs none
	mcp   *mcp.Server
	subs  subscribers
	holds atomic.Int64  // requests under way, streams among them
	gone  chan struct{} // closed when it is forgotten for not being used
	fresh bool          // entered since the last look of collect; with idle under the server's mu
	idle  time.Time     // when that look found it in use last
	// What its sessions were shown.
	shown  shown
	guests guests
}

type identityKey struct{}

// lookup is asked by the SDK several times in a request.
func (s *Server) lookup(r *http.Request) *mcp.Server {
	id, ok := r.Context().Value(identityKey{}).(*identity)
	if !ok {
		return nil
	}
	return id.mcp
}

// enter returns the identity of that name, held until holds goes down again, and makes
// it when it is the first time. One
// that was entered with another token has had its day, and its sessions with it.
func (s *Server) enter(name, token string, a Agent) *identity {
	s.mu.Lock()
	id := s.identities[name]
	if id == nil || id.token != token {
		if id != nil {
			defer s.leave(id)
		}
		id = s.newIdentity(name, token)
		s.identities[name] = id
		go s.watch(id, a.Changed())
		s.collecting.Do(func() { go s.collect() })
	}
	id.fresh = true
	id.holds.Add(1)
	s.mu.Unlock()
	return id
}

func (s *Server) newIdentity(name, token string) *identity {
	id := &identity{name: name, token: token, gone: make(chan struct{})}
	id.mcp = mcp.NewServer(s.implementation(), &mcp.ServerOptions{
		Capabilities:       ours(),
		Logger:             sdkLog(s.o.Log),
		SubscribeHandler:   s.subscribe(id),
		UnsubscribeHandler: s.unsubscribe(id),
		SetCacheable:       func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	id.mcp.AddReceivingMiddleware(s.welcome(id))
	return id
}

func (s *Server) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "mcphubd", Version: s.o.Version}
}

// watch tells the sessions of id that one of their lists changed, until the agent is
// no longer welcome or the server is closed. The first channel was taken before the agent
// was shown a list, and the next is before the news is told, so no change falls between
// two. Only what makes one of this agent's lists another one is news.
func (s *Server) watch(id *identity, changed <-chan struct{}) {
	ctx := context.Background()
	if _, err := s.open(ctx, id.name); err != nil || !s.mayStay(id) {
		s.leave(id)
		return
	}
	for {
		select {
		case <-s.closed:
			return
		case <-id.gone:
			return
		case <-changed:
		}
		select {
		case <-s.closed:
			return
		case <-time.After(s.pace.settle):
		}
		next, err := s.open(ctx, id.name)
		if err == nil {
			changed = next.Changed()
		}
		if err != nil || !s.mayStay(id) {
			s.leave(id)
			return
		}
		id.announce(id.shown.news(show(ctx, next)))
	}
}

// leave forgets an identity that is no longer welcome, and ends its streams.
func (s *Server) leave(id *identity) {
	s.mu.Lock()
	if s.identities[id.name] == id {
		delete(s.identities, id.name)
	}
	s.mu.Unlock()
	s.sessions.forgetAll(id)
	s.parked.leave(id.name, errBarred)
	id.close()
	s.o.Log.Info().Str("agent", id.name).Msg("agent is no longer welcome; its sessions ended")
}

// announce makes the SDK send notifications of lists that changed. It has no call for that;
// it sends one for an entry that comes and goes at once.
func (id *identity) announce(changed map[string]bool) {
	const name, uri = "mcphub_changed", "mcphub:changed"
	if changed["tools"] {
		id.mcp.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		id.mcp.RemoveTools(name)
	}
	if changed["prompts"] {
		id.mcp.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		id.mcp.RemovePrompts(name)
	}
	if changed["resources"] || changed["resourceTemplates"] {
		id.mcp.AddResource(&mcp.Resource{Name: name, URI: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
		id.mcp.RemoveResources(uri)
	}
}

func (id *identity) close() {
	for ss := range id.mcp.Sessions() {
		ss.Close()
	}
}

// has reports whether the SDK holds a session of that id.
func (id *identity) has(session string) bool {
	for ss := range id.mcp.Sessions() {
		if ss.ID() == session {
			return true
		}
	}
	return false
}
