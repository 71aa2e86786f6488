package mcptest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// gathering lets the messages of one rule meet: each batch of n waits until it
// is complete, and then goes on one by one, the last to come first.
type gathering struct {
	arrived int
	batches [][]chan struct{} // closed when that member has done all its steps
	full    []chan struct{}
}

func (s *server) meeting(rule *Rule, index int) *gathering {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meet[index] == nil {
		s.meet[index] = &gathering{}
	}
	return s.meet[index]
}

// gather waits for the batch and the turn, and returns what ends the turn.
func (s *server) gather(g *gathering, n int) (done func()) {
	s.mu.Lock()
	batch, place := g.arrived/n, g.arrived%n
	g.arrived++
	if place == 0 {
		g.batches = append(g.batches, nil)
		g.full = append(g.full, make(chan struct{}))
	}
	mine := make(chan struct{})
	g.batches[batch] = append(g.batches[batch], mine)
	full := g.full[batch]
	if place == n-1 {
		close(full)
	}
	s.mu.Unlock()
	<-full
	s.mu.Lock()
	members := g.batches[batch]
	s.mu.Unlock()
	if place < n-1 {
		<-members[place+1]
	}
	return func() { close(mine) }
}

// follow does the steps for one message.
func (s *server) follow(req *request, steps []Step, g *gathering) {
	for _, step := range steps {
		if step.Wait != "" && !awaitFile(req, step.Wait) {
			return
		}
		if step.Gather > 0 && g != nil {
			defer s.gather(g, step.Gather)()
		}
		if step.Sleep > 0 && !pause(req, step.Sleep) {
			return
		}
		s.effects(req, step)
		for range max(1, step.Repeat) {
			if step.Stderr != "" {
				_, _ = io.WriteString(s.errs, string(step.Stderr))
			}
			if step.Write != "" {
				req.out.text(fill(string(step.Write), req))
			}
		}
		if step.Fork != nil {
			s.fork(*step.Fork)
		}
		if step.Default {
			s.answer(req)
		}
		if step.Answer != nil {
			s.send(req, *step.Answer)
		}
		if step.HTTP != nil && req.http != nil {
			step.HTTP.write(req)
		}
		s.end(req, step)
	}
}

// effects leaves on disk what the step orders.
func (s *server) effects(req *request, step Step) {
	if step.Touch != "" {
		_ = os.WriteFile(step.Touch, nil, 0o600)
	}
	if step.Append != "" {
		if l, err := openLog(step.Append); err == nil {
			l.write([]byte(req.tool + "\n"))
			_ = l.f.Close()
		}
	}
}

// end does what ends something. A Remote lives in the process of the test, so
// there the connection ends in place of the process.
func (s *server) end(req *request, step Step) {
	if req.http != nil {
		if step.Exit != nil || step.Signal != 0 || step.Close != "" {
			panic(http.ErrAbortHandler)
		}
		return
	}
	if step.StopReading {
		select {
		case <-s.silent:
		default:
			close(s.silent)
		}
	}
	switch step.Close {
	case "stdin":
		_ = syscall.Close(0)
	case "stdout":
		_ = syscall.Close(1)
	case "stderr":
		_ = syscall.Close(2)
	}
	if step.Signal != 0 {
		s.signal(step.Signal)
	}
	if step.Exit != nil {
		os.Exit(*step.Exit)
	}
}

// fill puts the id and the progress token of a request into raw text.
func fill(text string, req *request) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return strings.NewReplacer("$ID", string(req.ID), "$TOKEN", string(req.token)).Replace(text)
}

// pause reports whether the request still stands after ms milliseconds.
func pause(req *request, ms int) bool {
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-req.ctx.Done():
	}
	return req.ctx.Err() == nil // also when both came
}

// awaitFile looks for a file that the test makes. It looks often: two processes
// have no channel between them that a script could name more simply.
func awaitFile(req *request, path string) bool {
	for {
		if _, err := os.Stat(path); err == nil {
			return req.ctx.Err() == nil
		}
		if !pause(req, 2) {
			return false
		}
	}
}

const helperEnv = "MCPTEST_HELPER"

func (s *server) fork(h Helper) {
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), helperEnv+"="+strconv.Itoa(h.Seconds)+","+strconv.FormatBool(h.IgnoreTERM))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: h.Escape}
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	if h.PIDFile != "" {
		tmp := h.PIDFile + ".new"
		_ = os.WriteFile(tmp, []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		_ = os.Rename(tmp, h.PIDFile)
	}
	go func() { _ = c.Wait() }()
}

// help is the life of a forked helper: it does nothing, for a bounded time.
func help(order string) {
	seconds, stubborn, _ := strings.Cut(order, ",")
	if stubborn == "true" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	}
	n, _ := strconv.Atoi(seconds)
	time.Sleep(time.Duration(n) * time.Second)
}
