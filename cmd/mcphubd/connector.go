package main

import (
	"context"
	"sync"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/transport/downstream"
	"mcphubd/transport/grant"
)

// connector makes the connections of one server. Its limits are those in force when a
// connection is made.
type connector struct {
	d      *daemon
	server config.Server
	spool  actors.Spool

	mu    sync.Mutex
	frame config.Size
	inner actors.Connector
}

// Connect implements actors.Connector.
func (c *connector) Connect(ctx context.Context, events actors.Events) (actors.Conn, error) {
	return c.current().Connect(ctx, events)
}

// current keeps what the inner connector learned about its server, unless a limit
// changed.
func (c *connector) current() actors.Connector {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame := c.d.conf.now.Load().MaxFrame; c.inner == nil || c.frame != frame {
		c.frame, c.inner = frame, c.d.reach(c.server, c.spool, int64(frame), c.d.renewal(c.server.Name))
	}
	return c.inner
}

// reach makes the connector of a kind of server. denied is told when its credential was
// refused; it may be nil.
func (d *daemon) reach(s config.Server, sp actors.Spool, maxFrame int64, denied func()) actors.Connector {
	version := thisBuild().Version
	if s.URL != "" {
		return &downstream.HTTP{Server: s, MaxFrame: maxFrame, Spool: sp, Log: d.log, Version: version, Denied: denied,
			Tokens: grant.NewSource(grantPath(d.data, s), s.URL, d.log, logVeil.coverTokens)}
	}
	return &downstream.Stdio{Server: s, MaxFrame: maxFrame, Spool: sp, Log: d.log, Version: version}
}
