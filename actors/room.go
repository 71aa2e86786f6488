package actors

import (
	"context"
	"maps"
	"time"
)

// maxSessions bounds the identities that a daemon without [agents] knows at a time: over
// the weeks more names may come than that.
const maxSessions = 1024

// roomGrace is how long the actor of a forgotten identity stays, for calls that were on
// their way to it.
const roomGrace = time.Minute

// forgotten is told to the hub by itself.
type forgotten struct{ session *Session }

func (forgotten) isHubMsg() {}

// makeRoom forgets the identity that made no call for longest. Its next request makes it
// anew. It reports false when all have calls in flight.
func (a *hubActor) makeRoom() bool {
	var oldest *Session
	var since time.Time
	for _, s := range a.view.Load().sessions {
		if at := s.desk.live.latest(); s.desk.live.none() && (oldest == nil || at.Before(since)) {
			oldest, since = s, at
		}
	}
	if oldest == nil {
		return false
	}
	a.crowded = true
	a.publish(func(v *View) {
		v.sessions = maps.Clone(v.sessions)
		delete(v.sessions, oldest.agent)
	})
	after[hubMsg](a.self, roomGrace, forgotten{oldest})
	return true
}

func (a *hubActor) forgotten(m forgotten) {
	if !m.session.desk.live.none() {
		after[hubMsg](a.self, roomGrace, m)
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), roomGrace)
		defer cancel()
		stopActor(ctx, m.session.ref)
	}()
}
