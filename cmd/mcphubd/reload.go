package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/config/watch"
)

// settings is the configuration of a running daemon. It is replaced whole, or not.
type settings struct {
	flag    string         // --config as it was given
	started *config.Config // what the daemon started with
	now     atomic.Pointer[config.Config]
	shown   atomic.Pointer[configState]
	mu      sync.Mutex // one change at a time
}

// configState is what /debug/state says about the configuration.
type configState struct {
	File         string    `json:"file,omitempty"` // "" = the defaults alone
	Revision     int64     `json:"revision"`       // how many were in force since the start
	Since        time.Time `json:"since"`          // when this one came into force
	Error        string    `json:"error,omitempty"`
	NeedsRestart []string  `json:"needsRestart,omitempty"` // keys whose new value waits for a restart
}

func (s *settings) begin(flag string, c *config.Config) {
	s.flag, s.started = flag, c
	s.now.Store(c)
	s.shown.Store(&configState{File: c.File, Revision: 1, Since: time.Now()})
}

// show changes what is shown.
func (s *settings) show(change func(*configState)) {
	next := *s.shown.Load()
	change(&next)
	s.shown.Store(&next)
}

// errUnchanged says that a configuration was read again and is the one in force.
var errUnchanged = errors.New("the configuration is the one in force")

// reload puts the configuration as it is on disk into force. When it cannot be, it
// changes nothing and says so in the log, the list of problems and its error.
func (d *daemon) reload(ctx context.Context) error {
	d.conf.mu.Lock()
	defer d.conf.mu.Unlock()
	if d.stopping.Load() {
		return errStopping
	}
	running := d.conf.now.Load()
	c, err := config.LoadAgain(d.conf.flag, running)
	if err != nil {
		return d.keepConfig(err)
	}
	d.actors.Sys.Problems().Clear("config-invalid", d.configFile())
	d.conf.show(func(s *configState) { s.Error = "" })
	if c.Same(running) {
		d.log.Debug().Str("file", c.File).Msg("configuration read again: nothing changed")
		return errUnchanged
	}
	return d.putInForce(ctx, c)
}

// putInForce is for a configuration that is valid and another one.
func (d *daemon) putInForce(ctx context.Context, c *config.Config) error {
	for _, w := range c.Warnings {
		d.log.Warn().Str("file", c.File).Msg("configuration: " + w)
	}
	d.conf.now.Store(c)
	setLogLevel(c)
	changes, err := d.actors.Hub.Reload(ctx, c)
	if err != nil {
		d.log.Error().Err(err).Msg("reload the configuration")
		return err
	}
	wait := c.OnlyAtStart(d.conf.started)
	d.conf.show(func(s *configState) {
		s.File, s.Since, s.NeedsRestart = c.File, time.Now(), wait
		s.Revision++
	})
	d.tellRestart(wait)
	d.log.Info().Str("file", c.File).Strs("added", changes.Added).Strs("removed", changes.Removed).Strs("restarted", changes.Changed).
		Strs("altered", changes.Altered).Strs("needsRestart", wait).Msg("configuration is in force")
	return nil
}

// keepConfig notes why the file is not in force.
func (d *daemon) keepConfig(why error) error {
	text := strings.ReplaceAll(why.Error(), "\n", "; ")
	d.conf.show(func(s *configState) { s.Error = text })
	d.actors.Sys.Problems().Raise(actors.Problem{Code: "config-invalid", Subject: d.configFile(), Text: text,
		Fix: "mend the line that is named; the daemon goes on with what it had"})
	d.log.Error().Str("file", d.configFile()).Str("cause", text).Msg("configuration is invalid; the daemon goes on with what it had")
	return why
}

func (d *daemon) tellRestart(keys []string) {
	const code, subject = "restart-to-apply", "configuration"
	if len(keys) == 0 {
		d.actors.Sys.Problems().Clear(code, subject)
		return
	}
	d.actors.Sys.Problems().Raise(actors.Problem{Code: code, Subject: subject,
		Text: strings.Join(keys, ", ") + " changed in the configuration, and cannot change while the daemon runs: restart to apply",
		Fix:  "end the daemon by its process id and start it anew"})
}

// atTerminal reports whether stderr leads to a terminal that is there. When it goes,
// SIGHUP is its farewell, and no order.
func atTerminal() bool {
	_, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS)
	return err == nil
}

// configFile is where the configuration is, or would be.
func (d *daemon) configFile() string {
	path, _, err := config.Path(d.conf.flag, config.OS())
	if err != nil {
		return "configuration"
	}
	return path
}

// follow reloads the configuration whenever its file changes, and on every signal,
// until ctx ends. A daemon that began attended, at a terminal, ends with it instead.
func (d *daemon) follow(ctx context.Context, signals <-chan os.Signal, attended bool) {
	go watch.File(ctx, d.configFile(), watch.Options{Deaf: func(err error) {
		d.log.Warn().Err(err).Msg("changes of the configuration are not told by the system; the file is looked at every two seconds")
	}}, func() { d.reload(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			if attended && !atTerminal() {
				d.failed <- errors.New("the terminal is gone")
				return
			}
			d.log.Info().Msg("SIGHUP: the configuration is read again")
			d.notify(reloading())
			d.reload(ctx)
			d.notify("READY=1")
		}
	}
}
