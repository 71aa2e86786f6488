// Package filter runs jq programs over stored documents. A program comes from an
// agent and may be wrong or hostile, so it never runs in the daemon: each run is a
// child process of our own binary with nothing but its three standard streams, and
// bounds on everything it could take. It is Linux-only, as the rest of the daemon is.
//
// # Numbers
//
// What a program only passes on keeps its spelling: 9007199254740993, 1.0, 1e400 and
// 0.10 come out as they went in. Arithmetic on integers is exact at any size; on
// numbers with a fraction or an exponent it is that of a 64-bit float, as in any jq.
// A result beyond its range is an error, never a large number. Not a number is null.
//
// # What differs from jq
//
// Objects come out with their keys sorted. $__loc__ and @base32d are not known, see
// gojq for the rest. The environment is empty, the time zone is
// UTC, and there are no modules and no input, for there are no files. A document of
// several JSON values, such as JSON Lines, is run through one value at a time; the
// first error ends the run.
package filter

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is the argument that makes our binary call Work.
const Command = "jq-worker"

// Options bounds each run. Zero values mean the defaults.
type Options struct {
	Wall     time.Duration // from start to end; 5s
	Document int64         // bytes a program may read; 64MB
	Output   int64         // bytes it may write; 64MB
	AtOnce   int           // runs at the same time; 2

	// Executable answers to Command with Work; /proc/self/exe, which is this very
	// binary even when it was replaced meanwhile.
	Executable string
}

// The bounds that the child sets for itself, see confine.
const (
	memory = 512 << 20
	cpu    = 4 * time.Second
)

// Filter runs jq programs, a few at a time.
type Filter struct {
	limits Options
	places chan struct{}
}

// New returns a Filter that keeps to o.
func New(o Options) *Filter {
	if o.Wall == 0 {
		o.Wall = 5 * time.Second
	}
	if o.Document == 0 {
		o.Document = 64 << 20
	}
	if o.Output == 0 {
		o.Output = 64 << 20
	}
	if o.AtOnce == 0 {
		o.AtOnce = 2
	}
	if o.Executable == "" {
		o.Executable = "/proc/self/exe"
	}
	return &Filter{limits: o, places: make(chan struct{}, o.AtOnce)}
}

// Run runs program over the JSON in doc and writes what it gives to out, compact, a
// value a line. After an error out may hold the beginning, even of a line. While all
// places are taken it waits, as long as ctx lasts. The error is fit for an agent: it
// has at most about 1 KB and says what to do. Once Run returned nothing touches doc
// or out any more, and the child is gone.
func (f *Filter) Run(ctx context.Context, program string, doc io.Reader, out io.Writer) error {
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-ctx.Done():
		return fmt.Errorf("jq: wait for other queries to end: %w", context.Cause(ctx))
	}
	order, err := json.Marshal(program)
	if err != nil {
		return fmt.Errorf("jq: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, f.limits.Wall, limitError(f.limits.Wall.String()))
	defer cancel()
	r := &run{
		doc: &source{r: doc, left: f.limits.Document, over: tooLarge(f.limits.Document), stop: stop},
		out: &sink{w: out, left: f.limits.Output, over: limitError(bytes(f.limits.Output) + " of output"), stop: stop},
	}
	return r.do(ctx, f.limits.Executable, string(order)+"\n")
}

// run is one child.
type run struct {
	doc    *source
	out    *sink
	stderr head
}

// do runs the child to its end. The order goes before the document: arguments could
// be read by other users.
func (r *run) do(ctx context.Context, executable, order string) error {
	cmd := exec.CommandContext(ctx, executable, Command)
	cmd.Args[0] = "mcphubd"
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.MultiReader(strings.NewReader(order), r.doc), r.out, &r.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	// The kernel sends the death signal when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// What the daemon inherited, or opened carelessly, must not reach the child.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	switch err := cmd.Start(); {
	case err != nil && ctx.Err() != nil:
		return wordedCause(ctx)
	case err != nil:
		return fmt.Errorf("jq: start its process: %w", err)
	}
	_ = unix.Setpriority(unix.PRIO_PGRP, cmd.Process.Pid, 5) // calls of other agents come first
	_ = cmd.Wait()                                           // the verdict looks at more than its error
	return r.verdict(ctx, cmd.ProcessState)
}
