// Package proc reads what Linux says about a process: its descendants, memory,
// CPU time and descriptors. Everything is zero for a process that is gone.
package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

func file(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// stat returns the fields after the command name, the state first.
func stat(pid int) []string {
	b, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// Alive reports whether the process runs; a zombie does not.
func Alive(pid int) bool {
	f := stat(pid)
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// Descendants returns the processes below pid, zombies included.
func Descendants(pid int) (below []int) {
	entries, _ := os.ReadDir("/proc")
	parent := map[int]int{}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := stat(p); len(f) > 1 {
			parent[p], _ = strconv.Atoi(f[1])
		}
	}
	for p := range parent {
		for up := parent[p]; up > 1; up = parent[up] {
			if up == pid {
				below = append(below, p)
				break
			}
		}
	}
	return below
}

// Group returns the process group of pid.
func Group(pid int) int {
	f := stat(pid)
	if len(f) < 3 {
		return 0
	}
	g, _ := strconv.Atoi(f[2])
	return g
}

// CPU returns the processor time used so far, in steps of 10 ms.
func CPU(pid int) time.Duration {
	f := stat(pid)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// RSS returns the resident bytes now, PeakRSS the most there ever were.
func RSS(pid int) int64     { return status(pid, "VmRSS") << 10 }
func PeakRSS(pid int) int64 { return status(pid, "VmHWM") << 10 }

// Threads returns the number of threads.
func Threads(pid int) int { return int(status(pid, "Threads")) }

func status(pid int, key string) int64 {
	b, _ := os.ReadFile(file(pid, "status"))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}

// FDs returns where the open descriptors of pid lead, by number.
func FDs(pid int) map[int]string {
	entries, _ := os.ReadDir(file(pid, "fd"))
	fds := map[int]string{}
	for _, e := range entries {
		n, _ := strconv.Atoi(e.Name())
		if to, err := os.Readlink(file(pid, "fd/"+e.Name())); err == nil {
			fds[n] = to
		}
	}
	return fds
}

// Cmdline returns the command line, its words joined by spaces.
func Cmdline(pid int) string {
	b, _ := os.ReadFile(file(pid, "cmdline"))
	return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
}

// Environ returns the environment the process was started with, a line a variable.
func Environ(pid int) string {
	b, _ := os.ReadFile(file(pid, "environ"))
	return strings.ReplaceAll(string(b), "\x00", "\n")
}
