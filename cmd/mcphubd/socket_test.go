package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestADaemonWithALongQueueIsNotTakenForADeadOne, nor is its socket taken away.
func TestADaemonWithALongQueueIsNotTakenForADeadOne(t *testing.T) {
	dir, err := os.MkdirTemp("", "sock") // short: a socket path must fit in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	open := func() int {
		t.Helper()
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Close(fd) })
		return fd
	}
	at := &syscall.SockaddrUnix{Name: path}
	busy := open()
	if err := errors.Join(syscall.Bind(busy, at), syscall.Listen(busy, 0), writeAddress(dir, address{Socket: path})); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; { // until the queue is full
		err = syscall.Connect(open(), at)
	}
	if err != syscall.EAGAIN {
		t.Fatal(err)
	}
	if _, err := findDaemon(dir); err != nil {
		t.Error(err)
	}
	if _, err := listenSocket(path); err == nil {
		t.Error("a second daemon listens there")
	}
	if err := syscall.Shutdown(busy, syscall.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if _, err := findDaemon(dir); !errors.Is(err, errNotRunning) {
		t.Errorf("nobody listens any more: %v", err)
	}
}
