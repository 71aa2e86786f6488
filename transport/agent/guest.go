package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxGuests is how many clients without sessions are remembered of an identity; who
	// was not seen for longest makes room.
	maxGuests = 16
	// maxCard is how long a client's description of itself may be.
	maxCard = 4 << 10
)

// guests are the clients of an identity that have no sessions, as their requests describe
// them: that is all there is to be known of them.
type guests struct {
	last atomic.Pointer[guest] // mostly the one that comes next, too

	mu  sync.Mutex
	all []*guest
}

// guest is one of them. Only seen and calls change.
type guest struct {
	card  []byte // clientInfo as it was sent
	info  SessionInfo
	seen  atomic.Int64 // unix nanoseconds
	calls atomic.Int64 // in flight
}

func (g *guest) is(card []byte, protocol, transport string, pid int) bool {
	i := &g.info
	return i.Protocol == protocol && i.PID == pid && i.Transport == transport && bytes.Equal(g.card, card)
}

// saw notes that a client sent a request.
func (s *guests) saw(ctx context.Context, agent, protocol string, card []byte) *guest {
	transport, pid := peerOf(ctx)
	if len(card) > maxCard {
		card = nil
	}
	g := s.last.Load()
	if g == nil || !g.is(card, protocol, transport, pid) {
		g = s.find(card, SessionInfo{Agent: agent, Protocol: protocol, Transport: transport, PID: pid})
		s.last.Store(g)
	}
	g.seen.Store(time.Now().UnixNano())
	return g
}

// find returns the guest that is like i and has that card, a new one if there is none.
func (s *guests) find(card []byte, i SessionInfo) *guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := 0
	for at, g := range s.all {
		if g.is(card, i.Protocol, i.Transport, i.PID) {
			return g
		}
		if g.seen.Load() < s.all[oldest].seen.Load() {
			oldest = at
		}
	}
	var client struct{ Name, Version string }
	json.Unmarshal(card, &client) // what it cannot read is only missing on the debug page
	i.Client, i.Version, i.Created = clip(client.Name), clip(client.Version), time.Now()
	g := &guest{card: bytes.Clone(card), info: i}
	g.seen.Store(i.Created.UnixNano())
	if len(s.all) < maxGuests {
		s.all = append(s.all, g)
	} else {
		s.all[oldest] = g
	}
	return g
}

// list adds those to all that were seen within idle; 0 = whenever.
func (s *guests) list(all []SessionInfo, idle time.Duration) []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		i := g.info
		i.LastSeen, i.InFlight = time.Unix(0, g.seen.Load()), int(g.calls.Load())
		if idle == 0 || i.InFlight > 0 || time.Since(i.LastSeen) < idle {
			all = append(all, i)
		}
	}
	return all
}

// Attached lists the legacy sessions, and the newer clients that were here lately, as a
// session would have been. The oldest come first.
func (s *Server) Attached() []SessionInfo {
	all, idle := s.Sessions(), s.o.Gateway.SessionIdle()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.identities {
		all = id.guests.list(all, idle)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Created.Before(all[j].Created) })
	return all
}
