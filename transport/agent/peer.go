package agent

import (
	"context"
	"net"
	"net/http"
)

// peerKey is where a connection's context holds the process at the other end.
type peerKey struct{}

// WithPeer notes in a connection's context which process is at the other end.
func WithPeer(ctx context.Context, pid int) context.Context {
	return context.WithValue(ctx, peerKey{}, pid)
}

// peerOf is how a request came, "http" or "socket", and from which process; 0 where
// that is not known.
func peerOf(ctx context.Context) (transport string, pid int) {
	pid, _ = ctx.Value(peerKey{}).(int)
	if addr, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr); ok && addr.Network() == "unix" {
		return "socket", pid
	}
	return "http", pid
}
