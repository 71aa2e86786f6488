package actors

import (
	"container/list"
	"context"
	"hash/maphash"
	"sync"

	"mcphubd/actors/excerpt"
	"mcphubd/store"
)

const (
	shelfBytes = 16 << 20 // what the indexes on the shelf may take
	shelfItems = 256
)

// A library is what all who read stored results share.
type library struct {
	filter Filter // runs jq; nil when there is none
	shelf  shelf
	turns  turns
}

// A shelf keeps the indexes of the results that were read last. What falls off is
// made again when it is needed.
type shelf struct {
	mu    sync.Mutex
	byID  map[store.ID]*list.Element // of *shelved
	order list.List                  // the last one used first
	cost  int64
}

type shelved struct {
	id    store.ID
	index *excerpt.Index
	cost  int64
}

// take returns the index of a result, a new one if need be.
func (s *shelf) take(id store.ID, size int64) *excerpt.Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byID[id]; ok {
		s.order.MoveToFront(e)
		return e.Value.(*shelved).index
	}
	if s.byID == nil {
		s.byID = map[store.ID]*list.Element{}
	}
	it := &shelved{id: id, index: excerpt.NewIndex(size)}
	s.byID[id] = s.order.PushFront(it)
	return it.index
}

// put weighs an index after it was used, and makes room.
func (s *shelf) put(id store.ID, x *excerpt.Index) {
	cost := x.Cost() // may wait for others who read the same result: not under the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byID[id]; ok && e.Value.(*shelved).index == x {
		it := e.Value.(*shelved)
		s.cost += cost - it.cost
		it.cost = cost
	}
	for s.cost > shelfBytes || s.order.Len() > shelfItems {
		it := s.order.Remove(s.order.Back()).(*shelved)
		delete(s.byID, it.id)
		s.cost -= it.cost
	}
}

// turns let one at a time derive from a result, so that the same question asked
// twice at once is answered by one stored result.
type turns [16]chan struct{}

func newLibrary() *library {
	l := &library{}
	for i := range l.turns {
		l.turns[i] = make(chan struct{}, 1)
	}
	return l
}

var turnSeed = maphash.MakeSeed()

// wait returns when it is the caller's turn; done ends it.
func (t *turns) wait(ctx context.Context, id store.ID) (done func(), err error) {
	turn := t[maphash.String(turnSeed, string(id))%uint64(len(t))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
