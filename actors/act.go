package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
)

var (
	// ErrNoServer reports that no server of that name is configured.
	ErrNoServer = errors.New("no such server")
	// ErrDisabled reports that the configuration keeps the server from being started.
	ErrDisabled = errors.New("the server is disabled in the configuration")
	// errByOwner is the cause of a call that the owner ended.
	errByOwner = errors.New("the owner of the daemon ended this call")
)

// restart is asked by the owner: a server anew, whatever state it is in.
type restart struct{ name string }

func (restart) isHubMsg() {}

// Restart starts a server anew. Its calls in flight finish within the drain timeout,
// on the old one; new ones wait for the new one.
func (h Hub) Restart(ctx context.Context, server string) error {
	_, err := ask[struct{}, hubMsg](ctx, h.ref, restart{server})
	return err
}

// Cancel ends a call in flight; its agent gets an error, its server is told. It
// reports whether there is such a call, and asks no actor.
func (h Hub) Cancel(serial int64) bool {
	for _, s := range h.View().sessions {
		if s.desk.live.cancel(serial) {
			return true
		}
	}
	return false
}

func (a *hubActor) restart(name string) (struct{}, error) {
	v := a.view.Load()
	s, ok := v.Servers[name]
	switch {
	case v.Stopping:
		return struct{}{}, errStopping
	case !ok:
		return struct{}{}, fmt.Errorf("%w: %s", ErrNoServer, name)
	case !s.Config.Enabled:
		return struct{}{}, fmt.Errorf("server %s: %w", name, ErrDisabled)
	}
	a.sys.log.Info().Str("server", name).Msg("the owner starts the server anew")
	a.retire(s, v.Config)
	anew := a.serve(s.Config, s)
	a.publish(func(v *View) {
		v.Servers = maps.Clone(v.Servers)
		v.Servers[name] = anew
	})
	a.staleInstances([]string{name})
	return struct{}{}, nil
}
