package actors

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// logLevels are those of the protocol, least first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// setLevelWithin bounds a logging/setLevel that a server does not answer.
const setLevelWithin = 10 * time.Second

// logs knows which log messages agents want. It lies outside the mailboxes: messages of
// servers go straight through, and one goroutine keeps each server at the least level
// that any agent asked for whose scope contains it. A server that nobody asked for is
// told nothing.
type logs struct {
	sink   atomic.Pointer[logSink]
	mu     sync.Mutex
	levels map[listening]int
	told   map[Conn]telling // the latest of each connection; of the goroutine
	forgot []Conn           // what told says of these is not true any more
	news   chan struct{}    // holds one when levels changed
	stop   context.CancelFunc
	ended  chan struct{}
}

// telling is one logging/setLevel: the index of its level, and a channel that closes when it
// was answered or given up.
type telling struct {
	level int
	over  chan struct{}
}

// listening is an agent, and the one server it attached to ("" = all in its scope).
type listening struct{ agent, only string }

// LogFrom is where a log message comes from: a server, or the copy of it that belongs to an
// agent, or to one session of it, and is nobody else's business.
type LogFrom struct{ Server, Agent, Session string }

type logSink func(from LogFrom, params []byte)

// OnLog has f called with the log messages of servers that belong to no call. f must not
// block.
func (d *Daemon) OnLog(f func(from LogFrom, params []byte)) {
	sink := logSink(f)
	d.Sys.logs.sink.Store(&sink)
}

// SetLogLevel says what an agent wants from now on, of one server or of all (only is
// ""); level "" = nothing.
func (d *Daemon) SetLogLevel(agent, only, level string) {
	l, who := &d.Sys.logs, listening{agent, only}
	l.mu.Lock()
	if n := slices.Index(logLevels, level); n >= 0 {
		l.levels[who] = n
	} else {
		delete(l.levels, who)
	}
	l.mu.Unlock()
	l.wake()
}

// forget has the server of c told its level again.
func (l *logs) forget(c Conn) {
	l.mu.Lock()
	l.forgot = append(l.forgot, c)
	l.mu.Unlock()
	l.wake()
}

func (l *logs) wake() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// SeesServer reports whether an agent may know of a server, as of now.
func (h Hub) SeesServer(agent, server string) bool {
	a, known := h.View().Config.Agent(agent)
	return known && scopeOf(a).Touches(server)
}

func (l *logs) tell(from LogFrom, params []byte) {
	if sink := l.sink.Load(); sink != nil {
		(*sink)(from, params)
	}
}

// start begins to keep the levels of the servers of h, until end.
func (l *logs) start(h Hub, log zerolog.Logger) {
	ctx, stop := context.WithCancel(context.Background())
	l.levels, l.told = map[listening]int{}, map[Conn]telling{}
	l.news, l.stop, l.ended = make(chan struct{}, 1), stop, make(chan struct{})
	go func() {
		defer close(l.ended)
		for {
			v := h.View()
			l.keep(ctx, v, log)
			select {
			case <-v.changed:
			case <-l.news:
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (l *logs) end() {
	if l.stop != nil {
		l.stop()
		<-l.ended
	}
}

// keep tells the servers of v what they do not know yet.
func (l *logs) keep(ctx context.Context, v *View, log zerolog.Logger) {
	l.mu.Lock()
	levels := maps.Clone(l.levels)
	for _, c := range l.forgot {
		delete(l.told, c)
	}
	l.forgot = nil
	l.mu.Unlock()
	live := map[Conn]bool{}
	for of, s := range everyone(v) {
		if s.State != Ready || s.handle.desk == nil {
			continue
		}
		c := s.handle.desk.Load()
		if !c.enter() {
			continue
		}
		live[c.conn] = true
		level, wanted := leastFor(v, levels, of)
		was, told := l.told[c.conn]
		if !wanted || told && was.level == level || c.conn.Info().Protocol >= firstWithRounds || !declaredBy(c.conn).logging {
			c.leave()
			continue
		}
		now := telling{level, make(chan struct{})}
		l.told[c.conn] = now
		go func() {
			defer c.leave()
			defer close(now.over)
			if told {
				<-was.over // or a server could be left at the earlier of two levels
			}
			ctx, cancel := context.WithTimeout(ctx, setLevelWithin)
			defer cancel()
			if _, err := callRaw(ctx, c.conn, "logging/setLevel", []byte(`{"level":"`+logLevels[level]+`"}`)); err != nil {
				log.Debug().Str("server", of.server).Err(err).Msg("logging/setLevel")
			}
		}()
	}
	maps.DeleteFunc(l.told, func(c Conn, _ telling) bool { return !live[c] })
}

// everyone is each server, and each copy of one.
func everyone(v *View) map[owner]instance {
	all := maps.Clone(v.instances)
	if all == nil {
		all = map[owner]instance{}
	}
	for name, s := range v.Servers {
		all[owner{server: name}] = instance{ServerFacts: s.ServerFacts, handle: s.Handle}
	}
	return all
}

// leastFor is the least level that an agent wants whose scope contains the server, and whose
// copy it is, if it is one.
func leastFor(v *View, levels map[listening]int, of owner) (least int, wanted bool) {
	for who, n := range levels {
		a, known := v.Config.Agent(who.agent)
		if known && (who.only == "" || who.only == of.server) && (of.agent == "" || of.agent == who.agent) &&
			scopeOf(a).Touches(of.server) && (!wanted || n < least) {
			least, wanted = n, true
		}
	}
	return least, wanted
}
