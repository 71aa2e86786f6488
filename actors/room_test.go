package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestC68MoreNamesThanAreKnownAtATimeMayCome, over the weeks: the one that made no call
// for longest makes room, and comes back like a new one. Who has a call in flight stays,
// and every call is recorded.
func TestC68MoreNamesThanAreKnownAtATimeMayCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		d := &fakeServer{answer: func(_ context.Context, _ string, p []byte) (string, error) {
			if string(p) != "" && len(p) > 60 {
				<-let
			}
			return `{"content":[]}`, nil
		}}
		r := newRig(t, oneServer, map[string]*fakeServer{"d": d})
		r.ready("d")
		busy := make(chan error, 1)
		go func() {
			_, err := r.call(t.Context(), "busy", "d__echo", `{"pad":"0123456789012345678901234567890123456789"}`)
			busy <- err
		}()
		synctest.Wait()
		const names = maxSessions + 200
		for range 2 {
			for i := range names {
				r.must(fmt.Sprint("a", i), "d__echo")
			}
			if n := len(r.Hub.View().sessions); n != maxSessions {
				t.Errorf("%d identities are known", n)
			}
		}
		if r.Hub.View().sessions["busy"] == nil {
			t.Error("one with a call in flight was forgotten")
		}
		close(let)
		if err := <-busy; err != nil {
			t.Error(err)
		}
		time.Sleep(3 * roomGrace)
		synctest.Wait()
		kept, calls := 0, int64(0)
		for _, v := range r.Sys.Board().Read() {
			if v.Kind == "session" {
				kept++
			}
		}
		if kept != maxSessions {
			t.Errorf("%d actors are left of %d identities", kept, maxSessions)
		}
		if calls = r.Snapshot().Totals.Calls; calls != 2*names+1 {
			t.Errorf("%d calls were counted of %d", calls, 2*names+1)
		}
	})
}

// TestWhoIsConfiguredNoMoreIsNotWelcome, however long it was here; what still holds its
// session sees nothing there. Once it is configured again, it comes back to its books.
func TestWhoIsConfiguredNoMoreIsNotWelcome(t *testing.T) {
	const alone, both = oneServer + "[agents.b]\n", oneServer + "[agents.a]\ntools = []\n[agents.b]\n"
	r := newRig(t, both, map[string]*fakeServer{"d": fixed(`{"content":[]}`)})
	r.ready("d")
	s := r.session("a")
	reload := func(conf string) {
		t.Helper()
		if _, err := r.Hub.Reload(t.Context(), parse(t, conf)); err != nil {
			t.Fatal(err)
		}
	}
	reload(alone)
	var no *RPCError
	if _, err := r.Hub.Open(t.Context(), "a"); !errors.As(err, &no) || !strings.Contains(no.Message, "add [agents.a]") {
		t.Errorf("its next request: %v", err)
	}
	if list := string(s.Tools(t.Context())); strings.Contains(list, "d__") {
		t.Errorf("its session lists %s", list)
	}
	reload(both)
	if again := r.session("a"); again != s {
		t.Error("it came back as another")
	}
}
