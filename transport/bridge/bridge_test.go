package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// client is a harness's end of a bridge to a daemon that the test plays.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	close func() // the client's reading end
	ended chan error
}

func attach(t *testing.T, o Options, daemon http.HandlerFunc) *client {
	t.Helper()
	srv := httptest.NewServer(daemon)
	t.Cleanup(srv.CloseClientConnections)
	if o.URL == "" {
		o.URL = srv.URL
	}
	if o.HTTP == nil {
		o.HTTP = srv.Client()
	}
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	c := &client{t: t, in: toBridge, out: bufio.NewReaderSize(fromBridge, 1<<20), ended: make(chan error, 1),
		close: func() { fromBridge.Close() }}
	go func() { c.ended <- Run(t.Context(), o, in, out) }()
	t.Cleanup(func() { toBridge.Close(); fromBridge.Close(); <-c.ended })
	return c
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) next() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, id, method)
}

// idOf is the id of a request as it came.
func idOf(r *http.Request) (id json.RawMessage, method string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	json.NewDecoder(r.Body).Decode(&m)
	return m.ID, m.Method
}

func answer(w http.ResponseWriter, id json.RawMessage, size int) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"x":"`, id)
	io.WriteString(w, strings.Repeat("x", size))
	io.WriteString(w, `"}}`)
}

func TestARequestThatDidNotRunIsSentAgainAndOneThatMayHaveIsNot(t *testing.T) {
	var calls atomic.Int64
	c := attach(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		id, method := idOf(r)
		switch n := calls.Add(1); {
		case n <= 2: // stopping, then starting
			w.WriteHeader(http.StatusServiceUnavailable)
		case method == "tools/call" && n == 3:
			panic(http.ErrAbortHandler) // it dies in the middle
		default:
			answer(w, id, 1)
		}
	})
	c.send(request(1, "tools/call"))
	if line := c.next(); !strings.Contains(line, "outcome is unknown") || !strings.Contains(line, `"id":1`) {
		t.Errorf("a call that may have run: %s", line)
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d requests", n)
	}
	c.send(request(2, "tools/call"))
	if line := c.next(); !strings.Contains(line, `"id":2,"result"`) {
		t.Errorf("the next call: %s", line)
	}
}

// mortal is a connection that takes nothing more once its daemon is gone, as a Unix socket;
// the bridge did not see that yet.
type mortal struct {
	net.Conn
	gone *atomic.Bool
}

func (m mortal) Write(p []byte) (int, error) {
	if m.gone.Load() {
		return 0, syscall.EPIPE
	}
	return m.Conn.Write(p)
}

func TestARequestOfWhichNothingCouldBeWrittenIsSentAgain(t *testing.T) {
	var calls atomic.Int64
	gone := new(atomic.Bool)
	c := attach(t, Options{HTTP: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		n, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if gone.Load() {
			return n, err
		}
		return mortal{n, gone}, err
	}}}}, func(w http.ResponseWriter, r *http.Request) {
		id, _ := idOf(r)
		calls.Add(1)
		answer(w, id, 1)
	})
	c.send(request(1, "ping"))
	c.next()
	gone.Store(true)
	c.send(request(2, "tools/call"))
	if line := c.next(); !strings.Contains(line, `"id":2,"result"`) || calls.Load() != 2 {
		t.Errorf("after %d requests: %s", calls.Load(), line)
	}
}

func TestADaemonThatStaysAwayIsGivenUpInBoundedTime(t *testing.T) {
	c := attach(t, Options{URL: "http://127.0.0.1:1/mcp", Patience: 50 * time.Millisecond,
		Ensure: func(context.Context) error { return errors.New("it does not start") }}, nil)
	c.send(request(1, "tools/call"))
	if line := c.next(); !strings.Contains(line, "cannot be reached: it does not start") {
		t.Error(line)
	}
}

// TestARefusalThatIsNoMessageIsAnAnswer too: the daemon is there, so nothing is sent
// again, whether the request may be or not, and it did not go away.
func TestARefusalThatIsNoMessageIsAnAnswer(t *testing.T) {
	var calls atomic.Int32
	c := attach(t, Options{Patience: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Error(w, "malformed payload: nested too deeply", http.StatusBadRequest)
	})
	for i, method := range []string{"ping", "tools/call"} {
		c.send(request(i, method))
		if line := c.next(); !strings.Contains(line, fmt.Sprintf(`"id":%d,"error"`, i)) || !strings.Contains(line, "nested too deeply") ||
			strings.Contains(line, "went away") || strings.Contains(line, "cannot be reached") {
			t.Errorf("%s: %s", method, line)
		}
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestTheEndOfTheInputEndsTheBridgeWhateverIsUnderWay(t *testing.T) {
	stuck := func(w http.ResponseWriter, r *http.Request) {
		if id, method := idOf(r); method == "ping" {
			answer(w, id, 1)
			return
		}
		<-r.Context().Done()
	}
	for name, lines := range map[string][]string{
		"a call":        {request(1, "ping"), request(2, "tools/call")},
		"a handshake":   {request(2, "initialize"), request(3, "tools/list")},
		"a notice":      {request(1, "ping"), `{"jsonrpc":"2.0","method":"notifications/x"}`},
		"no whole line": {request(1, "ping"), `{"jsonrpc":`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attach(t, Options{}, stuck)
			for _, line := range lines {
				c.send(line)
				if strings.Contains(line, "ping") {
					c.next()
				}
			}
			go io.Copy(io.Discard, c.out)
			c.in.Close()
			err := <-c.ended
			c.ended <- err
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheEndOfTheInputWaitsForAnAnswerThatIsOnItsWay(t *testing.T) {
	release := make(chan struct{})
	c := attach(t, Options{farewell: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		id, _ := idOf(r)
		<-release
		answer(w, id, 1)
	})
	c.send(request(1, "tools/call"))
	c.in.Close()
	close(release)
	if line := c.next(); !strings.Contains(line, `"id":1,"result"`) {
		t.Error(line)
	}
}

func TestLinesOfTheClientMayBeLong(t *testing.T) {
	const size = 20 << 20
	c := attach(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		answer(w, []byte(fmt.Sprint(len(b))), 1)
	})
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"` + strings.Repeat("x", size) + `"}}`
	c.send(line)
	if got := c.next(); !strings.Contains(got, fmt.Sprintf(`"id":%d`, len(line))) {
		t.Errorf("of %d bytes arrived: %.100s", len(line), got)
	}
}

// TestNoLineIsLongerThanTheClientTakes, and what is within the limit is whole.
func TestNoLineIsLongerThanTheClientTakes(t *testing.T) {
	const limit = 1 << 20
	frame := len(`{"jsonrpc":"2.0","id":1,"result":{"x":""}}`)
	c := attach(t, Options{MaxLine: limit}, func(w http.ResponseWriter, r *http.Request) {
		id, method := idOf(r)
		size := limit - 1 - frame
		if strings.HasSuffix(method, "over") {
			size++
		}
		if !strings.HasPrefix(method, "sse") {
			answer(w, id, size)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: ")
		answer(w, id, size)
		io.WriteString(w, "\n\n")
	})
	for _, kind := range []string{"json", "sse"} {
		c.send(request(1, kind))
		line := c.next()
		if strings.Contains(line, "progress") {
			line = c.next()
		}
		if len(line) != limit || !json.Valid([]byte(line)) {
			t.Errorf("%s: %d bytes: %.200s", kind, len(line), line)
		}
		c.send(request(1, kind+"over"))
		if line = c.next(); strings.Contains(line, "progress") {
			line = c.next()
		}
		if !strings.Contains(line, "longer than this client's limit") {
			t.Errorf("%s: %d bytes: %.200s", kind, len(line), line)
		}
	}
}

// TestAClientThatDoesNotReadLeavesLargeAnswersWithTheDaemon: the bridge takes in only a
// few of them, and all when the client reads again.
func TestAClientThatDoesNotReadLeavesLargeAnswersWithTheDaemon(t *testing.T) {
	const calls, size = maxLarge + 2, 12 << 20 // more than the system keeps for a connection
	done := make(chan struct{}, calls)
	var reading atomic.Bool
	var early atomic.Int64
	c := attach(t, Options{MaxLine: 64 << 20}, func(w http.ResponseWriter, r *http.Request) {
		id, _ := idOf(r)
		answer(w, id, size)
		if !reading.Load() {
			early.Add(1)
		}
		done <- struct{}{}
	})
	for i := range calls {
		c.send(request(i+1, "tools/call"))
	}
	for range maxLarge {
		<-done
	}
	reading.Store(true)
	if n := early.Load(); n > maxLarge {
		t.Errorf("%d large answers were taken in though nobody reads", n)
	}
	for range calls {
		if line := c.next(); len(line) < size {
			t.Errorf("an answer of %d bytes: %.200s", len(line), line)
		}
	}
}

// FuzzBridgeLine: a line never becomes a request that it is not, and every answer that a
// fault gets is one message of JSON-RPC in one line.
func FuzzBridgeLine(f *testing.F) {
	for _, line := range []string{
		request(1, "tools/call"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":"a\"\u0000","result":{}}`,
		`[]`, `{}`, `null`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, strings.Repeat("[", 2000), "\xff", `{"jsonrpc":"1.0","id":1e400,"method":"x"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é\n","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m := read(line)
		if m.fault != nil {
			var e struct {
				Version string `json:"jsonrpc"`
				ID      json.RawMessage
				Error   struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal(m.fault, &e); err != nil && json.Valid(line) || bytes.ContainsAny(m.fault, "\n\r") && !bytes.ContainsAny(line, "\n\r") {
				t.Fatalf("%q is answered with %q: %v", line, m.fault, err)
			}
			return
		}
		if !json.Valid(line) && bytes.Equal(bytes.ToValidUTF8(line, nil), line) {
			t.Fatalf("%q is no JSON and was taken for a message", line)
		}
		for _, c := range []byte(headerText(m.name)) {
			if c < 0x20 || c > 0x7e {
				t.Fatalf("the name of %q does not fit into a header", line)
			}
		}
		if m.id != nil && !json.Valid(m.id) {
			t.Fatalf("the id of %q is %q", line, m.id)
		}
	})
}
