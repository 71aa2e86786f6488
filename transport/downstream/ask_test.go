package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcphubd/actors"
)

const elicitation = `{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"sure?","n":1.0,"requestedSchema":{"type":"object","properties":{}}}}`

// asking is a call of a tool that writes lines and answers with what the client answered.
func asking(agent string, client actors.Client, lines ...string) actors.Request {
	b, _ := json.Marshal(order{Lines: lines})
	req := toolCall("ask", string(b))
	req.Agent, req.Client = agent, client
	return req
}

// outcome is the result of a call as text.
func outcome(a actors.Answer, err error) (string, error) {
	if err != nil || a.Result == nil {
		return string(a.Error), err
	}
	defer a.Result.Close()
	var b strings.Builder
	_, err = a.Result.WriteTo(&b)
	return b.String(), err
}

// TestC61TheAgentOfTheOnlyCallIsAsked, byte for byte in both directions, although the
// server's id is one that the gateway uses too.
func TestC61TheAgentOfTheOnlyCallIsAsked(t *testing.T) {
	c := connect(t, stdio(t, "plain"), actors.Events{})
	for name, one := range map[string]struct {
		id, line, method, params string
		result                   string
		err                      error
		want                     string
	}{
		"elicitation": {"1", elicitation, "elicitation/create", `{"message":"sure?","n":1.0,"requestedSchema":{"type":"object","properties":{}}}`,
			`{"action":"accept","content":{"x":1e400}}`, nil, `"result":{"action":"accept","content":{"x":1e400}}`},
		"sampling under our own next id": {"4294967297", `{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"maxTokens":12345678901234567890}}`,
			"sampling/createMessage", `{"maxTokens":12345678901234567890}`, "{\"role\":\"assistant\",\r\n\"content\":{}}", nil, `"result":{"role":"assistant",  "content":{}}`},
		"roots": {`"r"`, `{"jsonrpc":"2.0","id":%s,"method":"roots/list"}`, "roots/list", `{}`, `{"roots":[{"uri":"file:///x"}]}`, nil, `"result":{"roots":[{"uri":"file:///x"}]}`},
		"the agent's own error": {"7", elicitation, "elicitation/create", "", "", actors.RawError(`{"code":-1,"message":"no","data":1.0}`),
			`"error":{"code":-1,"message":"no","data":1.0}`},
		"an agent that went away": {"8", elicitation, "elicitation/create", "", "", errors.New("gone"), `"result":{"action":"cancel"}`},
	} {
		var method, params string
		got, err := outcome(c.Call(t.Context(), asking("a", actors.Client{Ask: func(_ context.Context, m string, p []byte) ([]byte, error) {
			method, params = m, string(p)
			return []byte(one.result), one.err
		}}, fmt.Sprintf(one.line, one.id))))
		if want := `{"jsonrpc":"2.0","id":` + one.id + `,` + one.want + `}`; err != nil || got != want {
			t.Errorf("%s: the server got %s, want %s: %v", name, got, want, err)
		}
		if method != one.method || one.params != "" && params != one.params {
			t.Errorf("%s: the agent was asked %s %s", name, method, params)
		}
	}
	works(t, c)
}

// TestC61WhoCannotBeAskedDeclinesAtOnce: an agent without the capability, and nobody when
// two calls are in flight.
func TestC61WhoCannotBeAskedDeclinesAtOnce(t *testing.T) {
	c := connect(t, stdio(t, "plain"), actors.Events{})
	cannot := actors.Client{Ask: func(_ context.Context, m string, _ []byte) ([]byte, error) { return nil, actors.ErrCannot }}
	declines := func(client actors.Client) {
		t.Helper()
		for line, want := range map[string]string{
			fmt.Sprintf(elicitation, "1"):                                            `"result":{"action":"decline"}`,
			`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}`: `"error":{"code":-1,`,
			`{"jsonrpc":"2.0","id":3,"method":"roots/list"}`:                         `"result":{"roots":[]}`,
			`{"jsonrpc":"2.0","id":4,"method":"ping"}`:                               `"result":{}`,
			`{"jsonrpc":"2.0","id":5,"method":"x/unknown"}`:                          `"error":{"code":-32601`,
		} {
			if got, err := outcome(c.Call(t.Context(), asking("a", client, line))); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s was answered with %s, want %s: %v", line, got, want, err)
			}
		}
	}
	declines(actors.Client{})
	declines(cannot)

	// A second call, of another agent: now nobody is asked, whatever he could answer.
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	never := asking("b", actors.Client{Ask: func(context.Context, string, []byte) ([]byte, error) {
		t.Error("the wrong agent was asked")
		return nil, nil
	}})
	wg.Go(func() { _, _ = c.Call(ctx, never) })
	eventually(t, "the second call is under way", func() bool { return c.waiting() == 1 })
	got, err := script(t.Context(), c, fmt.Sprintf(elicitation, "9"), `{"jsonrpc":"2.0","id":$ID,"result":{}}`)
	if err != nil || got != `{}` {
		t.Error(got, err)
	}
	eventually(t, "the question of two calls is declined", func() bool {
		return strings.Contains(c.Stderr(), `answered: {"jsonrpc":"2.0","id":9,"result":{"action":"decline"}}`)
	})
	cancel()
	wg.Wait()
}

// TestC61ACallThatWasGivenUpIsNotTakenForAnotherAgents: the server may still be running it.
func TestC61ACallThatWasGivenUpIsNotTakenForAnotherAgents(t *testing.T) {
	c := connect(t, stdio(t, "plain"), actors.Events{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	silent := toolCall("lines", `{}`)
	silent.Agent = "a"
	wg.Go(func() { _, _ = c.Call(ctx, silent) })
	eventually(t, "the call is under way", func() bool { return c.waiting() == 1 })
	cancel()
	wg.Wait()
	var asked atomic.Int64
	client := actors.Client{Ask: func(context.Context, string, []byte) ([]byte, error) {
		asked.Add(1)
		return []byte(`{"action":"accept"}`), nil
	}}
	quick := func(agent, id string) {
		t.Helper()
		b, _ := json.Marshal(order{Lines: []string{fmt.Sprintf(elicitation, id)}})
		req := toolCall("lines", string(b))
		req.Agent, req.Client = agent, client
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { _, _ = c.Call(ctx, req) })
		eventually(t, "the question is answered", func() bool { return strings.Contains(c.Stderr(), `"id":`+id+`,"result"`) })
		cancel()
		wg.Wait()
	}
	if quick("b", "11"); asked.Load() != 0 {
		t.Error("agent b was asked what may be about the call of agent a")
	}
	x := &c.exchange
	x.mu.Lock()
	x.inquiry.ghosts = x.inquiry.ghosts[:1] // that of agent a
	x.mu.Unlock()
	if quick("a", "12"); asked.Load() != 1 {
		t.Error("agent a was not asked, although only its own calls can be meant")
	}
}

// TestAQuestionEndsWithItsCallOrWhenTheServerWithdrawsIt.
func TestAQuestionEndsWithItsCallOrWhenTheServerWithdrawsIt(t *testing.T) {
	c := connect(t, stdio(t, "plain"), actors.Events{})
	for name, one := range map[string]struct {
		line string
		want error
	}{
		"withdrawn": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"withdrawn"}}`, errWithdrawn},
		"answered":  {`{"jsonrpc":"2.0","id":$ID,"result":{}}`, errCallOver},
	} {
		why := make(chan error, 1)
		client := actors.Client{Ask: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			why <- context.Cause(ctx)
			return nil, ctx.Err()
		}}
		// An id of its own: the question before may be known until its agent's end is noted.
		lines := []string{fmt.Sprintf(elicitation, `"`+name+`"`), one.line}
		if one.want == errWithdrawn {
			lines = append(lines, `{"jsonrpc":"2.0","id":$ID,"result":{}}`)
		}
		b, _ := json.Marshal(order{Lines: lines})
		req := toolCall("lines", string(b))
		req.Client = client
		if got, err := outcome(c.Call(t.Context(), req)); err != nil || got != "{}" {
			t.Errorf("%s: %s %v", name, got, err)
		}
		if got := <-why; got != one.want {
			t.Errorf("%s: the question ended with %v", name, got)
		}
	}
	works(t, c)
	// A question that the server withdrew gets no answer, one whose call is over does.
	eventually(t, "one answer", func() bool { return strings.Count(c.Stderr(), `answered: `) == 1 })
	if !strings.Contains(c.Stderr(), `"id":"answered","result":{"action":"cancel"}`) {
		t.Error(c.Stderr())
	}
}

// TestC106LogMessagesGoToTheirCallElseToTheOwner, and a flood of them is cut.
func TestC106LogMessagesGoToTheirCallElseToTheOwner(t *testing.T) {
	const params = `{"level":"info","data":{"n":12345678901234567890}}`
	line := `{"jsonrpc":"2.0","method":"notifications/message","params":` + params + `}`
	owner := make(chan string, 1000)
	c := connect(t, stdio(t, "plain"), actors.Events{Log: func(p []byte) { owner <- string(p) }})
	var mine []string
	b, _ := json.Marshal(order{Lines: []string{line, `{"jsonrpc":"2.0","id":$ID,"result":{}}`, line}})
	req := toolCall("lines", string(b))
	req.Notify = func(method string, p []byte) { mine = append(mine, method+string(p)) }
	if _, err := outcome(c.Call(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	if got := <-owner; got != params {
		t.Errorf("the owner got %s", got)
	}
	if len(mine) != 1 || mine[0] != "notifications/message"+params {
		t.Errorf("the call got %q", mine)
	}
	began, flood := time.Now(), make([]string, 1000)
	for i := range flood {
		flood[i] = line
	}
	if _, err := script(t.Context(), c, append(flood, `{"jsonrpc":"2.0","id":$ID,"result":{}}`)...); err != nil {
		t.Fatal(err)
	}
	most := newsBurst + 1 + int64(time.Since(began).Seconds()*newsRate)
	if n := c.Dropped().News.Load(); n < 1000-most || n > 1000 {
		t.Errorf("%d of 1000 messages were dropped", n)
	}
	works(t, c)
}

// TestUpdatesOfResourcesReachTheOwner.
func TestUpdatesOfResourcesReachTheOwner(t *testing.T) {
	uris := make(chan string, 1)
	c := connect(t, stdio(t, "plain"), actors.Events{Updated: func(uri string) { uris <- uri }})
	if _, err := script(t.Context(), c, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x\u0079"}}`,
		`{"jsonrpc":"2.0","id":$ID,"result":{}}`); err != nil {
		t.Fatal(err)
	}
	if got := <-uris; got != "file:///xy" {
		t.Error(got)
	}
}
