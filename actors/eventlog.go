package actors

import (
	"fmt"
	"sync/atomic"

	"github.com/anthdm/hollywood/actor"
)

// Eventlog turns what the engine reports into log lines and counters, and answers
// for letters that reached nobody.
type eventlog struct {
	sys  *System
	self ref[eventMsg]
}

// eventMsg is empty: nobody but the engine speaks to the Eventlog.
//
//sumtype:decl
type eventMsg interface{ isEventMsg() }

// DeadLetters counts messages that reached nobody since the process started.
var deadLetters atomic.Int64

// DeadLetters returns how many messages reached nobody since the process started.
func DeadLetters() int64 { return deadLetters.Load() }

func spawnEventlog(s *System) {
	r := spawn(s, "eventlog", "engine", "", func() behaviour[eventMsg] { return &eventlog{sys: s} })
	s.engine.Subscribe(r.pid)
}

func (a *eventlog) start(self ref[eventMsg]) {
	a.self = self
	self.line.note("listening", nil)
}
func (a *eventlog) handle(asker, eventMsg) {}
func (a *eventlog) stop()                  {}

// event is called by the guard for everything that is no letter.
func (a *eventlog) event(c *actor.Context) {
	switch m := c.Message().(type) {
	case actor.DeadLetterEvent:
		if l, ok := m.Message.(interface{ undeliverable() }); ok {
			deadLetters.Add(1)
			l.undeliverable()
		}
	case actor.ActorRestartedEvent:
		a.sys.log.Error().Str("actor", m.PID.ID).Str("panic", fmt.Sprint(m.Reason)).
			Int32("restarts", m.Restarts).Str("stack", clip(string(m.Stacktrace), 4000)).Msg("actor crashed and is restarted")
	case actor.ActorDuplicateIdEvent:
		a.sys.log.Error().Str("actor", m.PID.ID).Msg("an actor with this id is still there; the new one was refused")
	}
}
