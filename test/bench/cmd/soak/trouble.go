package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

const (
	crashEvery   = 3 * time.Second
	troubleEvery = 4 * time.Second
)

// crashes ends the two weak servers again and again.
func (h *house) crashes(ctx context.Context, b *book) {
	a := mcptest.NewModern("http://" + h.addr + "/mcp/chaos")
	defer a.Close()
	for n := 0; pause(ctx, crashEvery); n++ {
		name := shifting[n%2]
		if r, err := a.Call(ctx, name+"__crash", `{"code":3,"stderr":"as ordered"}`); err == nil && r.Status == 200 {
			h.falls.Add(1)
		}
	}
}

// trouble reloads the configuration, and ends the daemon, kindly and not.
func (h *house) trouble(ctx context.Context, b *book) {
	for n := 0; pause(ctx, troubleEvery); n++ {
		switch n % 4 {
		case 1:
			h.restart(ctx, b, syscall.SIGTERM, &h.stops)
		case 3:
			h.restart(ctx, b, syscall.SIGKILL, &h.kills)
		default:
			h.reload(ctx, b)
		}
	}
}

// reload disturbs nobody but the server that changed.
func (h *house) reload(ctx context.Context, b *book) {
	was, err := h.state(ctx)
	if err == nil {
		err = h.configure()
	}
	if err == nil {
		err = poll(ctx, "the new configuration to be in force", func() bool {
			s, err := h.state(ctx)
			return err == nil && s.Daemon.Config.Revision > was.Daemon.Config.Revision
		})
	}
	if err != nil {
		if ctx.Err() == nil {
			b.violate("reload: %v", err)
		}
		return
	}
	h.reloads.Add(1)
}

// restart ends the daemon. Its children must be gone soon after, and the bridges start
// another one.
func (h *house) restart(ctx context.Context, b *book, s syscall.Signal, count interface{ Add(int64) int64 }) {
	pid := h.pid()
	if pid == 0 {
		b.violate("no daemon runs to be sent %s", s)
		return
	}
	kids := proc.Descendants(pid)
	h.unrest.Add(1)
	defer h.unrest.Add(1)
	syscall.Kill(pid, s)
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), mcptest.Patience)
	defer stop()
	if err := poll(within, fmt.Sprintf("the daemon to end by %s", s), func() bool { return !proc.Alive(pid) }); err != nil {
		b.violate("%v", err)
	}
	if err := poll(within, "its children to be gone", func() bool { return !slices.ContainsFunc(kids, proc.Alive) }); err != nil {
		b.violate("after %s: %v", s, err)
	}
	count.Add(1)
	if err := h.ensure(context.WithoutCancel(ctx)); err != nil {
		b.violate("after %s: %v", s, err)
	}
	fmt.Fprintf(os.Stderr, "soak: %s to %d, and %d runs\n", s, pid, h.pid())
}

// pause reports whether ctx lasts longer than d.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
