package downstream

import (
	"context"
	"net/http"
	"time"
)

// maxResumes is how often in a row a stream is resumed that brings nothing new, and
// minResume and maxResume are how long to wait before it.
const (
	maxResumes = 5
	minResume  = 100 * time.Millisecond
	maxResume  = time.Minute
)

// follow reads the stream of an answer. A stream with event ids that ends early is
// resumed: that repeats nothing.
func (t *trip) follow(ctx context.Context, res *http.Response) error {
	s := t.s
	in := &incoming{x: &s.exchange, owner: t.id, hold: func() int64 { return t.p.hold }}
	defer in.drop()
	ev := in.messages()
	enough := func() bool { return t.answered() || in.tooLong() }
	for stale := 0; ; {
		last := ev.lastID
		err := s.link.read(res.Body, ev.feed, enough)
		if err != nil && !enough() {
			ev.end()
		}
		switch {
		case in.tooLong():
			res.Body.Close()
			return s.tooLong()
		case t.answered():
			t.rest(res)
			return nil
		case ctx.Err() != nil:
			res.Body.Close()
			return context.Cause(ctx)
		}
		res.Body.Close()
		why := "the event stream ended before the answer"
		if !isEOF(err) {
			why += ": " + s.mask.mask(clip(err.Error(), errorChars))
		}
		if stale++; ev.lastID != last {
			stale = 0
		}
		if ev.lastID == "" || s.modern() || stale >= maxResumes {
			return t.broke(why)
		}
		if res, err = t.resume(ctx, ev); err != nil {
			return err
		}
	}
}

// resume opens the rest of a stream.
func (t *trip) resume(ctx context.Context, ev *events) (*http.Response, error) {
	s := t.s
	wait := orElse(ev.retry, orElse(s.h.Pause, time.Second))
	for attempt := 0; ; attempt++ {
		if !sleep(ctx, min(max(wait, minResume)<<attempt, maxResume)) {
			return nil, context.Cause(ctx)
		}
		res, err := s.link.do(ctx, request{method: http.MethodGet, header: s.standingHeaders(ev.lastID)})
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && attempt < maxResumes:
			continue
		case err != nil:
			return nil, t.broke("the event stream ended before the answer and could not be resumed: " + err.Error())
		case isSuccess(res) && isStream(res):
			return res, nil
		}
		r := readRefusal(res)
		if r.status >= 500 && attempt < maxResumes {
			continue
		}
		return nil, t.broke("the event stream ended before the answer and could not be resumed: " + s.fault(r).text)
	}
}

// rest leaves the end of a stream to be read, so that its connection can be used again.
func (t *trip) rest(res *http.Response) {
	t.linger = true
	go func() {
		timer := time.AfterFunc(time.Second, func() { t.cancel(nil) })
		discard(res)
		timer.Stop()
		t.cancel(nil)
	}()
}
