package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

type serveCmd struct {
	Log string `placeholder:"FILE" type:"path" help:"Log to this file, which is replaced by a new one before it grows too long; else to stderr."`
}

func (serveCmd) Help() string {
	return `Runs the daemon in the foreground. It prints where it listens, then "ready", on stderr,
and goes on until SIGTERM or SIGINT: then calls in flight may finish within drain_timeout,
all servers are ended and the store is closed. A second signal ends it at once. When the
configuration changes, or SIGHUP comes, it is put into force; an invalid one changes nothing.`
}

func (cmd serveCmd) Run(a *app) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	var log io.Writer = a.stderr
	if cmd.Log != "" {
		if log, err = openLog(cmd.Log); err != nil {
			return fmt.Errorf("--log: %w", err)
		}
	}
	// What is said from here on stands in daemon.out, if a client launched the daemon.
	a.stderr = veiled{a.stderr}
	logVeil.cover(c)
	// Before anybody can know of the daemon: what a hangup means is decided by how it began.
	attended := atTerminal()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	paceCollector(os.Getenv("GOGC"))
	d, err := startDaemon(c, a.ConfigFile, data, log)
	if err != nil {
		return err
	}
	return d.run(a, hangups, attended)
}

// run tells that the daemon is there, follows its configuration, and stops it in the end.
func (d *daemon) run(a *app, hangups <-chan os.Signal, attended bool) (err error) {
	if d.tcp != nil {
		a.say("listening on %s", d.URL())
	}
	a.say("listening on %s", d.socketPath)
	a.say("ready")
	following, stopFollowing := context.WithCancel(a.ctx)
	defer stopFollowing()
	go d.follow(following, hangups, attended)
	d.notify("READY=1")
	go d.watchdog(following)
	select {
	case <-a.ctx.Done():
		a.say("stopping")
	case err = <-d.failed:
		a.say("stopping: %v", err)
	}
	stopFollowing()
	defer exitOnSecondSignal()()
	if stopErr := d.stop(); stopErr != nil {
		return fmt.Errorf("stop: %w", stopErr)
	}
	return err
}

// exitOnSecondSignal ends the process at once when the user insists. Children die
// with us.
func exitOnSecondSignal() (forget func()) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, more := <-again; more {
			os.Exit(codeFailed)
		}
	}()
	return func() { signal.Stop(again); close(again) }
}
