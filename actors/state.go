package actors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcphubd/store"
)

// stderrShown is how much of a live server's stderr a snapshot holds.
const stderrShown = 4 << 10

// Snapshot is the whole state for the debug endpoint. It holds metadata only,
// never arguments, results or secrets.
type Snapshot struct {
	Problems    []Problem     `json:"problems"`
	Totals      Totals        `json:"totals"`
	Servers     []ServerLine  `json:"servers"`
	Sessions    []SessionLine `json:"sessions"`
	Names       []NameLine    `json:"names"`  // of tools that agents do not see as server__tool
	Calls       []CallInfo    `json:"calls"`  // in flight
	Recent      []CallDone    `json:"recent"` // that ended, the newest first
	Spool       SpoolLine     `json:"spool"`
	Actors      []Vitals      `json:"actors"`
	DeadLetters int64         `json:"deadLetters"`
	View        int64         `json:"view"` // its revision

	ByServer map[string]Tally `json:"-"` // calls of all servers there ever were
}

// Totals is what happened since the process started.
type Totals struct {
	Tally
	Reads    map[string]int64 `json:"reads"` // looks at stored results, by their selector
	InFlight int              `json:"inFlight"`
	Restarts map[string]int64 `json:"restarts"` // of actors that crashed, by kind
}

// ServerLine is one server.
type ServerLine struct {
	Name      string `json:"name"`
	Transport string `json:"transport"` // stdio, http or sse
	Enabled   bool   `json:"enabled"`
	Isolation string `json:"isolation"`
	InFlight  int64  `json:"inFlight"`
	Tools     int    `json:"tools"`
	Prompts   int    `json:"prompts"`
	Resources int    `json:"resources"`
	Templates int    `json:"templates"`
	Stream    string `json:"stream,omitempty"` // of a server at a URL: the stream on which it speaks unasked, "up" or "down: why"

	Noise      int64  `json:"noise,omitempty"` // lines it wrote where only messages may stand
	FirstNoise string `json:"firstNoise,omitempty"`
	Dropped    int64  `json:"dropped,omitempty"` // messages that nobody waited for
	ServerFacts
	Tally     Tally          `json:"tally"`
	Instances []InstanceLine `json:"instances,omitempty"` // its copies for one agent or session each
}

// SessionLine is one agent identity.
type SessionLine struct {
	Agent    string   `json:"agent"`
	InFlight int      `json:"inFlight"`
	Servers  []string `json:"servers,omitzero"` // its scope; absent = all
	Tools    []string `json:"tools,omitzero"`
	Known    bool     `json:"known"` // the configuration still lets it in

	LastCall time.Time `json:"lastCall,omitzero"` // when its latest call began
}

// SpoolLine is the store: its size, and what was done since the process started.
type SpoolLine struct {
	store.Usage
	SpoolCounts
	MaxBytes  int64         `json:"maxBytes"` // 0 = no bound
	Write     Pace          `json:"write"`    // of the Spool's messages: writes wait for their commit
	LastPrune time.Time     `json:"lastPrune,omitzero"`
	Oldest    time.Duration `json:"oldestNs"` // how long the first waiting write has waited
}

// Snapshot reads the state without asking any actor.
func (d *Daemon) Snapshot() Snapshot {
	v, u, c := d.Hub.View(), d.Spool.Usage(), d.Sys.ledger.show()
	s := Snapshot{Problems: d.Sys.problems.Read(), Actors: d.Sys.board.Read(), Recent: c.Recent,
		Totals:      Totals{Tally: c.Total, Reads: c.Reads, Restarts: d.Sys.board.restarts()},
		ByServer:    c.Servers,
		DeadLetters: DeadLetters(), View: v.Revision, Spool: SpoolLine{Usage: u, SpoolCounts: d.Spool.Counts()},
		Servers: make([]ServerLine, 0, len(v.Servers)), Sessions: make([]SessionLine, 0, len(v.sessions)), Calls: []CallInfo{},
		Names: names(v)}
	for _, n := range slices.Sorted(maps.Keys(v.Servers)) {
		s.Servers = append(s.Servers, v.Servers[n].line(n, c.Servers[n]))
		s.Servers[len(s.Servers)-1].Instances = instancesOf(v, n)
	}
	for _, n := range slices.Sorted(maps.Keys(v.sessions)) {
		live := v.sessions[n].desk.live.list()
		agent, known := v.Config.Agent(n)
		s.Sessions = append(s.Sessions, SessionLine{Agent: n, InFlight: len(live), Servers: agent.Servers, Tools: agent.Tools,
			Known: known, LastCall: v.sessions[n].desk.live.latest()})
		s.Calls = append(s.Calls, live...)
	}
	slices.SortFunc(s.Calls, func(a, b CallInfo) int { return int(a.Serial - b.Serial) })
	s.Problems = append(s.Problems, stuck(s.Actors)...)
	s.Totals.InFlight = len(s.Calls)
	s.Spool.MaxBytes = d.Spool.pub.maxBytes.Load()
	for i := range s.Actors {
		switch a := &s.Actors[i]; {
		case a.ID == d.Spool.line.id:
			s.Spool.Write, s.Spool.Oldest = a.Pace, a.Oldest
		case a.ID == d.pruner.line.id && a.State == "resting":
			s.Spool.LastPrune = a.Since
		}
	}
	return s
}

// stuckAfter is how long an actor may take over one message until that is a problem:
// what may be slow does not run in a mailbox.
const stuckAfter = 5 * time.Second

// stuck finds the actors that take too long. Nobody could raise these problems but
// who looks from outside.
func stuck(all []Vitals) (problems []Problem) {
	now := time.Now()
	for i := range all {
		a := &all[i]
		if a.Doing == "" || a.For < stuckAfter {
			continue
		}
		problems = append(problems, Problem{Code: "actor-stuck", Subject: a.ID, Since: now.Add(-a.For), Last: now, Count: 1,
			Text: fmt.Sprintf("actor %s has been handling %s for %s; waiting behind it: %d", a.ID, a.Doing, a.For.Round(time.Second), a.Depth),
			Fix:  "keep what /debug/pprof/goroutine?debug=1 tells of it for a report, then end the daemon by its process id and start it anew"})
	}
	return problems
}

// line is what a snapshot says of one server.
func (s ServerView) line(name string, t Tally) ServerLine {
	l := ServerLine{Name: name, Transport: "stdio", Enabled: s.Config.Enabled, Isolation: s.Config.Isolation,
		InFlight: s.Handle.InFlight(), Tools: len(s.Tools), Prompts: len(s.Prompts), ServerFacts: s.ServerFacts, Tally: t}
	if s.Offer != nil {
		l.Resources, l.Templates = len(s.Offer.Resources), len(s.Offer.Templates)
	}
	if s.Config.URL != "" {
		l.Transport = s.Config.Transport
		if l.Transport == "" {
			l.Transport = "http"
		}
	}
	if l.Tally.Outcomes == nil {
		l.Tally.Outcomes = map[string]int64{}
	}
	s.Handle.observe(&l)
	return l
}

// observe adds what only the live connection can tell.
func (d Downstream) observe(l *ServerLine) {
	if d.desk == nil {
		return
	}
	c := d.desk.Load()
	if c == nil {
		return
	}
	if l.Stderr == "" {
		l.Stderr = endOf(c.conn.Stderr())
	}
	if s, ok := c.conn.(interface{ Standing() string }); ok {
		l.Stream = s.Standing()
	}
	if s, ok := c.conn.(interface{ Noise() (int64, []string) }); ok {
		n, lines := s.Noise()
		if l.Noise = n; len(lines) > 0 {
			l.FirstNoise = lines[0]
		}
	}
	if s, ok := c.conn.(interface{ Unwanted() int64 }); ok {
		l.Dropped = s.Unwanted()
	}
}

// endOf is the last lines of stderr: whole ones, unless the last alone is too long.
func endOf(all string) string {
	if len(all) <= stderrShown {
		return all
	}
	end := all[len(all)-stderrShown:]
	if _, whole, _ := strings.Cut(end, "\n"); strings.TrimSpace(whole) != "" {
		return whole
	}
	return strings.ToValidUTF8(end, "")
}
