package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

func TestC35AStaleSessionIsNotFound(t *testing.T) {
	f := start(t)
	for _, sid := range []string{"6TQ2JSJ2GEXAMPLE", "not valid !", "../x"} {
		for _, a := range []answer{
			f.do("POST", "/mcp", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid),
			f.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, sid),
			f.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, sessionHeader, sid),
			f.do("GET", "/mcp", "", sessionHeader, sid, "Accept", "text/event-stream"),
			f.do("DELETE", "/mcp", "", sessionHeader, sid),
		} {
			if a.status != 404 || !strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":`) || !strings.Contains(a.body, `"error":{"code":-32001,`) {
				t.Errorf("%s: %d %s", sid, a.status, a.body)
			}
		}
		a := f.do("POST", "/mcp", hello, sessionHeader, sid)
		if made := a.header.Get(sessionHeader); a.status != 200 || made == "" || made == sid {
			t.Errorf("initialize with a stale id: %d %v", a.status, a.header)
		}
	}
	for _, a := range []answer{
		f.do("POST", "/mcp", callBody("1", `{"name":"d__echo"}`)),
		f.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`),
		f.do("GET", "/mcp", "", "Accept", "text/event-stream"),
		f.do("DELETE", "/mcp", ""),
	} {
		if a.status != 400 || !strings.Contains(a.body, "-32600") {
			t.Errorf("no session: %d %s", a.status, a.body)
		}
	}
}

func TestASessionIsUselessUnderAnotherIdentity(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp/a")
	for _, path := range []string{"/mcp/b", "/mcp"} {
		for _, a := range []answer{
			f.do("POST", path, callBody("1", `{"name":"d__echo"}`), sessionHeader, sid),
			f.do("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, sessionHeader, sid),
			f.do("POST", path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, sid),
			f.do("GET", path, "", sessionHeader, sid, "Accept", "text/event-stream"),
			f.do("DELETE", path, "", sessionHeader, sid),
		} {
			if a.status != 404 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
	if a := f.do("POST", "/mcp/a", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid); a.status != 200 {
		t.Errorf("its own: %d %s", a.status, a.body)
	}
}

func TestADeletedSessionIsGoneAndItsCallsEnd(t *testing.T) {
	f := start(t)
	g := newGate(f.gw.agent("default"))
	sid := f.login("/mcp")
	out := make(chan answer, 1)
	go func() { out <- f.do("POST", "/mcp", callBody("1", `{"name":"d__sleep"}`), sessionHeader, sid) }()
	ctx := within(t, g.ctx, "the call")
	if a := f.do("DELETE", "/mcp", "", sessionHeader, sid); a.status != 204 {
		t.Errorf("DELETE: %d %s", a.status, a.body)
	}
	within(t, ctx.Done(), "the end of its call")
	within(t, out, "the end of its exchange")
	if a := f.do("POST", "/mcp", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid); a.status != 404 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
	if n := len(f.s.Sessions()); n != 0 {
		t.Errorf("%d sessions left", n)
	}
}

func TestAFailedInitializeLeavesNoSession(t *testing.T) {
	f := start(t)
	f.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	eventually(t, "no session to be left", func() bool { return len(f.s.Sessions()) == 0 })
}

func TestC98VersionsAreNegotiatedAndGarbageIsRefused(t *testing.T) {
	f := start(t)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2099-01-01": "2025-11-25", "1.0": "2025-11-25", "": "2025-11-25",
	} {
		a := f.do("POST", "/mcp/v", strings.Replace(hello, "2025-06-18", asked, 1))
		if !strings.Contains(a.body, `"protocolVersion":"`+want+`"`) {
			t.Errorf("asked %q: %s", asked, a.body)
		}
		sid := a.header.Get(sessionHeader)
		for header, status := range map[string]int{"": 200, want: 200, "garbage": 400, "1.0": 400} {
			a := f.do("POST", "/mcp/v", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid, versionHeader, header)
			if a.status != status {
				t.Errorf("asked %q, header %q: %d %s", asked, header, a.status, a.body)
			}
		}
	}
	for _, i := range f.s.Sessions() {
		if i.Protocol < "2024-11-05" || i.Protocol > "2025-11-25" {
			t.Errorf("session of protocol %q", i.Protocol)
		}
	}
}

func TestAnUnwelcomeNameIsToldWhatToAdd(t *testing.T) {
	f := start(t)
	if a := f.do("POST", "/mcp/stranger", hello); a.status != 404 || !strings.Contains(a.body, "[agents.stranger]") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, path := range []string{"/mcp/", "/mcp/a/b", "/mcp/a%2Fb", "/mcp/%20", "/mcp/" + strings.Repeat("x", 65), "/mcpx", "/sse"} {
		if a := f.do("POST", path, hello); a.status != 404 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// official is the SDK's client, in one of the eras.
func (f *fixture) official(path, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	f.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, o).Connect(context.Background(),
		&mcp.StreamableClientTransport{Endpoint: f.url(path)}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { cs.Close() })
	return cs
}

func TestOfficialClientsOfAllRevisionsListAndCall(t *testing.T) {
	f := start(t)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		cs := f.official("/mcp/x", version, nil)
		if got := cs.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("asked %s, agreed on %s", version, got)
		}
		if i := cs.InitializeResult(); i.ServerInfo != nil && i.ServerInfo.Name != "mcphubd" || i.Capabilities.Tools == nil || !i.Capabilities.Tools.ListChanged || i.Capabilities.Logging == nil || i.Instructions == "" {
			t.Errorf("%s: %+v", version, i)
		}
		l, err := cs.ListTools(context.Background(), nil)
		if err != nil || len(l.Tools) != 1 || l.Tools[0].Name != "d__echo" {
			t.Errorf("%s: %v %v", version, l, err)
		}
		p := &mcp.CallToolParams{Name: "d__echo", Arguments: map[string]any{"v": "ü"}}
		p.SetProgressToken("t")
		r, err := cs.CallTool(context.Background(), p)
		if err != nil || r.StructuredContent.(map[string]any)["v"] != "ü" {
			t.Errorf("%s: %v %v", version, r, err)
		}
	}
}

func TestOfficialClientsCancelTheirCalls(t *testing.T) {
	f := start(t)
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		g := newGate(f.gw.agent("x"))
		cs := f.official("/mcp/x", version, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "d__sleep"})
			done <- err
		}()
		call := within(t, g.ctx, "the call")
		cancel()
		within(t, call.Done(), "the cancel of "+version)
		within(t, done, "the client's return")
		f.gw.agent("x").setCall(func(actors.Call) (actors.Reply, error) { return held(`{"content":[]}`), nil })
		if _, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "d__echo"}); err != nil {
			t.Errorf("%s: the session did not survive a cancel: %v", version, err)
		}
	}
}

// TestC105TheSameListIsNotTold: another agent's tools, or a server that came back
// with what it had, are no news, and what is news is told once.
func TestC105TheSameListIsNotTold(t *testing.T) {
	inBubble(t, func(b *slow) {
		sid := b.login()
		resp, conn := b.open(request("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, sessionHeader, sid))
		io.Copy(io.Discard, resp.Body)
		conn.Close()
		stream, conn := b.open(request("GET", "", sessionHeader, sid))
		defer conn.Close()
		var told atomic.Int64
		go func() {
			for r := bufio.NewReader(stream.Body); ; {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if strings.Contains(line, "list_changed") {
					told.Add(1)
				}
			}
		}()
		for n, want := range []int64{1, 1, 2, 2} { // each list comes twice
			b.gw.agent("default").change(fmt.Sprintf(`[{"name":"new__tool","description":"%d","inputSchema":{"type":"object"}}]`, n/2))
			time.Sleep(time.Hour)
			if got := told.Load(); got != want {
				t.Errorf("after %d changes it was told %d times, want %d", n+1, got, want)
			}
		}
	})
}

func TestAChangedToolListIsToldInBothEras(t *testing.T) {
	f := start(t, func(s *Server) { s.pace.settle = time.Millisecond })
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		told := make(chan string, 1)
		cs := f.official("/mcp/x", version, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case told <- version:
			default: // enough was heard, and Close waits for us
			}
		}})
		if _, err := cs.ListTools(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		// The client opens its stream in its own time: change until it is told.
		deadline := time.After(20 * time.Second)
		for n, done := 0, false; !done; n++ {
			f.gw.agent("x").change(fmt.Sprintf(`[{"name":"new__tool","description":"%s %d","inputSchema":{"type":"object"}}]`, version, n))
			select {
			case <-told:
				done = true
			case <-deadline:
				t.Fatalf("%s was not told", version)
			case <-time.After(20 * time.Millisecond):
			}
		}
		l, err := cs.ListTools(context.Background(), nil)
		if err != nil || len(l.Tools) != 1 || l.Tools[0].Name != "new__tool" {
			t.Errorf("%s: %v %v", version, l, err)
		}
	}
}

func TestAnAgentThatIsNoLongerWelcomeLosesItsSessions(t *testing.T) {
	f := start(t, func(s *Server) { s.pace.settle = time.Millisecond })
	sid := f.login("/mcp/x")
	f.login("/mcp/y")
	r, _ := http.NewRequest("GET", f.url("/mcp/x"), nil)
	r.Header = http.Header{sessionHeader: {sid}, "Accept": {"text/event-stream"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	f.gw.mu.Lock()
	f.gw.barred = map[string]bool{"x": true}
	f.gw.mu.Unlock()
	if a := f.do("POST", "/mcp/x", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid); a.status != 404 || !strings.Contains(a.body, "[agents.x]") {
		t.Errorf("%d %s", a.status, a.body)
	}
	f.gw.agent("x").change(`[]`)
	end := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(resp.Body)
		end <- err
	}()
	within(t, end, "the end of its stream")
	if got := f.s.Sessions(); len(got) != 1 || got[0].Agent != "y" {
		t.Errorf("sessions: %+v", got)
	}
}

// TestAChangeIsNotMissedThatComesWithTheFirstRequest of an agent, which was welcome when it
// came and is not when it leaves.
func TestAChangeIsNotMissedThatComesWithTheFirstRequest(t *testing.T) {
	f := start(t)
	x := f.gw.agent("x")
	x.shown = func() {
		f.gw.mu.Lock()
		f.gw.barred = map[string]bool{"x": true}
		f.gw.mu.Unlock()
		x.change(`[]`)
	}
	if a := f.modernPost("/mcp/x", "tools/list", "", ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	eventually(t, "the agent to be forgotten", func() bool { return f.known() == 0 })
}

func TestCloseEndsTheStreams(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp")
	r, _ := http.NewRequest("GET", f.url("/mcp"), nil)
	r.Header = http.Header{sessionHeader: {sid}, "Accept": {"text/event-stream"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	f.s.Close()
	f.s.Close()
	end := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(resp.Body)
		end <- err
	}()
	if err := within(t, end, "the end of the stream"); err != nil {
		t.Error(err)
	}
}

func TestClientsWithoutSessionsAreShownAsLongAsASessionWouldBe(t *testing.T) {
	f := start(t)
	ask := func(client string) {
		t.Helper()
		meta := strings.Replace(modernMeta, "}}", `},"io.modelcontextprotocol/clientInfo":`+client+"}", 1)
		if a := f.do("POST", "/mcp/new", callBody("1", `{"name":"d__echo",`+meta+`}`), modernCall...); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for range 3 {
		ask(`{"name":"reader","version":"4.2"}`)
	}
	all := f.s.Attached()
	if len(all) != 1 || all[0].LastSeen.Before(all[0].Created) || all[0].Created.IsZero() {
		t.Fatalf("%+v", all)
	}
	all[0].Created, all[0].LastSeen = time.Time{}, time.Time{}
	if want := (SessionInfo{Agent: "new", Protocol: "2026-07-28", Client: "reader", Version: "4.2", Transport: "http"}); all[0] != want {
		t.Errorf("%+v, want %+v", all[0], want)
	}
	for i := range 3 * maxGuests {
		ask(fmt.Sprintf(`{"name":"c%d","version":"1"}`, i))
	}
	ask(`{"name":"huge","version":"` + strings.Repeat("x", maxCard) + `"}`)
	all = f.s.Attached()
	if len(all) != maxGuests || all[len(all)-1].Client != "" {
		t.Errorf("%d clients, the last %+v", len(all), all[len(all)-1])
	}
	f.s.mu.Lock()
	id := f.s.identities["new"]
	f.s.mu.Unlock()
	if all := id.guests.list(nil, time.Nanosecond); len(all) != 0 {
		t.Errorf("clients that went away are still shown: %+v", all)
	}
}

func TestSeeingAClientAgainCostsNoMemory(t *testing.T) {
	var g guests
	ctx, card := WithPeer(t.Context(), 7), []byte(`{"name":"reader","version":"4.2"}`)
	if n := testing.AllocsPerRun(10_000, func() { g.saw(ctx, "a", newEra, card) }); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// TestALostSessionStaysLostWhileItsClientBeginsAnew on the same connection, where each
// request has the very same head.
func TestALostSessionStaysLostWhileItsClientBeginsAnew(t *testing.T) {
	f := start(t)
	c := f.dial()
	for range 3 {
		for body, want := range map[string]int{hello: http.StatusOK, callBody("1", `{"name":"d__echo"}`): http.StatusNotFound} {
			io.WriteString(c, f.rawRequest("/mcp", body, sessionHeader, "lost"))
			if a, err := response(c); err != nil || a.status != want {
				t.Errorf("%s: %d %s, want %d: %v", body, a.status, a.body, want, err)
			}
		}
	}
}
