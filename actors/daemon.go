package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/config"
	"mcphubd/store"
)

// Options is what a daemon is made of.
type Options struct {
	Config *config.Config
	Writer *store.Writer
	Reader *store.Reader
	// Dial makes the connector of one server.
	Dial func(config.Server, Spool) Connector
	Log  zerolog.Logger
	// Now is the wall clock of retention; nil = time.Now.
	Now func() time.Time
	// Filter runs jq over stored results; nil = jq is not available.
	Filter Filter
}

// Daemon is all actors together.
type Daemon struct {
	Sys    *System
	Hub    Hub
	Spool  Spool
	pruner ref[prunerMsg]
}

// Start spawns all actors and returns at once: servers connect meanwhile.
func Start(o Options) (*Daemon, error) {
	s, err := NewSystem(o.Log)
	if err != nil {
		return nil, err
	}
	d := &Daemon{Sys: s}
	d.Spool = spawnSpool(s, o.Writer, o.Reader, int64(o.Config.Spool.MaxBytes))
	if o.Now != nil {
		d.Spool.pub.clock = o.Now
	}
	d.pruner = spawnPruner(s, d.Spool)
	d.Hub = spawnHub(s, d.Spool, func(c config.Server) Connector { return o.Dial(c, d.Spool) })
	d.Hub.library.filter = o.Filter // before the first session
	if _, err := d.Hub.Reload(context.Background(), o.Config); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s.logs.start(d.Hub, o.Log)
	return d, nil
}

const (
	// stopDrain is the most that calls in flight get when everything ends, and
	// stopClosing what their servers get after that. The rest of the ten seconds is for
	// those that have to be killed, and for the store.
	stopDrain   = 6 * time.Second
	stopClosing = time.Second
)

// Stop refuses new calls, lets those in flight finish within the drain timeout,
// ends all servers and writes what waits. It returns within ctx, also when an
// actor is stuck; the store may be closed afterwards.
func (d *Daemon) Stop(ctx context.Context) error {
	d.Sys.logs.end()
	v, err := ask[*View, hubMsg](ctx, d.Hub.ref, drain{})
	if err != nil {
		v = d.Hub.View()
	}
	errs := []error{err}
	var mu sync.Mutex
	var wg sync.WaitGroup
	servers := slices.Collect(maps.Values(v.Servers))
	for _, i := range v.instances {
		servers = append(servers, ServerView{Handle: i.handle})
	}
	for _, s := range servers {
		if s.Handle.engine == nil {
			continue
		}
		wg.Go(func() {
			err := s.Handle.Retire(ctx, min(v.Config.DrainTimeout, stopDrain), stopClosing)
			err = errors.Join(err, stopActor(ctx, s.Handle.ref))
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		})
	}
	wg.Wait()
	errs = append(errs, stopActor(ctx, d.pruner))
	for _, s := range v.sessions {
		errs = append(errs, stopActor(ctx, s.ref))
	}
	errs = append(errs, d.Spool.Flush(ctx), stopActor(ctx, d.Spool.ref), stopActor(ctx, d.Hub.ref))
	return errors.Join(errs...)
}
