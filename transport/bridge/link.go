package bridge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// link is the session with the daemon. It is made by the client's handshake and made
// again, with the same bytes, when the daemon forgot it.
type link struct {
	b *Bridge

	mu      sync.Mutex
	hello   []byte // the client's initialize
	session string
	version string
	stream  context.CancelFunc // ends the stream of notifications
}

// MaxResultHeader tells the daemon how long a line this client takes, so that what
// is longer is stored and not lost.
const MaxResultHeader = "Mcphub-Max-Result"

// state returns the session as it is.
func (l *link) state() (session, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.version
}

// end says goodbye, briefly.
func (l *link) end() {
	session, _ := l.state()
	l.mu.Lock()
	if l.stream != nil {
		l.stream()
	}
	l.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.b.o.URL, nil)
	if err != nil {
		return
	}
	r.Header.Set("Mcp-Session-Id", session)
	if res, err := l.b.o.HTTP.Do(r); err == nil {
		res.Body.Close()
	}
}

// initialize does the client's handshake.
func (b *Bridge) initialize(ctx context.Context, m message) {
	b.link.mu.Lock()
	b.link.hello, b.link.session, b.link.version = bytes.Clone(m.line), "", ""
	b.link.mu.Unlock()
	answer, err := b.handshake(ctx)
	if err != nil {
		b.out.write(errorLine(m.id, codeInternal, err.Error()))
		return
	}
	b.out.write(addressed(answer, m.id))
}

// handshake sends the remembered initialize and takes over the session.
func (b *Bridge) handshake(ctx context.Context) ([]byte, error) {
	l := &b.link
	l.mu.Lock()
	hello := l.hello
	l.mu.Unlock()
	var answer []byte
	var session string
	err := b.persist(ctx, func() error {
		res, _, err := b.post(ctx, hello, http.Header{})
		if err != nil {
			return &errAgain{err} // a handshake may be sent twice
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusServiceUnavailable {
			return &errAgain{errors.New("the daemon is starting or stopping")}
		}
		session = res.Header.Get("Mcp-Session-Id")
		return b.events(ctx, res, func(data []byte) { answer = bytes.Clone(data) })
	})
	if err != nil {
		return nil, err
	}
	var a struct {
		Result struct{ ProtocolVersion string }
	}
	json.Unmarshal(answer, &a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.version = session, a.Result.ProtocolVersion
	if l.stream != nil {
		l.stream()
		l.stream = nil
	}
	if session != "" {
		var listening context.Context
		listening, l.stream = context.WithCancel(ctx)
		b.work.Go(func() { b.listen(listening, session, a.Result.ProtocolVersion) })
	}
	return answer, nil
}

var initialized = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
var listChanged = []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)

// renew makes a new session in place of lost, unless somebody did already. The
// client is told that its list of tools may be another one.
func (b *Bridge) renew(ctx context.Context, lost string) error {
	b.renewing.Lock()
	defer b.renewing.Unlock()
	if now, _ := b.link.state(); now != lost && now != "" {
		return nil
	}
	b.link.mu.Lock()
	none := b.link.hello == nil
	b.link.mu.Unlock()
	if none {
		return errors.New("send initialize first")
	}
	if _, err := b.handshake(ctx); err != nil {
		return err
	}
	if res, _, err := b.post(ctx, initialized, b.headers(&message{})); err == nil {
		res.Body.Close()
	}
	b.out.write(listChanged)
	return nil
}

// headers are what the daemon wants to see with m.
func (b *Bridge) headers(m *message) http.Header {
	h := http.Header{}
	if m.modern() {
		h.Set("Mcp-Protocol-Version", m.version)
		h.Set("Mcp-Method", m.method)
		if m.name != "" {
			h.Set("Mcp-Name", headerText(m.name))
		}
		return h
	}
	session, version := b.link.state()
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	if version != "" {
		h.Set("Mcp-Protocol-Version", version)
	}
	return h
}

// tell sends what has no answer, in order.
func (b *Bridge) tell(ctx context.Context, m message) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	res, _, err := b.post(ctx, m.line, b.headers(&m))
	if err != nil {
		b.o.Log.Debug().Err(err).Str("method", m.method).Msg("not delivered")
		return
	}
	io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	res.Body.Close()
}

// request carries one request to its answer, which it writes in any case.
func (b *Bridge) request(ctx context.Context, m message) {
	err := b.persist(ctx, func() error { return b.once(ctx, m, false) })
	if err != nil && ctx.Err() == nil {
		b.out.write(errorLine(m.id, codeInternal, err.Error()))
	}
}

// errAgain says that a request provably did not run.
type errAgain struct{ cause error }

func (e *errAgain) Error() string { return e.cause.Error() }
func (e *errAgain) Unwrap() error { return e.cause }

// errRefused is an answer of the daemon that is no message: it is there, and did nothing.
type errRefused struct{ text string }

func (e *errRefused) Error() string { return e.text }

// once sends a request and writes what comes back. renewed says that the session was made
// for it just now.
func (b *Bridge) once(ctx context.Context, m message, renewed bool) error {
	h := b.headers(&m)
	res, sent, err := b.post(ctx, m.line, h)
	switch {
	case err != nil && (!sent || m.harmless()):
		return &errAgain{err}
	case err != nil:
		return unknownOutcome(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusServiceUnavailable {
		return &errAgain{errors.New("the daemon is starting or stopping")}
	}
	if res.StatusCode == http.StatusNotFound && !m.modern() && h.Get("Mcp-Session-Id") != "" {
		// The daemon does not know the session: the request did not run.
		if err := b.renew(ctx, h.Get("Mcp-Session-Id")); err != nil {
			return err
		}
		if !renewed { // at once: the daemon is there now, however long that took
			return b.once(ctx, m, true)
		}
		return &errAgain{errors.New("the daemon was restarted")}
	}
	answered := false
	err = b.events(ctx, res, func(data []byte) {
		data = addressed(data, m.id)
		answered = answered || isAnswer(data)
		b.out.write(data)
	})
	if errors.Is(err, errTooLong) && !answered {
		return fmt.Errorf("the answer is longer than this client's limit of %d bytes (--max-line); set a response_budget for this agent so that it is stored", b.o.MaxLine)
	}
	var no *errRefused
	switch {
	case answered:
		return nil
	case errors.As(err, &no):
		return err
	case err != nil && m.harmless():
		return &errAgain{err}
	case err != nil:
		return unknownOutcome(err)
	}
	return nil // cancelled: the daemon says nothing, and nobody waits
}

func unknownOutcome(err error) error {
	return fmt.Errorf("the daemon went away while it worked on this request: its outcome is unknown, it may have run, and it was not repeated: %w", err)
}

// persist tries f again while it says that nothing ran, until the daemon's absence
// has lasted too long. In between it sees to it that there is a daemon.
func (b *Bridge) persist(ctx context.Context, f func() error) error {
	deadline := time.Now().Add(b.o.Patience)
	pause := 20 * time.Millisecond
	var absent error // why there is no daemon
	for {
		err := f()
		var again *errAgain
		if !errors.As(err, &again) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the daemon cannot be reached: %w", cmp.Or(absent, again.cause))
		}
		if b.o.Ensure != nil {
			if absent = b.o.Ensure(ctx); absent != nil {
				b.o.Log.Debug().Err(absent).Msg("no daemon")
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// post sends one message. sent reports whether any of it may have reached the daemon.
func (b *Bridge) post(ctx context.Context, line []byte, h http.Header) (res *http.Response, sent bool, err error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { wrote.Store(false) },
		WroteHeaders: func() { wrote.Store(true) }, // into a buffer, perhaps of a connection that is dead
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.o.URL, bytes.NewReader(line))
	if err != nil {
		return nil, false, err
	}
	// By GetBody the transport repeats, on another connection, a POST of which nothing at
	// all could be written. Nobody but us repeats any other.
	r.Header = h
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(MaxResultHeader, strconv.Itoa(b.o.MaxLine-envelopeRoom))
	res, err = b.o.HTTP.Do(r)
	if err != nil && !wrote.Load() {
		err = &errAgain{err}
	}
	return res, wrote.Load(), err
}

// envelopeRoom is what a line holds besides its result.
const envelopeRoom = 16 << 10

// events gives each message of a response to f. An error says that it broke off, or
// that a message was too long for the client.
func (b *Bridge) events(ctx context.Context, res *http.Response, f func([]byte)) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return b.eachEvent(ctx, res.Body, f)
	}
	body, done, err := b.message(ctx, res.Body)
	defer done()
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusAccepted || len(bytes.TrimSpace(body)) == 0:
		return nil
	case !json.Valid(body):
		return notMessage(res, body)
	}
	f(body)
	return nil
}

// notMessage is the error of an answer that is no message. After a 4xx nothing ran.
func notMessage(res *http.Response, body []byte) error {
	text := fmt.Sprintf("the daemon answered HTTP %s: %.200s", res.Status, bytes.TrimSpace(body))
	if res.StatusCode/100 == 4 {
		return &errRefused{text}
	}
	return errors.New(text)
}

// isAnswer reports whether a message is an answer and no notification or request.
func isAnswer(data []byte) bool {
	m := read(bytes.TrimSpace(data))
	return m.method == "" && m.fault == nil
}
