package actors

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func codesOf(all []Problem) (codes []string) {
	for _, p := range all {
		codes = append(codes, p.Code)
	}
	return codes
}

func TestWhatHappenedFadesAndWhatHoldsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Problems
		raise := func() bool {
			l.Raise(Problem{Code: "holds", Subject: "s"})
			return l.Raise(Problem{Code: "happened", Subject: "s", Fades: time.Hour})
		}
		if !raise() || raise() {
			t.Error("a line in the log is due the first time, and not at once again")
		}
		time.Sleep(40 * time.Minute)
		if !raise() {
			t.Error("no line is due after 40 minutes")
		}
		time.Sleep(40 * time.Minute)
		if codes := codesOf(l.Read()); !slices.Equal(codes, []string{"happened", "holds"}) {
			t.Errorf("40 minutes after the last time: %q", codes)
		}
		time.Sleep(30 * time.Minute)
		if codes := codesOf(l.Read()); !slices.Equal(codes, []string{"holds"}) {
			t.Errorf("70 minutes after: %q", codes)
		}
		if !raise() || len(l.Read()) != 2 || l.Read()[1].Count != 1 {
			t.Errorf("when it happens anew: %+v", l.Read())
		}
	})
}

func TestAPruneThatFailedIsAProblemUntilOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "", nil)
		synctest.Wait()
		r.pruner.tell(pruned{err: errors.New("disk I/O error")})
		synctest.Wait()
		if codes := codesOf(r.Snapshot().Problems); !slices.Equal(codes, []string{"prune-failing"}) {
			t.Errorf("after the failure: %q", codes)
		}
		time.Sleep(pruneEvery + time.Second)
		if codes := codesOf(r.Snapshot().Problems); len(codes) > 0 {
			t.Errorf("after a prune that went well: %q", codes)
		}
	})
}
