package front

import (
	"context"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
)

const (
	// headTime is how long a request head may take, idleTime how long a connection may
	// go without a request.
	headTime = 10 * time.Second
	idleTime = 5 * time.Minute
	maxHead  = 64 << 10

	// lonely is how long a request is under way before somebody looks whether its client
	// is still there. Most are answered before.
	lonely = 20 * time.Millisecond
)

// Server serves HTTP with the bounds that a long-lived daemon needs: on heads and idle
// connections, and none on answers, which may take as long as a tool takes. Bodies and
// writes are bounded where they happen.
type Server struct {
	http   http.Server
	h      http.Handler
	lonely actors.Line // requests in the lane whose clients nobody watches yet

	mu        sync.Mutex
	listeners []*listener
}

// New returns a server of h. peer may be nil; else it puts what is known of a new
// connection into the context of its requests.
func New(h http.Handler, peer func(context.Context, net.Conn) context.Context, l zerolog.Logger) *Server {
	s := &Server{h: h, lonely: actors.Line{After: lonely}}
	s.http = http.Server{
		ReadHeaderTimeout: headTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          log.New(complaints{l}, "", 0),
		Handler:           learning{h},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				c.(*conn).between()
			}
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			own := c.(*conn)
			if peer != nil {
				ctx = peer(ctx, own.Conn)
			}
			own.ctx = context.WithValue(ctx, http.LocalAddrContextKey, c.LocalAddr())
			return context.WithValue(ctx, connKey{}, own)
		},
	}
	return s
}

// complaints writes what net/http complains of, which is mostly about peers.
type complaints struct{ zerolog.Logger }

func (l complaints) Write(p []byte) (int, error) {
	l.Debug().Str("from", "net/http").Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Serve serves l until Shutdown or Close, and returns http.ErrServerClosed then.
func (s *Server) Serve(l net.Listener) error {
	own := newListener(l, s)
	s.mu.Lock()
	s.listeners = append(s.listeners, own)
	s.mu.Unlock()
	return s.http.Serve(own)
}

// Shutdown ends the listeners and the connections, each once its request is answered. It
// returns when all are gone, or with ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return err
	}
	for _, l := range s.all() {
		select {
		case <-l.empty():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends the listeners and the connections at once.
func (s *Server) Close() error {
	err := s.http.Close()
	for _, l := range s.all() {
		for _, c := range l.all() {
			_ = c.cut() // whoever reads or writes there finds out
		}
	}
	return err
}

func (s *Server) all() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners
}
