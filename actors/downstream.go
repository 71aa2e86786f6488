package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// State is where a server is in its life.
type State string

const (
	Connecting State = "connecting"
	Ready      State = "ready"
	BackingOff State = "backing-off"
	Draining   State = "draining"
	Stopped    State = "stopped"
)

const (
	firstBackoff = 10 * time.Millisecond
	maxBackoff   = time.Minute
	// refusedBackoff is the least wait after a server refused us: only its owner can mend that.
	refusedBackoff = time.Second
	// sustained is how long a server must have been up for its failures to be forgotten.
	sustained = 10 * time.Second
	// relistDelay gathers list_changed notices; relistRetry follows a list that failed.
	relistDelay = 100 * time.Millisecond
	relistRetry = 5 * time.Second
	// closeGrace bounds the end of a connection: EOF, TERM, KILL.
	closeGrace = 5 * time.Second
	// maxWaiting bounds the calls that wait for a first connect.
	maxWaiting = 4096
)

//sumtype:decl
type downstreamMsg interface{ isDownstreamMsg() }

type (
	lease  struct{}
	retire struct{ grace, closing time.Duration }

	connect   struct{ attempt int } // self: the backoff is over
	connected struct {              // from work
		attempt int
		conn    Conn
		listing listing
		err     error
	}
	lost        struct{ conn Conn } // from the watcher of the connection
	listChanged struct {            // from the connection
		conn Conn
		kind string
	}
	renewed struct{ conn Conn } // from the connection
	remind  struct{ conn Conn } // self: time to say again what the server forgot
	relist  struct {            // self: enough notices gathered, or time for another look
		conn Conn
		kind string
	}
	listed struct { // from work
		conn    Conn
		listing listing
	}
	featured struct { // from work
		conn Conn
		features
	}
	emptied   struct{ at *counter } // from the last call of a counter that is shut
	graceOver struct{}              // self: calls in flight had their time
	closed    struct{}              // from work: the connection is gone
)

func (lease) isDownstreamMsg()       {}
func (emptied) isDownstreamMsg()     {}
func (retire) isDownstreamMsg()      {}
func (connect) isDownstreamMsg()     {}
func (connected) isDownstreamMsg()   {}
func (lost) isDownstreamMsg()        {}
func (listChanged) isDownstreamMsg() {}
func (renewed) isDownstreamMsg()     {}
func (remind) isDownstreamMsg()      {}
func (relist) isDownstreamMsg()      {}
func (listed) isDownstreamMsg()      {}
func (featured) isDownstreamMsg()    {}
func (graceOver) isDownstreamMsg()   {}
func (closed) isDownstreamMsg()      {}

// ServerFacts is what a Downstream tells the hub about itself. It is never
// modified after it was told.
type ServerFacts struct {
	State   State          `json:"state"`
	Since   time.Time      `json:"since"`
	Cause   string         `json:"cause,omitempty"` // why it is not ready
	SignIn  bool           `json:"-"`               // it wants a credential
	NextTry time.Time      `json:"nextTry,omitzero"`
	Starts  int            `json:"starts"` // connects tried since the last restart of the actor
	Listed  bool           `json:"listed"` // its tools were read at least once
	Info    ConnInfo       `json:"info,omitzero"`
	Tools   []catalog.Tool `json:"-"`
	Bad     []catalog.Bad  `json:"bad,omitempty"`
	ListErr string         `json:"listError,omitempty"`
	Stderr  string         `json:"stderr,omitempty"`

	// What it offers besides tools is read right after it became ready.
	Featured   bool             `json:"featured"` // that was read, or failed, at least once
	Prompts    []catalog.Prompt `json:"-"`
	Offer      *catalog.Offer   `json:"-"`
	FeatureErr []string         `json:"featureErrors,omitempty"`
}

// spawnDownstream starts the actor of a server. recalled says that the tools of an
// earlier life are on show until it listed its own; spoke is the revision that it spoke
// then; subs are those of a predecessor, or nil.
func spawnDownstream(s *System, id string, cfg config.Server, k Connector, recalled bool, spoke string, only sole, subs *subscriptions, tell func(ServerFacts)) Downstream {
	desk := new(atomic.Pointer[counter])
	subs = subs.inherit(desk)
	r := spawn(s, "downstream", id, "hub", func() behaviour[downstreamMsg] {
		return &downstreamActor{sys: s, cfg: cfg, connector: k, tellHub: tell, desk: desk, subs: subs,
			recalled: recalled, spoke: spoke, only: only, gathering: map[string]bool{}, faults: map[string][]string{}}
	})
	return Downstream{r, cfg.Name, desk, subs}
}

type downstreamActor struct {
	sys       *System
	cfg       config.Server
	connector Connector
	tellHub   func(ServerFacts)

	self     ref[downstreamMsg]
	ctx      context.Context // ends with the actor
	cancel   context.CancelFunc
	facts    ServerFacts
	conn     Conn
	attempt  int      // numbers connects, so that a stale one is known
	dialing  *dialing // the newest connect
	failures int      // in a row
	readyAt  time.Time
	told     struct { // the fault that the log was told last
		cause string
		at    time.Time
	}
	desk    *atomic.Pointer[counter]
	counter *counter // of conn; published while ready
	subs    *subscriptions
	waiting []asker // for the connect under way
	retired []asker
	closing time.Duration // what the first of them gave the server to go

	recalled  bool   // tools of an earlier life are on show
	spoke     string // the revision of the latest connection, or of one before this life
	only      sole
	reminded  time.Time       // when the server was told again what it had forgotten
	looks     int             // in a row at an empty list of tools
	gathering map[string]bool // kinds of lists whose relist is on its way
	reading   int             // lists besides tools that are being read
	faults    map[string][]string
}

func (a *downstreamActor) start(self ref[downstreamMsg]) {
	a.self = self
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.connect()
}

func (a *downstreamActor) stop() {
	a.cancel()
	a.answerWaiting(a.stopping())
	if conn := a.conn; conn != nil {
		a.shut()
		a.conn = nil
		go closeConn(conn)
	}
}

func (a *downstreamActor) stopping() error {
	return fmt.Errorf("server %s: %w: it is being stopped", a.cfg.Name, ErrNotReady)
}

func (a *downstreamActor) handle(from asker, m downstreamMsg) {
	switch m := m.(type) {
	case lease:
		a.lease(from)
	case connect:
		a.retryNow(m)
	case connected:
		a.connected(m)
	case lost:
		a.lost(m)
	case listChanged:
		a.listChanged(m)
	case renewed:
		a.renewed(m)
	case remind:
		a.remind(m)
	case relist:
		a.relist(m)
	case listed:
		a.listed(m)
	case featured:
		a.featured(m)
	case configured:
		a.configured(m)
	case retire:
		a.retire(from, m)
	case emptied:
		a.emptied(m)
	case graceOver:
		a.end()
	case closed:
		a.closed()
	}
}

// become is the one way from state to state.
func (a *downstreamActor) become(s State, cause string) {
	if a.facts.State == s && a.facts.Cause == cause {
		return
	}
	was := a.facts.State
	a.facts.State, a.facts.Since, a.facts.Cause = s, time.Now(), cause
	log := a.sys.log.WithLevel(a.weight(was)).Str("server", a.cfg.Name).Str("from", string(was)).Str("to", string(s))
	if cause != "" {
		log = log.Str("cause", cause).Int("starts", a.facts.Starts)
	}
	log.Msg("server is " + string(s))
	a.publish()
}

// weight is how much its new state matters to a reader of the log. That it still does not
// come up does so once a minute; the tries between are for whoever debugs.
func (a *downstreamActor) weight(was State) zerolog.Level {
	switch now, told := time.Now(), &a.told; {
	case a.facts.State == Connecting && was == BackingOff:
		return zerolog.DebugLevel
	case a.facts.State != BackingOff:
		return zerolog.InfoLevel
	case was == Connecting && told.cause == a.facts.Cause && now.Sub(told.at) < time.Minute:
		return zerolog.DebugLevel
	default:
		told.cause, told.at = a.facts.Cause, now
		return zerolog.WarnLevel
	}
}

func (a *downstreamActor) publish() {
	a.self.line.note(string(a.facts.State), a.facts)
	a.tellHub(a.facts)
}

func (a *downstreamActor) lease(from asker) {
	switch a.facts.State {
	case Ready:
		from.answer(a.counter, nil)
	case Connecting:
		if len(a.waiting) >= maxWaiting {
			from.answer(nil, fmt.Errorf("server %s: %w: %d calls wait for it to connect already", a.cfg.Name, ErrNotReady, maxWaiting))
			return
		}
		a.waiting = append(a.waiting, from)
	case BackingOff:
		from.answer(nil, a.notReady())
	case Draining, Stopped:
		from.answer(nil, a.stopping())
	}
}

func (a *downstreamActor) notReady() error {
	in := max(time.Until(a.facts.NextTry), 0).Round(time.Millisecond)
	return fmt.Errorf("server %s: %w: %s; next try in %s", a.cfg.Name, ErrNotReady, a.facts.Cause, in)
}

// answerWaiting gives every waiting call the way to its lease, or the reason why not.
func (a *downstreamActor) answerWaiting(err error) {
	for _, from := range a.waiting {
		if err != nil {
			from.answer(nil, err)
			continue
		}
		from.answer(a.counter, nil)
	}
	a.waiting = nil
}

// open publishes the connection; shut takes it back. Calls that hold a lease of it
// keep theirs.
func (a *downstreamActor) open(conn Conn) {
	self := a.self
	c := &counter{conn: conn, starts: a.facts.Starts}
	c.empty = func() { self.tell(emptied{c}) }
	a.conn, a.counter = conn, c
	a.desk.Store(c)
}

func (a *downstreamActor) shut() {
	a.desk.Store(nil)
	if a.counter != nil {
		a.counter.shut.Store(true)
	}
}

func (a *downstreamActor) emptied(m emptied) {
	if m.at == a.counter && a.facts.State == Draining {
		a.end()
	}
}

func (a *downstreamActor) lost(m lost) {
	if m.conn != a.conn {
		return // an older connection's farewell
	}
	a.shut()
	a.conn = nil
	a.facts.Info.PID, a.facts.Stderr = 0, m.conn.Stderr()
	go closeConn(m.conn)
	switch a.facts.State {
	case Draining:
		a.end()
	case Ready:
		if time.Since(a.readyAt) >= sustained {
			a.failures = 0
		}
		a.retry(m.conn.Err())
	case Connecting, BackingOff, Stopped:
		// there is no connection to lose in these
	}
}

// retry waits longer after every failure in a row: doubling, with jitter and cap.
func (a *downstreamActor) retry(cause error) {
	a.failures++
	wait := maxBackoff
	if n := a.failures - 1; n < 13 {
		wait = min(firstBackoff<<n, maxBackoff)
	}
	wait += time.Duration(rand.Int64N(int64(wait)/5 + 1))
	if a.facts.SignIn = errors.Is(cause, ErrSignIn); a.facts.SignIn {
		wait = max(wait, refusedBackoff)
	}
	a.facts.NextTry = time.Now().Add(wait)
	a.self.line.failed(cause)
	a.become(BackingOff, cause.Error())
	a.answerWaiting(a.notReady())
	after[downstreamMsg](a.self, wait, connect{a.attempt})
}

func (a *downstreamActor) retire(from asker, m retire) {
	switch a.facts.State {
	case Stopped:
		from.answer(struct{}{}, nil)
		return
	case Draining:
		a.retired = append(a.retired, from)
		return
	case Connecting, Ready, BackingOff:
		a.retired, a.closing = append(a.retired, from), m.closing
	}
	a.attempt++ // a connect under way is stale now
	a.shut()
	a.answerWaiting(a.stopping())
	a.become(Draining, "")
	if a.conn == nil || a.counter.calls.Load() == 0 {
		a.end()
		return
	}
	after[downstreamMsg](a.self, m.grace, graceOver{})
}

// end closes what is left of the connection.
func (a *downstreamActor) end() {
	if a.facts.State != Draining {
		return
	}
	a.become(Stopped, "")
	a.cancel()
	self, d, within := a.self, a.dialing, a.closing
	a.conn = nil
	work(func() (struct{}, error) {
		d.close(within)
		return struct{}{}, nil
	}, func(struct{}, error) { self.tell(closed{}) })
}

func (a *downstreamActor) closed() {
	for _, from := range a.retired {
		from.answer(struct{}{}, nil)
	}
	a.retired = nil
}
