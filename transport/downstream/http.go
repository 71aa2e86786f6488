package downstream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/config"
)

// HTTP reaches one server at a URL: by streamable HTTP, or the older HTTP with SSE.
// It implements actors.Connector.
type HTTP struct {
	Server   config.Server
	MaxFrame int64        // of a message; 0 = no bound
	Spool    actors.Spool // takes results that do not fit in memory
	Log      zerolog.Logger
	Version  string        // of the daemon, for the handshake
	Pause    time.Duration // before a standing stream that ended is opened again, at least; 0 = 1 s
	Patience time.Duration // for the answer to server/discover, before the older handshake is tried; 0 = 5 s

	Farewell time.Duration // for the server to hear that a session is over; 0 = 2 s

	// Denied is told when the server refuses the credentials, with 401. It must not block.
	// nil = nobody wants to know.
	Denied func()

	// Tokens are shown where no credential is configured; nil = there are none.
	Tokens Tokens

	era   atomic.Pointer[string] // found by an earlier handshake
	tried atomic.Bool            // what was known from before was used
}

const (
	eraLegacy = "legacy"
	eraModern = "modern"

	// modern is the first revision without sessions and handshakes.
	modern = "2026-07-28"
)

// Connect does the handshake.
func (h *HTTP) Connect(ctx context.Context, events actors.Events) (actors.Conn, error) {
	u, err := url.Parse(h.Server.URL)
	if err != nil { // the text of a URL may hold secrets
		return nil, fmt.Errorf("%s: url: it is no address", h.Server.Name)
	}
	mask := maskerOf(h.Server)
	l := newLink(h.Server, u, mask)
	l.denied = h.Denied
	if h.Tokens != nil && !h.Server.HasCredential() {
		l.tokens, l.mask.more = h.Tokens, h.Tokens.Secrets
		if err := h.Tokens.Look(); err != nil {
			return nil, fmt.Errorf("%s: %w%s", h.Server.Name, err, l.signIn(err))
		}
	}
	if h.Server.Transport == "sse" {
		return h.connectSSE(ctx, l, events)
	}
	n := &noise{mask: l.mask, tell: events.Noise}
	s, err := h.handshake(ctx, l, n, events)
	if err != nil {
		l.close()
		return nil, err
	}
	r := &Remote{h: h, link: l, events: events, noise: n, done: make(chan struct{})}
	r.session.Store(s)
	return r, nil
}

// wanted is the era to begin with, and whether the user said so. What the server spoke
// before this connector knew it is tried once: it may be another program by now.
func (h *HTTP) wanted(spoke string) (era string, pinned bool) {
	if h.Server.Era != "" {
		return h.Server.Era, true
	}
	if e := h.era.Load(); e != nil {
		return *e, false
	}
	if !h.tried.Swap(true) && spoke != "" && spoke < modern {
		return eraLegacy, false
	}
	return eraModern, false
}

// patience is how long server/discover may take: the older handshake wants some of
// connect_timeout as well.
func (h *HTTP) patience() time.Duration {
	d := orElse(h.Patience, 5*time.Second)
	if t := h.Server.ConnectTimeout; t > 0 {
		d = min(d, t/2)
	}
	return d
}

// exchange is a new one for a connection of this server.
func (h *HTTP) exchange(l *link, n *noise, events actors.Events) exchange {
	return exchange{
		server: h.Server.Name, spool: h.Spool, maxFrame: orMost(h.MaxFrame),
		log:  h.Log.With().Str("server", h.Server.Name).Logger(),
		mask: l.mask, login: l.login(), permit: l.permit(), oauth: l.tokens != nil, noise: n, dropped: &Dropped{}, calls: map[uint64]*call{}, next: firstID, events: events,
	}
}

// lost wraps a reason into the error of a dead connection.
func lost(server, reason string) error { return lostFor(server, errors.New(reason)) }

func lostFor(server string, reason error) error {
	return fmt.Errorf("%w: %s: %w", actors.ErrLost, server, reason)
}

var errStopped = errors.New("it is being stopped")
