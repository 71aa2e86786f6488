package downstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcphubd/actors"
	"mcphubd/config"
)

// groupLives reports whether any process is left in the group; zombies do not count.
func groupLives(pgid int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest) // state, ppid, pgrp
		if len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(pgid) {
			return true
		}
	}
	return false
}

func TestC09ADeadChildFailsItsWaitingCallsAtOnce(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	errs := make(chan error, 3)
	for range 3 {
		go func() { _, err := tool(t.Context(), c, "never", `{}`); errs <- err }()
	}
	eventually(t, "three calls are sent", func() bool { return c.w.sent.Load() == 2+3 })
	go func() {
		_, _ = tool(t.Context(), c, "exit", `{"code":3,"stderr":"boom: config missing\nkey s3cr3t-value\n"}`)
	}()
	for range 3 {
		err := <-errs
		if !errors.Is(err, actors.ErrLost) {
			t.Fatalf("err %v", err)
		}
		for _, want := range []string{"fake", "exit status 3", "boom: config missing", "key ***", "may have run and was not repeated"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
	}
	<-c.Done()
	if _, err := tool(t.Context(), c, "echo", `{}`); !errors.Is(err, actors.ErrLost) || !strings.Contains(err.Error(), "was not sent") {
		t.Errorf("a call after the death: %v", err)
	}
}

func TestC09AChildThatExitsBeforeTheHandshakeSaysWhy(t *testing.T) {
	_, err := stdio(t, "exit").Connect(t.Context(), actors.Events{})
	if !errors.Is(err, actors.ErrLost) || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "boom: config missing, token ***") {
		t.Errorf("err %v", err)
	}
}

// TestC09ADeathIsNamedHoweverLateItIsNoticed: on a machine that is very busy a child takes its
// time between the end of its stdout and its own.
func TestC09ADeathIsNamedHoweverLateItIsNoticed(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	if c.proc.exiting() {
		t.Error("a child that serves is said to be on its way out")
	}
	c.proc.mu.Lock() // nobody reaps it
	time.AfterFunc(800*time.Millisecond, c.proc.mu.Unlock)
	_, err := tool(t.Context(), c, "exit", `{"code":3}`)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("err %v", err)
	}
}

func TestDeathBySignalIsNamed(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	if err := syscall.Kill(c.Info().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("err %v", err)
	}
}

func TestC10CloseLeavesNobodyOfTheGroup(t *testing.T) {
	for range 5 {
		c := connect(t, stdio(t, "stubborn"), actors.Events{})
		works(t, c)
		pid := c.Info().PID
		if !groupLives(pid) {
			t.Fatal("the group is not there")
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		eventually(t, "the group has died of KILL", func() bool { return !groupLives(pid) })
	}
}

func TestCloseIsBoundedByItsContextAndMayComeTwice(t *testing.T) {
	s := stdio(t, "stubborn")
	s.Grace = time.Hour
	c := connect(t, s, actors.Events{})
	waiting := make(chan error, 1)
	go func() { _, err := tool(t.Context(), c, "never", `{}`); waiting <- err }()
	eventually(t, "the call is sent", func() bool { return c.w.sent.Load() == 3 })
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		wg.Go(func() {
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err := <-waiting; !errors.Is(err, actors.ErrLost) {
		t.Errorf("call in flight: %v", err)
	}
	cancel()
	wg.Wait()
	eventually(t, "the group has died of KILL", func() bool { return !groupLives(c.Info().PID) })
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestC80AHelperThatKeepsThePipesOpenDelaysNothing(t *testing.T) {
	for _, mode := range []string{"helper", "escapee"} {
		s := stdio(t, mode)
		s.Grace = time.Hour
		c := connect(t, s, actors.Events{})
		got, err := tool(t.Context(), c, "answerandexit", `{}`)
		if err != nil || got != `{"last":"words"}` {
			t.Errorf("%s: %s, %v", mode, got, err)
		}
		<-c.gone
		if err := c.Err(); !strings.Contains(err.Error(), "exit status 0") {
			t.Errorf("%s: %v", mode, err)
		}
		eventually(t, "the group has died of KILL", func() bool { return !groupLives(c.Info().PID) })
	}
}

func TestC79AFailedHandshakeLeavesNothingBehind(t *testing.T) {
	s := stdio(t, "mute")
	try := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := s.Connect(ctx, actors.Events{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("err %v", err)
		}
	}
	try()
	var goroutines, files int
	eventually(t, "the first try is over", func() bool {
		n, f := runtime.NumGoroutine(), len(descriptors())
		quiet := n == goroutines && f == files
		goroutines, files = n, f
		return quiet
	})
	for range 50 {
		try()
	}
	eventually(t, fmt.Sprintf("back at %d goroutines and %d descriptors", goroutines, files), func() bool {
		return runtime.NumGoroutine() <= goroutines && len(descriptors()) <= files
	})
	eventually(t, "no child is left", func() bool {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		all := ""
		for _, list := range lists {
			b, _ := os.ReadFile(list)
			all += string(b)
		}
		return strings.TrimSpace(all) == ""
	})
}

func TestC79AHandshakeThatIsRefusedSaysWhy(t *testing.T) {
	s := stdio(t, "server")
	s.Server.Command, s.Server.Args = "/bin/sh", []string{"-c", `read l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no s3cr3t-value today"}}'; cat`}
	_, err := s.Connect(t.Context(), actors.Events{})
	if err == nil || !strings.Contains(err.Error(), "no *** today") {
		t.Errorf("err %v", err)
	}
}

func TestTheChildGetsASmallEnvironment(t *testing.T) {
	t.Setenv("MY_PRIVATE_KEY", "x")
	t.Setenv("LC_TIME", "C")
	t.Setenv("https_proxy", "http://proxy:1")
	s := stdio(t, "server")
	s.Server.Env["LANG"] = "xx"
	s.Server.Cwd = t.TempDir()
	got, err := tool(t.Context(), connect(t, s, actors.Events{}), "env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var is struct{ Env []string }
	if err := json.Unmarshal([]byte(got), &is); err != nil {
		t.Fatal(err)
	}
	env := "\n" + strings.Join(is.Env, "\n") + "\n"
	for _, want := range []string{"\nLANG=xx\n", "\nLC_TIME=C\n", "\nhttps_proxy=http://proxy:1\n", "\nPATH=" + os.Getenv("PATH") + "\n", "\nTOKEN="} {
		if strings.Count(env, want) != 1 {
			t.Errorf("environment lacks %q", want)
		}
	}
	if strings.Contains(env, "MY_PRIVATE_KEY") {
		t.Error("the daemon's environment leaks")
	}
}

func TestTheChildInheritsNoDescriptors(t *testing.T) {
	const leak = 200 // one that would survive exec
	if err := syscall.Dup3(1, leak, 0); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	s := stdio(t, "")
	s.Server.Command, s.Server.Args = "/bin/sh", []string{"-c", `cd /proc/$$/fd; echo fds * >&2; exit 1`}
	if _, err := s.Connect(t.Context(), actors.Events{}); err == nil || !strings.HasSuffix(err.Error(), "fds 0 1 2 3") { // 3 is the listing itself
		t.Errorf("err %v", err)
	}
}

func TestACommandThatIsNotThereIsNamedWithThePath(t *testing.T) {
	for command, want := range map[string]string{
		"no-such-mcp-server": "command not found; searched PATH=/usr/bin:/nowhere",
		"/no/such/file":      "start /no/such/file: no such file",
		"/etc/passwd":        "not an executable file",
	} {
		s := Stdio{Server: config.Server{Name: "x", Command: command, Env: map[string]string{"PATH": "/usr/bin:/nowhere"}}}
		if _, err := s.Connect(t.Context(), actors.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	s := Stdio{Server: config.Server{Name: "x", Command: "sh", Cwd: "/no/such/dir"}}
	if _, err := s.Connect(t.Context(), actors.Events{}); err == nil || !strings.Contains(err.Error(), "cwd /no/such/dir is no directory") {
		t.Errorf("cwd: %v", err)
	}
}

// A daemon that is killed takes its servers along: the test binary plays the daemon.
func TestTheGroupDiesWithTheDaemon(t *testing.T) {
	if os.Getenv("DAEMON") != "" {
		conn, err := stdio(t, "stubborn").Connect(t.Context(), actors.Events{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("pid %d\n", conn.Info().PID)
		select {}
	}
	daemon := exec.Command(os.Args[0], "-test.run=^TestTheGroupDiesWithTheDaemon$")
	daemon.Env = append(os.Environ(), "DAEMON=1")
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Fscanf(out, "pid %d\n", &pid); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Process.Kill()
	_ = daemon.Wait()
	eventually(t, "child and helper are gone", func() bool { return !groupLives(pid) })
}

// TestAChildIsToldToEndOnce: many programs take a second SIGTERM for "now". The kernel
// joins two that come close, so there are a few children.
func TestAChildIsToldToEndOnce(t *testing.T) {
	for range 20 {
		p, err := start(stdio(t, "polite").Server)
		if err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(p.stdout)
		said.Scan() // up
		p.signal(syscall.SIGTERM)
		said.Scan() // told
		p.stdin.Close()
		said.Scan()
		if got := said.Text(); got != "1" {
			t.Errorf("told %q times", got)
		}
		p.signal(syscall.SIGKILL)
		<-p.exited
		closeAll([]*os.File{p.stdout.f, p.stderr.f})
	}
}
