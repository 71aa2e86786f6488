package actors

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcphubd/store"
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

// More room on the disk does not help against spool.max_bytes.
func TestAFullStoreIsAnotherProblemThanADiskThatFails(t *testing.T) {
	inBubble(t, "[spool]\nmax_bytes = \"1MB\"\n", func(r *rig) {
		put := func(n int) error {
			in := r.Spool.Intake(1000)
			feed(in, noise(n))
			body := in.Body()
			_, err := sealed(r, body)
			body.Close()
			if err := r.Spool.Flush(r.t.Context()); err != nil { // room counts once the drop is committed
				r.t.Fatal(err)
			}
			synctest.Wait()
			return err
		}
		if err := put(2 << 20); !errors.Is(err, store.ErrFull) {
			r.t.Fatal(err)
		}
		full := r.Snapshot().Problems
		if codes := codesOf(full); !slices.Equal(codes, []string{"spool-full"}) {
			r.t.Fatalf("after what does not fit: %q", codes)
		}
		if strings.Contains(full[0].Fix, "free disk") {
			r.t.Errorf("what helps: %s", full[0].Fix)
		}
		if err := put(100 << 10); err != nil {
			r.t.Fatal(err)
		}
		if codes := codesOf(r.Snapshot().Problems); len(codes) > 0 {
			r.t.Errorf("after what fits: %q", codes)
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
