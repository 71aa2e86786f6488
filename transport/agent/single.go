package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mcphubd/actors"
)

// Where agents attach: /mcp and /mcp/NAME for all servers, /servers/SERVER/mcp and
// /servers/SERVER/mcp/NAME for one of them under its own names.

// aside parts an agent's name from the one server it attached to, in the name of an
// identity. No agent's name holds it.
const aside = "@"

var errNoEndpoint = errors.New("no such endpoint: use /mcp, /mcp/NAME, /servers/SERVER/mcp or /servers/SERVER/mcp/NAME, " +
	"with names of letters, digits, '-', '_' and '.'")

// isEndpoint reports whether a path is one where agents attach, or looks like it.
func isEndpoint(path string) bool {
	return path == "/mcp" || strings.HasPrefix(path, "/mcp/") || strings.HasPrefix(path, "/servers/")
}

// identify says which agent a request comes from, and with which token. It is the only
// place that does; what a client says of itself is a label. The identity of an agent at
// one server is its own: a session made there is useless elsewhere. The token is "" where
// none was needed.
func (s *Server) identify(r *http.Request) (identity, token string, err error) {
	name, server, ok := placeOf(r.URL.Path)
	if !ok {
		return "", "", errNoEndpoint
	}
	token, ok = bearer(r.Header)
	if !ok {
		return "", "", actors.ErrToken
	}
	agent, err := s.o.Gateway.Enter(name, token)
	if err != nil {
		return "", "", err
	}
	if token != "" {
		if _, err := s.o.Gateway.Enter(agent, ""); err == nil {
			token = "" // it is meant for somebody else
		}
	}
	return agent + server, token, nil
}

// placeOf takes a path apart: the agent it names ("" = none), and the one server, behind
// aside, that it is about ("" = all).
func placeOf(path string) (name, server string, ok bool) {
	if rest, one := strings.CutPrefix(path, "/servers/"); one {
		name, tail, _ := strings.Cut(rest, "/")
		if !isName(name) {
			return "", "", false
		}
		path, server = "/"+tail, aside+name
	}
	if path == "/mcp" {
		return "", server, true
	}
	name, ok = strings.CutPrefix(path, "/mcp/")
	return name, server, ok && isName(name)
}

// bearer is the token that a request brings, "" when none. Two that contradict each
// other are not all right.
func bearer(h http.Header) (token string, ok bool) {
	for i, value := range h["Authorization"] {
		scheme, rest, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		rest = strings.TrimSpace(rest)
		if i > 0 && rest != token {
			return "", false
		}
		token = rest
	}
	return token, true
}

// mayStay reports whether whoever entered as id may still do so.
func (s *Server) mayStay(id *identity) bool {
	name, _, _ := strings.Cut(id.name, aside)
	agent, err := s.o.Gateway.Enter(name, id.token)
	return err == nil && agent == name
}

// open returns the agent behind an identity.
func (s *Server) open(ctx context.Context, identity string) (Agent, error) {
	name, server, one := strings.Cut(identity, aside)
	if !one {
		return s.o.Gateway.Open(ctx, name)
	}
	return s.o.Gateway.OpenOne(ctx, name, server)
}

// welcomed is what an agent is told in a handshake. For one server it waits until that
// is up, and fails when it is not.
func welcomed(ctx context.Context, a Agent) (actors.Hello, error) {
	h, err := a.Hello(ctx)
	if err != nil {
		return h, fmt.Errorf("%w; try again in a moment", err)
	}
	return h, nil
}
