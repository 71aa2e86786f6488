package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// askPrefix begins the ids of the requests that we make to agents. They are strings, so
// none is an id of the SDK.
const askPrefix = "mcphub-ask-"

var lastAsk atomic.Int64

// said is what an agent answered to a request of ours.
type said struct {
	result []byte
	err    error
}

var (
	errAway    = errors.New("the agent went away")
	errSession = errors.New("the agent's session ended")
)

// asker asks the agent of a legacy session, on the stream of the call that the question
// is about. gone ends when that stream is of no more use.
func (x *exchange) asker(s *session, gone context.Context) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, method string, params []byte) ([]byte, error) {
		if err := s.can.check(method, params); err != nil {
			return nil, err
		}
		id := askPrefix + strconv.FormatInt(lastAsk.Add(1), 36)
		answer := make(chan said, 1)
		if !s.expect(id, answer) {
			return nil, errSession
		}
		defer s.expect(id, nil)
		b := append([]byte(eventHead), `{"jsonrpc":"2.0","id":"`+id+`","method":"`+method+`","params":`...)
		b = append(wire.Flatten(b, params), "}\n\n"...)
		x.put(news{b, true})
		select {
		case a := <-answer:
			return a.result, a.err
		case <-gone.Done():
			return nil, errAway
		case <-ctx.Done():
			x.say([]byte(eventHead + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + id + `"}}` + "\n\n"))
			return nil, context.Cause(ctx)
		}
	}
}

// expect notes where the answer to a request of ours goes; nil forgets it.
func (s *session) expect(id string, to chan said) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case to == nil:
		delete(s.asked, id)
		return true
	case s.ended:
		return false
	case s.asked == nil:
		s.asked = map[string]chan said{}
	}
	s.asked[id] = to
	return true
}

// answered takes the answer to a request of ours. It reports whether m is one, also
// when nobody waits for it any more.
func (s *session) answered(m message) bool {
	id, ok := text(m.answers)
	if !ok || !strings.HasPrefix(id, askPrefix) {
		return false
	}
	s.mu.Lock()
	to := s.asked[id]
	delete(s.asked, id)
	s.mu.Unlock()
	switch {
	case to == nil:
	case m.fault.OK():
		to <- said{err: actors.RawError(bytes.Clone(m.fault.Of(m.body)))}
	case !isObject(m.result.Of(m.body)):
		to <- said{err: fmt.Errorf("the agent's answer holds no result")}
	default:
		to <- said{result: bytes.Clone(m.result.Of(m.body))}
	}
	return true
}
