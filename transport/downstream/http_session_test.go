package downstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcphubd/actors"
	"mcphubd/config"
)

func TestHTTPHandshakeIsReported(t *testing.T) {
	info := attach(t, newPeer(t).remote(nil), actors.Events{}).Info()
	if info.PID != 0 || info.Protocol != "2025-06-18" || info.Name != "child" || info.Version != "7" || info.Instructions != "be kind" {
		t.Errorf("%+v", info)
	}
	if string(info.Capabilities) != `{"tools":{"listChanged":true},"x":1.0}` {
		t.Errorf("capabilities %s", info.Capabilities)
	}
}

func TestC01ALostSessionIsMadeAnewOnceForAllCalls(t *testing.T) {
	notFound := `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"404 with an error object": func(w http.ResponseWriter) { reply(w, 404, "application/json", notFound) },
		"404 with a page":          func(w http.ResponseWriter) { reply(w, 404, "text/html", "<html>not here</html>") },
		"404 with nothing":         func(w http.ResponseWriter) { w.WriteHeader(404) },
		"410":                      func(w http.ResponseWriter) { w.WriteHeader(410) },
		"400 of the TypeScript model": func(w http.ResponseWriter) {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
		"400 before initialize": func(w http.ResponseWriter) {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`)
		},
		"400 in words": func(w http.ResponseWriter) { reply(w, 400, "text/plain", "Invalid session ID") },
		"400 of the Python model": func(w http.ResponseWriter) {
			reply(w, 400, "application/json", `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: No valid session ID provided"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			var ran atomic.Int64
			p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
				ran.Add(1)
				result(w, m, string(m.Params.Arguments))
			}
			arrived := make(chan bool, 2)
			p.first = func(w http.ResponseWriter, r *http.Request, m message) bool {
				p.mu.Lock()
				known := p.sessions[r.Header.Get(sessionHeader)]
				p.mu.Unlock()
				if m.Method != "tools/call" || known {
					return false
				}
				arrived <- true // both calls meet the dead session at the same moment
				for len(arrived) < 2 && r.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
				refuse(w)
				return true
			}
			var changed atomic.Int64
			c := attach(t, p.remote(nil), actors.Events{Renewed: func() { changed.Add(1) }})
			serves(t, c)
			p.forget()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { serves(t, c) })
			}
			wg.Wait()
			if n := len(p.of("initialize")); n != 2 || ran.Load() != 3 {
				t.Errorf("%d times initialize, %d calls ran", n, ran.Load())
			}
			if again := p.of("initialize")[1]; again.header.Get(sessionHeader) != "" {
				t.Error("the dead session was named in initialize")
			}
			if n := len(p.of("notifications/initialized")); n != 2 {
				t.Errorf("initialized was told %d times", n)
			}
			if changed.Load() != 1 {
				t.Errorf("it was told %d times; a restarted server has forgotten what was said, and may have other tools", changed.Load())
			}
			if c.Err() != nil {
				t.Error(c.Err())
			}
		})
	}
}

func TestC01ASecondRefusalInARowIsAnErrorThatNamesTheServer(t *testing.T) {
	p := newPeer(t)
	p.first = func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if m.Method == "tools/call" {
			w.WriteHeader(404)
		}
		return m.Method == "tools/call"
	}
	c := attach(t, p.remote(nil), actors.Events{})
	_, err := ask(t, c, "echo", `{}`)
	if !contains(err, "fake", "404", "session", "did not run") {
		t.Error(err)
	}
	if n := len(p.of("tools/call")); n != 2 {
		t.Errorf("the call was sent %d times", n)
	}
	if c.Err() != nil {
		t.Error("one failed call ended the connection:", c.Err())
	}
}

func TestC01AnErrorOfTheToolIsNoLostSession(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	for _, status := range []int{200, 400, 404} {
		object := `{"code":-32602,"message":"browser session not found"}`
		p.call = func(w http.ResponseWriter, _ *http.Request, m message) {
			reply(w, status, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":`+object+`}`)
		}
		if got, err := ask(t, c, "x", `{}`); err != nil || got != "error "+object {
			t.Errorf("HTTP %d: %s, %v", status, got, err)
		}
	}
	if len(p.of("initialize")) != 1 || len(p.of("tools/call")) != 3 {
		t.Error("the call was repeated")
	}
}

func TestALostSessionThatCannotBeReplacedEndsTheConnection(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	quiet(t, c)
	p.first = func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if m.Method == "initialize" {
			reply(w, 503, "text/plain", "warming up")
		}
		return m.Method == "initialize"
	}
	p.forget()
	_, err := ask(t, c, "echo", `{}`)
	if !errors.Is(err, actors.ErrLost) || !contains(err, "fake", "503", "warming up", "did not run") {
		t.Error(err)
	}
	<-c.Done()
	if !contains(c.Err(), "lost the session", "503") {
		t.Error(c.Err())
	}
	if _, err := ask(t, c, "echo", `{}`); !contains(err, "not sent") {
		t.Error(err)
	}
}

func TestC55AllCallsCarryTheSessionOfTheHandshake(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				serves(t, c)
			}
		})
	}
	wg.Wait()
	for _, s := range p.of("tools/call") {
		if s.header.Get(sessionHeader) != "s1" {
			t.Fatalf("session %q", s.header.Get(sessionHeader))
		}
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if bye := p.of("DELETE"); len(bye) != 1 || bye[0].header.Get(sessionHeader) != "s1" {
		t.Errorf("the session was ended %d times", len(bye))
	}
}

// TestC55WhoeverWantsToKnowIsToldThatStateWasLost, once, since the new session is blank.
func TestC55WhoeverWantsToKnowIsToldThatStateWasLost(t *testing.T) {
	p := newPeer(t)
	told := make(chan string, 10)
	c := attach(t, p.remote(nil), actors.Events{Log: func(params []byte) { told <- string(params) }})
	serves(t, c)
	p.forget()
	serves(t, c)
	serves(t, c)
	if said := <-told; !strings.Contains(said, `"level":"warning"`) || !strings.Contains(said, "server fake lost its session") {
		t.Errorf("it was said: %s", said)
	}
	if len(told) > 0 {
		t.Errorf("and once more: %s", <-told)
	}
}

// TestC102AnArrayOfAnswersIsRoutedByTheirIds, whatever stands between them.
func TestC102AnArrayOfAnswersIsRoutedByTheirIds(t *testing.T) {
	for name, kind := range map[string]string{"document": "application/json", "stream": "text/event-stream"} {
		p := newPeer(t)
		var calls atomic.Int64
		p.first = func(w http.ResponseWriter, r *http.Request, m message) bool {
			if m.Method != "tools/call" {
				return false
			}
			if calls.Add(1) > 1 {
				reply(w, 200, "application/json", `[{"jsonrpc":"2.0","id":77,"result":{}}]`)
				return true
			}
			text := fmt.Sprintf(`[{"jsonrpc":"2.0","id":77,"result":{}},{},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":%s,"result":{"content":[],"n":1.0}}]`, m.ID)
			if kind == "text/event-stream" {
				text = "data: " + text + "\n\n"
			}
			reply(w, 200, kind, text)
			return true
		}
		c := attach(t, p.remote(nil), actors.Events{})
		if got, err := bytesOf(c.Call(t.Context(), toolCall("echo", `{}`))); err != nil || got != `{"content":[],"n":1.0}` {
			t.Errorf("%s: %s %v", name, got, err)
		}
		if _, err := bytesOf(c.Call(t.Context(), toolCall("echo", `{}`))); err == nil || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%s: an array without the answer: %v", name, err)
		}
	}
	c := connect(t, stdio(t, "plain"), actors.Events{})
	got, err := script(t.Context(), c, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":$ID,"result":{"two":2}}]`)
	if err != nil || got != `{"two":2}` {
		t.Errorf("stdio: %s %v", got, err)
	}
}

func TestC98TheVersionHeaderIsWhatTheServerAgreedTo(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		p := newPeer(t)
		p.protocol = version
		p.first = func(w http.ResponseWriter, r *http.Request, m message) bool {
			if m.Method == "initialize" || m.Method == "server/discover" || r.Header.Get(protocolHeader) == version {
				return false
			}
			reply(w, 400, "text/plain", "Bad Request: Unsupported protocol version")
			return true
		}
		c := attach(t, p.remote(nil), actors.Events{})
		serves(t, c)
		if got := c.Info().Protocol; got != version {
			t.Errorf("agreed on %s, want %s", got, version)
		}
	}
	p := newPeer(t)
	p.protocol = "2099-01-01"
	if _, err := p.remote(nil).Connect(t.Context(), actors.Events{}); !contains(err, "fake", "2099-01-01") {
		t.Error(err)
	}
}

func TestServersThatChokeOnDiscoverAreFoundOutOnce(t *testing.T) {
	for name, choke := range map[string]func(w http.ResponseWriter, r *http.Request){
		"refuses": func(w http.ResponseWriter, _ *http.Request) { reply(w, 400, "text/plain", "no session") },
		"fails":   func(w http.ResponseWriter, _ *http.Request) { reply(w, 500, "text/html", "<html>oops</html>") },
		"dies":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "application/json", "[1,") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.first = func(w http.ResponseWriter, r *http.Request, m message) bool {
				if m.Method != "server/discover" {
					return false
				}
				choke(w, r)
				return true
			}
			k := p.remote(nil)
			if name == "hangs" {
				k.Patience = 200 * time.Millisecond
			}
			for range 3 {
				serves(t, attach(t, k, actors.Events{}))
			}
			if n := len(p.of("server/discover")); n > 1 || n == 0 && name != "hangs" {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

func TestTheNewestHandshakeLeavesTimeForTheOlderOne(t *testing.T) {
	for connect, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: 5 * time.Second, 400 * time.Millisecond: 200 * time.Millisecond} {
		if got := (&HTTP{Server: config.Server{ConnectTimeout: connect}}).patience(); got != want {
			t.Errorf("with a connect_timeout of %v it may take %v, want %v", connect, got, want)
		}
	}
}

func TestAPinnedEraIsKept(t *testing.T) {
	p := newPeer(t)
	k := p.remote(nil)
	k.Server.Era = "legacy"
	serves(t, attach(t, k, actors.Events{}))
	if n := len(p.of("server/discover")); n != 0 {
		t.Errorf("a legacy server was asked %d times", n)
	}
	k = p.remote(nil)
	k.Server.Era = "modern"
	if _, err := k.Connect(t.Context(), actors.Events{}); !contains(err, "fake") {
		t.Error(err)
	}
	if n := len(p.of("initialize")); n != 1 {
		t.Errorf("initialize was sent to a server that is pinned to the newest revision")
	}
}

func TestC93TheStandingStreamIsOptional(t *testing.T) {
	for name, get := range map[string]http.HandlerFunc{
		"405":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) },
		"404":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"406":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(406) },
		"501":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) },
		"page": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "text/html", "<html></html>") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.get = get
			c := attach(t, p.remote(nil), actors.Events{})
			eventually(t, "it is given up", func() bool { return strings.HasPrefix(c.(*Remote).Standing(), "down") })
			for range 20 {
				serves(t, c)
			}
			if n := len(p.of("GET")); n != 1 {
				t.Errorf("it was asked for %d times", n)
			}
		})
	}
	for name, get := range map[string]http.HandlerFunc{
		"500":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"closes": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "text/event-stream", "retry: 1\n\n") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.get = get
			k := p.remote(nil)
			k.Pause = 40 * time.Millisecond
			began := time.Now()
			c := attach(t, k, actors.Events{})
			eventually(t, "it is asked for again", func() bool { return len(p.of("GET")) >= 3 })
			if took := time.Since(began); took < k.Pause {
				t.Errorf("three tries within %v: a storm", took)
			}
			serves(t, c)
		})
	}
	t.Run("never answers", func(t *testing.T) {
		p := newPeer(t)
		p.get = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		serves(t, attach(t, p.remote(nil), actors.Events{}))
	})
}

func TestC93WhatTheStandingStreamBringsCountsAndGarbageDoesNot(t *testing.T) {
	p := newPeer(t)
	p.get = func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n\ndata: garbage\n\ndata: [1\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":4294967296000,\"result\":{}}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"ping\"}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		<-r.Context().Done()
	}
	changed, noise := make(chan string, 1), make(chan string, 10)
	c := attach(t, p.remote(nil), actors.Events{
		ListChanged: func(kind string) { changed <- kind }, Noise: func(_ int64, last string) { noise <- last }})
	if kind := <-changed; kind != "tools" {
		t.Error(kind)
	}
	if last := <-noise; last != "garbage" {
		t.Errorf("noise %q", last)
	}
	eventually(t, "the ping is answered", func() bool {
		for _, s := range p.of("POST") {
			if strings.Contains(s.body, `"q1"`) && strings.Contains(s.body, `"result"`) && s.header.Get(sessionHeader) == "s1" {
				return true
			}
		}
		return false
	})
	if got := c.(*Remote).Standing(); got != "up" {
		t.Error(got)
	}
	serves(t, c)
}

func TestC79AHandshakeThatIsNeverAnsweredLeavesNothing(t *testing.T) {
	p := newPeer(t)
	p.first = func(_ http.ResponseWriter, r *http.Request, _ message) bool { <-r.Context().Done(); return true }
	try := func() {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("no answer within 20ms (connect_timeout)"))
		defer cancel()
		if _, err := p.remote(nil).Connect(ctx, actors.Events{}); !contains(err, "fake", "connect_timeout") {
			t.Fatal(err)
		}
	}
	try()
	base := len(descriptors()) + 4
	for range 40 {
		try()
	}
	eventually(t, "descriptors are given back", func() bool { return len(descriptors()) <= base })
}

func TestTheStandingStreamEndsWithTheConnection(t *testing.T) {
	p := newPeer(t)
	over := make(chan bool)
	p.get = func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, "text/event-stream", ":hello\n\n")
		<-r.Context().Done()
		close(over)
	}
	c := attach(t, p.remote(nil), actors.Events{})
	eventually(t, "the stream is up", func() bool { return c.(*Remote).Standing() == "up" })
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	<-over
	if err := c.Close(context.Background()); err != nil {
		t.Error("a second Close:", err)
	}
	<-c.Done()
}

func TestIDsOverHTTPAreIntegersThatNeverComeTwice(t *testing.T) {
	p := newPeer(t)
	c := attach(t, p.remote(nil), actors.Events{})
	for range 20 {
		serves(t, c)
	}
	seen := map[string]bool{}
	for _, s := range p.of("tools/call") {
		var id uint64
		if _, err := fmt.Sscan(string(s.ID), &id); err != nil || id < 1<<32 || id > 1<<53 || seen[string(s.ID)] {
			t.Fatalf("id %s", s.ID)
		}
		seen[string(s.ID)] = true
	}
}
