package actors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestC60TheTokenIsAddedWhereTheAgentGaveNone and nothing else of its bytes changes.
func TestC60TheTokenIsAddedWhereTheAgentGaveNone(t *testing.T) {
	at := func(s, sub string) Range {
		i := strings.Index(s, sub)
		if sub == "" || i < 0 {
			return Range{}
		}
		return Range{i, i + len(sub)}
	}
	for _, c := range []struct{ in, meta, token, want string }{
		{`{"name":"N","arguments":{"n":1.0}}`, "", "", `{"_meta":{"progressToken":TOKEN},"name":"x","arguments":{"n":1.0}}`},
		{`{"name":"N","arguments":{},"_meta":{}}`, `{}}`, "", `{"name":"x","arguments":{},"_meta":{"progressToken":TOKEN}}`},
		{`{"_meta":{ "k":1e400},"name":"N","arguments":{}}`, `{ "k":1e400}`, "", `{"_meta":{"progressToken":TOKEN, "k":1e400},"name":"x","arguments":{}}`},
		{`{"_meta":null,"name":"N","arguments":{}}`, `null`, "", `{"_meta":{"progressToken":TOKEN},"name":"x","arguments":{}}`},
		{`{"_meta":{"progressToken":null},"name":"N","arguments":{}}`, `{"progressToken":null}`, "null", `{"_meta":{"progressToken":TOKEN},"name":"x","arguments":{}}`},
		{`{"_meta":"odd","name":"N","arguments":{}}`, `"odd"`, "", `{"_meta":"odd","name":"x","arguments":{}}`},
	} {
		call := Call{Params: []byte(c.in), NameAt: at(c.in, `"N"`), ArgsAt: at(c.in, `{"n":1.0}`), MetaAt: at(c.in, c.meta), TokenAt: at(c.in, c.token)}
		if call.ArgsAt.Empty() {
			i := strings.Index(c.in, `"arguments":`) + len(`"arguments":`)
			call.ArgsAt = Range{i, i + 2}
		}
		for _, progress := range []func([]byte, Range){nil, func([]byte, Range) {}} {
			call.Progress = progress
			pieces, token := splice(call, "x")
			if token >= 0 {
				pieces[token] = []byte("TOKEN")
			}
			want := c.want
			if progress == nil {
				want = strings.Replace(c.in, `"N"`, `"x"`, 1)
			}
			if got := string(bytes.Join(pieces, nil)); got != want {
				t.Errorf("progress wanted: %v\n got %s\nwant %s", progress != nil, got, want)
			}
		}
	}
}

// TestC60ProgressExtendsACallUpToCallTimeout: what answers in time is left alone, what
// reports for ever meets the hard end, what is silent the soft one.
func TestC60ProgressExtendsACallUpToCallTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		reports, answers time.Duration
		want             error
		at               time.Duration
	}{
		"reports and answers": {3 * time.Second, 40 * time.Second, nil, 40 * time.Second},
		"reports for ever":    {3 * time.Second, time.Hour, errCallTimeout, 60 * time.Second},
		"is silent":           {time.Hour, time.Hour, errIdle, 10 * time.Second},
	} {
		for _, token := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				heard := 0
				w := &walk{Session: Session{desk: &sessionDesk{}}, ticket: ticket{idle: 10 * time.Second, timeout: 60 * time.Second}, call: Call{Cancel: cancel}}
				if token {
					w.call.Progress = func([]byte, Range) { heard++ }
				}
				began := time.Now()
				ctx, done := w.bounded(ctx)
				defer done()
				report, answer := time.NewTicker(c.reports), time.NewTimer(c.answers)
				defer report.Stop()
				var why error
				for answered := false; !answered && why == nil; {
					select {
					case <-report.C:
						w.call.Progress(nil, Range{})
					case <-answer.C:
						answered = true
					case <-ctx.Done():
						why = context.Cause(ctx)
					}
				}
				if took := time.Since(began); why != c.want || took != c.at {
					t.Errorf("%s: ended with %v after %v, want %v after %v", name, why, took, c.want, c.at)
				}
				if token == (heard == 0) && c.reports < time.Hour {
					t.Errorf("%s: the agent heard %d reports, it asked: %v", name, heard, token)
				}
			})
		}
	}
}

// TestTheUsersThinkingIsNoSilence of the server.
func TestTheUsersThinkingIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &walk{Session: Session{desk: &sessionDesk{}}, ticket: ticket{idle: 10 * time.Second, timeout: time.Hour}, call: Call{Cancel: cancel, Client: Client{
			Ask: func(context.Context, string, []byte) ([]byte, error) {
				time.Sleep(5 * time.Minute)
				return []byte("{}"), nil
			}}}}
		ctx, done := w.bounded(ctx)
		defer done()
		if _, err := w.call.Ask(ctx, "elicitation/create", nil); err != nil || ctx.Err() != nil {
			t.Fatal(err, context.Cause(ctx))
		}
		answered := time.Now()
		<-ctx.Done()
		if since := time.Since(answered); context.Cause(ctx) != errIdle || since != 10*time.Second {
			t.Errorf("%v after %v", context.Cause(ctx), since)
		}
	})
}

// modernConn is a server that answers with these results in turn.
type modernConn struct {
	Conn
	protocol string // "" = the newest revision
	results  []string
	got      []string
}

func (c *modernConn) Info() ConnInfo { return ConnInfo{Protocol: cmp.Or(c.protocol, firstWithRounds)} }

func (c *modernConn) Call(_ context.Context, r Request) (Answer, error) {
	if r.Token >= 0 {
		r.Params[r.Token] = []byte("7")
	}
	c.got = append(c.got, string(bytes.Join(r.Params, nil)))
	result := c.results[0]
	c.results = c.results[1:]
	return Answer{Result: HeldBody([]byte(result), nil)}, nil
}

const (
	oneQuestion = `{"resultType":"input_required","requestState":"S\u0031","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"sure?","n":1.0}}}}`
	atLast      = `{"content":[],"n":12345678901234567890}`
)

func converse(t *testing.T, conn *modernConn, call Call) (Answer, error) {
	t.Helper()
	call.Params, call.NameAt, call.ArgsAt = []byte(`{"name":"N","arguments":{"a":1.0}}`), Range{8, 11}, Range{24, 33}
	w := &walk{call: call}
	params, token := splice(call, "own")
	return w.converse(t.Context(), conn, Request{Method: "tools/call", Params: params, Token: token})
}

// TestQuestionsOfAModernServerReachAnOlderAgent one by one, and the call is made again
// with the answers.
func TestQuestionsOfAModernServerReachAnOlderAgent(t *testing.T) {
	conn := &modernConn{results: []string{oneQuestion, oneQuestion, atLast}}
	var asked []string
	answer, err := converse(t, conn, Call{Progress: func([]byte, Range) {}, Client: Client{
		Ask: func(_ context.Context, method string, params []byte) ([]byte, error) {
			asked = append(asked, method+string(params))
			return []byte(`{"action":"accept","content":{"x":1e400}}`), nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := answer.Result.Held(); string(got) != atLast {
		t.Errorf("result %s", got)
	}
	if want := `elicitation/create{"message":"sure?","n":1.0}`; len(asked) != 2 || asked[0] != want || asked[1] != want {
		t.Errorf("asked %q", asked)
	}
	rest := `"_meta":{"progressToken":7},"name":"own","arguments":{"a":1.0}}`
	again := `{"inputResponses":{"k":{"action":"accept","content":{"x":1e400}}},"requestState":"S\u0031",` + rest
	if want := []string{"{" + rest, again, again}; !slices.Equal(conn.got, want) {
		t.Errorf("the server got\n%s\nwant\n%s", strings.Join(conn.got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAPageOfAModernServerHasTheIdThatOlderAgentsDemand: the newest revision knows none, and
// official clients of the older ones refuse a page without one.
func TestAPageOfAModernServerHasTheIdThatOlderAgentsDemand(t *testing.T) {
	ids := map[string]bool{}
	for _, page := range []string{`{"mode":"url","message":"m","url":"https://example.com/?a=1.0","n":1.0}`, `{ "mode" : "url"}`,
		`{"mode":"url","elicitationId":"its own"}`, `{"message":"no page"}`, `{"mode":"url","elicitationId":7}`} {
		ask := strings.Replace(oneQuestion, `{"message":"sure?","n":1.0}`, page, 1)
		var asked string
		_, err := converse(t, &modernConn{results: []string{ask, atLast}}, Call{Client: Client{
			Ask: func(_ context.Context, _ string, params []byte) ([]byte, error) {
				asked = string(params)
				return []byte(`{"action":"accept"}`), nil
			}}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page, "its own") || !strings.Contains(page, "url") || strings.Contains(page, "7") {
			if asked != page {
				t.Errorf("%s became %s", page, asked)
			}
			continue
		}
		var p struct{ ElicitationID string }
		if err := json.Unmarshal([]byte(asked), &p); err != nil || len(p.ElicitationID) < 20 || ids[p.ElicitationID] || !strings.HasSuffix(asked, page[1:]) {
			t.Errorf("%s became %s (%v)", page, asked, err)
		}
		ids[p.ElicitationID] = true
	}
}

// TestAStateIsForTheServerThatMayHaveGivenIt, and one of an older revision gives none: what
// was meant to go on is not begun anew.
func TestAStateIsForTheServerThatMayHaveGivenIt(t *testing.T) {
	conn := &modernConn{results: []string{atLast}}
	if _, err := converse(t, conn, Call{Stated: true, Client: Client{Rounds: true}}); err != nil || len(conn.got) != 1 {
		t.Error(err, conn.got)
	}
	older := &modernConn{results: []string{atLast}, protocol: "2025-11-25"}
	var no *RPCError
	if _, err := converse(t, older, Call{Stated: true, Client: Client{Rounds: true}}); !errors.As(err, &no) || no.Code != CodeInvalidParams || len(older.got) != 0 {
		t.Error(err, older.got)
	}
}

// TestInputRequiredIsOpaqueToAnAgentThatKnowsIt.
func TestInputRequiredIsOpaqueToAnAgentThatKnowsIt(t *testing.T) {
	conn := &modernConn{results: []string{oneQuestion}}
	answer, err := converse(t, conn, Call{Client: Client{Rounds: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := answer.Result.Held(); string(got) != oneQuestion {
		t.Errorf("got %s", got)
	}
}

// TestAnOlderAgentThatCannotBeAskedDeclines, and a server that asks for ever is stopped.
func TestAnOlderAgentThatCannotBeAskedDeclines(t *testing.T) {
	conn := &modernConn{results: []string{oneQuestion, atLast}}
	if _, err := converse(t, conn, Call{}); err != nil || !strings.Contains(conn.got[1], `"k":{"action":"decline"}`) {
		t.Error(err, conn.got)
	}
	sampling := strings.Replace(oneQuestion, "elicitation/create", "sampling/createMessage", 1)
	if _, err := converse(t, &modernConn{results: []string{sampling}}, Call{}); !errors.Is(err, ErrCannot) {
		t.Error(err)
	}
	conn = &modernConn{results: slices.Repeat([]string{oneQuestion}, 100)}
	if _, err := converse(t, conn, Call{}); err == nil || len(conn.got) != maxRounds+1 {
		t.Error(err, len(conn.got))
	}
}
