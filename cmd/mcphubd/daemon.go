package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/store"
	"mcphubd/transport/agent"
	"mcphubd/transport/debug"
	"mcphubd/transport/filter"
	"mcphubd/transport/front"
)

// stopBound is how long a stop may take, whatever is stuck (SPEC 5).
const stopBound = 9500 * time.Millisecond

// A daemon is everything that runs: store, actors, listener. This file is the
// only place that knows them all.
type daemon struct {
	log        zerolog.Logger
	flushLog   func()
	conf       settings
	data       string
	began      time.Time
	lock       *os.File
	writer     *store.Writer
	reader     *store.Reader
	actors     *actors.Daemon
	agents     *agent.Server
	debug      *debug.Handler
	http       *front.Server
	tcp        net.Listener // nil when there is none
	socket     net.Listener
	socketPath string
	failed     chan error // a listener's end, if it was not asked for
	stopping   atomic.Bool
}

// startDaemon brings everything up, in the order in which a failure costs least:
// lock, port, store, actors, HTTP. It returns when agents may attach; servers
// connect meanwhile. flag is --config as it was given.
func startDaemon(c *config.Config, flag, data string, logTo io.Writer) (_ *daemon, err error) {
	d := &daemon{data: data, began: time.Now(), failed: make(chan error, 2)}
	d.conf.begin(flag, c)
	d.log, d.flushLog = newLog(c, logTo)
	defer func() {
		if err != nil {
			d.release()
		}
	}()
	if err := d.lockData(); err != nil {
		return nil, err
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	path := storeFile(data)
	if d.writer, err = store.OpenWriter(path, time.Now()); err != nil {
		return nil, err
	}
	if d.reader, err = store.OpenReader(path); err != nil {
		return nil, err
	}
	d.actors, err = actors.Start(actors.Options{Config: c, Writer: d.writer, Reader: d.reader, Log: d.log, Dial: d.dial, Filter: filter.New(filter.Options{})})
	if err != nil {
		return nil, err
	}
	d.serve()
	if err := writeAddress(data, address{os.Getpid(), d.URL(), d.socketPath, logFile(logTo)}); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return d, nil
}

// lockData takes the data directory for this process. The lock dies with it.
func (d *daemon) lockData() error {
	if err := os.MkdirAll(d.data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(d.data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	d.lock = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		return fmt.Errorf("another mcphubd (pid %s) uses the data directory %s; stop it, or give this one another --data", owner, d.data)
	}
	if err := f.Truncate(0); err == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // for whoever finds it locked
	}
	return nil
}

// listen opens the socket of the owner, and the port if there is to be one. What the
// service manager opened for us is taken as it is.
func (d *daemon) listen() (err error) {
	c := d.conf.started
	if d.tcp, d.socket, err = inherited(); err != nil {
		return err
	}
	if d.socket != nil {
		d.socketPath = d.socket.Addr().String()
	} else {
		d.socketPath = socketPath(c, d.data)
		if d.socket, err = listenSocket(d.socketPath); err != nil {
			return err
		}
	}
	if c.Listen == "" || d.tcp != nil {
		return nil
	}
	d.tcp, err = listenTCP(c.Listen)
	return err
}

// dial makes the connector of one server.
func (d *daemon) dial(s config.Server, sp actors.Spool) actors.Connector {
	return &connector{d: d, server: s, spool: sp}
}

func (d *daemon) serve() {
	port := 0
	if d.tcp != nil {
		port = d.tcp.Addr().(*net.TCPAddr).Port
	}
	d.debug = debug.New(d)
	d.agents = agent.New(agent.Options{Gateway: gateway{d.actors.Hub, &d.stopping}, Version: thisBuild().Version, MaxRequest: int64(d.conf.started.MaxRequest),
		Port: func() int { return port }, Rest: d.debug, Log: d.log, LogLevel: d.actors.SetLogLevel})
	d.actors.OnLog(func(from actors.LogFrom, params []byte) {
		d.agents.Log(from, params, func(agent string) bool { return d.actors.Hub.SeesServer(agent, from.Server) })
	})
	d.http = front.New(d.agents, knowPeer, d.log)
	for _, l := range []net.Listener{d.tcp, d.socket} {
		if l == nil {
			continue
		}
		go func() {
			if err := d.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.failed <- fmt.Errorf("serve HTTP: %w", err)
			}
		}()
	}
}

// URL is where agents attach over HTTP; "" when only the socket is open.
func (d *daemon) URL() string {
	if d.tcp == nil {
		return ""
	}
	return "http://" + d.tcp.Addr().String()
}

// stop refuses new work, lets what runs finish within the drain timeout, ends the
// servers and closes the store. It returns within stopBound.
func (d *daemon) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopBound)
	defer cancel()
	d.notify("STOPPING=1")
	d.stopping.Store(true)
	d.debug.Close()
	d.agents.Close() // the streams, at once: nobody waits for their end
	err := d.actors.Stop(ctx)
	if e := d.http.Shutdown(ctx); e != nil {
		err = errors.Join(err, d.http.Close())
	}
	return errors.Join(err, d.release())
}

// release gives back what startDaemon took, as far as it came.
func (d *daemon) release() (err error) {
	for _, l := range []net.Listener{d.tcp, d.socket} {
		if l != nil {
			l.Close() // closed already, unless the start failed
		}
	}
	if d.reader != nil {
		err = errors.Join(err, d.reader.Close())
	}
	if d.writer != nil {
		err = errors.Join(err, d.writer.Close())
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	d.flushLog()
	return err
}
