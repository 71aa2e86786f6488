package filter

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// confine takes from this process what a program has no business with, for good.
//
// Memory is bounded by RLIMIT_DATA, all writable memory, and not by RLIMIT_AS: Go
// reserves over a gigabyte of address space that it never touches, and the race
// detector terabytes. The collector works harder from three quarters on; who still
// needs more ends with a fatal error of the runtime. No open, socket or pipe can get
// a descriptor.
func confine() error {
	runtime.GOMAXPROCS(1)
	debug.SetMemoryLimit(memory * 3 / 4)
	debug.SetMaxStack(memory / 4)
	time.AfterFunc(time.Hour, func() {}) // the runtime's own descriptors come with its first timer: it must have them before there are no more
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	data, err := dataSize()
	if err != nil {
		return err
	}
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
	}{
		{"memory", unix.RLIMIT_DATA, data + memory},
		{"processor time", unix.RLIMIT_CPU, uint64(cpu / time.Second)},
		{"file sizes", unix.RLIMIT_FSIZE, 0},
		{"core dumps", unix.RLIMIT_CORE, 0},
		{"descriptors", unix.RLIMIT_NOFILE, 3},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	return nil
}

// dataSize is how many bytes of this process count against RLIMIT_DATA already.
func dataSize() (uint64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 6 {
		return 0, fmt.Errorf("read /proc/self/statm: %q", statm)
	}
	var pages uint64
	if _, err := fmt.Sscan(fields[5], &pages); err != nil {
		return 0, fmt.Errorf("read /proc/self/statm: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}
