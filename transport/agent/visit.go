package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Headers of MCP over HTTP.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// visit is one HTTP request of an agent.
type visit struct {
	s     *Server
	id    *identity
	agent Agent
	w     http.ResponseWriter
	r     *http.Request

	opened   func(*stream) // told of the SDK's standing stream; may be nil
	standing *standing     // what this is about, if that is a standing stream
}

// post takes a message and decides who answers it.
func (v visit) post() {
	buf := bodies.Get().(*[]byte)
	defer giveBack(&bodies, buf)
	body, no := readBody(v.w, v.r, (*buf)[:0], v.s.o.MaxRequest, v.s.pace.progress)
	*buf = body
	if no != nil {
		v.refuse(nil, no)
		return
	}
	m, no := parse(body)
	m.came = time.Now()
	if no != nil {
		v.refuse(m.id, no)
		return
	}
	p, no := findParams(m.params.Of(body))
	if no != nil {
		v.refuse(m.id, no)
		return
	}
	if v.r.Header.Get(sessionHeader) == "" && (v.version() >= newEra || p.version.OK()) {
		v.postModern(m, p)
		return
	}
	v.postLegacy(m, p)
}

func (v visit) postModern(m message, p params) {
	if m.id != nil && v.plain() && v.consistent(m, p) {
		g := v.id.guests.saw(v.r.Context(), v.id.name, v.version(), p.info.Of(m.params.Of(m.body)))
		switch m.method {
		case "tools/call":
			g.calls.Add(1)
			defer g.calls.Add(-1)
			v.call(m, p, nil)
			return
		case "tools/list":
			v.listing(m, p, true, "tools", v.agent.Tools)
			return
		}
		if v.feature(m, p, nil) {
			return
		}
	}
	v.sdk(v.s.eras.modern, m, nil)
}

// postLegacy checks the session before anybody does anything: an unknown one is a
// 404 and a missing one a 400, so that a client knows to initialize again.
func (v visit) postLegacy(m message, p params) {
	sid := v.r.Header.Get(sessionHeader)
	sess := v.s.sessions.of(v.id, sid, m.came)
	if sess != nil {
		defer sess.release()
	}
	switch {
	case m.method == "initialize":
		v.initialize(m, sess)
		return
	case sid == "" && m.method == "server/discover":
		v.sdk(v.s.eras.legacy, m, nil)
		return
	case sid == "":
		refuse(v.w, http.StatusBadRequest, m.id, codeInvalidRequest, "no Mcp-Session-Id header: send initialize first")
		return
	case sess == nil:
		v.noSession(m.id)
		return
	}
	if m.method == "" && sess.answered(m) {
		v.w.WriteHeader(http.StatusAccepted)
		return
	}
	if pv := v.version(); v.plain() && !p.version.OK() && (pv == "" || slices.Contains(knownLegacy, pv)) {
		switch {
		case m.method == "tools/call" && m.id != nil:
			v.call(m, p, sess)
			return
		case m.method == "tools/list" && m.id != nil:
			v.listing(m, p, false, "tools", v.agent.Tools)
			return
		case m.id != nil && v.feature(m, p, sess):
			return
		case m.id != nil && !toSDK[m.method]:
			v.exchange(m.id, false).fail(codeMethodNotFound, "method not found: "+clip(m.method))
			return
		case m.method == "notifications/cancelled" && sess.cancel(cancelled(m)):
			v.w.WriteHeader(http.StatusAccepted)
			return
		}
	}
	if m.method == "logging/setLevel" && m.id != nil {
		v.setLevel(m, sess, sid)
		return
	}
	v.sdk(v.s.eras.legacy, m, v.lost(sid))
}

// setLevel lets the SDK answer, and takes the level over before the agent has its yes.
func (v visit) setLevel(m message, sess *session, sid string) {
	level, lost := levelOf(pickOne(m.params.Of(m.body), "level").Of(m.params.Of(m.body))), v.lost(sid)
	v.sdk(v.s.eras.legacy, m, func(h http.Header, status int) {
		if lost(h, status); status == http.StatusOK && level > 0 {
			v.s.setLevel(sess, level)
		}
	})
}

// cancelled is the id of the request that a cancellation names, as bytes.
func cancelled(m message) []byte {
	at := pickOne(m.params.Of(m.body), "requestId")
	if !at.OK() {
		return nil
	}
	return at.Of(m.params.Of(m.body))
}

// initialize makes a session. A client that comes with the id of a lost one gets a
// new one. The session is known here before the client can know it.
func (v visit) initialize(m message, old *session) {
	if old == nil {
		v.r = v.r.WithContext(v.r.Context()) // its header is that of other requests, too
		v.r.Header = v.r.Header.Clone()
		v.r.Header.Del(sessionHeader)
		if !v.s.makeRoom(v.id) {
			refuse(v.w, http.StatusTooManyRequests, m.id, codeInvalidRequest, tooMany)
			return
		}
	}
	made := ""
	v.sdk(v.s.eras.legacy, m, func(h http.Header, _ int) {
		if made = h.Get(sessionHeader); made != "" {
			v.s.sessions.learn(v.r.Context(), v.id, made, m.params.Of(m.body))
		}
	})
	if made != "" && !v.id.has(made) {
		v.s.sessions.forget(made) // the handshake failed after its answer had begun
		return
	}
	v.s.o.Log.Debug().Str("agent", v.id.name).Msg("session opened")
}

var tooMany = fmt.Sprintf("this agent has %d sessions in use already: end some with DELETE, or close their streams", maxSessions)

// stream serves everything that is not a POST: the stream of a session, its end, and
// methods that do not exist.
func (v visit) stream() {
	sid := v.r.Header.Get(sessionHeader)
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodDelete {
		v.sdk(v.s.eras.legacy, message{}, nil)
		return
	}
	sess := v.s.sessions.of(v.id, sid, time.Now())
	if sess != nil {
		defer sess.release()
	}
	switch {
	case sid == "" && v.version() >= newEra:
		v.sdk(v.s.eras.modern, message{}, nil)
	case sid == "":
		refuse(v.w, http.StatusBadRequest, nil, codeInvalidRequest, "no Mcp-Session-Id header: send initialize first")
	case sess == nil:
		v.noSession(nil)
	case v.r.Method == http.MethodGet:
		v.stand(sess, v.lost(sid))
	default:
		v.sdk(v.s.eras.legacy, message{}, v.lost(sid))
	}
}

// stand serves the standing stream of a session.
func (v visit) stand(sess *session, seen func(http.Header, int)) {
	ctx, mine, ok := sess.stand(v.r.Context(), v.s.pace.farewell)
	defer sess.leave(mine)
	if !ok {
		refuse(v.w, http.StatusConflict, nil, codeInvalidRequest, "another request took this stream over")
		return
	}
	v.r, v.standing = v.r.WithContext(ctx), mine
	v.r.Header = maps.Clone(v.r.Header) // that of the request may be shared with others
	v.r.Header.Del("Last-Event-Id")     // no event has an id to go on from: the stream begins anew
	v.opened = func(s *stream) { sess.stream.Store(s) }
	v.sdk(v.s.eras.legacy, message{}, seen)
}

// lost forgets a session when the SDK says that it ended or never was.
func (v visit) lost(sid string) func(http.Header, int) {
	return func(_ http.Header, status int) {
		if status == http.StatusNotFound || v.r.Method == http.MethodDelete && status/100 == 2 {
			v.s.sessions.forget(sid)
		}
	}
}

// sdk hands the request to the SDK with its body unread. seen is told of the answer
// before its first byte leaves.
func (v visit) sdk(h http.Handler, m message, seen func(http.Header, int)) {
	r := v.r.WithContext(context.WithValue(v.r.Context(), identityKey{}, v.id))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(m.body)), int64(len(m.body))
	w := &tapped{ResponseWriter: v.w, rc: http.NewResponseController(v.w), patience: v.s.pace.write, beat: v.s.pace.beat, seen: seen, opened: v.opened}
	if v.standing != nil {
		v.standing.through(w)
	}
	defer w.end()
	h.ServeHTTP(w, r)
}

// plain reports whether the headers ask for what the fast path answers. The SDK says
// what is wrong with those that do not.
func (v visit) plain() bool {
	h := v.r.Header
	if h.Get("Last-Event-Id") != "" {
		return false
	}
	if ct := h.Get("Content-Type"); ct != "application/json" {
		if t, _, err := mime.ParseMediaType(ct); err != nil || t != "application/json" {
			return false
		}
	}
	json, stream := accepts(h["Accept"])
	return json && stream
}

func accepts(values []string) (json, stream bool) {
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return true, true // as nearly every client writes it
	}
	for _, value := range values {
		for t := range strings.SplitSeq(value, ",") {
			t, _, _ = strings.Cut(t, ";")
			switch strings.ToLower(strings.TrimSpace(t)) {
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				stream = true
			case "*/*":
				json, stream = true, true
			}
		}
	}
	return json, stream
}

// consistent reports whether a 2026-07-28 request says the same in its headers and in
// its body, completely. The SDK refuses those that do not.
func (v visit) consistent(m message, p params) bool {
	b, h := m.params.Of(m.body), v.r.Header
	version, ok := text(p.version.Of(b))
	if !ok || version != v.version() || !slices.Contains(knownModern, version) || h.Get("Mcp-Method") != m.method {
		return false
	}
	if !isObject(p.capabilities.Of(b)) || p.info.OK() && !isObject(p.info.Of(b)) {
		return false
	}
	name, ok, named := nameOf(m, p)
	return ok && (!named || sameName(h.Get("Mcp-Name"), name))
}

// sameName compares a Mcp-Name header, plain or in its base64 form, with the name in
// the body.
func sameName(header, name string) bool {
	if coded, ok := strings.CutPrefix(header, "=?base64?"); ok {
		if coded, ok = strings.CutSuffix(coded, "?="); ok {
			plain, err := base64.StdEncoding.DecodeString(coded)
			return err == nil && string(plain) == name
		}
	}
	return header == name
}

func (v visit) version() string { return v.r.Header.Get(versionHeader) }

func (v visit) refuse(id []byte, no *refusal) { refuse(v.w, no.status, id, no.code, no.text) }

func (v visit) noSession(id []byte) {
	refuse(v.w, http.StatusNotFound, id, codeNoSession, "no such session: it ended, or it is not this agent's; send initialize again")
}

func itoa(n int64) []string { return []string{strconv.FormatInt(n, 10)} }
