package agent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/transport/front"
)

// pipes is a listener whose connections are in memory, so that hours take no time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// slow is a server with its usual pace inside a bubble.
type slow struct {
	*testing.T
	gw *fakeGateway
	s  *Server
	ln pipes
}

func inBubble(t *testing.T, body func(b *slow)) {
	synctest.Test(t, func(t *testing.T) {
		b := &slow{t, &fakeGateway{agents: map[string]*fakeAgent{}}, nil, pipes{make(chan net.Conn), make(chan struct{})}}
		b.s = New(Options{Gateway: b.gw})
		srv := front.New(b.s, nil, zerolog.Nop())
		go srv.Serve(b.ln)
		body(b)
		b.s.Close()
		close(b.ln.closed)
		srv.Close()
	})
}

// open sends a request and returns the answer's beginning.
func (b *slow) open(raw string) (*http.Response, net.Conn) {
	b.Helper()
	return b.dribble(raw, "", 0)
}

// dribble sends the first part at once and the rest byte by byte.
func (b *slow) dribble(first, rest string, pause time.Duration) (*http.Response, net.Conn) {
	b.Helper()
	here, there := net.Pipe()
	b.ln.conns <- there
	go func() {
		_, err := io.WriteString(here, first)
		for i := 0; i < len(rest) && err == nil; i++ {
			time.Sleep(pause)
			_, err = io.WriteString(here, rest[i:i+1])
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(here), nil)
	if err != nil {
		b.Fatal(err)
	}
	return resp, here
}

func request(method, body string, headers ...string) string {
	s := fmt.Sprintf("%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", method, len(body))
	for i := 0; i+1 < len(headers); i += 2 {
		s += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	return s + "\r\n" + body
}

func (b *slow) login() string {
	resp, c := b.open(request("POST", hello))
	io.Copy(io.Discard, resp.Body)
	c.Close()
	return resp.Header.Get(sessionHeader)
}

func TestC25LongCallsAndStreamsAreNotCut(t *testing.T) {
	inBubble(t, func(b *slow) {
		sid := b.login()
		ended := make(chan string)
		read := func(r *http.Response) { // until the end
			x, err := io.ReadAll(r.Body)
			ended <- fmt.Sprint(string(x), err)
		}
		get, getConn := b.open(request("GET", "", sessionHeader, sid))
		news := make(chan string)
		go func() {
			r := bufio.NewReader(get.Body)
			for {
				line, err := r.ReadString('\n')
				if err != nil || strings.Contains(line, "list_changed") {
					news <- line
					return
				}
			}
		}()

		release := make(chan struct{})
		b.gw.agent("default").setCall(func(c actors.Call) (actors.Reply, error) {
			for range 24 { // progress every 10 s for 4 minutes
				time.Sleep(10 * time.Second)
				if c.Progress != nil {
					c.Progress([]byte(`{"progressToken":1}`), actors.Range{A: 17, B: 18})
				}
			}
			<-release
			return held(`{"slept":true}`), nil
		})
		quiet, c1 := b.open(request("POST", callBody("1", `{"name":"d__sleep"}`), sessionHeader, sid))
		go read(quiet)
		lively, c2 := b.open(request("POST", callBody("2", `{"name":"d__sleep","_meta":{"progressToken":"p"}}`), sessionHeader, sid))
		go read(lively)

		time.Sleep(5 * time.Minute)
		b.gw.agent("default").change(`[]`)
		if line := <-news; !strings.Contains(line, "notifications/tools/list_changed") {
			t.Errorf("GET stream after 5 minutes: %q", line)
		}
		time.Sleep(time.Hour)
		close(release)
		for range 2 {
			got := <-ended
			if !strings.Contains(got, `"slept":true`) || !strings.HasSuffix(got, "<nil>") {
				t.Errorf("POST after more than an hour: %.300s", got)
			}
			if n := strings.Count(got, "notifications/progress"); n != 0 && n != 24 {
				t.Errorf("%d progress notifications", n)
			}
		}
		for _, c := range []net.Conn{getConn, c1, c2} {
			c.Close()
		}
	})
}

func TestC99AStalledBodyIsGivenUpAndADribbledOneIsNot(t *testing.T) {
	inBubble(t, func(b *slow) {
		sid := b.login()
		raw := request("POST", callBody("1", `{"name":"d__echo","arguments":{"a":1}}`), sessionHeader, sid)
		began := time.Now()
		resp, c := b.open(raw[:len(raw)-10])
		if late := time.Since(began) - 30*time.Second; resp.StatusCode != 408 || late < 0 || late > front.Late {
			t.Errorf("stalled: %d after %v", resp.StatusCode, time.Since(began))
		}
		c.Close()
		// The headers at once, then a byte of the body every 20 s.
		head := strings.Index(raw, "\r\n\r\n") + 4
		began = time.Now()
		resp, c = b.dribble(raw[:head], raw[head:], 20*time.Second)
		if resp.StatusCode != 200 {
			t.Errorf("dribbled: %d after %v", resp.StatusCode, time.Since(began))
		}
		c.Close()
	})
}

// TestC77AResultReachesWhoReadsAKBASecond, evenly or in gulps, as the kernel passes on
// that there is room: whole, be it an answer of its own or the end of a stream.
func TestC77AResultReachesWhoReadsAKBASecond(t *testing.T) {
	const rate = 1 << 10
	for gulp, size := range map[int]int{rate: 4 << 20, 64 << 10: 30 << 20} {
		for _, takes := range []time.Duration{0, time.Minute} {
			inBubble(t, func(b *slow) {
				b.gw.agent("x").call = func(context.Context, actors.Call) (actors.Reply, error) {
					time.Sleep(takes)
					return held(`{"text":"` + strings.Repeat("x", size) + `"}`), nil
				}
				f := &fixture{addr: "127.0.0.1"}
				resp, conn := b.open(f.rawRequest("/mcp/x", hello))
				sid := resp.Header.Get(sessionHeader)
				conn.Close()
				resp, conn = b.open(f.rawRequest("/mcp/x", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid))
				defer conn.Close()
				began, n := time.Now(), 0
				for n < size {
					time.Sleep(time.Duration(gulp/rate) * time.Second)
					k, err := io.CopyN(crosses{&n}, resp.Body, int64(gulp))
					if err != nil && n < size {
						b.Errorf("gulps of %d, call of %s: after %d more bytes and %s: %v", gulp, takes, k, time.Since(began), err)
						return
					}
				}
			})
		}
	}
}

// crosses counts the bytes of the result.
type crosses struct{ n *int }

func (c crosses) Write(p []byte) (int, error) {
	*c.n += bytes.Count(p, []byte("x"))
	return len(p), nil
}
