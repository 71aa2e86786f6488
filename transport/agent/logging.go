package agent

import (
	"strings"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// logLevel is a least severity; 0 = no log messages at all.
type logLevel int

var logLevels = []string{"", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelOf reads a level as JSON; 0 when it is none.
func levelOf(raw []byte) logLevel {
	name, _ := text(raw)
	for i, l := range logLevels {
		if name == l {
			return logLevel(i)
		}
	}
	return 0
}

func (l logLevel) String() string { return logLevels[l] }

const logMethod = "notifications/message"

// wants reports whether a log message is severe enough.
func (l logLevel) wants(params []byte) bool {
	return l > 0 && levelOf(pickOne(params, "level").Of(params)) >= l
}

// notification makes an event of one.
func notification(method string, params []byte) []byte {
	b := append([]byte(eventHead), `{"jsonrpc":"2.0","method":"`+method+`","params":`...)
	return append(wire.Flatten(b, params), "}\n\n"...)
}

// notify passes a server's notification on the stream of its call.
func (x *exchange) notify(level logLevel, method string, params []byte) {
	if method != logMethod || level.wants(params) {
		x.say(notification(method, params))
	}
}

// Later passes a notification on the standing stream of the session, if it has one.
func (s *session) Later(method string, params []byte) {
	if st := s.stream.Load(); st != nil {
		st.say(notification(method, params))
	}
}

// Log passes a log message of a server that belongs to no call to the sessions that
// asked for such, on their standing streams; one of a copy to those that it is for. sees says
// which agents may know of that server. It does not wait for them.
func (s *Server) Log(from actors.LogFrom, params []byte, sees func(agent string) bool) {
	var event []byte
	for _, ss := range s.sessions.listening() {
		st := ss.stream.Load()
		name, only, one := strings.Cut(ss.info.Agent, aside)
		if st == nil || !ss.logs().wants(params) || one && only != from.Server || !sees(name) {
			continue
		}
		if from.Agent != "" && from.Agent != name || from.Session != "" && from.Session != ss.sid {
			continue
		}
		if event == nil {
			event = notification(logMethod, params)
		}
		st.say(event)
	}
}

// logs is the level that the session asked for.
func (s *session) logs() logLevel { return logLevel(s.level.Load()) }

// setLevel notes what a session asked for.
func (s *Server) setLevel(sess *session, l logLevel) {
	sess.level.Store(int32(l))
	s.tellLevel(sess.info.Agent)
}

// tellLevel says what an agent wants now: the least that any of its sessions asked for.
func (s *Server) tellLevel(agent string) {
	if s.o.LogLevel == nil {
		return
	}
	s.levels.Lock() // so that two changes are told in their order
	defer s.levels.Unlock()
	least := logLevel(0)
	for _, ss := range s.sessions.listening() {
		if l := ss.logs(); ss.info.Agent == agent && (least == 0 || l < least) {
			least = l
		}
	}
	name, server, _ := strings.Cut(agent, aside)
	s.o.LogLevel(name, server, least.String())
}

// listening are the sessions that want log messages.
func (t *sessions) listening() (all []*session) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.all {
		if s.logs() > 0 {
			all = append(all, s)
		}
	}
	return all
}
