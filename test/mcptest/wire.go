package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Wire is one TCP connection to the gateway, for agents that misbehave on it.
type Wire struct {
	*net.TCPConn
	host, path string
	r          *bufio.Reader
}

// Dial connects to the agent's endpoint and sends nothing.
func (a *Agent) Dial(ctx context.Context) (*Wire, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &Wire{TCPConn: c.(*net.TCPConn), host: u.Host, path: u.RequestURI(), r: bufio.NewReader(c)}, nil
}

// Request returns the bytes of a POST of that body with the agent's headers.
func (w *Wire) Request(a *Agent, body string, extra http.Header) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", w.path, w.host, len(body))
	h := a.headers(extra)
	h.Del("Host")
	_ = h.Write(&b)
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// Post sends a whole request and does not wait.
func (w *Wire) Post(a *Agent, body string, extra http.Header) error {
	_, err := w.Write(w.Request(a, body, extra))
	return err
}

// Dribble sends bytes in pieces of n, one every pause, until they are gone, an
// error comes, or ctx ends.
func (w *Wire) Dribble(ctx context.Context, b []byte, n int, pause time.Duration) error {
	for t := time.NewTicker(pause); len(b) > 0; {
		n = min(n, len(b))
		if _, err := w.Write(b[:n]); err != nil {
			t.Stop()
			return err
		}
		b = b[n:]
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// Response reads one whole answer.
func (w *Wire) Response() (Response, error) {
	res, err := http.ReadResponse(w.r, nil)
	if err != nil {
		return Response{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return Response{Status: res.StatusCode, Header: res.Header, Body: b}, err
}

// HalfClose ends our direction and keeps reading (FIN). Reset drops both ways
// at once (RST).
func (w *Wire) HalfClose() error { return w.CloseWrite() }
func (w *Wire) Reset() error {
	_ = w.SetLinger(0)
	return w.Close()
}

// Narrow makes the receive buffer as small as the system allows, so that an
// agent which stops reading is noticed after little data.
func (w *Wire) Narrow() error { return w.SetReadBuffer(1) }
