package main

import (
	"context"
	"maps"
	"sync"
	"time"

	"mcphubd/config"
)

// credentialPause is the least time between two looks for another credential.
const credentialPause = time.Second

// renewal is for a server to call whose credential was refused. The headers of the
// configuration are read again, with the files that they name (case C95): if they are
// others now, the server is connected anew with them. Nothing else is taken over, for a
// file that is just being written can look like another one.
func (d *daemon) renewal(server string) func() {
	var mu sync.Mutex
	var last time.Time
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < credentialPause || d.stopping.Load() {
			return
		}
		last = time.Now()
		go d.renewHeaders(server)
	}
}

func (d *daemon) renewHeaders(server string) {
	d.conf.mu.Lock()
	defer d.conf.mu.Unlock()
	running := d.conf.now.Load()
	c, err := config.LoadAgain(d.conf.flag, running)
	if err != nil {
		return // whoever follows the file says so
	}
	next, ok := withHeaders(running, c, server)
	if !ok || d.stopping.Load() {
		return
	}
	d.log.Info().Str("server", server).Msg("its credential was refused, and there is another one by now")
	_ = d.putInForce(context.Background(), next) // it logs its errors
}

// withHeaders is running with the headers that a server has in c, if they are others.
func withHeaders(running, c *config.Config, server string) (*config.Config, bool) {
	was, is := running.Servers[server], c.Servers[server]
	if len(is.Headers) == 0 || is.URL != was.URL || maps.Equal(is.Headers, was.Headers) {
		return nil, false
	}
	was.Headers, was.Secrets = is.Headers, is.Secrets
	next := *running
	next.Servers, next.Warnings = maps.Clone(running.Servers), nil
	next.Servers[server] = was
	return &next, true
}
