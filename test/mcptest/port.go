package mcptest

import (
	"fmt"
	"syscall"
)

// Port is an address of this machine that nobody else is given until it is closed. A
// program that is told to listen there may do so, and again after it ended: what holds
// the port is a socket that is bound and does not listen.
type Port struct {
	Addr string // 127.0.0.1:PORT
	fd   int
}

// NewPort finds a free one.
func NewPort() (*Port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	p := &Port{fd: fd}
	// Both sides must allow it: whoever listens here sets the same, as Go and Node do.
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var at syscall.Sockaddr
	if err == nil {
		at, err = syscall.Getsockname(fd)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	p.Addr = fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
	return p, nil
}

// Close gives the port back.
func (p *Port) Close() { _ = syscall.Close(p.fd) }
