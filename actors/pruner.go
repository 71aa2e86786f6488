package actors

import (
	"context"
	"fmt"
	"time"

	"mcphubd/store"
)

const (
	pruneEvery = 30 * time.Second
	// pruneSlice is how many chunk rows one transaction deletes, so that a result
	// on its way to the store never waits behind a long delete.
	pruneSlice = 16
	// shrinkPages is how many pages one step gives back.
	shrinkPages = 64
	// clockStep is how far the wall clock may run ahead of time that passed; more
	// is a step, and a step must not delete anything in the same tick (case C82).
	clockStep = time.Minute
)

// Pruner is the clock of retention.
//
//sumtype:decl
type prunerMsg interface{ isPrunerMsg() }

type (
	tick   struct{} // self
	pruned struct { // from work
		done store.Pruned
		err  error
	}
	shrunk struct { // from work
		pages int
		err   error
	}
)

func (tick) isPrunerMsg()   {}
func (pruned) isPrunerMsg() {}
func (shrunk) isPrunerMsg() {}

func spawnPruner(s *System, sp Spool) ref[prunerMsg] {
	return spawn(s, "pruner", "retention", "hub", func() behaviour[prunerMsg] {
		return &prunerActor{sys: s, spool: sp, began: time.Now(), wall: sp.now()}
	})
}

type prunerActor struct {
	sys   *System
	spool Spool
	self  ref[prunerMsg]
	timer *time.Timer

	began  time.Time // monotonic
	wall   time.Time // wall clock at began
	round  store.Pruned
	last   time.Time
	freed  int
	paused bool // this tick found a step of the clock
}

func (a *prunerActor) start(self ref[prunerMsg]) {
	a.self = self
	a.self.tell(tick{})
}

func (a *prunerActor) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *prunerActor) handle(_ asker, m prunerMsg) {
	switch m := m.(type) {
	case tick:
		a.tick()
	case pruned:
		a.pruned(m)
	case shrunk:
		a.shrunk(m)
	}
}

func (a *prunerActor) tick() {
	a.round, a.freed = store.Pruned{}, 0
	now := a.spool.now()
	passed, ran := time.Since(a.began), now.Sub(a.wall)
	a.began, a.wall = time.Now(), now
	if ran-passed > clockStep {
		a.sys.log.Warn().Dur("step", ran-passed).Msg("the wall clock was set forward: this round prunes nothing")
		a.rest()
		return
	}
	a.slice()
}

// slice prunes once more; between two slices whatever waits in the Spool's
// mailbox has its turn.
func (a *prunerActor) slice() {
	a.self.line.note("pruning", a.round)
	self, sp, now := a.self, a.spool, a.wall
	work(func() (store.Pruned, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return sp.Prune(ctx, now, pruneSlice)
	}, func(p store.Pruned, err error) { self.tell(pruned{p, err}) })
}

func (a *prunerActor) pruned(m pruned) {
	if m.err != nil {
		a.failed(m.err)
		return
	}
	a.round.Results += m.done.Results
	a.round.Chunks += m.done.Chunks
	a.round.Calls += m.done.Calls
	if m.done.More {
		a.slice()
		return
	}
	a.shrink()
}

func (a *prunerActor) shrink() {
	self, sp := a.self, a.spool
	work(func() (int, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return sp.Shrink(ctx, shrinkPages)
	}, func(n int, err error) { self.tell(shrunk{n, err}) })
}

func (a *prunerActor) shrunk(m shrunk) {
	if m.err != nil {
		a.failed(m.err)
		return
	}
	a.sys.problems.Clear("prune-failing", "spool")
	a.freed += m.pages
	if m.pages >= shrinkPages {
		a.shrink()
		return
	}
	if a.round.Results > 0 {
		a.sys.log.Info().Int("results", a.round.Results).Int("calls", a.round.Calls).Int("pages", a.freed).Msg("pruned")
	}
	a.rest()
}

func (a *prunerActor) failed(err error) {
	err = fmt.Errorf("prune: %w", err)
	a.self.line.failed(err)
	a.sys.problems.Raise(Problem{Code: "prune-failing", Subject: "spool", Text: err.Error(), Fix: "free disk space; mcphubd doctor looks at the store"})
	a.rest()
}

// rest re-arms the clock once the job is done.
func (a *prunerActor) rest() {
	a.self.line.note("resting", a.round)
	a.timer = after[prunerMsg](a.self, pruneEvery, tick{})
}
