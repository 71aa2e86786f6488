package downstream

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"time"
)

// maxPause is the longest wait before a standing stream is opened again, and settled is
// how long one must have lasted for earlier failures to be forgotten.
const (
	maxPause = time.Minute
	settled  = 30 * time.Second
)

// stand keeps the stream open on which a server speaks unasked: a GET in the older
// revisions, the subscription in the newest. It is optional: a server that refuses it is
// left alone, and one that ends it is asked again after a while.
func (s *session) stand(q request) {
	pause := orElse(s.h.Pause, time.Second)
	in := &incoming{x: &s.exchange, hold: s.hold}
	ev := in.messages()
	for failures, stood := 0, false; ; {
		began := time.Now()
		refused, why := s.listen(q, in, ev, &stood)
		in.drop()
		s.stands("down: " + why)
		if s.ctx.Err() != nil {
			return
		}
		if refused {
			// One that was given before may be refused for a session that is lost. A
			// request finds that out, and who only listens makes none.
			if stood && s.events.ListChanged != nil {
				s.events.ListChanged("tools")
			}
			return
		}
		if failures++; time.Since(began) > settled {
			failures = 1
		}
		wait := min(max(ev.retry, pause)<<min(failures-1, 10), max(maxPause, pause))
		if !sleep(s.ctx, wait+rand.N(wait/4+1)) {
			return
		}
	}
}

// listen opens the stream and reads it to its end. refused says that there is none, stood is
// set once there was.
func (s *session) listen(q request, in *incoming, ev *events, stood *bool) (refused bool, why string) {
	if q.method == http.MethodGet {
		q.header = s.standingHeaders(ev.lastID)
	}
	ctx := s.ctx
	if s.wasAsked != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { s.wasAsked() }})
		defer s.wasAsked()
	}
	res, err := s.link.do(ctx, q)
	if err != nil {
		return false, err.Error()
	}
	if !isSuccess(res) {
		r := readRefusal(res)
		return r.status < 500 && r.status != http.StatusTooManyRequests || r.status == http.StatusNotImplemented, s.fault(r).text
	}
	defer res.Body.Close()
	if !isStream(res) {
		return true, fmt.Sprintf("HTTP %d with %q is no event stream", res.StatusCode, mediaType(res))
	}
	s.stands("up")
	*stood = true
	err = s.link.read(res.Body, ev.feed, in.tooLong)
	if err != nil {
		ev.end()
		return false, s.mask.mask(clip(err.Error(), errorChars))
	}
	return false, s.tooLong().Error()
}

func (s *session) standingHeaders(lastID string) http.Header {
	h := s.headers(s.agreed())
	delete(h, "Content-Type")
	h["Accept"] = []string{"text/event-stream"}
	if lastID != "" {
		h["Last-Event-Id"] = []string{lastID}
	}
	return h
}

func (s *session) stands(how string) {
	s.state.Lock()
	s.standing = how
	s.state.Unlock()
	s.log.Debug().Str("stream", how).Msg("standing stream")
}
