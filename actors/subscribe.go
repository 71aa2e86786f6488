package actors

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// subscriptions is who listens to which resource of one server. It lies outside
// the mailbox: requests to the server are made in the goroutine of whoever
// subscribes, one at a time for each uri. A server that comes back is asked for
// all of them again, and one that replaces it after a reload takes them over.
type subscriptions struct {
	desk atomic.Pointer[atomic.Pointer[counter]] // of the downstream that has them now
	mu   sync.Mutex
	all  map[string]*subscription // by the server's own uri
}

// inherit passes the subscriptions of a predecessor on to the downstream with desk.
func (s *subscriptions) inherit(desk *atomic.Pointer[counter]) *subscriptions {
	if s == nil {
		s = &subscriptions{}
	}
	s.desk.Store(desk)
	return s
}

// subscription is one uri. The server is subscribed once, however many listen.
type subscription struct {
	refs      int           // those who use this entry
	turn      chan struct{} // holds one while its holder speaks with the server
	listeners map[*listener]struct{}
	hush      func() // ends the request that listens, at a server of the newest revision
}

// listener is told that the resource changed. heard must not block.
type listener struct{ heard func() }

// unsubscribeWithin bounds how long the end of a subscription is pursued.
const unsubscribeWithin = 10 * time.Second

// subscribe has heard called when a resource of the server changed, until cancel.
// The error is an *RPCError, a RawError of the server, or why it was not reached.
func (d Downstream) subscribe(ctx context.Context, uri string, heard func()) (cancel func(), err error) {
	e := d.subs.enter(uri)
	if err := e.wait(ctx); err != nil {
		d.subs.leave(uri, e)
		return nil, err
	}
	defer e.pass()
	if d.subs.heard(e) == 0 {
		if err := d.begin(ctx, uri, e); err != nil {
			d.subs.leave(uri, e)
			return nil, err
		}
	}
	l := &listener{heard}
	d.subs.add(e, l)
	var once sync.Once
	return func() { once.Do(func() { go d.unsubscribe(uri, e, l) }) }, nil
}

// unsubscribe takes l off, and the server's subscription with the last one.
func (d Downstream) unsubscribe(uri string, e *subscription, l *listener) {
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeWithin)
	defer cancel()
	defer d.subs.leave(uri, e)
	if d.subs.drop(e, l) > 0 || e.wait(ctx) != nil {
		return
	}
	defer e.pass()
	if d.subs.heard(e) > 0 {
		return // somebody came meanwhile
	}
	if d.subs.quiet(e) {
		return
	}
	if c := d.subs.desk.Load().Load(); c.enter() { // a server that is away has forgotten anyhow
		defer c.leave()
		_, _ = callRaw(ctx, c.conn, "resources/unsubscribe", uriParams(uri)) // nothing depends on it
	}
}

// begin subscribes to one uri at the server.
func (d Downstream) begin(ctx context.Context, uri string, e *subscription) error {
	conn, release, err := d.lease(ctx)
	if err != nil {
		return err
	}
	defer release()
	if !declaredBy(conn).subscribe {
		return &RPCError{CodeInvalidParams, fmt.Sprintf("server %s offers no subscriptions to its resources", d.name)}
	}
	return d.subs.request(ctx, conn, uri, e)
}

// request asks for the updates of one uri in the way that the server's revision knows.
func (s *subscriptions) request(ctx context.Context, conn Conn, uri string, e *subscription) error {
	if conn.Info().Protocol < firstWithRounds {
		_, err := callRaw(ctx, conn, "resources/subscribe", uriParams(uri))
		return err
	}
	listening, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- listen(listening, conn, uri) }()
	grace := time.NewTimer(refusalWithin)
	defer grace.Stop()
	select {
	case err := <-ended:
		cancel()
		return err
	case <-ctx.Done():
		cancel()
		return context.Cause(ctx)
	case <-grace.C: // it listens: that answer comes at the end
	}
	s.quiet(e)
	s.mu.Lock()
	e.hush = cancel
	s.mu.Unlock()
	return nil
}

const (
	// refusalWithin is how long a server of the newest revision has to refuse a request
	// that has no answer while it lasts.
	refusalWithin = 200 * time.Millisecond
	// listenAgain is the pause before a request that ended by itself is made again.
	listenAgain = 5 * time.Second
)

// listen keeps a request open on which the server tells of updates; they come in as
// Events.Updated. It returns when ctx or the connection ends, or the server refuses.
func listen(ctx context.Context, conn Conn, uri string) error {
	params := []byte(`{"notifications":{"resourceSubscriptions":[`)
	params = append(quoteTo(params, uri), "]}}"...)
	for {
		_, err := callRaw(ctx, conn, "subscriptions/listen", params)
		if err != nil || !pause(ctx, listenAgain) {
			return err
		}
	}
}

// quiet ends the request that listens, and reports whether there was one.
func (s *subscriptions) quiet(e *subscription) bool {
	s.mu.Lock()
	hush := e.hush
	e.hush = nil
	s.mu.Unlock()
	if hush != nil {
		hush()
	}
	return hush != nil
}

func uriParams(uri string) []byte {
	b, _ := jsontext.AppendQuote([]byte(`{"uri":`), strings.ToValidUTF8(uri, "\uFFFD"))
	return append(b, '}')
}

func (e *subscription) wait(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *subscription) pass() { <-e.turn }

// enter returns the entry of uri, which stays until as many left.
func (s *subscriptions) enter(uri string) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[uri]
	if e == nil {
		e = &subscription{turn: make(chan struct{}, 1), listeners: map[*listener]struct{}{}}
		if s.all == nil {
			s.all = map[string]*subscription{}
		}
		s.all[uri] = e
	}
	e.refs++
	return e
}

func (s *subscriptions) leave(uri string, e *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.refs--; e.refs == 0 && s.all[uri] == e {
		delete(s.all, uri)
	}
}

// heard is how many listen.
func (s *subscriptions) heard(e *subscription) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(e.listeners)
}

func (s *subscriptions) add(e *subscription, l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.listeners[l] = struct{}{}
}

func (s *subscriptions) drop(e *subscription, l *listener) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(e.listeners, l)
	return len(e.listeners)
}

// updated tells those who listen to uri, or to what it is a part of.
func (s *subscriptions) updated(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for own, e := range s.all {
		if own != uri && !strings.HasPrefix(uri, strings.TrimSuffix(own, "/")+"/") {
			continue
		}
		for l := range e.listeners {
			l.heard()
		}
	}
}

// renew subscribes a new connection to all that is listened to, and tells the
// listeners: what changed while the server was away is not known.
func (s *subscriptions) renew(c Conn) {
	s.mu.Lock()
	again := map[string]*subscription{}
	for uri, e := range s.all {
		if len(e.listeners) > 0 {
			again[uri] = e
		}
	}
	s.mu.Unlock()
	for uri, e := range again {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if e.wait(ctx) != nil {
				return
			}
			defer e.pass()
			if s.heard(e) > 0 && s.request(ctx, c, uri, e) == nil {
				s.updated(uri)
			}
		}()
	}
}
