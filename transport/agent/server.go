package agent

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
)

// DefaultMaxRequest is how large a request may be when nothing else is set.
const DefaultMaxRequest = 64 << 20

// Gateway is what stands behind the agents' side.
type Gateway interface {
	// Enter says which agent a request is from that names one ("" = none) and brings a
	// bearer token ("" = none). It is asked for every request. Its error is
	// actors.ErrToken.
	Enter(name, token string) (agent string, err error)
	// Open returns the agent of that name as it is configured now. It is asked for
	// every request, so it only looks things up. An *actors.RPCError says that the
	// name is not welcome and what to do about it.
	Open(ctx context.Context, agent string) (Agent, error)
	// Left is told that a legacy session ended, and whether it was the agent's last.
	Left(agent, session string, last bool)
	// SessionIdle is how long a legacy session may go unused; 0 = for ever.
	SessionIdle() time.Duration
	// OpenOne returns the agent as it is at one server alone, under the server's own
	// names. A server that is out of its scope is as unknown as one that is not there.
	OpenOne(ctx context.Context, agent, server string) (Agent, error)
}

// Agent is one agent identity.
type Agent interface {
	// Call makes one tools/call. An *actors.RPCError is a refusal; every other error
	// is shown to the model as a tool result.
	Call(ctx context.Context, c actors.Call) (actors.Reply, error)
	// Request makes one other request, with Call.Method. Its error may besides be an
	// *actors.NotFound.
	Request(ctx context.Context, c actors.Call) (actors.Reply, error)
	// Tools is the JSON array of the tools this agent may see, List of the rest.
	Tools(ctx context.Context) []byte
	List(ctx context.Context, kind actors.List) []byte
	// Hello is what the agent is told when it attaches.
	Hello(ctx context.Context) (actors.Hello, error)
	// Subscribe has heard called when a resource changed, until end. heard must not
	// block.
	Subscribe(ctx context.Context, uri string, heard func()) (end func(), err error)
	// Changed is closed when one of those lists may have changed.
	Changed() <-chan struct{}
}

// Options is what a Server is made of. The zero value of all but Gateway works.
type Options struct {
	Gateway    Gateway
	Version    string       // of this daemon
	MaxRequest int64        // bytes of one request; 0 = DefaultMaxRequest
	Port       func() int   // the port listened on, for the guard; nil or 0 = none
	Rest       http.Handler // what answers all other paths, behind the same guard
	// LogLevel is told the least level of log messages that an agent's sessions want, at
	// one server or at all (server is ""); level "" = none. May be nil.
	LogLevel func(agent, server, level string)
	Log      zerolog.Logger
}

// Server serves agents. It is an http.Handler for every path of the daemon, so
// that nothing is reachable around its guard.
type Server struct {
	o        Options
	handler  http.Handler
	eras     eras
	sessions sessions
	parked   parked
	levels   sync.Mutex
	pace     pace
	silence  actors.Line // of exchanges whose answers take long
	most     int         // sessions of one identity

	mu         sync.Mutex
	identities map[string]*identity
	closed     chan struct{}
	closing    sync.Once
	collecting sync.Once
}

// pace is how long the server waits for what. Tests make it short.
type pace struct {
	progress time.Duration // without a byte of a request body, it is given up
	write    time.Duration // for one write to be taken
	silence  time.Duration // without an answer, a call becomes a stream
	beat     time.Duration // between signs of life on such a stream
	farewell time.Duration // for a stream that another took over to end in good order
	settle   time.Duration // in which changes of a tool list are told as one
	parked   time.Duration // an agent that was asked something may take to come back
}

var usualPace = pace{
	progress: 30 * time.Second,
	write:    5 * time.Minute, // somebody who reads a KB a second has his time
	silence:  time.Second,
	beat:     15 * time.Second,
	farewell: time.Second,
	settle:   100 * time.Millisecond,
	parked:   10 * time.Minute,
}

// New returns a server. Close ends its streams.
func New(o Options) *Server {
	if o.MaxRequest <= 0 {
		o.MaxRequest = DefaultMaxRequest
	}
	if o.Port == nil {
		o.Port = func() int { return 0 }
	}
	s := &Server{o: o, pace: usualPace, most: maxSessions, identities: map[string]*identity{}, closed: make(chan struct{})}
	s.silence.After = s.pace.silence
	s.sessions.left, s.sessions.gone = s.tellLevel, o.Gateway.Left
	s.eras = newEras(s.lookup, o.MaxRequest, sdkLog(o.Log))
	s.handler = Guard(o.Port, http.HandlerFunc(s.route))
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Sessions lists the legacy sessions, oldest first. Newer agents have none.
func (s *Server) Sessions() []SessionInfo { return s.sessions.list() }

// Close ends the streams of all agents, so that an http.Server can shut down. Calls
// in flight go on to their end. It may be called twice.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.closed) })
	s.mu.Lock()
	all := make([]*identity, 0, len(s.identities))
	for _, id := range s.identities {
		all = append(all, id)
	}
	s.mu.Unlock()
	for _, id := range all {
		id.close()
	}
	s.parked.leave("", errBarred)
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	switch {
	case isEndpoint(r.URL.Path):
		s.serveMCP(w, r)
	case s.o.Rest != nil:
		s.o.Rest.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	name, token, err := s.identify(r)
	switch {
	case errors.Is(err, actors.ErrToken):
		w.Header()["Www-Authenticate"] = challenge
		refuse(w, http.StatusUnauthorized, nil, codeInvalidRequest, err.Error())
		return
	case err != nil:
		refuse(w, http.StatusNotFound, nil, codeInvalidRequest, err.Error())
		return
	}
	agent, err := s.open(r.Context(), name)
	var no *actors.RPCError
	switch {
	case errors.As(err, &no):
		refuse(w, http.StatusNotFound, nil, no.Code, no.Message)
		return
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, nil, codeInternal, err.Error())
		return
	}
	v := visit{s: s, id: s.enter(name, token, agent), agent: agent, w: w, r: r}
	defer v.id.holds.Add(-1)
	if r.Method == http.MethodPost {
		v.post()
		return
	}
	v.stream()
}

// challenge names no place where tokens are given out: the configuration is that place.
var challenge = []string{"Bearer"}

func isName(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}
