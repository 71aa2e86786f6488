package downstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// trip is one call over HTTP: a POST, and the answer in its body or on its stream.
type trip struct {
	s      *session
	p      *call
	id     uint64
	q      request
	began  time.Time
	cancel context.CancelCauseFunc // ends the HTTP request
	linger bool                    // somebody still reads the rest of the stream, and cancels
}

// errRetired says that another session has taken the place of one.
var errRetired = errors.New("the session was replaced")

// call sends req in this session and waits for its answer.
func (s *session) call(ctx context.Context, req actors.Request) (actors.Answer, error) {
	if !s.enter() {
		return actors.Answer{}, errRetired
	}
	defer s.leave()
	p := newCall(req)
	// What was sent must be read to its end for the connection to be used again, which may
	// take a moment longer than the call.
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	p.abort = cancel
	id, err := s.open(p)
	if err != nil {
		cancel(nil)
		p.recycle()
		return actors.Answer{}, fmt.Errorf("%w; %w", err, actors.ErrNotSent)
	}
	t := &trip{s: s, p: p, id: id, q: s.compose(id, req), began: time.Now(), cancel: cancel}
	if p.progress == nil {
		err = t.run(inner)
	} else {
		err = t.attend(inner, req.Progress)
	}
	a := answer{err: err}
	if !s.end(id, err) { // its answer is there, or on its way
		a = <-p.answer
	}
	for len(p.progress) > 0 {
		n := <-p.progress
		n.tell(req.Progress)
	}
	if !t.linger {
		cancel(nil)
	}
	p.recycle()
	return a.Answer, t.final(ctx, a.err)
}

// end takes a call out that got no answer. It may still be running in the server, unless
// that was ruled out.
func (s *session) end(id uint64, err error) (unanswered bool) {
	if f := faultOf(err); f != nil && !f.ran {
		return s.claim(id) != nil
	}
	return s.giveUp(id)
}

// attend runs t and passes progress on meanwhile.
func (t *trip) attend(ctx context.Context, progress func([]byte, actors.Range)) error {
	ended := make(chan error, 1)
	go func() { ended <- t.run(ctx) }()
	for {
		select {
		case n := <-t.p.progress:
			n.tell(progress)
		case err := <-ended:
			return err
		}
	}
}

// final words the error of a call.
func (t *trip) final(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var f *fault
	switch {
	case ctx.Err() != nil:
		t.abandon(ctx)
		return context.Cause(ctx)
	case !errors.As(err, &f) && errors.Is(err, actors.ErrLost):
		return fmt.Errorf("%w; the call may have run and was not repeated", err)
	}
	return err
}

// abandon follows a call that nobody waits for any more. The newest revision takes the
// end of the request for the cancel; the older ones want to be told.
func (t *trip) abandon(ctx context.Context) {
	s := t.s
	s.link.suspect(ctx, t.began)
	if s.modern() {
		return
	}
	go func() { _ = s.tell(cancelOf(t.id), nil) }()
}

// run makes the round trip. It returns nil when the answer was delivered.
func (t *trip) run(ctx context.Context) error {
	for {
		res, err := t.s.reach(ctx, t.q)
		switch {
		case err != nil:
			return err
		case isSuccess(res) && isStream(res):
			return t.follow(ctx, res)
		case isSuccess(res):
			return t.document(ctx, res)
		}
		r := readRefusal(res)
		if r.code != codeBadHeader || !spellOut(t.q.header) {
			return t.refused(r)
		}
	}
}

// pauses are waits between attempts to reach a server that refuses connections: it may
// be about to restart, and nothing was sent.
var pauses = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond}

// reach sends q, and words what prevents it.
func (s *session) reach(ctx context.Context, q request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		res, err := s.link.do(ctx, q)
		if err == nil {
			return res, nil
		}
		var u *unreached
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.As(err, &u):
			s.link.redial()
			return nil, &fault{server: s.server, text: err.Error(), ran: true, broken: true, strike: true}
		case !u.down || attempt == len(pauses):
			return nil, &fault{server: s.server, text: u.text, strike: true, down: u.down, signIn: u.signIn}
		}
		if !sleep(ctx, pauses[attempt]) {
			return nil, context.Cause(ctx)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isEOF reports whether a body came to its end as it should.
func isEOF(err error) bool { return errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) }

func (t *trip) answered() bool { return len(t.p.answer) > 0 }

// document reads an answer that is one JSON message.
func (t *trip) document(ctx context.Context, res *http.Response) error {
	defer res.Body.Close()
	s := t.s
	if res.ContentLength > s.maxFrame {
		return s.tooLong()
	}
	in := &incoming{x: &s.exchange, owner: t.id, hold: func() int64 { return t.p.hold }}
	defer in.drop()
	in.expect(res.ContentLength)
	err := s.link.read(res.Body, in.write, in.tooLong)
	switch {
	case in.tooLong():
		return s.tooLong()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !isEOF(err):
		return t.broke("the answer was cut: " + s.mask.mask(clip(err.Error(), errorChars)))
	case in.sieve != nil:
		in.end(false)
	case in.line == nil:
		return s.noAnswer(res, nil, "and an empty body")
	default:
		line, _ := in.take()
		return t.message(res, line)
	}
	if t.answered() {
		return nil
	}
	return s.noAnswer(res, nil, "and nothing in it answers the call")
}

// message takes the only message of an answer. An error needs no id to be about this call.
func (t *trip) message(res *http.Response, line *buffer) error {
	x := &t.s.exchange
	b := bytes.TrimPrefix(line.b, byteOrderMark)
	e, err := wire.ScanEnvelope(b)
	id, ours := ourID(e.ID.Of(b))
	kept := false
	switch {
	case err != nil && x.routeBatch(b, t.id):
		defer line.free()
		if t.answered() {
			return nil
		}
		return x.noAnswer(res, b, "and nothing in it answers the call")
	case err != nil || e.Method.OK() || e.Odd || isForeign(b, e) || !e.Result.OK() && !e.Error.OK():
		defer line.free()
		return x.noAnswer(res, b, "and no JSON-RPC answer")
	case ours && id == t.id, hasValue(e.Error, b) && !hasValue(e.Result, b):
		kept = x.answer(t.id, b, e, line)
	default:
		defer line.free()
		return x.noAnswer(res, b, "and the answer to another request")
	}
	if !kept {
		line.free()
	}
	return nil
}

// broke is the fault of a transport that failed under way.
func (t *trip) broke(text string) error {
	t.s.link.redial()
	return &fault{server: t.s.server, text: text, ran: true, broken: true, strike: true}
}

// refused handles an answer with a status that is no success.
func (t *trip) refused(r *refusal) error {
	s := t.s
	mine := func(id []byte) bool { n, ok := ourID(id); return ok && n == t.id }
	switch {
	case s.id != "" && r.sessionGone(mine):
		f := s.fault(r)
		f.gone, f.ran = true, false
		return f
	case r.rpc == nil || r.status == http.StatusUnauthorized:
		return s.fault(r)
	case r.code == codeBadVersion:
		return &fault{server: s.server, text: fmt.Sprintf("HTTP %d: %s", r.status, s.words(r)), down: true, era: true}
	}
	s.deliver(t.id, answer{Answer: actors.Answer{Error: bytes.Clone(r.rpc)}})
	return nil
}
