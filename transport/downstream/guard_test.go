package downstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcphubd/config"
)

// TestC78WhatAWrapperForkedDiesWithTheDaemon, at whatever moment of a start the daemon
// is killed. The test binary plays a daemon that starts shells, each of which forks at
// once, as fast as it can.
func TestC78WhatAWrapperForkedDiesWithTheDaemon(t *testing.T) {
	if mark := os.Getenv("DAEMON"); mark != "" {
		fork := config.Server{Name: "d", Command: "/bin/sh", Args: []string{"-c", "sleep 3600 & sleep 3600; exit", mark}}
		fork.Env = map[string]string{"MARK": mark}
		for range 4 {
			go func() {
				for {
					p, err := start(fork)
					if err != nil {
						fmt.Println(err)
						return
					}
					fmt.Println("started")
					p.signal(syscall.SIGKILL)
					<-p.exited
					closeAll([]*os.File{p.stdin, p.stdout.f, p.stderr.f})
				}
			}()
		}
		select {}
	}
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		mark := fmt.Sprintf("mark-%d-%d", os.Getpid(), round)
		daemon := exec.Command(os.Args[0], "-test.run=^TestC78WhatAWrapperForkedDiesWithTheDaemon$")
		daemon.Env = append(os.Environ(), "DAEMON="+mark)
		out, err := daemon.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		for range 3 + round%40 { // the moment is any
			var word string
			if _, err := fmt.Fscanln(out, &word); err != nil || word != "started" {
				t.Fatal(word, err)
			}
		}
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
		eventually(t, "what its children forked is gone", func() bool { return len(marked(mark)) == 0 })
	}
}

// marked are the processes that were started with MARK=mark.
func marked(mark string) (files []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && strings.Contains("\x00"+string(b), "\x00MARK="+mark+"\x00") {
			files = append(files, file)
		}
	}
	return files
}

// TestAProgramWithRightsOfItsOwnKeepsThem: one that is traced when it starts would not.
func TestAProgramWithRightsOfItsOwnKeepsThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "set-id")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if privileged(file) {
		t.Error("an ordinary program is taken for a privileged one")
	}
	if err := os.Chmod(file, 0o700|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if !privileged(file) {
		t.Error("a set-user-id program would be traced")
	}
}
