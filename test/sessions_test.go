package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// heapInUse is the daemon's heap after a collection, in bytes.
func heapInUse(t testing.TB, d *mcptest.Daemon) (n int64) {
	t.Helper()
	_, b, err := d.Get("/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "# HeapAlloc = ")
	if _, err := fmt.Sscan(rest, &n); !ok || err != nil {
		t.Fatalf("no HeapAlloc: %v", err)
	}
	return n
}

// TestC68AbandonedSessionsLeaveNothing: 20,000 clients that never say goodbye, a tenth
// of them with a stream that nobody reads until its client goes, cost nothing in the
// end; one with a call in flight and one that listens live on.
func TestC68AbandonedSessionsLeaveNothing(t *testing.T) {
	t.Parallel()
	end := filepath.Join(t.TempDir(), "end")
	h := one(t, "session_idle = \"6s\"\n", mcptest.Script{ // which no client takes between two requests
		Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{{Wait: end}, {Default: true}}}}})
	h.awaitState(t, "d", "ready")
	listening := h.Agent("listening")
	stream, err := listening.Listen(background(t))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	call(t, listening, "d__echo", "{}")
	busy, done := h.Agent("busy"), make(chan mcptest.Response, 1)
	busy.Timeout = 5 * time.Minute
	go func() {
		r, _ := busy.Call(background(t), "d__sleep", "{}")
		done <- r
	}()
	h.d().Record.Await(t, "tools/call", 2)
	heap, goroutines, open := heapInUse(t, h.Daemon), h.Goroutines(), len(proc.FDs(h.PID()))
	var old *mcptest.Agent
	for range 4 { // in waves, so that as many live at once on a fast machine as on a slow one
		old = abandon(t, h, full(5_000))
		awaitForgotten(t, h, "busy", "listening")
	}
	mcptest.Eventually(t, "goroutines and descriptors at the base line", func() bool {
		return h.Goroutines() <= goroutines+20 && len(proc.FDs(h.PID())) <= open+10
	})
	// More sessions add nothing: what a session kept would show in every wave, what is kept
	// to be used again only in those with more at once than ever before.
	adds := func() bool {
		before := heapInUse(t, h.Daemon)
		abandon(t, h, full(4_000))
		awaitForgotten(t, h, "busy", "listening")
		for range 20 { // pools let go at the second collection
			if heapInUse(t, h.Daemon) <= before+1<<19 {
				return false
			}
		}
		return true
	}
	for waves := 1; adds(); waves++ {
		if waves == 5 {
			t.Fatal("the heap grew with each wave of sessions")
		}
	}
	now := heapInUse(t, h.Daemon)
	mcptest.Eventually(t, "the heap at the base line", func() bool {
		now = heapInUse(t, h.Daemon)
		return now <= heap+8<<20
	})
	t.Logf("heap: %d bytes before, %d at last", heap, now)
	// What is left is of no session. Exact heap profiles (GODEBUG=memprofilerate=1) say:
	// of 5.3 MB after 9,500 goroutines at once (one a session, two more a stream and two a
	// connection), 4.1 are what Go keeps of those that ended, to use again, under 0.8 the
	// forty identities, and 0.3 tables that were larger once.
	if r, err := old.RPC(background(t), "ping", "{}"); err != nil || r.Status != 404 {
		t.Errorf("a forgotten session: HTTP %d, %v: %s", r.Status, err, r.Body)
	}
	touch(t, end)
	if r := <-done; r.Result() == nil || r.IsError() {
		t.Errorf("the call in flight: HTTP %d %s", r.Status, r.Body)
	}
	if r, err := listening.RPC(background(t), "ping", "{}"); err != nil || r.Status != 200 {
		t.Errorf("the session that listens: HTTP %d, %v: %s", r.Status, err, r.Body)
	}
}

// abandon has n clients attach and never say goodbye. A tenth of them have a stream until
// all are there. It returns one of them.
func abandon(t *testing.T, h hub, n int) *mcptest.Agent {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	one := make(chan *mcptest.Agent, 1)
	err := all(8, func(w int) error {
		for i := w; i < n; i += 8 {
			a := mcptest.NewAgent(h.URL(fmt.Sprint("abandoned", i%40)))
			a.HTTP = client
			if _, err := a.Init(background(t), "2025-06-18"); err != nil {
				return err
			}
			if r, err := a.RPC(background(t), "tools/list", "{}"); err != nil || r.Status != 200 {
				return fmt.Errorf("session %d: %w: %s", i, err, r.Body)
			}
			if i%10 == 0 {
				s, err := a.Listen(background(t))
				if err != nil {
					return err
				}
				defer s.Close()
			}
			select {
			case one <- a:
			default:
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return <-one
}

// awaitForgotten waits until only sessions of these agents are left.
func awaitForgotten(t *testing.T, h hub, but ...string) {
	t.Helper()
	mcptest.Eventually(t, "the sessions to be forgotten", func() bool { return len(attached(t, h)) <= len(but) })
	for _, s := range attached(t, h) {
		if !slices.Contains(but, s.Agent) {
			t.Errorf("%s was kept", s.Agent)
		}
	}
}

type attachedLine struct{ Agent string }

// attached are the sessions that the daemon knows.
func attached(t testing.TB, h hub) []attachedLine {
	t.Helper()
	var state struct{ Attached []attachedLine }
	_, b, err := h.Get("/debug/state")
	if err == nil {
		err = json.Unmarshal(b, &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	return state.Attached
}

// TestC35AfterARestartAnOldSessionIsNotFound, whatever is sent in it and however the
// daemon went, so that clients shake hands anew; a handshake with it is a new session.
func TestC35AfterARestartAnOldSessionIsNotFound(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	for _, end := range []func(){h.Kill9, func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	}} {
		a := h.Agent("a")
		echo(t, a, "d__echo")
		end()
		a.Close() // its connections are dead, too
		h.StartAgain()
		stale := a.Session
		for _, session := range []string{stale, "never-was", "not valid !"} {
			a.Session = session
			for _, ask := range []struct{ method, body string }{
				{"POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"d__echo"}}`},
				{"POST", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`},
				{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
				{"GET", ""}, {"DELETE", ""},
			} {
				r, err := a.Do(background(t), ask.method, strings.NewReader(ask.body), nil)
				if err != nil || r.Status != http.StatusNotFound || r.Error() == nil {
					t.Errorf("%s %s in the session %q: HTTP %d %v: %s", ask.method, ask.body, session, r.Status, err, r.Body)
				}
			}
		}
		r, err := a.Do(background(t), "POST", strings.NewReader(`{"jsonrpc":"2.0","id":8,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`),
			http.Header{"Mcp-Session-Id": {stale}})
		if made := r.Header.Get("Mcp-Session-Id"); err != nil || r.Status != 200 || made == "" || made == stale {
			t.Errorf("a handshake in the old session: HTTP %d %v, session %q", r.Status, err, made)
		}
		for _, method := range []string{"GET", "POST", "DELETE"} {
			r, err := a.Do(background(t), method, strings.NewReader(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`), http.Header{"Mcp-Session-Id": nil})
			if err != nil || r.Status != http.StatusBadRequest || r.Error() == nil {
				t.Errorf("%s without a session: HTTP %d %v: %s", method, r.Status, err, r.Body)
			}
		}
	}
}
