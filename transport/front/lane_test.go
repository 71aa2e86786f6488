package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// serve serves h on loopback until the test ends.
func serve(t testing.TB, h http.HandlerFunc) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(h, nil, zerolog.Nop())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

// client is one connection.
type client struct {
	testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

// post is a request with a body, as bytes.
func post(body string, headers ...string) string {
	head := "POST /x HTTP/1.1\r\nhost: here\r\nX-COUNT: 1\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\nAccept: a,\tb\r\n\r\n%s", head, len(body), body)
}

func (c *client) send(raw string) {
	c.Helper()
	if _, err := io.WriteString(c.Conn, raw); err != nil {
		c.Fatal(err)
	}
}

// answer is what a client sees of an answer.
type answer struct {
	status int
	header string // but for its Date
	length int64
	close  bool
	body   string
	broken bool
}

func (c *client) read() (a answer, err error) {
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return a, err
	}
	if r.Header.Get("Date") == "" && r.StatusCode != http.StatusBadRequest {
		c.Error("no Date")
	}
	r.Header.Del("Date")
	var h strings.Builder
	r.Header.Write(&h)
	b, err := io.ReadAll(r.Body)
	return answer{r.StatusCode, h.String(), r.ContentLength, r.Close, string(b), err != nil}, nil
}

func (c *client) ask(raw string) answer {
	c.Helper()
	c.send(raw)
	a, err := c.read()
	if err != nil {
		c.Fatal(err)
	}
	return a
}

// inLane reports who serves a request.
func inLane(w http.ResponseWriter) bool { _, ok := w.(*reply); return ok }

// TestAnAnswerIsFramedAsNetHTTPFramesIt, whatever the handler does.
func TestAnAnswerIsFramedAsNetHTTPFramesIt(t *testing.T) {
	rc := func(w http.ResponseWriter) *http.ResponseController { return http.NewResponseController(w) }
	long := strings.Repeat("long ", 2000)
	for name, h := range map[string]http.HandlerFunc{
		"nothing":        func(http.ResponseWriter, *http.Request) {},
		"202":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
		"204":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); w.Write([]byte("x")) },
		"304":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) },
		"unknown status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599); io.WriteString(w, "?") },
		"twice":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) },
		"small":          func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "small") },
		"html":           func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"small pieces": func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				io.WriteString(w, "piece ")
			}
		},
		"long": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) },
		"long pieces": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a")
			io.WriteString(w, long)
			io.WriteString(w, "z")
		},
		"many pieces": func(w http.ResponseWriter, _ *http.Request) {
			for range 900 {
				io.WriteString(w, "piece ")
			}
		},
		"echo": func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) },
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Two"] = []string{"1", "2"}
			w.Header().Set("X-Lines", "a\r\nb: c")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			w.Header().Set("X-Late", "no")
			io.WriteString(w, "{}")
		},
		"length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			io.WriteString(w, long[:7])
			io.WriteString(w, long[7:])
		},
		"stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 5 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				if err := rc(w).Flush(); err != nil {
					t.Error(err)
				}
			}
			io.WriteString(w, long)
		},
		"flush first": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); io.WriteString(w, "late") },
		"deadlines": func(w http.ResponseWriter, _ *http.Request) {
			if err := rc(w).SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			if err := rc(w).SetWriteDeadline(time.Unix(1, 0)); err != nil {
				t.Error(err)
			}
			rc(w).SetWriteDeadline(time.Time{})
			io.WriteString(w, "ok")
		},
	} {
		t.Run(name, func(t *testing.T) {
			lanes := make(chan bool, 9)
			_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Count") != "1" || r.Host != "here" || r.URL.Path != "/x" || r.Header.Get("Accept") != "a,\tb" || r.RemoteAddr == "" ||
					r.ContentLength != 5 || r.Context().Value(http.LocalAddrContextKey) == nil || r.Context().Err() != nil {
					t.Errorf("the request is %+v", r)
				}
				if r.Header.Get("X-Plain") == "" {
					lanes <- inLane(w)
				}
				h(w, r)
			})
			plain := dial(t, addr).ask(post("12345", "X-Plain: 1"))
			c := dial(t, addr)
			first := c.ask(post("12345"))
			if first != plain {
				t.Fatalf("%+v, then %+v", plain, first)
			}
			if <-lanes {
				t.Error("a new head was not read by net/http")
			}
			for range 3 {
				if again := c.ask(post("12345")); again != first {
					t.Errorf("first %+v\nagain %+v", first, again)
				}
				if !<-lanes {
					t.Error("not in the lane")
				}
			}
		})
	}
}

// TestAConnectionEndsAfterAnAnswerThatEndsIt, whoever gives it.
func TestAConnectionEndsAfterAnAnswerThatEndsIt(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter){
		"close":      func(w http.ResponseWriter) { w.Header().Set("Connection", "close"); io.WriteString(w, "bye") },
		"too little": func(w http.ResponseWriter) { w.Header().Set("Content-Length", "20"); io.WriteString(w, "12") },
		"too much": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "2")
			io.WriteString(w, "12")
			if _, err := io.WriteString(w, "3"); err != http.ErrContentLength {
				t.Error(err)
			}
		},
		"abort": func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat("x", 5000)); panic(http.ErrAbortHandler) },
		"abort flushed": func(w http.ResponseWriter) {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if b, _ := io.ReadAll(r.Body); string(b) == "end" {
					end(w)
				}
			})
			how := func(before int) answer {
				c := dial(t, addr)
				for range before {
					c.ask(post("on"))
				}
				a := c.ask(post("end"))
				if a.broken {
					a.body = "" // how much of it left is nobody's business
				}
				if n, err := c.in.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("after %+v there are %d bytes: %v", a, n, err)
				}
				return a
			}
			if plain, lane := how(0), how(2); plain != lane {
				t.Errorf("plain %+v\nlane  %+v", plain, lane)
			}
		})
	}
}

// TestWhatIsNoRepetitionIsForNetHTTP: another head, another framing, more than comes at once.
func TestWhatIsNoRepetitionIsForNetHTTP(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%t %s %d %v", inLane(w), r.Method, len(b), err)
	})
	for name, raw := range map[string]string{
		"another header": post("12345", "X-New: 1"),
		"another case":   strings.Replace(post("12345"), "host", "Host", 1),
		"another path":   strings.Replace(post("12345"), "/x", "/y", 1),
		"chunked":        strings.Replace(post("5\r\n12345\r\n0\r\n\r\n"), "Content-Length: 15", "Transfer-Encoding: chunked", 1),
		"leading zeros":  strings.Replace(post("12345"), "Length: 5", "Length: 05", 1),
		"a large body":   post(strings.Repeat("x", 8000)),
		"get":            "GET /x HTTP/1.1\r\nHost: here\r\n\r\n",
	} {
		c := dial(t, addr)
		for range 2 {
			c.ask(post("1234"))
		}
		if a := c.ask(post("1234")); a.body != "true POST 4 <nil>" {
			t.Errorf("before %s: %q", name, a.body)
		}
		if a := c.ask(raw); a.status != 200 || !strings.HasPrefix(a.body, "false ") || !strings.HasSuffix(a.body, "<nil>") {
			t.Errorf("%s: %+v", name, a)
		}
		if a := c.ask(post("12")); !strings.HasSuffix(a.body, " POST 2 <nil>") {
			t.Errorf("after %s: %+v", name, a)
		}
	}
	for _, raw := range []string{
		strings.Replace(post("12345"), "Length: 5", "Length: -5", 1),
		strings.Replace(post("12345"), "Length: 5", "Length: 5, 6", 1),
		strings.Replace(post("12345"), "host: here\r\n", "", 1),
		strings.Replace(post("12345"), "host: here\r\n", "host: here\r\nhost: there\r\n", 1),
		"POST /x\r\n\r\n",
	} {
		c := dial(t, addr)
		for range 3 {
			c.ask(post("1234"))
		}
		if a := c.ask(raw); a.status != 400 || !a.close {
			t.Errorf("%q: %+v", raw, a)
		}
	}
}

// TestABodyIsNeverTakenForARequest, though it looks like one that this connection knows.
func TestABodyIsNeverTakenForARequest(t *testing.T) {
	var mu sync.Mutex
	var got []string
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, string(b))
		mu.Unlock()
	})
	c := dial(t, addr)
	evil := post("evil")
	var want []string
	say := func(body, raw string) {
		want = append(want, body)
		c.ask(raw)
	}
	chunked := "POST /x HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(evil), evil)
	for range 3 {
		say("good", post("good"))
		say(evil, post(evil))
		say(strings.Repeat(evil, 60), post(strings.Repeat(evil, 60)))
	}
	say(evil, chunked)
	say("good", post("good"))
	// In pieces, so that a piece may begin with what looks like a request.
	for _, cut := range []string{"head", "body", "head", "body"} {
		raw := post(evil, "X-Cut: "+cut)
		at := strings.LastIndex(raw, "POST")
		if cut == "body" {
			raw = post(evil)
			at = strings.LastIndex(raw, "POST")
		}
		want = append(want, evil)
		c.send(raw[:at])
		c.send(raw[at:])
		if a, err := c.read(); err != nil || a.status != 200 {
			t.Fatal(a, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d requests, want %d\n%q\n%q", len(got), len(want), got, want)
	}
}

// TestHeadAndBodyMayComeApart, as many clients send them.
func TestHeadAndBodyMayComeApart(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%t %s %v", inLane(w), b, err)
	})
	c := dial(t, addr)
	c.ask(post("on"))
	for range 20 { // some of them do, and what comes together is no harm
		raw := post("apart")
		c.send(raw[:len(raw)-3])
		c.send(raw[len(raw)-3:])
		if a, err := c.read(); err != nil || a.body != "true apart <nil>" {
			t.Fatal(a, err)
		}
	}
	raw := post("broken")
	c.send(raw[:len(raw)-3])
	c.Conn.(*net.TCPConn).CloseWrite()
	if a, err := c.read(); err != nil || a.body != "false bro unexpected EOF" {
		t.Error(a, err)
	}
}

// TestAClientThatGoesEndsTheContextOfItsRequest, also one that sent more before it went.
func TestAClientThatGoesEndsTheContextOfItsRequest(t *testing.T) {
	gone := make(chan error)
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "wait" {
			if !inLane(w) {
				t.Error("not in the lane")
			}
			<-r.Context().Done()
			gone <- r.Context().Err()
		}
	})
	for range 5 {
		c := dial(t, addr)
		c.ask(post("on"))
		c.ask(post("on"))
		c.send(post("wait"))
		c.Close()
		if err := <-gone; err != context.Canceled {
			t.Error(err)
		}
	}
}

// TestC92AClientThatIsGoneIsMissedAtOnce, by who asks before anybody watches it.
func TestC92AClientThatIsGoneIsMissedAtOnce(t *testing.T) {
	entered, left, missed := make(chan struct{}), make(chan struct{}), make(chan error)
	s, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "wait" {
			if err := r.Context().Err(); err != nil || !inLane(w) {
				t.Errorf("while the client is there: %v", err)
			}
			entered <- struct{}{}
			<-left
			for r.Context().Err() == nil { // until the kernel has heard of it
				runtime.Gosched()
			}
			<-r.Context().Done()
			missed <- context.Cause(r.Context())
		}
	})
	s.lonely.After = time.Hour // nobody watches
	c := dial(t, addr)
	c.ask(post("on"))
	c.send(post("wait"))
	<-entered
	c.Close()
	left <- struct{}{}
	if err := <-missed; err != context.Canceled {
		t.Error(err)
	}
}

// TestALongRequestLeavesTheConnectionAsItWas: somebody watched it, and what came meanwhile
// is still there.
func TestALongRequestLeavesTheConnectionAsItWas(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if string(b) == "long" {
			<-time.After(2 * lonely)
		}
		fmt.Fprintf(w, "%t %s", inLane(w), b)
	})
	c := dial(t, addr)
	c.ask(post("on"))
	for i := range 6 {
		c.send(post("long"))
		if i%2 == 1 {
			c.send(post("on"))
		}
		if a, err := c.read(); err != nil || a.body != "true long" {
			t.Fatal(a, err)
		}
		if i%2 == 0 {
			c.send(post("on"))
		}
		if a, err := c.read(); err != nil || a.body != "true on" {
			t.Fatal(a, err)
		}
	}
}

// TestShutdownWaitsForARequestInTheLane, which net/http takes for an idle connection.
func TestShutdownWaitsForARequestInTheLane(t *testing.T) {
	entered, let := make(chan struct{}), make(chan struct{})
	s, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "wait" {
			close(entered)
			<-let
		}
		io.WriteString(w, "done")
	})
	c, idle := dial(t, addr), dial(t, addr)
	idle.ask(post("on"))
	idle.ask(post("on"))
	c.ask(post("on"))
	c.send(post("wait"))
	<-entered
	short, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(short) }()
	if n, err := idle.in.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("the idle connection stays")
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("with a request in the lane: %v", err)
	}
	close(let)
	if a, err := c.read(); err != nil || a.body != "done" || !a.close {
		t.Errorf("%+v %v", a, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseCutsARequestInTheLane, and its context ends.
func TestCloseCutsARequestInTheLane(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	s, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "wait" {
			close(entered)
			<-r.Context().Done()
			close(left)
		}
	})
	c := dial(t, addr)
	c.ask(post("on"))
	c.send(post("wait"))
	<-entered
	s.Close()
	<-left
	if a, err := c.read(); err == nil {
		t.Errorf("%+v", a)
	}
}

// FuzzTheLaneIsNotSeen: whatever a client sends on one connection, in whatever pieces, it
// gets the answers that it gets from net/http alone, and the handler the same requests.
func FuzzTheLaneIsNotSeen(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, uint16(0))
	f.Add([]byte{0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 0}, uint16(7))
	f.Add([]byte{0, 0, 7, 0, 8, 0, 9, 10, 0, 0}, uint16(300))
	f.Add([]byte{1, 2, 1, 2, 4, 4, 0, 11, 0, 12}, uint16(60))
	f.Add([]byte{0, 0, 14, 0, 0, 0}, uint16(850))
	evil := post("evil")
	kinds := []string{
		post("good"), post("{}", "X-A: 1"), post("", "X-B: 2"), post(evil), post(strings.Repeat(evil, 30)),
		"GET /x HTTP/1.1\r\nHost: here\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(evil), evil),
		strings.ReplaceAll(post("lines"), "\r\n", "\n"),
		strings.Replace(post("mixed"), "\r\nAccept", "\nAccept", 1),
		strings.Replace(post("zeros"), "Length: 5", "Length: 05", 1),
		strings.Replace(post("twice"), "Accept", "Content-Length: 5\r\nAccept", 1),
		strings.Replace(post("close"), "Accept", "Connection: close\r\nAccept", 1),
		strings.Replace(post("bad"), "Length: 3", "Length: x", 1),
		post("unread", "X-Unread: 1"),
		strings.Replace(post("old"), "HTTP/1.1", "HTTP/1.0", 1),
		strings.Replace(post("folded"), "Accept: ", "X-Fold: a\r\n b\r\nAccept: ", 1),
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		var b []byte
		if r.Header.Get("X-Unread") == "" {
			b, _ = io.ReadAll(r.Body)
		}
		fmt.Fprintf(w, "%s %s %v %d %x", r.Method, r.Host, r.Header, r.ContentLength, b)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	plain := &http.Server{Handler: http.HandlerFunc(handler)}
	go plain.Serve(l)
	f.Cleanup(func() { plain.Close() })
	_, addr := serve(f, handler)

	f.Fuzz(func(t *testing.T, order []byte, piece uint16) {
		var raw bytes.Buffer
		for _, k := range order[:min(len(order), 40)] {
			raw.WriteString(kinds[int(k)%len(kinds)])
		}
		all := raw.String() + "POST /last HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
		// A server that ends the connection while more comes resets it. The last answers
		// that were sent may get lost with that, and cut says so: whoever writes or reads next
		// is told of the reset.
		run := func(addr string) (answers string, cut bool) {
			c := dial(t, addr)
			done := make(chan []byte)
			var ended error
			go func() {
				b, err := io.ReadAll(c.Conn)
				ended = err
				done <- b
			}()
			for rest := all; rest != ""; {
				n := len(rest)
				if piece > 0 {
					n = min(n, int(piece))
				}
				if _, err := io.WriteString(c.Conn, rest[:n]); err != nil {
					cut = true
					break // the connection ended with an answer before
				}
				rest = rest[n:]
			}
			answers = dates(<-done)
			return answers, cut || errors.Is(ended, syscall.ECONNRESET)
		}
		want, cutWant := run(l.Addr().String())
		got, cutGot := run(addr)
		if got != want && !(cutWant && strings.HasPrefix(got, want)) && !(cutGot && strings.HasPrefix(want, got)) {
			t.Errorf("net/http alone says\n%s\nwith the lane\n%s", want, got)
		}
	})
}

// dates takes the dates out of answers.
func dates(b []byte) string {
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "Date: ") {
			out.WriteString(line)
		}
	}
	return out.String()
}
