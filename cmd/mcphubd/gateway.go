package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"mcphubd/actors"
	"mcphubd/transport/agent"
)

// gateway lets transport/agent see the hub the way it wants to.
type gateway struct {
	hub      actors.Hub
	stopping *atomic.Bool
}

// errStopping is no refusal: the same request is welcome at the next daemon.
var errStopping = errors.New("the daemon is stopping; nothing was done, send it again in a moment")

func (g gateway) Open(ctx context.Context, name string) (agent.Agent, error) {
	s, err := g.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (g gateway) open(ctx context.Context, name string) (*actors.Session, error) {
	if g.stopping.Load() {
		return nil, errStopping
	}
	return g.hub.Open(ctx, name)
}

func (g gateway) OpenOne(ctx context.Context, name, server string) (agent.Agent, error) {
	s, err := g.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.One(server)
}

// Enter lets transport/agent ask who a request is from.
func (g gateway) Enter(name, token string) (string, error) { return g.hub.Enter(name, token) }

// Left ends what was there for a session alone.
func (g gateway) Left(agent, session string, last bool) { g.hub.Left(agent, session, last) }

// SessionIdle is as it is configured now.
func (g gateway) SessionIdle() time.Duration { return g.hub.View().Config.SessionIdle }
