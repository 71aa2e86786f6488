package store

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

// pruneAll prunes in slices until nothing is left to do.
func pruneAll(t *testing.T, w *Writer, now time.Time, slice int) (all Pruned) {
	t.Helper()
	for {
		p, err := w.Prune(now, slice)
		check(t, err)
		if p.Chunks > slice || p.Calls > slice || p.Results > slice {
			t.Errorf("a slice of %d did %+v", slice, p)
		}
		all.Results += p.Results
		all.Chunks += p.Chunks
		all.Calls += p.Calls
		if !p.More {
			return all
		}
	}
}

func TestC82ExpiryIsExactWithTheCleanerStopped(t *testing.T) {
	w, r := open(t)
	ctx := context.Background()
	res := put(t, w, text(100))
	for _, c := range []struct {
		now    time.Time
		err    error
		listed int
	}{
		{t0.Add(-48 * time.Hour), nil, 1},
		{t0, nil, 1},
		{t0.Add(24*time.Hour - 1), nil, 1},
		{t0.Add(24 * time.Hour), ErrExpired, 0},
		{t0.Add(48 * time.Hour), ErrExpired, 0},
	} {
		got, err := r.Get(ctx, res.ID, c.now)
		if !errors.Is(err, c.err) || got.ID != res.ID {
			t.Errorf("at %v: %v, %v", c.now.Sub(t0), got.ID, err)
		}
		list, err := r.List(ctx, "a", c.now, 10)
		if err != nil || len(list) != c.listed {
			t.Errorf("at %v: listed %d, %v", c.now.Sub(t0), len(list), err)
		}
	}
}

func TestC82PrunedIDsStayKnownForAWeek(t *testing.T) {
	w, r := open(t)
	ctx := context.Background()
	res := put(t, w, text(ChunkSize*3))
	expiry := res.Expires

	if p := pruneAll(t, w, expiry.Add(-1), 2); p != (Pruned{}) {
		t.Fatalf("pruned before the expiry: %+v", p)
	}
	if p := pruneAll(t, w, expiry, 2); p != (Pruned{Results: 1, Chunks: 3}) {
		t.Fatalf("at the expiry: %+v", p)
	}
	// No step of the clock brings it back, and its row still tells whose it was.
	for _, now := range []time.Time{t0, expiry, expiry.Add(time.Hour)} {
		got, err := r.Get(ctx, res.ID, now)
		if !errors.Is(err, ErrExpired) || got.Server != "srv" || got.Tool != "read" || got.Agent != "a" {
			t.Errorf("tombstone: %+v, %v", got, err)
		}
	}
	if _, err := r.ReadAt(ctx, res.Key, make([]byte, 1), 0); !errors.Is(err, ErrExpired) {
		t.Errorf("reading it: %v", err)
	}
	pruneAll(t, w, expiry.Add(tombstonesKept-1), 2)
	if _, err := r.Get(ctx, res.ID, t0); !errors.Is(err, ErrExpired) {
		t.Errorf("within the week: %v", err)
	}
	pruneAll(t, w, expiry.Add(tombstonesKept), 2)
	if _, err := r.Get(ctx, res.ID, t0); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the week: %v", err)
	}
}

func TestAHalfPrunedResultIsNeverServed(t *testing.T) {
	w, r := open(t)
	res := put(t, w, text(ChunkSize*5))
	p, err := w.Prune(res.Expires, 2)
	if err != nil || p != (Pruned{Chunks: 2, More: true}) {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := readBack(r, res.ID); !errors.Is(err, ErrExpired) { // at t0: the clock stepped back
		t.Errorf("%v", err)
	}
	if p := pruneAll(t, w, t0, 2); p.Results != 1 || p.Chunks != 3 {
		t.Errorf("the rest: %+v", p)
	}
}

func TestPruneTouchesNothingUnexpired(t *testing.T) {
	w, r := open(t)
	var young []Result
	for i := range 40 {
		res := result(w.NextKey(), text(ChunkSize+i))
		if i%2 == 0 {
			res.Stored = t0.Add(time.Hour)
			res.Expires = res.Stored.Add(Retention)
			young = append(young, res)
		}
		putResult(t, w, res, text(ChunkSize+i))
	}
	now := t0.Add(Retention + time.Minute)
	check(t, w.Record([]Call{{At: now.Add(-callsKept)}, {At: now.Add(-callsKept + 1)}, {At: now}}))
	if p := pruneAll(t, w, now, 3); p != (Pruned{Results: 20, Chunks: 40, Calls: 1}) {
		t.Errorf("%+v", p)
	}
	for _, res := range young {
		if _, err := readBack(r, res.ID); err != nil {
			t.Error(err)
		}
	}
	if u, _ := w.Usage(); u.Results != 20 || u.Calls != 2 || !u.OldestExpiry.Equal(young[0].Expires) {
		t.Errorf("%+v", u)
	}
}

func TestPruneInsideATransactionIsUndoneWithIt(t *testing.T) {
	w, r := open(t)
	res := put(t, w, text(ChunkSize*3))
	before, _ := w.Usage()
	check(t, w.Begin())
	p, err := w.Prune(res.Expires, 100)
	if err != nil || p.Results != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	check(t, w.Rollback())
	if _, err := readBack(r, res.ID); err != nil {
		t.Error(err)
	}
	if after, _ := w.Usage(); after.Results != before.Results || after.RawBytes != before.RawBytes {
		t.Errorf("counted %+v", after)
	}
}

func TestC81TheFileShrinksAfterPruning(t *testing.T) {
	w, r := open(t)
	keep := noise(ChunkSize * 2)
	old := put(t, w, noise(16<<20))
	late := result(w.NextKey(), keep)
	late.Stored, late.Expires = t0.Add(time.Hour), t0.Add(25*time.Hour)
	putResult(t, w, late, keep)
	check(t, w.Checkpoint())
	full, err := w.Usage()
	check(t, err)
	if full.FileBytes < 16<<20 || full.WALBytes != 0 {
		t.Fatalf("%+v", full)
	}
	pruneAll(t, w, old.Expires, 16)
	for {
		freed, err := w.Shrink(100)
		check(t, err)
		if freed > 100 {
			t.Errorf("freed %d pages at once", freed)
		}
		if freed == 0 {
			break
		}
	}
	check(t, w.Checkpoint())
	small, err := w.Usage()
	check(t, err)
	if small.FileBytes > 1<<20 || small.WALBytes != 0 || small.FileBytes != small.UsedBytes {
		t.Errorf("%+v", small)
	}
	if got, err := readBack(r, late.ID); err != nil || !bytes.Equal(got, keep) {
		t.Errorf("what was kept: %d bytes, %v", len(got), err)
	}
}

func TestC81TheLogStaysBoundedWithoutACheckpoint(t *testing.T) {
	w, r := open(t)
	raw := noise(1 << 20)
	var longest int64
	for range 30 {
		res := put(t, w, raw)
		if _, err := readBack(r, res.ID); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, fileSize(w.path+"-wal"))
	}
	if longest > walSoft+4<<20 {
		t.Errorf("the log grew to %d bytes", longest)
	}
}
