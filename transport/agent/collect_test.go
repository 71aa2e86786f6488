package agent

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// eventually fails the test when ok stays false; it is a bound on a hang.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// sdkSessions is how many sessions the SDK holds of an identity.
func (f *fixture) sdkSessions(name string) (n int) {
	f.s.mu.Lock()
	id := f.s.identities[name]
	f.s.mu.Unlock()
	for range id.mcp.Sessions() {
		n++
	}
	return n
}

// known is how many identities there are.
func (f *fixture) known() int {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return len(f.s.identities)
}

// idle is so short that sessions are collected at once; on a busy machine before they
// come to be used.
const idle = 50 * time.Millisecond

// listen opens a standing stream in a new session, which is used from then on.
func (f *fixture) listen(path string) (sid string) {
	f.Helper()
	eventually(f.T, "a session that is used before it is collected", func() bool {
		sid = f.login(path)
		_, resp := f.open("GET", path, "", sessionHeader, sid, "Accept", "text/event-stream")
		return resp.StatusCode == http.StatusOK
	})
	return sid
}

// TestC68UnusedSessionsAreCollectedAndBusyOnesAreNot: in the table, at the SDK, and in
// goroutines nothing is left of those that were abandoned.
func TestC68UnusedSessionsAreCollectedAndBusyOnesAreNot(t *testing.T) {
	f := start(t)
	f.gw.idle = idle
	f.gw.agent("busy") // known before it is called from two goroutines
	g := newGate(f.gw.agent("busy"))
	f.listen("/mcp/busy")
	out := make(chan answer, 1)
	eventually(t, "a call in a session that was not collected before", func() bool {
		calling := f.login("/mcp/busy")
		go func() { out <- f.do("POST", "/mcp/busy", callBody("1", `{"name":"d__sleep"}`), sessionHeader, calling) }()
		select {
		case <-g.entered:
			return true
		case a := <-out:
			return a.status != http.StatusNotFound
		}
	})
	eventually(t, "only the busy ones", func() bool { return f.sdkSessions("busy") == 2 })
	base := runtime.NumGoroutine()
	var sids []string
	for i := range 300 {
		sid := f.login("/mcp/busy")
		if i%10 == 0 {
			sids = append(sids, sid)
			_, resp := f.open("GET", "/mcp/busy", "", sessionHeader, sid, "Accept", "text/event-stream")
			resp.Body.Close() // the client went away
		}
	}
	eventually(t, "the abandoned ones to be collected", func() bool { return len(f.s.Sessions()) == 2 && f.sdkSessions("busy") == 2 })
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "their goroutines to end", func() bool { return runtime.NumGoroutine() <= base+10 })
	for _, sid := range sids {
		if a := f.do("POST", "/mcp/busy", callBody("2", `{"name":"d__echo"}`), sessionHeader, sid); a.status != 404 {
			t.Fatalf("a collected session: %d %s", a.status, a.body)
		}
	}
	g.let <- held(`{"content":[{"type":"text","text":"done"}]}`)
	if a := within(t, out, "the answer"); a.status != 200 || !strings.Contains(a.body, "done") {
		t.Errorf("the busy session: %d %s", a.status, a.body)
	}
}

// TestSessionsOfOneIdentityAreBounded: the one that went unused for longest makes room;
// where all are in use, there is none.
func TestSessionsOfOneIdentityAreBounded(t *testing.T) {
	f := start(t, func(s *Server) { s.most = 3 })
	first, second, third := f.login("/mcp/a"), f.login("/mcp/a"), f.login("/mcp/a")
	other := f.login("/mcp/b")
	f.do("POST", "/mcp/a", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, first)
	fourth := f.login("/mcp/a")
	for sid, want := range map[string]int{first: 200, second: 404, third: 200, fourth: 200} {
		if a := f.do("POST", "/mcp/a", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, sid); a.status != want {
			t.Errorf("session %s: %d %s, want %d", sid, a.status, a.body, want)
		}
	}
	for _, sid := range []string{first, third, fourth} {
		f.open("GET", "/mcp/a", "", sessionHeader, sid, "Accept", "text/event-stream")
	}
	if a := f.do("POST", "/mcp/a", hello); a.status != 429 || !strings.Contains(a.body, "sessions in use") || !strings.Contains(a.body, `"id":0`) {
		t.Errorf("one too many: %d %s", a.status, a.body)
	}
	if a := f.do("POST", "/mcp/b", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, other); a.status != 200 {
		t.Errorf("another identity: %d %s", a.status, a.body)
	}
}

// TestC69AReopenedStreamTakesOver from one whose client is alive, and from one that
// nobody reads: the old one ends, and news come once, on the new one.
func TestC69AReopenedStreamTakesOver(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp/a")
	g := newGate(f.gw.agent("a"))
	out := make(chan answer, 1)
	go func() { out <- f.do("POST", "/mcp/a", callBody("1", `{"name":"d__sleep"}`), sessionHeader, sid) }()
	within(t, g.entered, "the call")
	stuck := f.dial()
	fmt.Fprintf(stuck, "GET /mcp/a HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", f.addr, sid)
	eventually(t, "the stream", func() bool { return f.s.standing() == 1 })
	var old *http.Response
	for i := range 10 {
		s, resp := f.open("GET", "/mcp/a", "", sessionHeader, sid, "Accept", "text/event-stream")
		if resp.StatusCode != 200 {
			t.Fatalf("stream %d: %s", i, resp.Status)
		}
		if old != nil {
			ended := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, old.Body); ended <- err }()
			if err := within(t, ended, "the end of the old stream"); err != nil {
				t.Errorf("the old stream broke off: %v", err)
			}
		}
		old = resp
		f.gw.agent("a").change(fmt.Sprintf(`[{"name":"d__%d","inputSchema":{"type":"object"}}]`, i))
		if e := s.next(t); !strings.Contains(e, "list_changed") {
			t.Errorf("the news: %s", e)
		}
	}
	g.let <- held(`{"content":[{"type":"text","text":"done"}]}`)
	if a := within(t, out, "the answer"); !strings.Contains(a.body, "done") {
		t.Errorf("the call in flight: %s", a.body)
	}
}

// TestC92AStreamThatCannotBeResumedBeginsAnew: no event has an id here, so whatever a client
// names is of another life, and what it missed is fetched with the tools for results.
func TestC92AStreamThatCannotBeResumedBeginsAnew(t *testing.T) {
	f := start(t)
	for i, last := range []string{"1", "s_3", "what is this"} {
		path := fmt.Sprintf("/mcp/a%d", i)
		sid := f.login(path)
		s, resp := f.open("GET", path, "", sessionHeader, sid, "Accept", "text/event-stream", "Last-Event-Id", last)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("after %q: %s", last, resp.Status)
		}
		f.gw.agent(path[len("/mcp/"):]).change(`[{"name":"d__new","inputSchema":{"type":"object"}}]`)
		if e := s.next(t); !strings.Contains(e, "list_changed") {
			t.Errorf("the news after %q: %s", last, e)
		}
	}
}

// TestC69AStreamThatNobodyReadsIsBrokenOff after a moment, in the midst of a write.
func TestC69AStreamThatNobodyReadsIsBrokenOff(t *testing.T) {
	inBubble(t, func(b *slow) {
		sid := b.login()
		_, old := b.open(request("GET", "", sessionHeader, sid))
		defer old.Close()
		time.Sleep(time.Minute) // a sign of life is on its way
		began := time.Now()
		resp, conn := b.open(request("GET", "", sessionHeader, sid))
		defer conn.Close()
		if took := time.Since(began); resp.StatusCode != http.StatusOK || took != usualPace.farewell {
			t.Errorf("HTTP %d after %v", resp.StatusCode, took)
		}
	})
}

// TestC69OfTwoStreamsAtOnceOneStands.
func TestC69OfTwoStreamsAtOnceOneStands(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp/a")
	for range 20 {
		type opened struct {
			status int
			body   io.Closer
		}
		all := make(chan opened, 2)
		for range 2 {
			go func() {
				r, _ := http.NewRequest("GET", f.url("/mcp/a"), nil)
				r.Header.Set(sessionHeader, sid)
				r.Header.Set("Accept", "text/event-stream")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					all <- opened{0, io.NopCloser(nil)}
					return
				}
				all <- opened{resp.StatusCode, resp.Body}
			}()
		}
		a, b := within(t, all, "an answer"), within(t, all, "an answer")
		if a.status != 200 && b.status != 200 {
			t.Errorf("HTTP %d and %d", a.status, b.status)
		}
		eventually(t, "one to stand", func() bool { return f.s.standing() == 1 })
		a.body.Close()
		b.body.Close()
		eventually(t, "none to stand", func() bool { return f.s.standing() == 0 })
	}
}

// standing is how many standing streams there are.
func (s *Server) standing() (n int) {
	s.sessions.mu.RLock()
	defer s.sessions.mu.RUnlock()
	for _, ss := range s.sessions.all {
		ss.mu.Lock()
		if ss.standing != nil {
			n++
		}
		ss.mu.Unlock()
	}
	return n
}

// opened is how many sessions have a standing stream that news goes out on.
func (s *Server) opened() (n int) {
	s.sessions.mu.RLock()
	defer s.sessions.mu.RUnlock()
	for _, ss := range s.sessions.all {
		if ss.stream.Load() != nil {
			n++
		}
	}
	return n
}

// TestC68AnUnusedIdentityIsForgotten with all that is kept of it, and one with a stream is
// not; who comes back finds no difference.
func TestC68AnUnusedIdentityIsForgotten(t *testing.T) {
	f := start(t)
	f.gw.idle = idle
	f.gw.agent("listening")
	for i := range 50 {
		f.gw.agent(fmt.Sprint("once", i))
	}
	sid := f.listen("/mcp/listening")
	base := runtime.NumGoroutine()
	for range 2 {
		for i := range 50 {
			if a := f.do("POST", fmt.Sprint("/mcp/once", i), hello); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
		eventually(t, "all but one to be forgotten", func() bool { return f.known() == 1 })
		http.DefaultClient.CloseIdleConnections()
		eventually(t, "their goroutines to end", func() bool { return runtime.NumGoroutine() <= base+10 })
	}
	if a := f.do("POST", "/mcp/listening", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, sid); a.status != 200 {
		t.Errorf("the one that listens: %d %s", a.status, a.body)
	}
}
