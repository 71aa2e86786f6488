package store

import (
	"context"
	"errors"
	"testing"
)

func TestSealRefusesWhatIsNotWhole(t *testing.T) {
	w, r := open(t)
	raw := text(2*ChunkSize + 10)
	seal := func(chunks []int, spoil func(*Result)) error {
		k := w.NextKey()
		check(t, w.Begin())
		for _, seq := range chunks {
			check(t, w.Append(k, seq, Pack(raw[seq*ChunkSize:min(len(raw), (seq+1)*ChunkSize)])))
		}
		res := result(k, raw)
		spoil(&res)
		err := w.Seal(res)
		check(t, w.Rollback())
		if _, getErr := r.Get(context.Background(), res.ID, t0); !errors.Is(getErr, ErrNotFound) {
			t.Errorf("a rolled back result is there: %v", getErr)
		}
		return err
	}
	all, same := []int{0, 1, 2}, func(*Result) {}
	check(t, seal(all, same))
	for name, err := range map[string]error{
		"no chunks":     seal(nil, same),
		"first missing": seal([]int{1, 2}, same),
		"one missing":   seal([]int{0, 2}, same),
		"last missing":  seal([]int{0, 1}, same),
		"more bytes":    seal(all, func(r *Result) { r.Bytes++ }),
		"less bytes":    seal(all, func(r *Result) { r.Bytes-- }),
		"no id":         seal(all, func(r *Result) { r.ID = "x" }),
		"kept too long": seal(all, func(r *Result) { r.Expires = r.Expires.Add(1) }),
	} {
		if err == nil {
			t.Errorf("%s: sealed", name)
		}
	}
	if u, _ := w.Usage(); u.Results != 0 || u.RawBytes != 0 {
		t.Errorf("rolled back results are counted: %+v", u)
	}
}

func TestAppendRefusesWhatTheNumberingCannotHold(t *testing.T) {
	w, _ := open(t)
	k := w.NextKey()
	big := Pack(make([]byte, ChunkSize))
	big.N++
	for _, err := range []error{
		w.Append(k, -1, Pack([]byte{1})),
		w.Append(k, 1<<24, Pack([]byte{1})),
		w.Append(k, 0, Pack(nil)),
		w.Append(k, 0, big),
		w.Append(0, 0, Pack([]byte{1})),
	} {
		if err == nil {
			t.Error("appended")
		}
	}
}

func TestDropRemovesOnlyWhatIsUnsealed(t *testing.T) {
	w, r := open(t)
	kept := put(t, w, text(ChunkSize*2))
	big := w.NextKey()
	check(t, appendAll(w, big, make([]byte, (dropSlice+10)*ChunkSize)))
	check(t, w.Drop(kept.Key))
	check(t, w.Drop(w.NextKey()))
	small := w.NextKey()
	check(t, appendAll(w, small, text(ChunkSize*3)))
	check(t, w.Begin())
	check(t, w.Drop(small))
	check(t, w.Drop(big))
	check(t, w.Rollback()) // the wish to drop outlives the transaction
	for more := true; more; {
		p, err := w.Prune(t0, 7)
		check(t, err)
		if p.Chunks > 7 {
			t.Errorf("%d chunks in a slice of 7", p.Chunks)
		}
		more = p.More
	}
	if n := rows(t, w, "chunk"); n != 2 {
		t.Errorf("%d chunks are left", n)
	}
	if _, err := readBack(r, kept.ID); err != nil {
		t.Error(err)
	}
}

func TestKeysAreNeverUsedAgain(t *testing.T) {
	w, _ := open(t)
	last := Key(0)
	for range 3 {
		k := w.NextKey()
		if k <= last {
			t.Fatalf("%d after %d", k, last)
		}
		check(t, w.Begin())
		check(t, w.Append(k, 0, Pack([]byte("x"))))
		check(t, w.Rollback())
		last = k
	}
	check(t, w.Append(last, 0, Pack([]byte("x")))) // unsealed at the end
	check(t, w.Close())
	again := openW(t, w.path)
	if k := again.NextKey(); k <= last {
		t.Errorf("after the restart %d, before it %d", k, last)
	}
	if n := rows(t, again, "chunk"); n != 0 {
		t.Errorf("%d chunks without a result survived", n)
	}
}

func TestUsageFollowsEveryWrite(t *testing.T) {
	w, _ := open(t)
	empty := w.Used()
	a := put(t, w, noise(ChunkSize*4))
	put(t, w, text(1000))
	check(t, w.Record([]Call{{At: t0}, {At: t0.Add(callsKept)}}))
	u, err := w.Usage()
	check(t, err)
	if u.Results != 2 || u.RawBytes != a.Bytes+1000 || u.Calls != 2 || !u.OldestExpiry.Equal(a.Expires) {
		t.Errorf("%+v", u)
	}
	if used := w.Used(); used < empty+a.Bytes || used > empty+a.Bytes+a.Bytes/4 || u.UsedBytes != used || u.WALBytes < a.Bytes {
		t.Errorf("used %d after %d bytes, %+v", used-empty, a.Bytes, u)
	}
	check(t, w.Close())
	if again, _ := openW(t, w.path).Usage(); again.Results != u.Results || again.RawBytes != u.RawBytes || again.Calls != 2 {
		t.Errorf("after the restart %+v", again)
	}
}
