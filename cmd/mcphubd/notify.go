package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// What a service manager of systemd's kind offers is taken up: sockets that it opened,
// a place to tell how far we are, and a watchdog. Without it nothing here does anything.

// firstFD is where inherited sockets begin.
const firstFD = 3

// inherited returns the listeners that were opened for this process.
func inherited() (tcp, socket net.Listener, err error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil, nil
	}
	n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	for fd := firstFD; fd < firstFD+n; fd++ {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "inherited socket")
		l, err := net.FileListener(f)
		f.Close() // the listener has a copy
		if err != nil {
			return tcp, socket, fmt.Errorf("inherited descriptor %d: %w", fd, err)
		}
		switch l := l.(type) {
		case *net.UnixListener:
			if socket != nil {
				return tcp, socket, errors.New("two Unix sockets were inherited; one is wanted")
			}
			socket = ownersOnly{l}
		case *net.TCPListener:
			if tcp != nil || !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
				return tcp, socket, fmt.Errorf("the inherited socket %s cannot be used: one on a loopback address is wanted", l.Addr())
			}
			tcp = l
		default:
			return tcp, socket, fmt.Errorf("the inherited socket %s is of no use", l.Addr())
		}
	}
	return tcp, socket, nil
}

// notify tells the service manager, if there is one.
func (d *daemon) notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		d.log.Warn().Err(err).Msg("tell the service manager")
	}
}

// reloading is what is told before a reload; READY follows it.
func reloading() string {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000)
}

// watchdog tells the service manager from time to time that the daemon answers, if it
// wants to know. What answers is the whole way from the socket to the debug side.
func (d *daemon) watchdog(ctx context.Context) {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err != nil || micros <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return
	}
	period := time.Duration(micros) * time.Microsecond
	client := socketClient(func() string { return d.socketPath })
	client.Timeout = period / 2
	tick := time.NewTicker(period / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		res, err := client.Get("http://localhost/healthz")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			d.notify("WATCHDOG=1")
		}
	}
}
