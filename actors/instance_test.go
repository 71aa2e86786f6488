package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

const ownCopies = `
[servers.d]
command = "d"
isolation = "per_agent"
call_timeout = "2h"
`

// TestC40ACopyThatIsNotUsedEnds, however often that happens; one that is used, or at
// work, does not.
func TestC40ACopyThatIsNotUsedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fixed(`{"content":[]}`)
		r := newRig(t, ownCopies, map[string]*fakeServer{"d": d})
		r.ready("d")
		for range 3 {
			r.must("a", "d__echo")
			copied := d.last.Load()
			for range 5 {
				time.Sleep(instanceIdle - time.Second)
				if r.must("a", "d__echo"); copied.closed.Load() || d.last.Load() != copied {
					t.Fatal("a copy that is used was ended")
				}
			}
			time.Sleep(instanceIdle + 2*sweepEvery)
			synctest.Wait()
			if !copied.closed.Load() || len(r.Hub.View().instances) != 0 {
				t.Fatal("a copy that nobody uses goes on")
			}
		}
	})
}

func TestC40ACopyThatIsAtWorkIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeServer{answer: func(context.Context, string, []byte) (string, error) {
			time.Sleep(6 * instanceIdle)
			return `{"content":[]}`, nil
		}}
		r := newRig(t, ownCopies, map[string]*fakeServer{"d": d})
		r.ready("d")
		if got := r.must("a", "d__echo"); got != `{"content":[]}` {
			t.Errorf("it was ended during its call: %s", got)
		}
	})
}

// TestOneSweepOfInstancesIsOnItsWay, however often the last one ended and the next began.
func TestOneSweepOfInstancesIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ownCopies, map[string]*fakeServer{"d": fixed(`{"content":[]}`)})
		r.ready("d")
		for range 20 { // within a minute
			s := r.session("a")
			c := callOf("d__echo", "{}")
			c.Wire = "w"
			if _, err := s.Call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			r.Hub.Left("a", "w", true)
			synctest.Wait()
			if n := len(r.Hub.View().instances); n != 0 {
				t.Fatalf("%d copies after the session", n)
			}
		}
		r.must("a", "d__echo")
		synctest.Wait()
		before := handledByHub(r)
		time.Sleep(3 * sweepEvery)
		synctest.Wait()
		if n := handledByHub(r) - before; n < 1 || n > 4 {
			t.Errorf("the hub swept %d times in %s", n, 3*sweepEvery)
		}
	})
}

func handledByHub(r *rig) (n int64) {
	for _, v := range r.Sys.Board().Read() {
		if v.Kind == "hub" {
			n += v.Handled
		}
	}
	return n
}
