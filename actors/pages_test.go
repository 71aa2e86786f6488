package actors

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pageServer is one of an older revision whose calls need pages, so many of them.
type pageServer struct {
	Conn
	needs int
	fault string // "" = needsPages
	calls int
	says  func(Listener) // after an error
}

const needsPages = `{"code":-32042, "message":"go","data":{"elicitations":[{"mode":"url","url":"u","elicitationId":"e1","n":1.0},{"mode":"url","url":"u","elicitationId":"e2"}]}}`

func (s *pageServer) Info() ConnInfo { return ConnInfo{Protocol: "2025-11-25"} }

func (s *pageServer) Call(_ context.Context, r Request) (Answer, error) {
	if s.calls++; s.calls > s.needs {
		return Answer{Result: HeldBody([]byte(atLast), nil)}, nil
	}
	if s.says != nil {
		go s.says(r.Session)
	}
	return Answer{Error: []byte(cmp.Or(s.fault, needsPages))}, nil
}

// TestACallThatNeedsPagesIsMadeAgainWhenAllIsDoneThere, for agents of the newest revision, which
// do not know the error that says so. Who does not go there gets it as it is.
func TestACallThatNeedsPagesIsMadeAgainWhenAllIsDoneThere(t *testing.T) {
	ending := func(after time.Duration, ids ...string) func(Listener) {
		return func(l Listener) {
			time.Sleep(after)
			for _, id := range ids {
				l.Later("notifications/elicitation/complete", []byte(`{"elicitationId":"`+id+`"}`))
			}
		}
	}
	for name, c := range map[string]struct {
		needs         int
		says          func(Listener)
		yes, no       string // what the agent says to the two pages
		calls, asked  int
		fails         bool
		after         time.Duration
		fault         string
		older, silent bool // agents of an older revision, and those that cannot be asked
	}{
		"the server says so":        {needs: 1, says: ending(time.Second, "e2", "x", "e1"), calls: 2, asked: 2, after: time.Second},
		"before the agent is back":  {needs: 1, says: ending(0, "e1", "e2"), calls: 2, asked: 2},
		"of one of them only":       {needs: 1, says: ending(0, "e1"), calls: 2, asked: 2, after: doneWithin},
		"it never does":             {needs: 2, calls: 3, asked: 4, after: 2 * doneWithin},
		"it needs them for ever":    {needs: 1000, says: ending(0, "e1", "e2"), calls: maxRounds + 1, asked: 2 * maxRounds, fails: true},
		"the agent does not go":     {needs: 1, yes: `{"action":"decline"}`, calls: 1, asked: 1, fails: true},
		"nor to the second":         {needs: 1, no: `{"action":"cancel"}`, calls: 1, asked: 2, fails: true},
		"the agent knows the error": {needs: 1, older: true, calls: 1, fails: true},
		"the agent cannot be asked": {needs: 1, silent: true, calls: 1, fails: true},
		"the agent says it wrongly": {needs: 1, yes: `[]`, calls: 1, asked: 1, fails: true},
		"it names none":             {needs: 1, fault: `{"code":-32042,"message":"go","data":{"elicitations":[]}}`, calls: 1, fails: true},
		"nothing is needed":         {calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				s := &pageServer{needs: c.needs, fault: c.fault, says: c.says}
				call := Call{Client: Client{Rounds: !c.older, Ask: func(_ context.Context, method string, params []byte) ([]byte, error) {
					asked = append(asked, method+string(params))
					said := c.yes
					if len(asked)%2 == 0 {
						said = c.no
					}
					if said == "" {
						said = `{"action":"accept"}`
					}
					return []byte(said), nil
				}}}
				if c.silent {
					call.Ask = nil
				}
				w, began := &walk{call: call}, time.Now()
				answer, err := w.converse(t.Context(), s, Request{Method: "tools/call", Params: [][]byte{[]byte("{}")}, Token: -1})
				if err != nil || (answer.Error != nil) != c.fails || c.fails && string(answer.Error) != cmp.Or(c.fault, needsPages) {
					t.Errorf("%s %v", answer.Error, err)
				}
				if s.calls != c.calls || len(asked) != c.asked || time.Since(began) != c.after {
					t.Errorf("%d calls, asked %d times, after %s", s.calls, len(asked), time.Since(began))
				}
				if c.asked > 0 && asked[0] != `elicitation/create{"mode":"url","url":"u","elicitationId":"e1","n":1.0}` {
					t.Errorf("asked %s", asked[0])
				}
				if again := w.asked.Load(); again != (c.asked > 0) {
					t.Errorf("it may be called again: %v", !again)
				}
			})
		})
	}
	for _, other := range []string{`{"code":-32042}`, `{"code":1,"message":"-32042"}`, strings.Replace(needsPages, "[", "7,[", 1), `null`, ``} {
		if got := PagesIn([]byte(other)); len(got) != 0 {
			t.Errorf("%s names %s", other, got)
		}
	}
}

// TestWhoWaitsForAPageCanCancel, and idle_timeout does not count meanwhile.
func TestWhoWaitsForAPageCanCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes := func(context.Context, string, []byte) ([]byte, error) { return []byte(`{"action":"accept"}`), nil }
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &walk{Session: Session{desk: &sessionDesk{}}, ticket: ticket{idle: 10 * time.Second, timeout: time.Hour},
			call: Call{Cancel: cancel, Client: Client{Rounds: true, Ask: yes}}}
		ctx, done := w.bounded(ctx)
		defer done()
		if _, err := w.converse(ctx, &pageServer{needs: 1}, Request{Token: -1}); err != nil || ctx.Err() != nil {
			t.Fatal(err, context.Cause(ctx))
		}
		time.AfterFunc(5*time.Second, func() { cancel(errCallTimeout) })
		s := &pageServer{needs: 1}
		if _, err := w.converse(ctx, s, Request{Token: -1}); err != errCallTimeout || s.calls != 1 {
			t.Errorf("%v after %d calls", err, s.calls)
		}
	})
}
