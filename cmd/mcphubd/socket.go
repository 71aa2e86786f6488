package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"mcphubd/config"
	"mcphubd/transport/agent"
)

// maxSocketPath is what fits into the address of a Unix socket everywhere.
const maxSocketPath = 100

// socketPath is where the daemon of a data directory listens for its owner: as
// configured, else among the sockets of the session, else beside the data. Daemons of
// different data directories have different sockets.
func socketPath(c *config.Config, data string) string {
	if c.Socket != "" {
		return c.Socket
	}
	sum := sha256.Sum256([]byte(data))
	name := "mcphubd-" + hex.EncodeToString(sum[:4]) + ".sock"
	if isUsualData(data) {
		name = "mcphubd.sock"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "mcphubd", name)
	}
	if path := filepath.Join(data, "mcphubd.sock"); len(path) <= maxSocketPath {
		return path
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("mcphubd-%d", os.Getuid()), name)
}

// isUsualData reports whether data is where it is when nobody says otherwise.
func isUsualData(data string) bool {
	env := config.OS()
	lookup := env.Lookup
	env.Lookup = func(name string) (string, bool) {
		if name == "MCPHUBD_DATA" {
			return "", false
		}
		return lookup(name)
	}
	usual, err := config.DataDir("", env)
	return err == nil && usual == data
}

// listenSocket opens the owner's socket: 0600 in a 0700 directory, and every peer is
// checked to be the owner. A file that a dead daemon left is replaced; the lock on the
// data directory was taken before, so a live one is somebody else's.
func listenSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if listens(path) {
		return nil, fmt.Errorf("socket %s: another daemon listens there; give this one another socket in the configuration", path)
	}
	if err := removeSocket(path); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return ownersOnly{l.(*net.UnixListener)}, nil
}

// removeSocket removes what a dead daemon left, and nothing else.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s is there and is no socket; remove it, or set another socket in the configuration", path)
	}
	return os.Remove(path)
}

// ownersOnly accepts connections of this user, and of root.
type ownersOnly struct{ *net.UnixListener }

func (l ownersOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if peer, err := peerOf(c); err == nil && (peer.Uid == uint32(os.Getuid()) || peer.Uid == 0) {
			return c, nil
		}
		c.Close()
	}
}

// peerOf is the process at the other end of a socket, and whose it is.
func peerOf(c *net.UnixConn) (peer unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer, err
	}
	inner := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			peer = *cred
		}
	})
	return peer, errors.Join(inner, err)
}

// knowPeer notes in a connection's context which process is at the other end of the
// socket.
func knowPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	peer, err := peerOf(u)
	if err != nil {
		return ctx
	}
	return agent.WithPeer(ctx, int(peer.Pid))
}

// address is what a daemon tells of itself in its data directory, for commands that
// look for it.
type address struct {
	PID    int    `json:"pid"`
	URL    string `json:"url,omitempty"`
	Socket string `json:"socket"`
	Log    string `json:"log,omitempty"` // the file, if it logs to one
}

func addressFile(data string) string { return filepath.Join(data, "daemon.json") }

func writeAddress(data string, a address) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tmp := addressFile(data) + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, addressFile(data))
}

// errNotRunning says that there is no daemon at this data directory.
var errNotRunning = errors.New("no daemon is running; start one with: mcphubd serve")

// readAddress is what the last daemon of a data directory told of itself.
func readAddress(data string) (a address, err error) {
	b, err := os.ReadFile(addressFile(data))
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	return a, err
}

// findDaemon returns where the daemon of a data directory listens, if one does.
func findDaemon(data string) (address, error) {
	a, err := readAddress(data)
	if err != nil {
		return a, fail(codeNotRunning, errNotRunning)
	}
	if !listens(a.Socket) {
		return a, fail(codeNotRunning, errNotRunning) // it left without a farewell
	}
	return a, nil
}

// listens reports whether somebody listens at a Unix socket. The system knows at once: a
// bound on time would only take a busy machine for a dead daemon.
func listens(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return err == nil || errors.Is(err, syscall.EAGAIN) // there is a long queue
}

// socketClient speaks HTTP over a Unix socket, whatever the host in the URL says.
func socketClient(path func() string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path())
		},
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
	}}
}
