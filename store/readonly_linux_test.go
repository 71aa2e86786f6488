package store

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestC51OpeningWithoutTheRightToWriteSaysSo(t *testing.T) {
	for _, mode := range []os.FileMode{0o400, 0o000} {
		dir := t.TempDir()
		check(t, os.Chmod(filepath.Dir(dir), 0o755))
		path := filepath.Join(dir, "test.db")
		check(t, openW(t, path).Close())
		check(t, os.Chmod(path, mode))
		check(t, os.Chown(dir, asUser(), -1))
		check(t, os.Chown(path, asUser(), -1))
		var err error
		asOrdinaryUser(func() { _, err = OpenWriter(path, t0) })
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "must be able to write") {
			t.Errorf("mode %v: %v", mode, err)
		}
		check(t, os.Chmod(path, 0o600))
		asOrdinaryUser(func() {
			var w *Writer
			if w, err = OpenWriter(path, t0); err == nil {
				err = w.Close()
			}
		})
		if err != nil {
			t.Errorf("with the right to write: %v", err)
		}
	}
}

// asUser is whom the files of the test belong to: root may write everything.
func asUser() int {
	if os.Getuid() == 0 {
		return 65534
	}
	return os.Getuid()
}

// asOrdinaryUser runs f on a thread that has no more rights than file modes give.
func asOrdinaryUser(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with f
		syscall.Setfsuid(asUser())
		f()
	}()
	<-done
}
