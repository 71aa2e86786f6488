package agent

import (
	"context"
	"net/http"
	"time"
)

// maxSessions bounds those of one identity.
const maxSessions = 1000

// collected marks the holds of a session that was given up.
const collected = -1 << 40

// hold keeps a session from being collected until release. It fails when that has
// happened already.
func (s *session) hold() bool {
	if s.holds.Add(1) > 0 {
		return true
	}
	s.holds.Add(-1)
	return false
}

func (s *session) release() {
	s.lastSeen.Store(time.Now().UnixNano())
	s.holds.Add(-1)
}

// seize gives up a session that nobody holds: no request of it is under way, and no
// stream of it is open.
func (s *session) seize() bool { return s.holds.CompareAndSwap(0, collected) }

// collect ends sessions that went unused for too long, until the server is closed.
// Most clients never say that they are done.
func (s *Server) collect() {
	for {
		limit := s.o.Gateway.SessionIdle()
		every := time.Minute
		if limit > 0 {
			every = min(every, max(limit/4, 10*time.Millisecond))
		}
		select {
		case <-s.closed:
			return
		case <-time.After(every):
		}
		if limit <= 0 {
			continue
		}
		for id, ss := range s.sessions.unused(time.Now().Add(-limit)) {
			s.giveUp(id, ss)
		}
		s.forgetUnused(time.Now().Add(-limit))
	}
}

// forgetUnused drops what is kept of identities that have no session, no stream and no
// request, and had none since then. Who comes back finds no difference.
func (s *Server) forgetUnused(then time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, id := range s.identities {
		switch {
		case id.fresh || id.holds.Load() > 0 || s.sessions.any(id):
			id.fresh, id.idle = false, time.Now()
		case id.idle.Before(then):
			delete(s.identities, name)
			close(id.gone)
		}
	}
}

// any reports whether the identity has a session.
func (t *sessions) any(who *identity) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.count[who] > 0
}

// giveUp ends a session that is not in the table any more, at the SDK too.
func (s *Server) giveUp(id string, ss *session) {
	s.sessions.end(ss)
	ctx := context.WithValue(context.Background(), identityKey{}, ss.id)
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/mcp", nil)
	if err != nil {
		return // it is always the same request
	}
	r.Header.Set(sessionHeader, id)
	s.eras.legacy.ServeHTTP(&nowhere{header: http.Header{}}, r)
}

// nowhere takes an answer that nobody waits for.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// unused takes the sessions out of the table that were last used before then.
func (t *sessions) unused(then time.Time) map[string]*session {
	gone := map[string]*session{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, s := range t.all {
		if s.lastSeen.Load() < then.UnixNano() && s.seize() {
			t.remove(id)
			gone[id] = s
		}
	}
	return gone
}

// makeRoom reports whether the identity may have one more session. When it has too
// many, the one that went unused for longest has to go.
func (s *Server) makeRoom(who *identity) bool {
	t := &s.sessions
	t.mu.Lock()
	if t.count[who] < s.most {
		t.mu.Unlock()
		return true
	}
	oldest := ""
	for id, ss := range t.all {
		if ss.id == who && ss.holds.Load() == 0 && (oldest == "" || ss.lastSeen.Load() < t.all[oldest].lastSeen.Load()) {
			oldest = id
		}
	}
	ss := t.all[oldest]
	if ss == nil || !ss.seize() {
		t.mu.Unlock()
		return false
	}
	t.remove(oldest)
	t.mu.Unlock()
	s.giveUp(oldest, ss)
	return true
}

// remove takes a session out of the table, whose lock is held.
func (t *sessions) remove(id string) *session {
	s := t.all[id]
	if s == nil {
		return nil
	}
	delete(t.all, id)
	if t.count[s.id]--; t.count[s.id] <= 0 {
		delete(t.count, s.id)
	}
	return s
}
