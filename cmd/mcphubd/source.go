package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/store"
	"mcphubd/transport/agent"
	"mcphubd/transport/debug"
)

// This file is the daemon as the debug side sees it.

// state is /debug/state.
type state struct {
	debug.Head
	Daemon daemonState `json:"daemon"`
	actors.Snapshot
	Attached []agent.SessionInfo `json:"attached"`
}

type daemonState struct {
	Version    string      `json:"version"`
	PID        int         `json:"pid"`
	Since      time.Time   `json:"since"`
	URL        string      `json:"url,omitempty"`
	Socket     string      `json:"socket"`
	Data       string      `json:"data"`
	Goroutines int         `json:"goroutines"`
	RSSBytes   int64       `json:"rssBytes"`
	Config     configState `json:"config"`
	Listeners  []string    `json:"listeners"`
	Uptime     float64     `json:"uptimeSeconds"`
	LogLevel   string      `json:"logLevel"`
}

// State implements debug.Source.
func (d *daemon) State() any {
	return state{debug.NewHead(), d.show(), d.actors.Snapshot(), d.agents.Attached()}
}

func (d *daemon) show() daemonState {
	listeners := []string{d.socketPath}
	if d.tcp != nil {
		listeners = []string{d.tcp.Addr().String(), d.socketPath}
	}
	return daemonState{
		Version: d.Version(), PID: os.Getpid(), Since: d.began, URL: d.URL(), Socket: d.socketPath, Data: d.data,
		Goroutines: runtime.NumGoroutine(), RSSBytes: residentBytes(), Config: *d.conf.shown.Load(), Listeners: listeners,
		Uptime: time.Since(d.began).Round(time.Millisecond).Seconds(), LogLevel: d.LogLevel(),
	}
}

// Ready implements debug.Source. Listener, store and configuration are up before
// anybody can ask.
func (d *daemon) Ready() error {
	if d.stopping.Load() {
		return errors.New("the daemon is stopping")
	}
	return nil
}

// Attached implements debug.Source.
func (d *daemon) Attached() any { return d.agents.Attached() }

// Config implements debug.Source.
func (d *daemon) Config() *config.Config { return d.conf.now.Load() }

// Version implements debug.Source.
func (d *daemon) Version() string { return thisBuild().Version }

// Restart implements debug.Actions.
func (d *daemon) Restart(ctx context.Context, server string) error {
	return d.actors.Hub.Restart(ctx, server)
}

// Cancel implements debug.Actions.
func (d *daemon) Cancel(serial int64) bool { return d.actors.Hub.Cancel(serial) }

// RemoveResult implements debug.Actions.
func (d *daemon) RemoveResult(ctx context.Context, id string) error {
	return d.actors.Spool.Remove(ctx, store.ID(id))
}

// Reload implements debug.Actions.
func (d *daemon) Reload(ctx context.Context) error {
	if err := d.reload(ctx); !errors.Is(err, errUnchanged) {
		return err
	}
	return nil
}

// logLevels are what can be asked for while the daemon runs.
var logLevels = []string{"debug", "info", "warn", "error"}

// LogLevel implements debug.Actions.
func (d *daemon) LogLevel() string { return zerolog.GlobalLevel().String() }

// SetLogLevel implements debug.Actions. A changed configuration sets it anew.
func (d *daemon) SetLogLevel(level string) error {
	if !slices.Contains(logLevels, level) {
		return fmt.Errorf("%.40q is no level: it is one of %s", level, strings.Join(logLevels, ", "))
	}
	to, err := zerolog.ParseLevel(level)
	if err != nil {
		return err
	}
	zerolog.SetGlobalLevel(to)
	return nil
}

// Snapshot implements debug.Source.
func (d *daemon) Snapshot() actors.Snapshot { return d.actors.Snapshot() }

// residentBytes is the process's RSS, 0 where the system does not tell.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	fmt.Sscan(string(b), &size, &resident)
	return resident * int64(os.Getpagesize())
}
