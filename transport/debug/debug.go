// Package debug shows the daemon to its owner over HTTP: what it is doing, whether
// it lives, whether it is ready; and lets the owner act on it. It reads what others
// publish outside the mailboxes, so it answers while an actor is stuck.
//
// Who may do what is decided in access.go. Hosts and origins are not looked at here:
// the agents' side mounts this handler behind its guard.
package debug

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"mcphubd/actors"
	"mcphubd/config"
)

// Source is what there is to show, and what can be done about it.
type Source interface {
	// State is the whole state as a value for JSON, with a Head: metadata, never the
	// arguments or results of a call, and no secrets.
	State() any
	// Snapshot is the part of it that the actors publish.
	Snapshot() actors.Snapshot
	// Attached is the clients of agents, as a value for JSON.
	Attached() any
	// Config is the configuration in force.
	Config() *config.Config
	// Ready says why the daemon cannot serve yet; nil when it can.
	Ready() error
	// URL is where the page can be reached with a browser; "" = nowhere.
	URL() string
	// Version is of this build.
	Version() string
	Actions
}

// Actions is what the owner can do.
type Actions interface {
	// Restart starts a server anew. It wraps actors.ErrNoServer and actors.ErrDisabled.
	Restart(ctx context.Context, server string) error
	// Cancel ends a call in flight; it reports whether there was one.
	Cancel(serial int64) bool
	// RemoveResult ends a stored result before its time. It wraps actors.ErrNoResult.
	RemoveResult(ctx context.Context, id string) error
	// Reload puts the configuration as it is on disk into force, or says why not.
	Reload(ctx context.Context) error
	// LogLevel is how much is logged now, SetLogLevel changes it until the next start.
	LogLevel() string
	SetLogLevel(level string) error
}

// Schema names the shape of /debug/state, which state.schema.json describes. It
// changes when a member changes its meaning or goes; a new member keeps it.
const Schema = "mcphubd.debug/v1"

// Head is what every state begins with.
type Head struct {
	Schema string    `json:"schema"`
	At     time.Time `json:"at"`
}

// NewHead is the head of a state that is taken now.
func NewHead() Head { return Head{Schema, time.Now()} }

const index = `mcphubd: one daemon between agents and MCP servers

/mcp, /mcp/NAME   where agents attach (MCP over HTTP)
/debug/           the page for its owner
/debug/state      the same as JSON; parts of it: actors calls servers sessions spool config
/debug/events     the state as it changes, as server-sent events
/debug/pprof/     profiles of the process
/metrics          for Prometheus
/healthz          200 while the process lives
/readyz           200 when it can serve
`

// Handler answers all paths that are not an agent's.
type Handler struct {
	src    Source
	access access
	feed   feed
	mux    *http.ServeMux
}

// New returns a handler. Close ends its streams.
func New(src Source) *Handler {
	h := &Handler{src: src, access: access{src: src}, mux: http.NewServeMux()}
	h.feed.state, h.feed.closed = src.State, make(chan struct{})
	h.open("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, index) })
	h.open("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	h.open("GET /readyz", h.ready)
	h.shown("GET /debug/{$}", page)
	h.shown("POST /debug/login", h.login)
	h.read("GET /debug/state", h.value(src.State))
	h.read("GET /debug/actors", h.value(func() any { return src.Snapshot().Actors }))
	h.read("GET /debug/calls", h.value(h.calls))
	h.read("GET /debug/sessions", h.value(h.sessions))
	h.read("GET /debug/servers", h.value(func() any { return src.Snapshot().Servers }))
	h.read("GET /debug/servers/{name}", h.server)
	h.read("GET /debug/spool", h.value(func() any { return src.Snapshot().Spool }))
	h.read("GET /debug/config", h.value(h.config))
	h.read("GET /debug/loglevel", h.value(h.level))
	h.read("GET /debug/events", h.feed.serve)
	h.read("GET /debug/pprof/", pprof.Index)
	h.read("GET /debug/pprof/profile", pprof.Profile)
	h.read("GET /debug/pprof/trace", pprof.Trace)
	h.read("GET /debug/pprof/symbol", pprof.Symbol)
	h.read("GET /metrics", metrics(src).ServeHTTP)
	h.act("POST /debug/servers/{name}/restart", h.restart)
	h.act("POST /debug/calls/{serial}/cancel", h.cancel)
	h.act("DELETE /debug/results/{id}", h.remove)
	h.act("POST /debug/reload", h.reload)
	h.act("PUT /debug/loglevel", h.setLevel)
	h.owner("POST /debug/link", h.link)
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	head.Set("Referrer-Policy", "no-referrer")
	h.mux.ServeHTTP(w, r)
}

// Close ends all streams, so that an http.Server can shut down.
func (h *Handler) Close() { h.feed.close() }

func (h *Handler) ready(w http.ResponseWriter, _ *http.Request) {
	if err := h.src.Ready(); err != nil {
		plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
		return
	}
	plain(w, http.StatusOK, "ready\n")
}

// value serves what f returns, as JSON.
func (h *Handler) value(f func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, f()) }
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		plain(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(b, '\n'))
}

// refuse answers with a reason.
func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(text))
}
