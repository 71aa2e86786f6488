package actors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Board shows what every actor is doing. It lies outside all mailboxes, so it
// can be read while an actor is stuck; reading asks nobody.
type Board struct {
	lines sync.Map // id → *vitals

	mu      sync.Mutex
	crashes map[string]int64 // of all actors there ever were, by kind
}

func (b *Board) add(v *vitals)    { b.lines.Store(v.id, v) }
func (b *Board) remove(v *vitals) { b.lines.CompareAndDelete(v.id, v); v.leave() }

// crashed notes a crash of v.
func (b *Board) crashed(v *vitals, cause any, stack []byte) {
	v.crashed(cause, stack)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.crashes == nil {
		b.crashes = map[string]int64{}
	}
	b.crashes[v.kind]++
}

// restarts counts the crashes of all actors there ever were, by kind: each was
// followed by a restart.
func (b *Board) restarts() map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]int64{}
	maps.Copy(all, b.crashes)
	return all
}

// Vitals is one line of the board.
type Vitals struct {
	ID        string        `json:"id"`
	Kind      string        `json:"kind"`
	Parent    string        `json:"parent,omitempty"`
	State     string        `json:"state,omitempty"`
	Since     time.Time     `json:"since"`             // when the state began
	Depth     int           `json:"depth"`             // messages that wait
	HighWater int           `json:"highWater"`         // most that ever waited
	Oldest    time.Duration `json:"oldestNs"`          // how long the first of them has waited
	Doing     string        `json:"doing,omitempty"`   // the message being handled
	For       time.Duration `json:"doingNs,omitempty"` // for how long
	Handled   int64         `json:"handled"`
	Crashes   int64         `json:"crashes"`          // each was followed by a restart
	Lately    int           `json:"crashesLately"`    // of those within the last ten minutes
	NextTry   time.Time     `json:"nextTry,omitzero"` // when it tries again what failed
	Pace      Pace          `json:"pace"`             // of its messages, and how long handling took
	LastError string        `json:"lastError,omitempty"`
	LastStack string        `json:"-"`
	Detail    any           `json:"detail,omitempty"` // what this kind of actor publishes
}

// Read returns the vitals of all actors, by id.
func (b *Board) Read() []Vitals {
	var lines []*vitals // sorted as pointers: what is read is large
	b.lines.Range(func(_, v any) bool {
		lines = append(lines, v.(*vitals))
		return true
	})
	slices.SortFunc(lines, func(a, b *vitals) int { return strings.Compare(a.id, b.id) })
	all := make([]Vitals, len(lines))
	for i, v := range lines {
		v.read(&all[i])
	}
	return all
}

const (
	// lately is how far back a crash counts as recent.
	lately = 10 * time.Minute
	// keepCrashes is how many crashes are remembered with their time.
	keepCrashes = 64
)

// vitals is the live line of one actor, written by its senders and its guard.
type vitals struct {
	id, kind, name, parent string
	gone                   chan struct{} // closed when the actor has left for good

	mu        sync.Mutex
	waiting   []int64 // Unix ns at which each waiting message was sent, oldest first
	head      int     // index of the oldest in waiting
	highWater int
	doing     any
	since     time.Time
	handled   int64
	crashes   int64
	crashedAt []int64 // Unix ns of the last ones, at most keepCrashes
	meter     meter
	lastError string
	lastStack string
	state     string
	stateAt   time.Time
	detail    any
	left      bool
}

func newVitals(kind, name, parent string) *vitals {
	return &vitals{id: kind + "/" + name, kind: kind, name: name, parent: parent,
		gone: make(chan struct{}), stateAt: time.Now()}
}

// posted notes that a message is on its way.
func (v *vitals) posted() {
	now := time.Now().UnixNano()
	v.mu.Lock()
	v.waiting = append(v.waiting, now)
	v.highWater = max(v.highWater, len(v.waiting)-v.head)
	v.mu.Unlock()
}

// begin notes that the oldest message is being handled.
func (v *vitals) begin(m any) {
	now := time.Now()
	v.mu.Lock()
	if v.head < len(v.waiting) {
		v.head++
	}
	if v.head == len(v.waiting) {
		v.waiting, v.head = v.waiting[:0], 0
	} else if v.head > 1024 && v.head > len(v.waiting)/2 {
		v.waiting = append(v.waiting[:0], v.waiting[v.head:]...)
		v.head = 0
	}
	v.doing, v.since = m, now
	v.mu.Unlock()
}

func (v *vitals) end() {
	now := time.Now()
	v.mu.Lock()
	v.meter.add(now, now.Sub(v.since))
	v.doing = nil
	v.handled++
	v.mu.Unlock()
}

func (v *vitals) crashed(cause any, stack []byte) {
	v.mu.Lock()
	v.crashes++
	v.crashedAt = append(v.crashedAt, time.Now().UnixNano())
	v.crashedAt = v.crashedAt[max(0, len(v.crashedAt)-keepCrashes):]
	v.lastError, v.lastStack = fmt.Sprint("panic: ", cause), string(stack)
	v.mu.Unlock()
}

// note publishes an actor's state, and what a reader of the board may see of it.
// detail must not be changed afterwards.
func (v *vitals) note(state string, detail any) {
	v.mu.Lock()
	if v.state != state {
		v.state, v.stateAt = state, time.Now()
	}
	v.detail = detail
	v.mu.Unlock()
}

// failed publishes the last thing that went wrong.
func (v *vitals) failed(err error) {
	v.mu.Lock()
	v.lastError = err.Error()
	v.mu.Unlock()
}

func (v *vitals) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.left {
		v.left = true
		close(v.gone)
	}
}

func (v *vitals) read(line *Vitals) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	*line = Vitals{ID: v.id, Kind: v.kind, Parent: v.parent, State: v.state, Since: v.stateAt,
		Depth: len(v.waiting) - v.head, HighWater: v.highWater, Handled: v.handled,
		Crashes: v.crashes, LastError: v.lastError, LastStack: v.lastStack, Detail: v.detail, Pace: v.meter.read(now)}
	for _, at := range v.crashedAt {
		if now.Sub(time.Unix(0, at)) <= lately {
			line.Lately++
		}
	}
	if f, ok := v.detail.(ServerFacts); ok {
		line.NextTry = f.NextTry
	}
	if line.Depth > 0 {
		line.Oldest = now.Sub(time.Unix(0, v.waiting[v.head]))
	}
	if v.doing != nil {
		line.Doing, line.For = strings.TrimPrefix(fmt.Sprintf("%T", v.doing), "actors."), now.Sub(v.since)
	}
}
