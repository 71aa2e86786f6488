package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mcphubd/transport/wire"
)

// This file carries the messages of the SDK: the handshake, and answers to what a server
// asks.

// patience bounds control messages that nobody waits for.
const patience = 30 * time.Second

// send takes a message of the SDK to the server. Its failures become answers: an error
// here would end the SDK's session.
func (s *session) send(msg jsonrpc.Message, b []byte) error {
	m, isRequest := msg.(*jsonrpc.Request)
	switch {
	case !isRequest:
		go func() { _ = s.tell(b, nil) }()
	case m.IsCall() && m.Method == "subscriptions/listen":
		go s.stand(request{method: http.MethodPost, header: s.controlHeaders(m), body: b})
	case m.IsCall():
		go s.ask(m, b)
	case m.Method == "notifications/initialized": // no call may come before it
		if err := s.tell(b, m); err != nil {
			s.failed(err)
			return err
		}
	default:
		go func() { _ = s.tell(b, m) }()
	}
	return nil
}

// controlHeaders are the headers of a message of the SDK.
func (s *session) controlHeaders(m *jsonrpc.Request) http.Header {
	protocol := s.agreed()
	if m == nil {
		return s.headers(protocol)
	}
	var params struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	if v, ok := params.Meta[metaProtocol].(string); ok {
		protocol = v
	}
	h := s.headers(protocol)
	if protocol >= modern {
		h[methodHeader] = []string{m.Method}
	}
	return h
}

// tell posts a message that has no answer. m is nil for answers of ours.
func (s *session) tell(b []byte, m *jsonrpc.Request) error {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	res, err := s.link.do(ctx, request{method: http.MethodPost, header: s.controlHeaders(m), body: b})
	if err != nil {
		return fmt.Errorf("%s: %w", s.server, err)
	}
	if !isSuccess(res) {
		return s.fault(readRefusal(res))
	}
	linger(res)
	return nil
}

// ask posts a request of the SDK and gives it the answer, or says why there is none.
func (s *session) ask(m *jsonrpc.Request, b []byte) {
	if m.Method == "initialize" && s.pinned {
		s.say(m, -32600, fmt.Sprintf("server/discover failed, and era = \"modern\" of [servers.%s] forbids the older handshake", s.server))
		return
	}
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if m.Method == "server/discover" {
		ctx, cancel = context.WithTimeoutCause(ctx, s.h.patience(), errors.New("no answer"))
	}
	defer cancel()
	err := s.exchangeWith(ctx, m, b)
	if err == nil {
		return
	}
	if s.settles(m, err) {
		s.failed(err)
		s.control.Close()
		return
	}
	s.say(m, -32603, err.Error())
}

// settles reports whether a failed request of the SDK ends the handshake. A server that
// chokes on server/discover is asked in the older way.
func (s *session) settles(m *jsonrpc.Request, err error) bool {
	var f *fault
	var u *unreached
	switch m.Method {
	case "initialize":
		return true
	case "server/discover":
		return errors.As(err, &u) || errors.As(err, &f) && f.signIn || s.pinned
	}
	return false
}

// exchangeWith posts a request of the SDK and routes what comes back.
func (s *session) exchangeWith(ctx context.Context, m *jsonrpc.Request, b []byte) error {
	res, err := s.link.do(ctx, request{method: http.MethodPost, header: s.controlHeaders(m), body: b})
	if err != nil {
		return fmt.Errorf("%s: %w", s.server, err)
	}
	if !isSuccess(res) {
		return s.refusedSDK(m, readRefusal(res))
	}
	if m.Method == "initialize" {
		s.id = res.Header.Get(sessionHeader)
	}
	in := &incoming{x: &s.exchange, hold: s.hold}
	defer in.drop()
	answered := func() bool { return !s.control.lacks(m.ID) }
	if isStream(res) {
		ev := in.messages()
		err = s.link.read(res.Body, ev.feed, answered)
		if err != nil {
			ev.end()
		}
		linger(res)
	} else {
		err = s.link.read(res.Body, in.write, in.tooLong)
		res.Body.Close()
		in.end(false)
	}
	switch {
	case answered():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", s.server, context.Cause(ctx))
	case in.tooLong():
		return s.tooLong()
	}
	return s.noAnswer(res, nil, "nothing in it is an answer to "+m.Method)
}

// learnProtocol takes the revision from the answer to initialize: the very next message
// names it.
func (s *session) learnProtocol(hello []byte) {
	_ = wire.ScanObject(hello, func(key []byte, v wire.Span) bool {
		var protocol string
		if string(key) == "protocolVersion" && json.Unmarshal(v.Of(hello), &protocol) == nil {
			s.agree(protocol)
		}
		return true
	})
}

// refusedSDK gives the SDK the error that came with a bad status.
func (s *session) refusedSDK(m *jsonrpc.Request, r *refusal) error {
	if r.rpc == nil || r.status == http.StatusUnauthorized {
		f := s.fault(r)
		if m.Method == "initialize" && (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed) {
			f.text += fmt.Sprintf("; is url right? A server of the older HTTP with SSE needs transport = \"sse\" in [servers.%s]", s.server)
		}
		return f
	}
	s.answerSDK(m, r.rpc)
	return nil
}

func (s *session) say(m *jsonrpc.Request, code int, text string) {
	s.answerSDK(m, []byte(`{"code":`+strconv.Itoa(code)+`,"message":`+quote(text)+`}`))
}
