package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// errCancelled is why a call ended that its agent cancelled: nobody waits for the answer.
var errCancelled = errors.New("cancelled by the agent")

// SessionInfo is what is known of one legacy session, or of a client that has none.
type SessionInfo struct {
	Agent    string    `json:"agent"`
	Protocol string    `json:"protocol"`
	Client   string    `json:"client"`
	Version  string    `json:"version"`
	Created  time.Time `json:"created"`
	LastSeen time.Time `json:"lastSeen"`
	InFlight int       `json:"inFlight"`

	Transport string `json:"transport"`     // how it attached: http or socket
	PID       int    `json:"pid,omitempty"` // of the process at the socket
}

// sessions are the sessions that the SDK handed out. The SDK keeps their state; this
// table knows whom they belong to and which of our calls run in them.
type sessions struct {
	mu    sync.RWMutex
	all   map[string]*session
	count map[*identity]int
	gone  func(agent, session string, last bool)
	left  func(agent string) // told when a session ends that wanted log messages
}

type session struct {
	sid      string
	id       *identity    // under which it was made, and alone may be used
	info     SessionInfo  // as it was made; LastSeen and InFlight are filled in by read
	lastSeen atomic.Int64 // unix nanoseconds
	holds    atomic.Int64 // requests under way and open streams; collected = it is gone
	can      abilities
	level    atomic.Int32           // of log messages; a logLevel
	stream   atomic.Pointer[stream] // the latest standing one; it may have ended

	mu       sync.Mutex
	calls    []*running
	asked    map[string]chan said // requests of ours, by id
	ended    bool
	standing *standing // the latest one, until it is gone
}

// running is one call of a session.
type running struct {
	id     []byte
	cancel context.CancelCauseFunc
}

// of returns the session with that id, if it is the identity's own. Whoever gets it has
// to release it.
func (t *sessions) of(who *identity, id string, now time.Time) *session {
	t.mu.RLock()
	s := t.all[id]
	t.mu.RUnlock()
	if s == nil || s.id != who || !s.hold() {
		return nil
	}
	s.lastSeen.Store(now.UnixNano())
	return s
}

// learn notes a session that the SDK made, from the initialize that asked for it.
func (t *sessions) learn(ctx context.Context, who *identity, id string, params []byte) {
	var p struct {
		ProtocolVersion string
		ClientInfo      struct{ Name, Version string }
		Capabilities    json.RawMessage
	}
	json.Unmarshal(params, &p) // what it cannot read is only missing on the debug page
	now := time.Now()
	s := &session{sid: id, id: who, can: abilitiesOf(p.Capabilities), info: SessionInfo{
		Agent: who.name, Protocol: offered(p.ProtocolVersion), Client: clip(p.ClientInfo.Name), Version: clip(p.ClientInfo.Version), Created: now,
	}}
	s.info.Transport, s.info.PID = peerOf(ctx)
	s.lastSeen.Store(now.UnixNano())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all, t.count = map[string]*session{}, map[*identity]int{}
	}
	t.all[id] = s
	t.count[who]++
}

// clip bounds what a client says of itself.
func clip(s string) string { return s[:min(len(s), 100)] }

// forget drops a session and ends its calls.
func (t *sessions) forget(id string) {
	t.mu.Lock()
	s := t.remove(id)
	t.mu.Unlock()
	if s != nil {
		t.end(s)
	}
}

// end ends a session that is not in the table any more.
func (t *sessions) end(s *session) {
	s.end()
	t.mu.RLock()
	last := t.count[s.id] == 0
	t.mu.RUnlock()
	agent, _, _ := strings.Cut(s.info.Agent, aside)
	t.gone(agent, s.sid, last)
	if s.logs() > 0 && t.left != nil {
		t.left(s.info.Agent)
	}
}

// forgetAll drops all sessions of an identity.
func (t *sessions) forgetAll(who *identity) {
	t.mu.Lock()
	var gone []*session
	for id, s := range t.all {
		if s.id == who {
			t.remove(id)
			gone = append(gone, s)
		}
	}
	t.mu.Unlock()
	for _, s := range gone {
		t.end(s)
	}
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, c := range s.calls {
		c.cancel(errCancelled)
	}
	for _, to := range s.asked {
		to <- said{err: errSession}
	}
	s.asked = nil
}

func (t *sessions) list() []SessionInfo {
	t.mu.RLock()
	out := make([]SessionInfo, 0, len(t.all))
	for _, s := range t.all {
		out = append(out, s.read())
	}
	t.mu.RUnlock()
	sort.Slice(out, func(i, j int) bool { return out[i].Created.Before(out[j].Created) })
	return out
}

func (s *session) read() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.info
	i.LastSeen, i.InFlight = time.Unix(0, s.lastSeen.Load()), len(s.calls)
	return i
}

// begin notes a call until done. c must stay as it is that long.
func (s *session) begin(c *running) {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
}

func (s *session) done(c *running) {
	s.mu.Lock()
	at, last := slices.Index(s.calls, c), len(s.calls)-1
	s.calls[at], s.calls[last] = s.calls[last], nil
	s.calls = s.calls[:last]
	s.mu.Unlock()
}

// cancel ends the call with that id and reports whether there is one. Two calls with
// the same id belong to two chats of one careless client: then it is not known whose
// call is meant, and both go on.
func (s *session) cancel(id []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit []*running
	for _, c := range s.calls {
		if bytes.Equal(c.id, id) {
			hit = append(hit, c)
		}
	}
	if len(hit) == 1 {
		hit[0].cancel(errCancelled)
	}
	return len(hit) > 0
}
