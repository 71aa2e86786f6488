package actors

import (
	"sync"
	"time"
)

// A Line waits for many things that all wait equally long: who came first is due first,
// so one timer serves all. A timer each costs a small call more than finding its tool
// does. The zero Line needs its After; it is safe for concurrent use.
type Line struct {
	After time.Duration // how long each waits; set before the first Join

	mu          sync.Mutex
	first, last *Turn
	timer       *time.Timer
	armed       bool
}

// Turn is a place in a Line, in what waits. It is in one line at most.
type Turn struct {
	who        interface{ Due() } // nil = in no line
	due        time.Time
	prev, next *Turn
}

// Join puts who at the end of the line, with its own t: once After has passed since now,
// Due is called, in a goroutine of the line. It must not block. now is what time it is,
// give or take a moment.
func (l *Line) Join(t *Turn, who interface{ Due() }, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*t = Turn{who: who, due: now.Add(l.After), prev: l.last}
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
	l.arm()
}

// Leave takes t out of the line. It reports whether t was still there; if not, Due was
// called, or may be just about to.
func (l *Line) Leave(t *Turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := t.who != nil
	l.drop(t)
	return was
}

// arm has the timer look at the first in line; mu is held. One that is armed already
// looks earlier, and in vain where its own first has left.
func (l *Line) arm() {
	if l.armed || l.first == nil {
		return
	}
	l.armed = true
	if wait := time.Until(l.first.due); l.timer == nil {
		l.timer = time.AfterFunc(wait, l.look)
	} else {
		l.timer.Reset(wait)
	}
}

func (l *Line) drop(t *Turn) {
	if t.who == nil {
		return
	}
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	*t = Turn{}
}

func (l *Line) look() {
	for _, who := range l.over(time.Now()) {
		who.Due()
	}
}

// over takes out who is due.
func (l *Line) over(now time.Time) (all []interface{ Due() }) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	for l.first != nil && !l.first.due.After(now) {
		all = append(all, l.first.who)
		l.drop(l.first)
	}
	l.arm()
	return all
}

// lines are the Lines of all calls, by how long they wait: few settings differ.
type lines struct {
	mu sync.RWMutex
	m  map[time.Duration]*Line
}

func (l *lines) of(after time.Duration) *Line {
	l.mu.RLock()
	line := l.m[after]
	l.mu.RUnlock()
	if line != nil {
		return line
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[time.Duration]*Line{}
	}
	if l.m[after] == nil {
		l.m[after] = &Line{After: after}
	}
	return l.m[after]
}
