package actors

// lateFrom is from how many bytes on a result can break on its way to the agent. A
// smaller one is in the kernel's hands at once, and nobody is told what becomes of it.
const lateFrom = 64 << 10

// deliverable is the reply with that result. On a connection that may break while the
// agent itself comes back (legacy sessions) the result can still be stored afterwards
// (case C92).
func (w *walk) deliverable(body *Body) Reply {
	r := Reply{Result: body}
	if body != nil && w.call.Gone != nil && !w.row.Stored && body.Size() >= lateFrom {
		r.Keep = func() { w.keepLate(body) }
	}
	return r
}

func (w *walk) keepLate(body *Body) {
	facts := body.Facts()
	if facts.ResultType == "input_required" {
		return
	}
	log := w.hub.sys.log.Info()
	id, err := w.keep(body, facts)
	if err != nil {
		log = w.hub.sys.log.Warn().Err(err)
	}
	log.Str("agent", w.agent).Str("server", w.row.Server).Str("tool", w.row.Tool).Str("callId", string(id)).
		Int64("bytes", body.Size()).Msg("the connection broke while a result was delivered")
}
