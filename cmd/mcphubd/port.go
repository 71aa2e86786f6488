package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// listenTCP opens the port, or says who has it.
func listenTCP(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %s; set listen to another port in the configuration, or to \"\" for the socket only", addr, holder(addr))
	}
	return nil, fmt.Errorf("listen on %s: %w", addr, err)
}

// holder says who has a port that is taken, as far as that can be seen.
func holder(addr string) string {
	if pid, data, ok := otherDaemon(addr); ok {
		return fmt.Sprintf("another mcphubd (pid %d, data directory %s) uses the port", pid, data)
	}
	if pid, name, ok := listenerOf(addr); ok {
		return fmt.Sprintf("another program (%s, pid %d) uses the port", name, pid)
	}
	return "another program uses the port"
}

// otherDaemon asks whether a daemon of ours listens there, and which.
func otherDaemon(addr string) (pid int, data string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // who stays silent is no daemon; a busy one is slow
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/debug/state", nil)
	if err != nil {
		return 0, "", false
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, "", false
	}
	defer res.Body.Close()
	var s struct {
		Schema string
		Daemon struct {
			PID  int
			Data string
		}
	}
	err = json.NewDecoder(io.LimitReader(res.Body, 64<<20)).Decode(&s)
	return s.Daemon.PID, s.Daemon.Data, err == nil && strings.HasPrefix(s.Schema, "mcphubd.")
}

// listenerOf finds the process that listens on a port of this machine. Of other users'
// processes the system does not tell.
func listenerOf(addr string) (pid int, name string, ok bool) {
	_, text, err := net.SplitHostPort(addr)
	port, err2 := strconv.ParseUint(text, 10, 16)
	if err != nil || err2 != nil {
		return 0, "", false
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if pid, ok := processWith(socketsOf(b, uint16(port))); ok {
			b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
			return pid, strings.TrimSpace(string(b)), true
		}
	}
	return 0, "", false
}

// socketsOf are the links under /proc/PID/fd of sockets that listen on a port, from a
// table in the form of /proc/net/tcp.
func socketsOf(table []byte, port uint16) map[string]bool {
	const listening, state, inode = "0A", 3, 9
	links := map[string]bool{}
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) <= inode || f[state] != listening {
			continue
		}
		_, text, _ := strings.Cut(f[1], ":")
		if b, err := hex.DecodeString(text); err == nil && len(b) == 2 && uint16(b[0])<<8|uint16(b[1]) == port {
			links["socket:["+f[inode]+"]"] = true
		}
	}
	return links
}

// processWith finds a process that has one of these descriptors open.
func processWith(links map[string]bool) (pid int, ok bool) {
	if len(links) == 0 {
		return 0, false
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && links[to] {
			pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
			return pid, err == nil
		}
	}
	return 0, false
}
