package actors

import (
	"maps"
	"sync"
	"time"

	"mcphubd/store"
)

const (
	// recentCalls is how many calls that ended can be looked at.
	recentCalls = 200
	// maxTallies bounds the servers that are counted one by one, whatever was
	// configured while the daemon lived; more are counted together, as otherServers.
	maxTallies   = 256
	otherServers = "(others)"
)

// ledger is what calls came to since the process started. It lies outside the
// mailboxes, like the board.
type ledger struct {
	mu      sync.Mutex
	recent  [recentCalls]CallDone
	next    int
	reads   map[string]int64
	servers map[string]*tally
}

// CallDone is one call that ended.
type CallDone struct {
	Serial      int64     `json:"serial"`
	At          time.Time `json:"at"` // when it began
	Agent       string    `json:"agent"`
	Server      string    `json:"server"`
	Tool        string    `json:"tool"`
	Outcome     string    `json:"outcome"`
	Ms          float64   `json:"ms"`
	ArgBytes    int64     `json:"argBytes"`
	ResultBytes int64     `json:"resultBytes"` // what the server gave
	GivenBytes  int64     `json:"givenBytes"`  // what the agent got
	Stored      bool      `json:"stored"`
}

// Tally counts calls.
type Tally struct {
	Calls        int64            `json:"calls"`
	Errors       int64            `json:"errors"` // every outcome but ok and cancelled
	Outcomes     map[string]int64 `json:"outcomes"`
	ArgBytes     int64            `json:"argBytes"`
	ResultBytes  int64            `json:"resultBytes"`  // what servers gave
	Receipts     int64            `json:"receipts"`     // results that were answered by less than themselves
	KeptOutBytes int64            `json:"keptOutBytes"` // what contexts were spared by those
	Seconds      float64          `json:"seconds"`      // all their durations together
	Within       []int64          `json:"-"`            // calls by duration, a class each of CallSeconds; those above are in Calls
	Pace         Pace             `json:"pace"`
}

// CallSeconds are the bounds of the classes of Tally.Within.
var CallSeconds = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 600}

type tally struct {
	Tally
	meter meter
}

func newLedger() *ledger {
	return &ledger{servers: map[string]*tally{}, reads: map[string]int64{}}
}

func newTally() Tally {
	return Tally{Outcomes: map[string]int64{}, Within: make([]int64, len(CallSeconds))}
}

// record notes a call that ended; given is how many bytes its agent got.
func (l *ledger) record(c store.Call, given int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent[l.next] = CallDone{c.Serial, c.At, c.Agent, c.Server, c.Tool, c.Outcome,
		float64(c.Took.Microseconds()) / 1000, c.ArgBytes, c.ResultBytes, given, c.Stored}
	l.next = (l.next + 1) % recentCalls
	l.of(c.Server).add(c, given)
}

func (l *ledger) of(server string) *tally {
	t, ok := l.servers[server]
	if !ok && len(l.servers) >= maxTallies {
		server = otherServers
		t, ok = l.servers[server]
	}
	if !ok {
		t = &tally{Tally: newTally()}
		l.servers[server] = t
	}
	return t
}

func (t *tally) add(c store.Call, given int64) {
	t.Calls++
	t.Outcomes[c.Outcome]++
	if c.Outcome != "ok" && c.Outcome != "cancelled" {
		t.Errors++
	}
	t.ArgBytes += c.ArgBytes
	t.ResultBytes += c.ResultBytes
	if c.Stored && given < c.ResultBytes {
		t.Receipts++
		t.KeptOutBytes += c.ResultBytes - given
	}
	t.Seconds += c.Took.Seconds()
	for i, bound := range CallSeconds {
		if c.Took.Seconds() <= bound {
			t.Within[i]++
			break
		}
	}
	t.meter.add(c.At.Add(c.Took), c.Took)
}

// read counts a look at stored results, by the way it chose.
func (l *ledger) read(selector string) {
	l.mu.Lock()
	l.reads[selector]++
	l.mu.Unlock()
}

// Counts is what a ledger shows.
type Counts struct {
	Total   Tally
	Servers map[string]Tally
	Reads   map[string]int64
	Recent  []CallDone // the newest first
}

func (l *ledger) show() Counts {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := Counts{Total: newTally(), Servers: make(map[string]Tally, len(l.servers)), Reads: maps.Clone(l.reads),
		Recent: make([]CallDone, 0, recentCalls)}
	var all spread
	for n, t := range l.servers {
		s := t.show(now)
		c.Servers[n] = s
		c.Total.plus(s)
		all.plus(&t.meter.now)
		all.plus(&t.meter.before)
	}
	c.Total.Pace.P50, c.Total.Pace.P95 = all.quantiles()
	for i := range l.recent {
		if d := l.recent[(l.next-1-i+2*recentCalls)%recentCalls]; d.Serial != 0 {
			c.Recent = append(c.Recent, d)
		}
	}
	return c
}

func (t *tally) show(now time.Time) Tally {
	s := t.Tally
	s.Outcomes, s.Within = maps.Clone(s.Outcomes), append([]int64(nil), s.Within...)
	s.Pace = t.meter.read(now)
	return s
}

// plus adds what another tally counts, but for the quantiles of its pace.
func (t *Tally) plus(o Tally) {
	t.Calls, t.Errors, t.ArgBytes, t.ResultBytes = t.Calls+o.Calls, t.Errors+o.Errors, t.ArgBytes+o.ArgBytes, t.ResultBytes+o.ResultBytes
	t.Receipts, t.KeptOutBytes, t.Seconds = t.Receipts+o.Receipts, t.KeptOutBytes+o.KeptOutBytes, t.Seconds+o.Seconds
	t.Pace.PerMinute += o.Pace.PerMinute
	for outcome, n := range o.Outcomes {
		t.Outcomes[outcome] += n
	}
	for i, n := range o.Within {
		t.Within[i] += n
	}
}
