package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/test/mcptest"
)

// What servers say unasked, on the built binary with real children and official clients.

// official attaches an official client of that revision.
func (h hub) official(t testing.TB, name, revision string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, o).Connect(background(t),
		&mcp.StreamableClientTransport{Endpoint: h.URL(name)}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

const question = `{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}}` + "\n"

// heard reports what a server got as the answer to its request with that id.
func heard(h hub, id string) (answer string) {
	for _, line := range h.d().Record.All() {
		if m := mcptest.Members(line); string(m["id"]) == id && m["method"] == nil {
			answer = string(line)
		}
	}
	return answer
}

func TestC61AServersQuestionReachesTheAgentOfItsCallAndNoOther(t *testing.T) {
	t.Parallel()
	go1, go2 := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "echo", Nth: 1, Do: []mcptest.Step{{Write: mcptest.Bytes(fmt.Sprintf(question, 1))}, {Wait: go1}, {Default: true}}},
		{Method: "tools/call", Tool: "echo", Nth: 2, Do: []mcptest.Step{{Write: mcptest.Bytes(fmt.Sprintf(question, 2))}, {Wait: go2}, {Default: true}}},
		{Method: "tools/call", Tool: "fail", Do: []mcptest.Step{{Write: mcptest.Bytes(fmt.Sprintf(question, 3))}, {Default: true}}},
		{Method: "notifications/initialized", Do: []mcptest.Step{{Write: `{"jsonrpc":"2.0","id":11,"method":"roots/list"}` + "\n" +
			`{"jsonrpc":"2.0","id":12,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":13,"method":"x/unknown"}` + "\n"}}},
	}})
	for i, revision := range []string{mcptest.Legacy, mcptest.Modern} {
		id := i + 1
		asked := 0
		cs := h.official(t, "a", revision, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"who": revision}}, nil
		}})
		var wg sync.WaitGroup
		wg.Go(func() {
			mcptest.Eventually(t, "the answer at the server", func() bool { return heard(h, fmt.Sprint(id)) != "" })
			_ = os.WriteFile([]string{go1, go2}[i], nil, 0o600)
		})
		res, err := cs.CallTool(background(t), &mcp.CallToolParams{Name: "d__echo", Arguments: map[string]any{"v": "ok"}})
		wg.Wait()
		if err != nil || asked != 1 || res.Content[0].(*mcp.TextContent).Text != "ok" {
			t.Errorf("%s: asked %d times: %v %v", revision, asked, res, err)
		}
		var v struct {
			Result struct {
				Action  string
				Content map[string]string
			}
		}
		if got := heard(h, fmt.Sprint(id)); json.Unmarshal([]byte(got), &v) != nil || v.Result.Action != "accept" || v.Result.Content["who"] != revision {
			t.Errorf("%s: the server heard %s", revision, got)
		}
	}
	// An agent that cannot be asked declines at once, in both eras.
	for _, agent := range eras {
		call(t, agent(h), "d__fail", `{"v":"x"}`)
	}
	for id, want := range map[string]string{"3": `"result":{"action":"decline"}`, "11": `"result":{"roots":[]}`, "12": `"result":{}`, "13": `-32601`} {
		mcptest.Eventually(t, "the answer to request "+id+" of the server", func() bool { return heard(h, id) != "" })
		if got := heard(h, id); !strings.Contains(got, want) {
			t.Errorf("request %s of the server was answered with %s, want %s", id, got, want)
		}
	}
	hello := h.d().Record.Of("initialize")[0]
	if can := mcptest.Members(mcptest.Members(hello)["params"])["capabilities"]; !bytes.Contains(can, []byte(`"elicitation"`)) ||
		!bytes.Contains(can, []byte(`"sampling"`)) || bytes.Contains(can, []byte("roots")) {
		t.Errorf("the server was offered %s", can)
	}
}

// TestC61TheEndOfAnElicitationReachesWhoWasSentToThePage, also long after the call, and
// nobody else.
func TestC61TheEndOfAnElicitationReachesWhoWasSentToThePage(t *testing.T) {
	t.Parallel()
	const done = `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"%s"}}` + "\n"
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "echo", Nth: 1, Do: []mcptest.Step{{Write: `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"sign in","url":"https://example.com/x","elicitationId":"asked"}}` + "\n"}, {Default: true}}},
		{Method: "tools/call", Tool: "echo", Nth: 2, Do: []mcptest.Step{{Answer: &mcptest.Answer{Error: `{"code":-32042,"message":"open a page","data":{"elicitations":[{"mode":"url","message":"sign in","url":"https://example.com/y","elicitationId":"needed"}]}}`}}}},
		{Method: "tools/call", Tool: "fail", Do: []mcptest.Step{{Write: mcptest.Bytes(fmt.Sprintf(done, "asked") + fmt.Sprintf(done, "needed") + fmt.Sprintf(done, "asked"))}, {Default: true}}},
	}})
	var heard [2]chan string
	var agents [2]*mcp.ClientSession
	for i, name := range []string{"a", "b"} {
		heard[i] = make(chan string, 10)
		agents[i] = h.official(t, name, mcptest.Legacy, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
			ElicitationCompleteHandler: func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
				heard[i] <- r.Params.ElicitationID
			},
		})
	}
	tool := func(a *mcp.ClientSession, name string) error {
		_, err := a.CallTool(background(t), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"v": "x"}})
		return err
	}
	if err := tool(agents[0], "d__echo"); err != nil {
		t.Fatal(err)
	}
	r, err := h.Agent("a").Call(background(t), "d__echo", "{}") // an agent of raw bytes has declared nothing
	if err != nil || !bytes.Contains(r.Body, []byte("-32042")) {
		t.Errorf("%v %s", err, r.Body)
	}
	_ = tool(agents[1], "d__fail")
	select {
	case id := <-heard[0]:
		if id != "asked" {
			t.Errorf("the agent heard of %q", id)
		}
	case <-time.After(mcptest.Patience):
		t.Error("the agent that was asked never heard of the end")
	}
	if len(heard[0])+len(heard[1]) > 0 {
		t.Error("it was told more than once, or to another agent")
	}
}

// TestC61TheEndOfWhatACallNeededReachesWhoMadeThatCall: a call that ends with -32042 sends its
// agent to a page, and the server says later, wherever it can, when all is done there. Agents
// of the older revisions make the call again then. The newest knows neither: its agent is asked
// to go there, and the call is made again for it; if it cannot go it gets the error as it is.
func TestC61TheEndOfWhatACallNeededReachesWhoMadeThatCall(t *testing.T) {
	t.Parallel()
	needs := func(id string) string {
		return `{"code":-32042, "message":"open a page","data":{"elicitations":[{"mode":"url","message":"sign in","url":"https://example.com/` + id + `","elicitationId":"` + id + `"}],"n":1.0}}`
	}
	done := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"` + id + `"}}` + "\n"
	}
	script := mcptest.Script{SSE: true}
	for n, id := range []string{"a-1", "", "a-2", "b-1", "n-1", "m-1"} {
		if id != "" {
			script.Rules = append(script.Rules, mcptest.Rule{Method: "tools/call", Tool: "echo", Nth: n + 1,
				Do: []mcptest.Step{{Answer: &mcptest.Answer{Error: mcptest.Bytes(needs(id))}}}})
		}
	}
	rounds := [][]string{{"a-1"}, {"a-1", "m-1", "nobody", "a-2", "b-1"}}
	for n, ids := range rounds {
		tells := mcptest.Rule{Method: "tools/call", Tool: "fail", Nth: n + 1}
		for _, id := range ids {
			tells.Do = append(tells.Do, mcptest.Step{Write: mcptest.Bytes(done(id))})
		}
		tells.Do = append(tells.Do, mcptest.Step{Default: true})
		script.Rules = append(script.Rules, tells)
	}
	within := func(t *testing.T, h hub, round int) { call(t, h.Agent("c"), "d__fail", "{}") } // of another's call
	remote := func(t *testing.T) (*mcptest.Remote, hub) {
		r := mcptest.NewRemote(t, script)
		return r, hub{Daemon: mcptest.StartDaemon(t, "[servers.d]\nurl = \""+r.URL+"/mcp\"\n")}
	}
	for kind, begin := range map[string]func(t *testing.T) (hub, func(*testing.T, hub, int)){
		"stdio":              func(t *testing.T) (hub, func(*testing.T, hub, int)) { return one(t, "", script), within },
		"http, in an answer": func(t *testing.T) (hub, func(*testing.T, hub, int)) { _, h := remote(t); return h, within },
		"http, standing apart": func(t *testing.T) (hub, func(*testing.T, hub, int)) {
			r, h := remote(t)
			mcptest.Eventually(t, "the standing stream", func() bool {
				_, body, err := h.Get("/debug/servers/d")
				return err == nil && strings.Contains(string(body), `"stream": "up`)
			})
			return h, func(_ *testing.T, _ hub, round int) {
				for _, id := range rounds[round] {
					r.Notify(strings.TrimSpace(done(id)))
				}
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h, tell := begin(t)
			attach := func(name, revision string) (*mcp.ClientSession, chan string) {
				heard := make(chan string, 10)
				return h.official(t, name, revision, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						heard <- "is asked to go to " + r.Params.URL
						return &mcp.ElicitResult{Action: "accept"}, nil
					},
					Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
					ElicitationCompleteHandler: func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
						heard <- r.Params.ElicitationID
					},
				}), heard
			}
			a, heardA := attach("a", "2025-11-25")
			aside, heardAside := attach("a", "2025-11-25")
			b, heardB := attach("b", "2025-11-25")
			next := func(heard chan string, want string) {
				t.Helper()
				select {
				case id := <-heard:
					if id != want {
						t.Errorf("heard of the end of %q, want %q", id, want)
					}
				case <-time.After(mcptest.Patience):
					t.Errorf("never heard of the end of %q", want)
				}
			}
			echoes := func(s *mcp.ClientSession, want string) {
				t.Helper()
				_, err := s.CallTool(background(t), &mcp.CallToolParams{Name: "d__echo", Arguments: map[string]any{"v": "x"}})
				var no *jsonrpc.Error
				switch {
				case want == "" && err != nil, want != "" && !errors.As(err, &no):
					t.Errorf("the call came to %v", err)
				case want != "" && (no.Code != -32042 || !strings.HasSuffix(needs(want), `"data":`+string(no.Data)+"}")):
					t.Errorf("the call came to %d %s", no.Code, no.Data)
				}
			}
			echoes(a, "a-1")
			tell(t, h, 0)
			next(heardA, "a-1")
			echoes(a, "") // as the page was opened, it goes on
			echoes(a, "a-2")
			echoes(b, "b-1")
			echoes(h.official(t, "n", mcptest.Modern, nil), "n-1")
			m, heardM := attach("m", mcptest.Modern)
			var late sync.WaitGroup
			late.Go(func() { echoes(m, "") })
			next(heardM, "is asked to go to https://example.com/m-1")
			tell(t, h, 1)
			next(heardA, "a-2") // and not of a-1 once more: it would have come before
			next(heardB, "b-1")
			late.Wait()
			echoes(aside, "")
			if len(heardA)+len(heardB)+len(heardAside)+len(heardM) > 0 {
				t.Error("somebody heard of an end twice, or of one that is another's")
			}
		})
	}
}

func TestC27ACancelReachesTheRightCallAndNoOther(t *testing.T) {
	t.Parallel()
	h := start(t, "", map[string]mcptest.Script{"d": {}, "e": {}})
	a, b := h.Agent("a"), h.Agent("b")
	type outcome struct {
		r   mcptest.Response
		err error
	}
	slow := func(agent *mcptest.Agent, id, tool string, ms int) chan outcome {
		done := make(chan outcome, 1)
		go func() {
			r, err := agent.Request(background(t), id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"v":%q,"ms":%d}}`, tool, tool, ms))
			done <- outcome{r, err}
		}()
		return done
	}
	mine := slow(a, "101", "d__echo", 600_000)
	h.d().Record.Await(t, "tools/call", 1) // the first is A's
	theirs, elsewhere := slow(b, "101", "d__echo", 3000), slow(b, "102", "e__echo", 3000)
	calls := h.d().Record.Await(t, "tools/call", 2)
	h.servers["e"].Record.Await(t, "tools/call", 1)

	for _, id := range []string{"777", "1", `"101"`, "0"} { // unknown, finished, another type, that of initialize
		if r, err := a.Cancel(background(t), id); err != nil || r.Status != 202 {
			t.Errorf("cancel %s: %d %v", id, r.Status, err)
		}
	}
	if r, err := a.Cancel(background(t), "101"); err != nil || r.Status != 202 {
		t.Errorf("cancel: %d %v", r.Status, err)
	}
	told := h.d().Record.Await(t, "notifications/cancelled", 1)
	if got := mcptest.Members(mcptest.Members(told[0])["params"])["requestId"]; !bytes.Equal(got, mcptest.Members(calls[0])["id"]) {
		t.Errorf("the server was told to cancel %s, A's call is %s", got, mcptest.Members(calls[0])["id"])
	}
	if o := <-mine; o.err != nil || o.r.Message() != nil {
		t.Errorf("A's call ended with %s, %v", o.r.Body, o.err)
	}
	for name, o := range map[string]outcome{"B": <-theirs, "B at another server": <-elsewhere} {
		if o.err != nil || !strings.HasSuffix(o.r.Text(), "__echo") {
			t.Errorf("%s: %s %v", name, o.r.Body, o.err)
		}
	}
	if n := len(h.d().Record.Of("notifications/cancelled")) + len(h.servers["e"].Record.Of("notifications/cancelled")); n != 1 {
		t.Errorf("%d cancels were sent", n)
	}

	// The other forms: a 2026-07-28 agent hangs up, and a session is deleted.
	ctx, hangUp := context.WithCancel(background(t))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = h.Modern("m").Call(ctx, "d__echo", `{"ms":600000}`)
	}()
	h.d().Record.Await(t, "tools/call", 3)
	hangUp()
	<-gone
	h.d().Record.Await(t, "notifications/cancelled", 2)
	last := slow(a, "103", "d__echo", 600_000)
	calls = h.d().Record.Await(t, "tools/call", 4)
	if r, err := a.Delete(background(t)); err != nil || r.Status/100 != 2 {
		t.Errorf("DELETE: %d %v", r.Status, err)
	}
	told = h.d().Record.Await(t, "notifications/cancelled", 3)
	for i := range 2 {
		if got, want := mcptest.Members(mcptest.Members(told[i+1])["params"])["requestId"], mcptest.Members(calls[i+2])["id"]; !bytes.Equal(got, want) {
			t.Errorf("cancel %d is about %s, want %s", i+1, got, want)
		}
	}
	<-last
}

// TestC60ProgressKeepsALongCallAliveUpToCallTimeout: each server has its own limits, so that
// the one that is meant comes long before the others.
func TestC60ProgressKeepsALongCallAliveUpToCallTimeout(t *testing.T) {
	t.Parallel()
	conf, servers := "", map[string]mcptest.Server{}
	for _, s := range []struct{ name, idle, most string }{{"answers", "10s", "30m"}, {"reports", "10s", "12s"}, {"silent", "5s", "30m"}} {
		servers[s.name] = mcptest.NewServer(t, mcptest.Script{})
		conf += servers[s.name].TOML(s.name, fmt.Sprintf("idle_timeout = %q", s.idle), fmt.Sprintf("call_timeout = %q", s.most))
	}
	h := hub{mcptest.StartDaemon(t, conf), servers}
	calls := []struct {
		tool, args, want string
		isError          bool
	}{
		{"answers__progress", `{"n":55,"ms":200}`, "done", false}, // longer than idle_timeout
		{"reports__progress", `{"n":100000,"ms":200}`, "12s (call_timeout of server reports)", true},
		{"silent__sleep", `{"ms":600000}`, "5s (idle_timeout of server silent)", true},
	}
	tokens := []string{"", `,"_meta":{"progressToken":"tok"}`}
	a := h.Agent("a")
	err := all(len(calls)*len(tokens), func(i int) error {
		c, token := calls[i/len(tokens)], tokens[i%len(tokens)]
		r, err := a.RPC(background(t), "tools/call", `{"name":"`+c.tool+`","arguments":`+c.args+token+`}`)
		if err != nil || r.IsError() != c.isError || !strings.Contains(r.Text(), c.want) {
			return fmt.Errorf("%s%s: %w: %s", c.tool, token, err, r.Body)
		}
		heard := bytes.Contains(r.Body, []byte("notifications/progress"))
		if heard != (token != "" && c.tool != "silent__sleep") {
			return fmt.Errorf("%s%s: the agent heard reports: %v", c.tool, token, heard)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{"answers": 0, "reports": 2, "silent": 2} {
		if n := len(servers[name].Record.Await(t, "notifications/cancelled", want)); n != want {
			t.Errorf("%d of %d calls were cancelled at the server %s", n, want, name)
		}
	}
}

func TestC59ProgressKeepsItsTokenAndStrayProgressGoesNowhere(t *testing.T) {
	t.Parallel()
	const stray = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nope","progress":1}}` + "\n"
	const mine = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}` + "\n"
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{
		{Write: stray}, {Write: mine, Repeat: 3}, {Default: true}, {Write: mine}, {Write: stray}}}}})
	for era, agent := range eras {
		a := agent(h)
		for _, token := range []string{`"tok-A"`, `0`, ``} {
			meta := ""
			if token != "" {
				meta = `,"_meta":{"progressToken":` + token + `}`
			}
			r, err := a.RPC(background(t), "tools/call", `{"name":"d__echo","arguments":{"v":"x"}`+meta+`}`)
			if err != nil || r.Text() != "x" {
				t.Fatalf("%s: %v %s", era, err, r.Body)
			}
			got := strings.Count(string(r.Body), `"notifications/progress"`)
			want := strings.Count(string(r.Body), `"progressToken":`+token+`,`)
			if token == "" && got != 0 || token != "" && (got != 3 || want != 3) {
				t.Errorf("%s: token %s: %d reports, %d under it: %s", era, token, got, want, r.Body)
			}
		}
	}
	// Of 4 calls two with a token that is nobody's and the one that came late; all 6 of the
	// two calls that have no token.
	mcptest.Eventually(t, "all strays to be counted in the state", func() bool {
		_, body, err := h.Get("/debug/servers/d")
		var s struct{ Dropped int }
		return err == nil && json.Unmarshal(body, &s) == nil && s.Dropped == 24
	})
}

func TestC106LogMessagesFollowTheLevelOfEachAgent(t *testing.T) {
	t.Parallel()
	const levels = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1.0}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1.0}}` + "\n"
	outside := filepath.Join(t.TempDir(), "outside")
	h := start(t, "[agents.a]\n[agents.b]\n[agents.n]\n[agents.c]\nservers = [\"e\"]\n", map[string]mcptest.Script{
		"d": {Capabilities: `{"tools":{},"logging":{}}`, Rules: []mcptest.Rule{
			{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{{Write: levels}, {Default: true}}},
			{Method: "notifications/initialized", Do: []mcptest.Step{{Wait: outside}, {Write: levels}}}}},
		"e": {}})
	set := func(a *mcptest.Agent, level string) {
		if r, err := a.RPC(background(t), "logging/setLevel", `{"level":"`+level+`"}`); err != nil || string(r.Result()) != "{}" {
			t.Fatalf("setLevel: %v %s", err, r.Body)
		}
	}
	told := func(n int, level string) {
		t.Helper()
		got := h.d().Record.Await(t, "logging/setLevel", n)
		if p := mcptest.Members(got[n-1])["params"]; string(p) != `{"level":"`+level+`"}` {
			t.Errorf("the server was told %s, want %s", p, level)
		}
	}
	b, a, c, n := h.Agent("b"), h.Agent("a"), h.Agent("c"), h.Agent("n")
	set(c, "debug") // has no right to know of d
	set(b, "error")
	told(1, "error")
	set(a, "debug")
	told(2, "debug")
	count := func(r mcptest.Response) int { return strings.Count(string(r.Body), `"notifications/message"`) }
	for name, want := range map[*mcptest.Agent]int{a: 3, b: 1, n: 0} {
		if r := call(t, name, "d__echo", `{"v":"x"}`); count(r) != want {
			t.Errorf("%s heard %d messages, want %d: %s", name.URL, count(r), want, r.Body)
		}
	}
	m := h.Modern("a")
	for level, want := range map[string]int{"": 0, "info": 2} {
		meta := ""
		if level != "" {
			meta = `,"_meta":{"io.modelcontextprotocol/logLevel":"` + level + `"}`
		}
		if r, err := m.RPC(background(t), "tools/call", `{"name":"d__echo","arguments":{"v":"x"}`+meta+`}`); err != nil || count(r) != want {
			t.Errorf("modern at %q heard %d, want %d: %v %s", level, count(r), want, err, r.Body)
		}
	}
	// Outside any call: those that asked and may know, from their own level up.
	type line struct{ who, data string }
	lines := make(chan line, 100)
	for who, agent := range map[string]*mcptest.Agent{"a": a, "b": b, "c": c, "n": n} {
		s, err := agent.Listen(background(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		ready := make(chan struct{})
		go func() {
			p := make([]byte, 1<<16)
			for first := true; ; first = false {
				n, err := s.Raw(p)
				if err != nil {
					return
				}
				if first {
					close(ready)
				}
				for l := range strings.Lines(string(p[:n])) {
					// A list that changed while the servers came up may be told here, too.
					if data, ok := strings.CutPrefix(l, "data: "); ok && strings.Contains(data, `"notifications/message"`) {
						lines <- line{who, strings.TrimSpace(data)}
					}
				}
			}
		}()
		<-ready // the first comment: the stream stands
	}
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range 4 {
		select {
		case l := <-lines:
			got[l.who]++
			if !strings.Contains(l.data, `"data":1.0`) {
				t.Errorf("%s heard %s", l.who, l.data)
			}
		case <-time.After(mcptest.Patience):
			t.Fatalf("heard only %v", got)
		}
	}
	if got["a"] != 3 || got["b"] != 1 {
		t.Errorf("heard %v", got)
	}
	if r, err := a.Delete(background(t)); err != nil || r.Status/100 != 2 {
		t.Fatal(r, err)
	}
	told(3, "error")
	if len(h.servers["e"].Record.Of("logging/setLevel")) != 0 {
		t.Error("a server without logging was told a level")
	}
}

func TestC77AFloodOfNotificationsIsBoundedAndDelaysNobody(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 4096)
	flood := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + pad + `"}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1,"message":"` + pad + `"}}` + "\n"
	h := one(t, "", mcptest.Script{Capabilities: `{"tools":{},"logging":{}}`, Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{{Write: mcptest.Bytes(flood), Repeat: full(50_000)}, {Default: true}}}}})
	a, b := h.Agent("a"), h.Agent("b")
	for _, agent := range []*mcptest.Agent{a, b} {
		if _, err := agent.RPC(background(t), "logging/setLevel", `{"level":"debug"}`); err != nil {
			t.Fatal(err)
		}
	}
	s, err := a.Listen(background(t)) // and never read
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	body, header := a.Message("5", "tools/call", `{"name":"d__echo","arguments":{"v":"end"},"_meta":{"progressToken":1}}`)
	stream, err := a.Open(background(t), "POST", body, header)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for i := range 20 { // nobody reads the stream of A's call meanwhile
		if r := call(t, b, "d__pid", ""); r.Text() == "" {
			t.Errorf("call %d: %s", i, r.Body)
		}
	}
	for {
		e, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		if mcptest.ResultBytes([]byte(e.Data)) != nil {
			break
		}
	}
	if rss := peakRSS(h); !raced && rss > 128<<20 {
		t.Errorf("%d MiB of memory", rss>>20)
	}
}

// legacyIsAsked makes a call as an official client of the older revisions.
func legacyIsAsked(t *testing.T, h hub) {
	t.Helper()
	asked := 0
	cs := h.official(t, "old", mcptest.Legacy, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 1}}, nil
	}})
	res, err := cs.CallTool(background(t), &mcp.CallToolParams{Name: "d__echo", Arguments: map[string]any{"v": "x"}})
	if err != nil || asked != 1 || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != "x" {
		t.Errorf("asked %d times: %v %v", asked, res, err)
	}
}
