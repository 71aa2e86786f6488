package downstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// route gives one whole line to whom it belongs. It reports whether the buffer went
// along; if not, the caller frees it.
func (x *exchange) route(line *buffer) (kept bool) { return x.routeOf(line, 0) }

// routeOf is route for a message on the stream of one call; 0 = of none.
func (x *exchange) routeOf(line *buffer, owner uint64) (kept bool) {
	b := bytes.TrimPrefix(line.b, []byte("\xEF\xBB\xBF"))
	if len(bytes.TrimSpace(b)) == 0 {
		return false
	}
	e, err := wire.ScanEnvelope(b)
	if err != nil && x.routeBatch(b, owner) {
		return false
	}
	if err != nil || e.Odd || isForeign(b, e) {
		x.refuse(b, e)
		return false
	}
	id, ours := ourID(e.ID.Of(b))
	switch {
	case e.Method.OK():
		return x.unasked(b, e, line, owner)
	case ours:
		return x.answer(id, b, e, line)
	case e.ID.OK() && (e.Result.OK() || e.Error.OK()):
		x.toControl(b)
	default:
		x.noise.add(b)
	}
	return false
}

// routeBatch routes each of several messages in an array, which servers of 2025-03-26 may
// send (case C102). It reports whether b is one: an array of anything else is noise.
func (x *exchange) routeBatch(b []byte, owner uint64) bool {
	var all []json.RawMessage
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '[' || json.Unmarshal(b, &all) != nil || len(all) == 0 ||
		slices.ContainsFunc(all, func(m json.RawMessage) bool { return m[0] != '{' }) {
		return false
	}
	for _, m := range all {
		line := take(len(m))
		line.b = append(line.b, m...)
		if !x.routeOf(line, owner) {
			line.free()
		}
	}
	return true
}

// unasked handles what the server says by itself.
func (x *exchange) unasked(b []byte, e wire.Envelope, line *buffer, owner uint64) (kept bool) {
	switch string(e.Method.Of(b)) {
	case `"notifications/progress"`:
		if token, at, ok := progressToken(b, e.Params); ok {
			return x.progress(token, note{params: e.Params.Of(b), token: at, line: line})
		}
		x.dropped.Progress.Add(1)
		return false
	case `"notifications/message"`:
		x.news("notifications/message", e.Params.Of(b), owner)
		return false
	case `"notifications/elicitation/complete"`:
		x.completed(e.Params.Of(b))
		return false
	case `"notifications/resources/updated"`:
		x.updated(e.Params.Of(b))
		return false
	case `"notifications/cancelled"`:
		if x.withdraw(e.Params.Of(b)) {
			return false
		}
	case `"elicitation/create"`, `"sampling/createMessage"`, `"roots/list"`:
		if e.ID.OK() {
			x.question(b, e, owner)
			return false
		}
	}
	x.toControl(b)
	return false
}

// answer delivers a whole answer to one of our calls.
func (x *exchange) answer(id uint64, b []byte, e wire.Envelope, line *buffer) (kept bool) {
	isError, isResult := hasValue(e.Error, b), hasValue(e.Result, b)
	switch {
	case isError && isResult:
		x.deliver(id, answer{err: fmt.Errorf("%s: the answer holds a result and an error", x.server)})
	case isError:
		object := bytes.Clone(e.Error.Of(b))
		if object[0] != '{' || !json.Valid(object) {
			x.deliver(id, answer{err: fmt.Errorf("%s: the answer is an error that is no object: %s", x.server, x.mask.show(object, errorChars))})
			return false
		}
		x.deliver(id, answer{Answer: actors.Answer{Error: object}})
	case e.Result.OK():
		body := actors.HeldBody(e.Result.Of(b), line.free)
		x.deliver(id, answer{Answer: actors.Answer{Result: body}})
		return true
	default:
		x.deliver(id, answer{err: fmt.Errorf("%s: the answer holds neither a result nor an error", x.server)})
	}
	return false
}

// progress passes a notification to the call whose token it carries. The call reads it in
// its own goroutine; if that is slow, some are left out.
func (x *exchange) progress(id uint64, n note) (kept bool) {
	x.mu.Lock()
	defer x.mu.Unlock() // held while sending, so that the call cannot end in between
	p := x.calls[id]
	if p == nil || p.progress == nil || !json.Valid(n.params) {
		x.dropped.Progress.Add(1)
		return false
	}
	select {
	case p.progress <- n:
		return true
	default:
		x.dropped.Progress.Add(1)
		return false
	}
}

// progressToken finds our token in the params of a progress notification.
func progressToken(b []byte, params wire.Span) (id uint64, at actors.Range, ok bool) {
	_ = wire.ScanObject(params.Of(b), func(key []byte, v wire.Span) bool {
		if string(key) != "progressToken" {
			return true
		}
		id, ok = ourID(v.Of(params.Of(b)))
		at = actors.Range{A: v.A, B: v.B}
		return false
	})
	return id, at, ok
}

// toControl gives a message to the SDK, and counts what it does not want.
func (x *exchange) toControl(b []byte) {
	switch x.control.take(b) {
	case refused:
		x.dropped.Control.Add(1)
	case invalid:
		x.noise.add(b)
	}
}

// refuse handles a line that is malformed or ambiguous. If it is the answer to one of our
// calls as far as it can be read, that call will get no better one.
func (x *exchange) refuse(b []byte, e wire.Envelope) {
	if id, ours := ourID(e.ID.Of(b)); ours && !e.Method.OK() {
		x.deliver(id, answer{err: fmt.Errorf("%s: the answer is no well-formed message: %s", x.server, x.mask.show(b, 100))})
		return
	}
	x.noise.add(b)
}

// ourID reads an id that we gave. Some servers send a number back as a string.
func ourID(raw []byte) (uint64, bool) {
	if len(raw) > 2 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	}
	if len(raw) < 10 || len(raw) > 16 { // from 1<<32 to 1<<53
		return 0, false
	}
	id, err := strconv.ParseUint(string(raw), 10, 64)
	return id, err == nil && id >= firstID
}

// isForeign reports a message of another protocol. One that leaves out the version is
// let through: our ids are mark enough, and the SDK checks for itself.
func isForeign(b []byte, e wire.Envelope) bool {
	return e.Version.OK() && string(e.Version.Of(b)) != `"2.0"`
}

// hasValue reports whether a member is there and not null.
func hasValue(s wire.Span, b []byte) bool { return s.OK() && string(s.Of(b)) != "null" }
