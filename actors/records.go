package actors

import (
	"fmt"
	"runtime"
	"time"

	"mcphubd/store"
)

// What the spool writes besides results: the records of calls, for which nobody waits and
// which wait for everything else, and what servers listed.

const (
	// recordRetry is how long call records wait after the store refused them, and
	// recordKeep how many of them.
	recordRetry = 10 * time.Second
	recordKeep  = 4096
	// recordSlice is how many call records are written at once.
	recordSlice = 1024
)

func (a *spoolActor) record(calls []store.Call) {
	if room := recordKeep - len(a.calls); room < len(calls) {
		a.lost += int64(len(calls) - room)
		calls = calls[:room]
	}
	a.calls = append(a.calls, calls...)
	switch {
	case a.armed:
	case len(a.calls) >= recordSlice:
		a.writeCalls()
	case !a.due: // behind all that is queued: many sessions settle at once
		a.due = true
		a.self.tell(writeCalls{})
	}
}

// writeCalls writes the gathered records; they stay while the store refuses them.
func (a *spoolActor) writeCalls() {
	a.armed, a.due = false, false
	if len(a.calls) == 0 {
		return
	}
	defer runtime.Gosched() // nobody waits for this, and calls may
	a.commit()              // a refused record must not cost a result its place
	err := a.begin()
	if err == nil {
		err = a.w.Record(a.calls)
	}
	if err == nil {
		a.calls = a.calls[:0]
		a.commit()
		return
	}
	a.failed(fmt.Errorf("record calls: %w", err))
	a.rollback(err)
	if !a.armed {
		a.armed = true
		after[spoolMsg](a.self, recordRetry, writeCalls{})
	}
}

// remember writes what a server listed, in a transaction of its own.
func (a *spoolActor) remember(k store.Known) {
	a.commit()
	err := a.begin()
	if err == nil {
		err = a.w.SetKnown(k)
	}
	if err != nil {
		a.sys.log.Warn().Err(err).Msg("store: the next daemon will not know these tools at once")
		a.rollback(err)
		return
	}
	a.commit()
}
