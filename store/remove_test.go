package store

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

func TestARemovedResultIsGoneAtOnceAndItsBytesWithTheNextPrune(t *testing.T) {
	ctx := context.Background()
	w, r := open(t)
	raw := bytes.Repeat([]byte("x"), ChunkSize)
	put := func() Result {
		res := result(w.NextKey(), raw)
		check(t, w.Append(res.Key, 0, Pack(raw)))
		check(t, w.Seal(res))
		return res
	}
	first, second := put(), put()
	check(t, w.Remove(first.ID))
	if _, err := r.Get(ctx, first.ID, t0); !errors.Is(err, ErrExpired) {
		t.Errorf("it can still be read: %v", err)
	}
	if list, err := r.Recent(ctx, t0, 10); err != nil || len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if u, err := w.Usage(); err != nil || u.Results != 1 || u.RawBytes != int64(len(raw)) {
		t.Errorf("%+v, %v", u, err)
	}
	for _, id := range []ID{first.ID, NewID(), "", "x"} {
		if err := w.Remove(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("remove %q: %v", id, err)
		}
	}
	p, err := w.Prune(t0, 100)
	if err != nil || p.Results != 1 || p.Chunks != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	got := make([]byte, len(raw))
	if _, err := r.ReadAt(ctx, second.Key, got, 0); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("the other one: %v", err)
	}
}
