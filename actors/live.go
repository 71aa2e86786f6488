package actors

import (
	"cmp"
	"context"
	"sync"
	"time"

	"mcphubd/store"
)

// CallInfo is one call in flight.
type CallInfo struct {
	Serial   int64         `json:"serial"`
	Agent    string        `json:"agent"`
	Server   string        `json:"server"`
	Tool     string        `json:"tool"` // as agents see it
	Kind     string        `json:"kind"` // the method
	Since    time.Time     `json:"since"`
	Age      time.Duration `json:"ageNs"`
	ArgBytes int64         `json:"argBytes"`
}

// liveCall is a call with what ends it.
type liveCall struct {
	CallInfo
	end context.CancelCauseFunc
}

// liveCalls is the calls of one session, kept by the calls themselves so that
// they can be listed while the session is stuck.
type liveCalls struct {
	mu sync.Mutex
	m  map[int64]liveCall

	last time.Time // when the latest call began
}

// begin adds a call, unless there are maxInFlight already.
func (l *liveCalls) begin(c liveCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.m) >= maxInFlight {
		return false
	}
	l.m[c.Serial], l.last = c, c.Since
	return true
}

func (l *liveCalls) end(serial int64) {
	l.mu.Lock()
	delete(l.m, serial)
	l.mu.Unlock()
}

// cancel ends the call with that serial, if it is there.
func (l *liveCalls) cancel(serial int64) bool {
	l.mu.Lock()
	c, ok := l.m[serial]
	l.mu.Unlock()
	if ok && c.end != nil {
		c.end(errByOwner)
	}
	return ok
}

func (l *liveCalls) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.m) == 0
}

// latest is when the latest call began; zero when there was none.
func (l *liveCalls) latest() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *liveCalls) list() []CallInfo {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]CallInfo, 0, len(l.m))
	for _, c := range l.m {
		c.Age = now.Sub(c.Since)
		all = append(all, c.CallInfo)
	}
	return all
}

// live is the walk's line among the calls in flight.
func (w *walk) live(exposed string) liveCall {
	return liveCall{CallInfo{Serial: w.serial, Agent: w.agent, Server: w.row.Server, Tool: exposed, Kind: cmp.Or(w.call.Method, "tools/call"),
		Since: w.row.At, ArgBytes: w.row.ArgBytes}, w.call.Cancel}
}

// give notes how much the agent gets.
func (w *walk) give(r Reply) {
	if w.given = int64(len(r.Error)); r.Result != nil {
		w.given = r.Result.Size()
	}
}

// cancellable gives a call that came without one a way to be ended.
func (c *Call) cancellable(ctx context.Context) (context.Context, func()) {
	if c.Cancel != nil {
		return ctx, func() {}
	}
	ctx, c.Cancel = context.WithCancelCause(ctx)
	end := c.Cancel
	return ctx, func() { end(nil) }
}

// rowBox gathers the records of finished calls until the session takes them.
type rowBox struct {
	mu   sync.Mutex
	rows []store.Call
	last int // how many there were last time
}

// boxful is how many records are handed on at once at the latest.
const boxful = 1024

// put adds a record; it reports whether the session has to be told: that there is
// something, or that it is enough.
func (b *rowBox) put(r store.Call) (first, enough bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil {
		b.rows = make([]store.Call, 0, min(b.last+b.last/4+4, boxful))
	}
	b.rows = append(b.rows, r)
	return len(b.rows) == 1, len(b.rows) == boxful
}

func (b *rowBox) take() []store.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := b.rows
	b.rows, b.last = nil, len(rows)
	return rows
}
