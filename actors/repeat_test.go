package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const payTools = `[{"name":"pay","inputSchema":{"type":"object"}},
{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
{"name":"set","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},
{"name":"wild","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":true}}]`

// dying is a server that dies in each of its first calls, and notes every call.
func dying(deaths int64) (f *fakeServer, ran *atomic.Int64) {
	ran = new(atomic.Int64)
	f = &fakeServer{tools: payTools}
	f.answer = func(ctx context.Context, _ string, _ []byte) (string, error) {
		if ran.Add(1) <= deaths {
			f.last.Load().die(errors.New("exit status 3"))
			<-ctx.Done()
			return "", ctx.Err()
		}
		return text(7), nil
	}
	return f, ran
}

func TestC08OnlyAToolThatSaysSoIsCalledAgainAndOnlyOnce(t *testing.T) {
	for _, c := range []struct {
		tool   string
		deaths int64
		ran    int64
		answer bool
	}{
		{"pay", 1, 1, false}, {"wild", 1, 1, false},
		{"look", 1, 2, true}, {"set", 1, 2, true},
		{"look", 2, 2, false}, {"set", 9, 2, false},
	} {
		for _, isolation := range []string{"shared", "per_agent", "per_session"} {
			t.Run(fmt.Sprint(isolation, " ", c.tool, c.deaths), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { calledAgain(t, isolation, c.tool, c.deaths, c.ran, c.answer) })
			})
		}
	}
}

func calledAgain(t *testing.T, isolation, tool string, deaths, wantRan int64, answer bool) {
	f, ran := dying(deaths)
	r := newRig(t, oneServer+"isolation = \""+isolation+"\"\n", map[string]*fakeServer{"d": f})
	r.ready("d")
	got, err := r.call(t.Context(), "a", "d__"+tool, `{}`)
	if answer && (err != nil || got != text(7)) || !answer && (!errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "exit status 3")) {
		t.Errorf("%s, %v", got, err)
	}
	time.Sleep(2 * time.Minute)
	if n := ran.Load(); n != wantRan {
		t.Errorf("the tool ran %d times", n)
	}
	if n := r.Hub.View().Servers["d"].Handle.InFlight(); n != 0 {
		t.Error("calls left in flight:", n)
	}
}

// The server is given one chance to come back, within the call's own time.
func TestC08ARepetitionWaitsForOneReconnectOnly(t *testing.T) {
	for _, c := range []struct {
		name    string
		connect func(n int) error
		within  time.Duration
		says    string
	}{
		{"refuses", func(n int) error {
			if n > 1 {
				return errors.New("exit status 4: no such file")
			}
			return nil
		}, time.Second, "exit status 4"},
		{"is slow", func(n int) error {
			if n > 1 {
				time.Sleep(4 * time.Second)
			}
			return nil
		}, 3 * time.Second, "call_timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, ran := dying(1)
			f.connect = c.connect
			r := newRig(t, strings.Replace(oneServer, `call_timeout = "1m"`, `call_timeout = "3s"`, 1), map[string]*fakeServer{"d": f})
			r.ready("d")
			before := time.Now()
			_, err := r.call(t.Context(), "a", "d__look", `{}`)
			if err == nil || !strings.Contains(err.Error(), c.says) || time.Since(before) > c.within {
				t.Errorf("%s: after %v: %v", c.name, time.Since(before), err)
			}
			time.Sleep(time.Minute)
			if ran.Load() != 1 {
				t.Errorf("%s: the tool ran %d times", c.name, ran.Load())
			}
		})
	}
}

// What provably was not sent is sent over the next connection, whatever the tool.
func TestC08WhatWasNotSentIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		f := &fakeServer{tools: payTools}
		f.answer = func(ctx context.Context, _ string, _ []byte) (string, error) {
			if tries.Add(1) == 1 {
				f.last.Load().die(fmt.Errorf("broken pipe; %w", ErrNotSent))
				<-ctx.Done()
				return "", ctx.Err()
			}
			return text(7), nil
		}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		r.ready("d")
		if got, err := r.call(t.Context(), "a", "d__pay", `{}`); err != nil || got != text(7) || tries.Load() != 2 {
			t.Error(got, err, tries.Load())
		}
	})
}

// A user who was asked during the call is not asked again.
func TestC08ACallThatAskedItsUserIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		f := &fakeServer{tools: payTools, protocol: firstWithRounds}
		f.answer = func(ctx context.Context, _ string, p []byte) (string, error) {
			ran.Add(1)
			if !strings.Contains(string(p), "inputResponses") {
				return `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{}}}}`, nil
			}
			f.last.Load().die(errors.New("exit status 3"))
			<-ctx.Done()
			return "", ctx.Err()
		}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": f})
		r.ready("d")
		s, err := r.Hub.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		questions := 0
		c := callOf("d__look", `{}`)
		c.Ask = func(context.Context, string, []byte) ([]byte, error) {
			questions++
			return []byte(`{"action":"accept"}`), nil
		}
		if _, err := s.Call(t.Context(), c); !errors.Is(err, ErrLost) || questions != 1 || ran.Load() != 2 {
			t.Error(err, questions, ran.Load())
		}
	})
}
