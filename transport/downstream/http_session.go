package downstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// session is one handshake with a server over streamable HTTP and all that hangs on it.
// The newest revision has none in its protocol; there it is the agreement on that.
type session struct {
	exchange
	link *link
	h    *HTTP
	info actors.ConnInfo

	sdk    *mcp.ClientSession
	ctx    context.Context // of everything that is no call
	cancel context.CancelCauseFunc

	id     string // set by the answer to initialize, before anybody else asks
	pinned bool   // to the newest revision

	state    sync.Mutex
	protocol string
	plain    http.Header // of every call before the newest revision; nil until the first
	why      error       // the handshake fails
	params   map[string][]binding
	active   int  // calls
	retired  bool // it ends with the last of them
	byebye   bool // and then the server is told
	standing string
	asked    chan struct{} // closed once the standing stream was asked for, or could not be
	wasAsked func()
}

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"
)

// handshake agrees with the server on a revision.
func (h *HTTP) handshake(ctx context.Context, l *link, n *noise, events actors.Events) (*session, error) {
	era, pinned := h.wanted(events.Spoke)
	s := &session{exchange: h.exchange(l, n, events), link: l, h: h, pinned: pinned && era == eraModern}
	s.control = newControl(s.send)
	s.control.greeted = s.learnProtocol
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	version := protocol
	if era == eraModern {
		version = modern
	}
	sdk, err := newClient(h.Version, events).Connect(ctx, s.control, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		err = s.handshakeError(ctx, err)
		s.stop(err)
		h.era.Store(nil)
		return nil, err
	}
	s.sdk = sdk
	s.info = infoOf(sdk, s.control)
	s.agree(s.info.Protocol)
	era = eraLegacy
	if s.modern() {
		era = eraModern
	}
	h.era.Store(&era)
	if !s.modern() {
		// It is on its way before any call is: a server could take it for the return to
		// the answer of a call that broke off, and too early (the suite's sse-retry).
		s.asked = make(chan struct{})
		s.wasAsked = sync.OnceFunc(func() { close(s.asked) })
		go s.stand(request{method: http.MethodGet})
		select {
		case <-s.asked:
		case <-ctx.Done():
		}
	}
	return s, nil
}

func (s *session) handshakeError(ctx context.Context, err error) error {
	s.state.Lock()
	why := s.why
	s.state.Unlock()
	var f *fault
	switch {
	case ctx.Err() != nil && why == nil:
		return fmt.Errorf("initialize %s: no answer: %w", s.server, context.Cause(ctx))
	case errors.As(why, &f):
		return fmt.Errorf("initialize %s: %w", s.server, f.cause())
	case why != nil:
		return fmt.Errorf("initialize %w", why)
	}
	return fmt.Errorf("initialize %s: %s", s.server, s.mask.mask(clip(err.Error(), errorChars)))
}

// agree notes the revision that all further requests name.
func (s *session) agree(protocol string) {
	s.state.Lock()
	s.protocol, s.plain = protocol, nil
	s.state.Unlock()
}

func (s *session) agreed() string {
	s.state.Lock()
	defer s.state.Unlock()
	return s.protocol
}

func (s *session) modern() bool { return s.agreed() >= modern }

// failed notes why the handshake cannot succeed. The first reason counts.
func (s *session) failed(err error) {
	s.state.Lock()
	defer s.state.Unlock()
	if s.why == nil {
		s.why = err
	}
}

// headers are those of the protocol for a message of the given revision.
func (s *session) headers(protocol string) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}
	if protocol != "" {
		h[protocolHeader] = []string{protocol}
	}
	if s.id != "" {
		h[sessionHeader] = []string{s.id}
	}
	return h
}

// plainHeaders are those of every call when the protocol has none for each. They are made
// once: nobody may change them.
func (s *session) plainHeaders(protocol string) http.Header {
	s.state.Lock()
	defer s.state.Unlock()
	if s.plain == nil {
		s.plain = s.link.whole(s.headers(protocol))
	}
	return s.plain
}

// enter counts a call in, unless the session was retired; leave counts it out.
func (s *session) enter() bool {
	s.state.Lock()
	defer s.state.Unlock()
	if s.retired {
		return false
	}
	s.active++
	return true
}

func (s *session) leave() {
	s.state.Lock()
	s.active--
	last := s.retired && s.active == 0
	s.state.Unlock()
	if last {
		go s.finish() // the answer does not wait for the server's word on the end
	}
}

// retire lets the calls on s finish and takes no part in anything else. bye says whether
// the server is told of the end.
func (s *session) retire(bye bool) {
	s.state.Lock()
	again := s.retired
	s.retired, s.byebye = true, bye
	last := s.active == 0 && !again
	s.state.Unlock()
	if last {
		s.finish()
	}
}

func (s *session) finish() {
	if s.byebye {
		s.goodbye(context.Background())
	}
	s.stop(lost(s.server, errStopped.Error()))
}

// goodbye tells the server that the session is over.
func (s *session) goodbye(ctx context.Context) {
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, orElse(s.h.Farewell, 2*time.Second))
	defer cancel()
	if res, err := s.link.do(ctx, request{method: http.MethodDelete, header: s.headers(s.agreed())}); err == nil {
		res.Body.Close()
	}
}

// stop ends everything; calls that wait get err.
func (s *session) stop(err error) {
	s.shut(err)
	s.cancel(err)
	s.control.Close()
	if s.sdk != nil {
		go s.sdk.Close()
	}
}
