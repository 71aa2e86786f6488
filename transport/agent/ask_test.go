package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// asks is a call in which the server asks these questions, one after the other, and
// answers with what it heard.
func asks(questions ...string) func(ctx context.Context, c actors.Call) (actors.Reply, error) {
	return func(ctx context.Context, c actors.Call) (actors.Reply, error) {
		heard := []string{}
		for _, q := range questions {
			method, params, _ := strings.Cut(q, " ")
			heard = append(heard, answerOf(ctx, c, method, params))
		}
		text, _ := json.Marshal(strings.Join(heard, "|"))
		return held(`{"content":[{"type":"text","text":` + string(text) + `}]}`), nil
	}
}

func answerOf(ctx context.Context, c actors.Call, method, params string) string {
	if c.Ask == nil {
		return "nobody"
	}
	b, err := c.Ask(ctx, method, []byte(params))
	var raw actors.RawError
	switch {
	case errors.As(err, &raw):
		return "refused " + string(raw)
	case errors.Is(err, actors.ErrCannot):
		return "cannot"
	case err != nil:
		return err.Error()
	}
	return string(b)
}

const sure = elicit + ` {"message":"sure?","requestedSchema":{"type":"object","properties":{"n":{"type":"number"}}}}`

// TestC61OfficialClientsAreAskedInTheirOwnWay: on the stream of the call, or by
// input_required.
func TestC61OfficialClientsAreAskedInTheirOwnWay(t *testing.T) {
	f := start(t)
	f.gw.agent("x").call = asks(sure, sample+` {"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`, sure)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		asked := 0
		cs := f.official("/mcp/x", version, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": asked, "m": r.Params.Message}}, nil
			},
			CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: r.Params.Messages[0].Content}, nil
			},
		})
		res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "d__ask", Arguments: map[string]any{}})
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		got := res.Content[0].(*mcp.TextContent).Text
		if asked != 2 || strings.Count(got, `"accept"`) != 2 || !strings.Contains(got, `"n":2`) || !strings.Contains(got, `"text":"hi"`) {
			t.Errorf("%s: asked %d times, the server heard %s", version, asked, got)
		}
	}
}

// TestC61WhoDidNotDeclareItIsNotAsked, in both eras.
func TestC61WhoDidNotDeclareItIsNotAsked(t *testing.T) {
	f := start(t)
	for capabilities, want := range map[string]string{
		`{}`:                                   "nobody|nobody|nobody|nobody",
		`{"elicitation":null,"x":{}}`:          "nobody|nobody|nobody|nobody",
		`{"sampling":{}}`:                      "cannot|cannot|ok|cannot",
		`{"elicitation":{}}`:                   "ok|cannot|cannot|cannot",
		`{"elicitation":{"form":{},"url":{}}}`: "ok|ok|cannot|cannot",
		`{"elicitation":{"url":{}}}`:           "cannot|ok|cannot|cannot",
		`{"sampling":{"tools":{}}}`:            "cannot|cannot|ok|ok",
	} {
		f.gw.agent("x").call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
			if c.Ask == nil {
				return held(`{"t":"nobody|nobody|nobody|nobody"}`), nil
			}
			var got []string
			for _, q := range []string{sure, elicit + ` {"mode":"url","url":"https://x"}`, sample + ` {}`, sample + ` {"tools":[]}`} {
				method, params, _ := strings.Cut(q, " ")
				can := abilitiesOf(c.Can).check(method, []byte(params))
				if errors.Is(can, actors.ErrCannot) {
					if _, err := c.Ask(ctx, method, []byte(params)); !errors.Is(err, actors.ErrCannot) {
						t.Errorf("%s: %s was asked: %v", capabilities, q, err)
					}
					got = append(got, "cannot")
				} else {
					got = append(got, "ok")
				}
			}
			return held(`{"t":"` + strings.Join(got, "|") + `"}`), nil
		}
		sid := f.do("POST", "/mcp/x", strings.Replace(hello, `"capabilities":{}`, `"capabilities":`+capabilities, 1)).header.Get(sessionHeader)
		a := f.do("POST", "/mcp/x", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid)
		if !strings.Contains(a.body, `{"t":"`+want+`"}`) {
			t.Errorf("legacy %s: %s", capabilities, a.body)
		}
		meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
		if a = f.do("POST", "/mcp/x", callBody("1", `{"name":"d__echo",`+meta+`}`), modernCall...); !strings.Contains(a.body, `"t":"`+want+`"}`) {
			t.Errorf("modern %s: %s", capabilities, a.body)
		}
	}
}

// events reads an event stream message by message.
type events struct{ r *bufio.Reader }

func (e events) next(t testing.TB) string {
	t.Helper()
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			t.Fatal("the stream ended: ", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSuffix(data, "\n")
		}
	}
}

// open sends a request and returns the stream of its answer.
func (f *fixture) open(method, path, body string, headers ...string) (events, *http.Response) {
	f.Helper()
	r, err := http.NewRequest(method, f.url(path), strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { resp.Body.Close() })
	return events{bufio.NewReader(resp.Body)}, resp
}

// loginAs makes a legacy session with these capabilities.
func (f *fixture) loginAs(path, capabilities string) string {
	f.Helper()
	sid := f.do("POST", path, strings.Replace(hello, `"capabilities":{}`, `"capabilities":`+capabilities, 1)).header.Get(sessionHeader)
	if sid == "" {
		f.Fatal("no session")
	}
	return sid
}

var askedID = regexp.MustCompile(`"id":"(mcphub-ask-[0-9a-z]+)"`)

// TestC61AnswersOfALegacyAgentKeepTheirBytes, also its refusal; they work once, in its own
// session only, and never reach the SDK.
func TestC61AnswersOfALegacyAgentKeepTheirBytes(t *testing.T) {
	f := start(t)
	f.gw.agent("x").call = asks(elicit+` {"message":"a","n":1.0}`, elicit+` {"message":"b"}`, elicit+` {"message":"c"}`)
	mine, other := f.loginAs("/mcp/x", `{"elicitation":{}}`), f.loginAs("/mcp/x", `{"elicitation":{}}`)
	s, _ := f.open("POST", "/mcp/x", callBody("1", `{"name":"d__ask"}`), sessionHeader, mine)
	answers := []string{`"result":{"action":"accept","content":{"n":12345678901234567890,"e":1e400}}`, `"error":{"code":-1,"message":"no","data":1.0}`, `"result":[]`}
	for i, answer := range answers {
		q := s.next(t)
		if i == 0 && !strings.Contains(q, `"method":"elicitation/create","params":{"message":"a","n":1.0}}`) {
			t.Fatalf("asked %s", q)
		}
		id := askedID.FindStringSubmatch(q)
		if id == nil {
			t.Fatalf("no id in %s", q)
		}
		body := `{"jsonrpc":"2.0","id":"` + id[1] + `",` + answer + `}`
		if a := f.do("POST", "/mcp/x", strings.Replace(body, answer, `"result":{"action":"wrong"}`, 1), sessionHeader, other); a.status != 202 {
			t.Errorf("in another session: %d %s", a.status, a.body)
		}
		for range 2 { // the second finds nobody who waits
			if a := f.do("POST", "/mcp/x", body, sessionHeader, mine); a.status != 202 || a.body != "" {
				t.Errorf("answer: %d %s", a.status, a.body)
			}
		}
	}
	var res struct {
		Result struct{ Content []struct{ Text string } }
	}
	if last := s.next(t); json.Unmarshal([]byte(last), &res) != nil || len(res.Result.Content) != 1 {
		t.Fatal(last)
	}
	want := `{"action":"accept","content":{"n":12345678901234567890,"e":1e400}}|refused {"code":-1,"message":"no","data":1.0}|the agent's answer holds no result`
	if got := res.Result.Content[0].Text; got != want {
		t.Errorf("the server heard %s", got)
	}
}

// TestAQuestionToAnAgentThatGoesAwayEnds: its stream broke, or its session ended.
func TestAQuestionToAnAgentThatGoesAwayEnds(t *testing.T) {
	f := start(t)
	heard := make(chan string, 1)
	f.gw.agent("x").call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
		heard <- answerOf(ctx, c, elicit, `{"message":"?"}`)
		return held(`{}`), nil
	}
	sid := f.loginAs("/mcp/x", `{"elicitation":{}}`)
	s, resp := f.open("POST", "/mcp/x", callBody("1", `{"name":"d__ask"}`), sessionHeader, sid)
	s.next(t)
	resp.Body.Close()
	if got := within(t, heard, "the end of the question"); got != errAway.Error() {
		t.Error(got)
	}
	s, _ = f.open("POST", "/mcp/x", callBody("1", `{"name":"d__ask"}`), sessionHeader, sid)
	s.next(t)
	if a := f.do("DELETE", "/mcp/x", "", sessionHeader, sid); a.status/100 != 2 {
		t.Fatal(a)
	}
	if got := within(t, heard, "the end of the question"); got != errSession.Error() && got != errCancelled.Error() {
		t.Error(got)
	}
}

// TestAQuestionThatIsWithdrawnIsTakenBackFromALegacyAgent.
func TestAQuestionThatIsWithdrawnIsTakenBackFromALegacyAgent(t *testing.T) {
	f := start(t)
	heard := make(chan struct{})
	f.gw.agent("x").call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
		ctx, cancel := context.WithCancel(ctx)
		go func() { <-heard; cancel() }()
		_, err := c.Ask(ctx, elicit, []byte(`{"message":"?"}`))
		return held(fmt.Sprintf(`{"err":%q}`, err)), nil
	}
	s, _ := f.open("POST", "/mcp/x", callBody("1", `{"name":"d__ask"}`), sessionHeader, f.loginAs("/mcp/x", `{"elicitation":{}}`))
	id := askedID.FindStringSubmatch(s.next(t))
	close(heard)
	if got := s.next(t); id == nil || !strings.Contains(got, `"method":"notifications/cancelled","params":{"requestId":"`+id[1]+`"}`) {
		t.Error(got)
	}
	if got := s.next(t); !strings.Contains(got, `"result":{"err":`) {
		t.Error(got)
	}
}

// modernAsk is a call of a 2026-07-28 agent that can be asked; more goes into params.
func modernAsk(name, more string) (body string, headers []string) {
	meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{},"sampling":{}}`, 1)
	return callBody("1", `{"name":"`+name+`",`+more+meta+`}`), []string{versionHeader, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name}
}

func (f *fixture) modernAsk(path, name, more string) answer {
	body, headers := modernAsk(name, more)
	return f.do("POST", path, body, headers...)
}

var stateOf = regexp.MustCompile(`"requestState":"(mcphub\.[0-9a-f]{64})"`)

func again(state, responses string) string {
	return `"requestState":"` + state + `","inputResponses":` + responses + `,`
}

// TestAParkedCallGoesOnOnlyForItsOwnAgentToolAndState: a state works once, and no guess,
// no other agent and no other tool gets at the call. They are judged where the server is known.
func TestAParkedCallGoesOnOnlyForItsOwnAgentToolAndState(t *testing.T) {
	f := start(t)
	for _, name := range []string{"x", "y"} {
		ask := asks(elicit+` {"message":"a","n":1.0}`, elicit+` {"message":"b"}`)
		f.gw.agent(name).call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
			if c.Stated {
				return actors.Reply{}, &actors.RPCError{Code: codeInvalidParams, Message: "this requestState"}
			}
			return ask(ctx, c)
		}
	}
	first := f.modernAsk("/mcp/x", "d__ask", "")
	state := stateOf.FindStringSubmatch(first.body)
	if first.status != 200 || state == nil || !strings.Contains(first.body,
		`"result":{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"a","n":1.0}}},"requestState":`) {
		t.Fatalf("%d %s", first.status, first.body)
	}
	yes := again(state[1], `{"q1":{"action":"accept","content":{"e":1e400}}}`)
	for name, a := range map[string]answer{
		"another agent": f.modernAsk("/mcp/y", "d__ask", yes),
		"another tool":  f.modernAsk("/mcp/x", "d__echo", yes),
		"a guess":       f.modernAsk("/mcp/x", "d__ask", again("mcphub."+strings.Repeat("0", 64), `{}`)),
	} {
		if !strings.Contains(a.body, `"code":-32602`) || !strings.Contains(a.body, "requestState") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	second := f.modernAsk("/mcp/x", "d__ask", yes)
	next := stateOf.FindStringSubmatch(second.body)
	if next == nil || next[1] == state[1] || !strings.Contains(second.body, `"q2":{"method":"elicitation/create","params":{"message":"b"}}`) {
		t.Fatalf("%d %s", second.status, second.body)
	}
	if a := f.modernAsk("/mcp/x", "d__ask", yes); !strings.Contains(a.body, `"code":-32602`) {
		t.Errorf("a state that was used: %s", a.body)
	}
	last := f.modernAsk("/mcp/x", "d__ask", again(next[1], `{"q1":{"action":"accept"}}`)) // not what was asked
	if !strings.Contains(last.body, `"resultType":"complete"`) || !strings.Contains(last.body, `{\"action\":\"accept\",\"content\":{\"e\":1e400}}|cannot`) {
		t.Errorf("%d %s", last.status, last.body)
	}
	if n := len(f.s.parked.all); n != 0 {
		t.Errorf("%d calls are parked at the end", n)
	}
}

// TestQuestionsAtTheSameTimeTravelTogether, and one that comes up meanwhile is asked next.
func TestQuestionsAtTheSameTimeTravelTogether(t *testing.T) {
	f := start(t)
	f.gw.agent("x").call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
		var wg sync.WaitGroup
		got := make([]string, 3)
		for i := range got {
			wg.Go(func() { got[i] = answerOf(ctx, c, elicit, fmt.Sprintf(`{"message":"%d"}`, i)) })
		}
		wg.Wait()
		return held(`{"got":[` + strings.Join(got, ",") + `]}`), nil
	}
	more, rounds := "", 0
	for ; rounds < 5; rounds++ {
		a := f.modernAsk("/mcp/x", "d__ask", more)
		state := stateOf.FindStringSubmatch(a.body)
		if state == nil {
			for i := range 3 {
				if !strings.Contains(a.body, fmt.Sprintf(`{"action":"accept","n":"%d"}`, i)) {
					t.Errorf("after %d rounds: %s", rounds, a.body)
				}
			}
			break
		}
		var v struct {
			Result struct {
				InputRequests map[string]struct{ Params struct{ Message string } }
			}
		}
		if err := json.Unmarshal([]byte(a.body), &v); err != nil {
			t.Fatal(err)
		}
		var answers []string
		for key, q := range v.Result.InputRequests {
			answers = append(answers, `"`+key+`":{"action":"accept","n":"`+q.Params.Message+`"}`)
		}
		more = again(state[1], "{"+strings.Join(answers, ",")+"}")
	}
	if rounds == 0 || rounds > 3 {
		t.Errorf("%d rounds for 3 questions", rounds)
	}
}

// TestAnAgentThatDoesNotComeBackEndsItsCall after ten minutes, and one with too many
// parked calls is not asked any more.
func TestAnAgentThatDoesNotComeBackEndsItsCall(t *testing.T) {
	inBubble(t, func(b *slow) {
		ended := make(chan error, maxParked)
		b.gw.agent("x").call = func(ctx context.Context, c actors.Call) (actors.Reply, error) {
			switch got := answerOf(ctx, c, elicit, `{"message":"?"}`); got {
			case "cannot":
				return held(`{"got":"cannot"}`), nil
			default:
				ended <- context.Cause(ctx)
				return actors.Reply{}, context.Cause(ctx)
			}
		}
		began := time.Now()
		body, headers := modernAsk("d__ask", "")
		f := &fixture{addr: "127.0.0.1"}
		for i := range maxParked + 1 {
			resp, conn := b.open(f.rawRequest("/mcp/x", body, headers...))
			text := make([]byte, 4096)
			n, _ := resp.Body.Read(text)
			if parked := strings.Contains(string(text[:n]), `"input_required"`); parked != (i < maxParked) {
				b.Fatalf("call %d: %s", i, text[:n])
			}
			conn.Close()
		}
		for range maxParked {
			if err := <-ended; err != errNoShow {
				b.Errorf("a call ended with %v", err)
			}
		}
		if took := time.Since(began); took < 10*time.Minute || took > 11*time.Minute {
			b.Errorf("after %v", took)
		}
		synctest.Wait()
		if n := len(b.s.parked.all); n != 0 {
			b.Errorf("%d are still parked", n)
		}
	})
}

// TestAModernAgentThatHangsUpCancelsItsCall, also one that may be asked.
func TestAModernAgentThatHangsUpCancelsItsCall(t *testing.T) {
	f := start(t)
	g := newGate(f.gw.agent("x"))
	body, headers := modernAsk("d__ask", "")
	c := f.dial()
	if _, err := c.Write([]byte(f.rawRequest("/mcp/x", body, headers...))); err != nil {
		t.Fatal(err)
	}
	within(t, g.entered, "the call")
	ctx := within(t, g.ctx, "its context")
	c.Close()
	within(t, ctx.Done(), "the cancel")
}
