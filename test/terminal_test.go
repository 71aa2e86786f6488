package test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mcphubd/test/mcptest"
)

// TestADaemonAtATerminalEndsWithIt: there SIGHUP means that the terminal is gone.
func TestADaemonAtATerminalEndsWithIt(t *testing.T) {
	t.Parallel()
	ours, theirs := terminal(t)
	d := mcptest.NewDaemon(t, "")
	c := d.Command("serve")
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	defer c.Process.Kill()
	mcptest.Eventually(t, "the daemon to run", func() bool { return d.Command("status").Run() == nil })
	ours.Close()
	c.Wait()
	if _, err := os.Stat(filepath.Join(d.Data, "mcphubd.db-wal")); err == nil {
		t.Error("it did not end in good order")
	}
}

// terminal is a terminal of the system's, and its other end.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}
