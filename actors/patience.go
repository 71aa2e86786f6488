package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errIdle is the cause of a context whose idle_timeout is over.
var errIdle = errors.New("idle_timeout")

// A vigil ends a call that shows no sign of life: no answer, no progress. While its
// user is asked something it waits for the user, and does not count.
type vigil struct {
	limit time.Duration
	mu    sync.Mutex
	timer *time.Timer
	asks  int // questions that wait for the user
	over  bool
}

// watched is ctx with an end for a call that goes on without a sign of life for longer
// than idle_timeout. It makes the server report progress also when the agent asked for
// none; then none is passed on.
func (w *walk) watched(ctx context.Context) (context.Context, func()) {
	limit := w.ticket.idle
	if limit <= 0 || limit >= w.ticket.timeout {
		return ctx, func() {}
	}
	end := w.call.Cancel
	if end == nil {
		ctx, end = context.WithCancelCause(ctx)
	}
	v := &vigil{limit: limit}
	w.vigil = v
	v.timer = time.AfterFunc(limit, func() { v.expire(end) })
	tell := w.call.Progress
	w.call.Progress = func(params []byte, token Range) {
		v.extend()
		if tell != nil {
			tell(params, token)
		}
	}
	if ask := w.call.Ask; ask != nil {
		w.call.Ask = func(ctx context.Context, method string, params []byte) ([]byte, error) {
			v.asking(1)
			defer v.asking(-1)
			return ask(ctx, method, params)
		}
	}
	return ctx, v.end
}

func (v *vigil) expire(end context.CancelCauseFunc) {
	v.mu.Lock()
	over := v.over || v.asks > 0
	v.mu.Unlock()
	if !over {
		end(errIdle)
	}
}

func (v *vigil) extend() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.over {
		v.timer.Reset(v.limit)
	}
}

// asking counts questions in and out; the time begins anew after the last one. There may be
// no vigil.
func (v *vigil) asking(n int) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asks += n; v.asks == 0 && !v.over {
		v.timer.Reset(v.limit)
	}
}

func (v *vigil) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	v.timer.Stop()
}

// idle words the end of a call by its vigil.
func (w *walk) idle() error {
	w.row.Outcome = "timeout"
	return fmt.Errorf("call %s: no answer and no progress within %s (idle_timeout of server %s); the server was told to cancel, the call may have run and was not repeated",
		w.call.Name, w.ticket.idle, w.row.Server)
}
