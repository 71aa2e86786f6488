package downstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mcphubd/actors"
	"mcphubd/config"
)

const (
	// An idle connection is asked after this long whether it is still there, and
	// given up when it stays silent as long as silence says.
	idleProbe = 15 * time.Second
	silence   = 30 * time.Second
	// maxIdle is how many connections wait for the next calls.
	maxIdle = 128
	// maxHops bounds redirects.
	maxHops = 3
)

// link sends requests to one server, with the headers that are configured for it and no
// others, and nowhere else: no cookies, and no redirect to another host.
type link struct {
	server  string
	url     *url.URL
	header  http.Header
	host    string        // a configured Host header
	timeout time.Duration // to reach the server
	mask    masker
	denied  func() // told of a 401; may be nil
	tokens  Tokens // shown when there is nothing configured; may be nil
	pool    atomic.Pointer[http.Transport]
	life    atomic.Int64 // unix nanoseconds when the server was last heard
}

func newLink(s config.Server, u *url.URL, mask masker) *link {
	l := &link{server: s.Name, url: u, header: http.Header{}, timeout: s.ConnectTimeout, mask: mask}
	if u.User != nil {
		password, _ := u.User.Password()
		l.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		plain := *u
		plain.User = nil
		l.url = &plain
	}
	for name, value := range s.Headers {
		if strings.EqualFold(name, "Host") {
			l.host = value
			continue
		}
		l.header.Set(name, value)
	}
	l.pool.Store(l.newPool())
	return l
}

// newPool bounds how long it takes to reach the server, and nothing else: how long an
// answer takes is the call's own affair.
func (l *link) newPool() *http.Transport {
	dialer := net.Dialer{
		Timeout:         l.timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idleProbe, Interval: idleProbe / 3, Count: 3},
		// What was sent and is never acknowledged is found out as soon as a dead idle connection.
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
			})
		},
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    l.timeout,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        time.Minute,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // an event must not wait in a compressor
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: idleProbe, PingTimeout: silence - idleProbe, WriteByteTimeout: silence},
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// redial throws the connections away, for they may be half open: what runs on them goes
// on, the next request dials.
func (l *link) redial() { l.pool.Swap(l.newPool()).CloseIdleConnections() }

// longWait is how long a server may say nothing before its connections are suspect.
const longWait = 5 * time.Second

// suspect follows a call that waited in vain: when nothing at all was heard since it
// began, the connections may be half open (case C100).
func (l *link) suspect(ctx context.Context, began time.Time) {
	waited := errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(began) >= longWait
	if waited && l.life.Load() < began.UnixNano() {
		l.redial()
	}
}

func (l *link) close() { l.pool.Load().CloseIdleConnections() }

// request is one HTTP request.
type request struct {
	method string
	url    *url.URL    // nil = that of the link
	header http.Header // of the protocol; wins over what is configured
	whole  bool        // header is all there is to send, and may be shared
	body   []byte
}

// unreached is an error before any byte of a request was written: nothing has run.
type unreached struct {
	text   string
	down   bool // nobody listens there, as far as can be seen
	signIn bool // for want of a credential
}

func (e *unreached) Error() string { return e.text }

func (e *unreached) Is(target error) bool { return e.signIn && target == actors.ErrSignIn }

// reach sends q with token. It follows redirects on the same host, since a redirect says
// that nothing was done.
func (l *link) reach(ctx context.Context, q request, token string) (*http.Response, error) {
	at := q.url
	if at == nil {
		at = l.url
	}
	for hops := 0; ; hops++ {
		res, err := l.send(ctx, q, at, token)
		if err != nil {
			return nil, err
		}
		l.life.Store(time.Now().UnixNano())
		switch res.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return res, nil
		}
		to, err := l.hop(at, res, hops)
		discard(res)
		if err != nil {
			return nil, &unreached{text: err.Error()}
		}
		at = to
	}
}

// hop is where a redirect leads.
func (l *link) hop(from *url.URL, res *http.Response, hops int) (*url.URL, error) {
	to, err := from.Parse(res.Header.Get("Location"))
	switch {
	case err != nil || res.Header.Get("Location") == "":
		return nil, fmt.Errorf("HTTP %d without an address to go to", res.StatusCode)
	case !sameOrigin(from, to):
		return nil, fmt.Errorf("HTTP %d: it redirects to another host, %s, which gets nothing from here; if that is right, put its address into url of [servers.%s]",
			res.StatusCode, origin(to), l.server)
	case hops >= maxHops:
		return nil, fmt.Errorf("HTTP %d: it redirects more than %d times", res.StatusCode, maxHops)
	}
	to.User = nil
	return to, nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// send makes one round trip.
func (l *link) send(ctx context.Context, q request, at *url.URL, token string) (*http.Response, error) {
	header := q.header
	if !q.whole {
		header = l.whole(header)
	}
	if token != "" {
		header = maps.Clone(header)
		header["Authorization"] = []string{"Bearer " + token}
	}
	sent := &sending{}
	r := (&http.Request{
		Method: q.method, URL: at, Host: l.host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(sent.watch(ctx))
	if q.body != nil {
		// A reader that the transport knows to be in memory goes out in one write with the headers.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(q.body))
	}
	res, err := l.pool.Load().RoundTrip(r)
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	text := l.mask.mask(clip(err.Error(), errorChars))
	if sent.begun.Load() {
		return nil, errors.New(text)
	}
	var op *net.OpError
	dial := errors.As(err, &op) && op.Op == "dial"
	if dial && op.Timeout() {
		text = fmt.Sprintf("%s: no connection within %s (connect_timeout)", text, l.timeout)
	}
	return nil, &unreached{text: text, down: dial && !op.Timeout()}
}

// whole is header with what is configured.
func (l *link) whole(header http.Header) http.Header {
	all := make(http.Header, len(l.header)+len(header)+1)
	all["User-Agent"] = []string{"mcphubd"}
	maps.Copy(all, l.header)
	maps.Copy(all, header)
	return all
}

// sending notes whether a request went out. One whose headers were never written whole has
// not run.
type sending struct {
	trace httptrace.ClientTrace
	begun atomic.Bool
}

func (s *sending) watch(ctx context.Context) context.Context {
	s.trace.WroteHeaders = func() { s.begun.Store(true) }
	return httptrace.WithClientTrace(ctx, &s.trace)
}

// maxRest is how much of an answer is read to its end so that its connection can be
// used again.
const maxRest = 64 << 10

// discard gives the connection of an answer back if little is left of it.
func discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, maxRest)
	res.Body.Close()
}

// linger is discard for a stream that should end by now. It does not wait for it.
func linger(res *http.Response) {
	go func() {
		t := time.AfterFunc(time.Second, func() { res.Body.Close() })
		discard(res)
		t.Stop()
	}()
}
