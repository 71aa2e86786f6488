package filter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// limitError says that a run was ended by a limit.
func limitError(limit string) error {
	return fmt.Errorf("jq: stopped at its limit of %s; select less of the document first, or take only the first results: limit(100; …)", limit)
}

func tooLarge(limit int64) error {
	return fmt.Errorf("jq: the document is over its limit of %s; read it with records, lines or grep", bytes(limit))
}

// bytes words a number of bytes.
func bytes(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}

// verdict is how the run went. What went wrong on our side counts first: the child
// only suffers from it.
func (r *run) verdict(ctx context.Context, state *os.ProcessState) error {
	switch {
	case r.doc.err != nil:
		return r.doc.err
	case r.out.err != nil:
		return r.out.err
	case state.Success():
		return nil
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	said := r.stderr.String()
	switch {
	case status.Exited() && status.ExitStatus() == exitTold:
		return errors.New("jq: " + shortened(said, maxMessage))
	case killed && ctx.Err() != nil:
		return wordedCause(ctx)
	case killed && state.UserTime()+state.SystemTime() > cpu/2: // the limit counts in ticks, this is exact
		return limitError(cpu.String() + " of processor time")
	case killed:
		return errors.New("jq: its process was killed, most likely because the machine is short of memory; try again later, or with less")
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return limitError("nesting")
	case status.Exited() && status.ExitStatus() == exitGo:
		return limitError(bytes(memory) + " of memory")
	}
	return fmt.Errorf("jq: its process ended with %s: %s", state, shortened(said, 200))
}

// wordedCause is why ctx ended: the limit, or what the caller knows.
func wordedCause(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) || ctx.Err() == cause {
		return fmt.Errorf("jq: %w", cause)
	}
	return cause
}
