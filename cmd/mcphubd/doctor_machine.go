package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mcphubd/store"
)

// This file is what doctor looks at on the machine itself: processes, ports, files.

// lockOwner says which process wrote its id into the lock of a data directory, and
// whether it lives and is a mcphubd. The lock is not tried: that could keep a
// daemon from starting.
func lockOwner(data string) (pid int, lives bool) {
	b, err := os.ReadFile(filepath.Join(data, "lock"))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return 0, false
	}
	locks, err := os.ReadFile("/proc/locks") // who holds which lock; the pid may be another's by now
	if err != nil {
		return pid, unix.Kill(pid, 0) == nil
	}
	return pid, strings.Contains(string(locks), " FLOCK  ADVISORY  WRITE "+strconv.Itoa(pid)+" ")
}

// mayListen tries an address and lets go of it at once.
func mayListen(address string) error {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return errors.New(holder(address))
	case err != nil:
		return err
	}
	return l.Close()
}

// checkTime bounds how long the store is looked through.
const checkTime = 10 * time.Second

// store looks at the database and its folder.
func (c *checkup) store() {
	path := storeFile(c.data)
	if !exists(path) {
		if exists(c.data) && unix.Access(c.data, unix.W_OK) != nil {
			c.found("store-read-only", c.data, "this user cannot write into it")
			return
		}
		c.ok("store", "there is none yet at %s", path)
		return
	}
	for _, p := range []string{c.data, path} {
		if err := unix.Access(p, unix.W_OK); err != nil {
			c.found("store-read-only", p, "this user cannot write it: %v", err)
			return
		}
	}
	c.sound(path)
}

// sound looks the database through.
func (c *checkup) sound(path string) {
	r, err := store.OpenReader(path)
	if err == nil {
		defer r.Close()
		ctx, cancel := context.WithTimeout(c.ctx, checkTime)
		defer cancel()
		err = r.Check(ctx)
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		c.found("store-damaged", path, "%v", err)
		return
	case err != nil:
		c.found("store-read-only", path, "%v", err)
		return
	}
	c.room(path)
	known, err := r.Known(c.ctx)
	if err != nil {
		c.found("store-damaged", path, "%v", err)
	}
	for _, k := range known {
		c.sizes[k.Server] = listingsIn(k.Tools)
	}
}

// room compares what the store takes with what it may take.
func (c *checkup) room(path string) {
	used := c.state.Spool.Usage.UsedBytes
	if c.daemon == nil {
		if info, err := os.Stat(path); err == nil {
			used = info.Size()
		}
	}
	if c.conf == nil || c.conf.Spool.MaxBytes == 0 {
		c.ok("store", "%s has %s", path, bytesText(used))
		return
	}
	bound := int64(c.conf.Spool.MaxBytes)
	if used >= bound/20*19 {
		c.found("spool-full", path, "it has %s of %s (spool.max_bytes)", bytesText(used), bytesText(bound))
		return
	}
	c.ok("store", "%s is sound; it has %s of %s", path, bytesText(used), bytesText(bound))
}

// findCommand looks for the command of a server in the PATH that its process would
// have. It returns what was searched when it is not there.
func findCommand(command, path, cwd string) (searched string, ok bool) {
	places := filepath.SplitList(path)
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(cwd, command)
		}
		places, command = []string{filepath.Dir(command)}, filepath.Base(command)
	}
	for _, dir := range places {
		if info, err := os.Stat(filepath.Join(dir, command)); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return "", true
		}
	}
	return fmt.Sprintf("searched: %s", strings.Join(places, string(filepath.ListSeparator))), false
}
