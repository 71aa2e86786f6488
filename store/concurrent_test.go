package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestC50ReadersAndTheWriterNeverSeeALock(t *testing.T) {
	w, r := open(t)
	ctx := context.Background()
	raw := append(text(ChunkSize*2), noise(ChunkSize)...)
	kept := make([]Result, 8)
	for i := range kept {
		kept[i] = put(t, w, raw)
	}
	check(t, w.Record(make([]Call, 2000)))

	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			page := make([]byte, 8<<10)
			for off := int64(i * 999); !stop.Load(); off = (off + 8<<10) % int64(len(raw)) {
				res := kept[i%len(kept)]
				if _, err := r.Get(ctx, res.ID, t0); err != nil {
					t.Error(err)
					return
				}
				n, err := r.ReadAt(ctx, res.Key, page, off)
				if err != nil && err != io.EOF || !bytes.Equal(page[:n], raw[off:off+int64(n)]) {
					t.Errorf("page at %d: %v", off, err)
					return
				}
				_, err1 := r.List(ctx, "a", t0, 5)
				_, err2 := r.Calls(ctx, time.Time{}.Add(time.Hour), 5)
				if err := errors.Join(err1, err2); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for !stop.Load() {
			if err := w.Copy(); err != nil {
				t.Error(err)
			}
		}
	})
	// All errors of the writer are fatal, so "database is locked" would be one.
	func() {
		defer stop.Store(true)
		for i := range 30 {
			old := result(w.NextKey(), raw)
			old.Stored = t0.Add(-Retention)
			old.Expires = t0
			putResult(t, w, old, raw)
			_, err := w.Prune(t0, 4)
			check(t, err)
			_, err = w.Shrink(16)
			check(t, err)
			if i%10 == 0 {
				check(t, w.Checkpoint())
			}
			_, err = w.Usage()
			check(t, err)
		}
	}()
	wg.Wait()
}

// Actors are tested in bubbles; what the package shares must work in and out of them.
func TestStoreWorksInsideBubbles(t *testing.T) {
	Pack(text(1000))
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			w, r := open(t)
			var wg sync.WaitGroup
			chunks := make([]Chunk, 8)
			for i := range chunks {
				wg.Go(func() { chunks[i] = Pack(text(ChunkSize)) })
			}
			wg.Wait()
			res := put(t, w, text(ChunkSize))
			if _, err := readBack(r, res.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheLogIsCopiedBesideTheWriter, in the middle of a transaction and while the store is
// closed; what was not committed is not in the file.
func TestTheLogIsCopiedBesideTheWriter(t *testing.T) {
	w, r := open(t)
	raw := noise(2 << 20)
	kept := put(t, w, raw)
	size := fileSize(w.path)
	check(t, w.Begin())
	check(t, w.Append(w.NextKey(), 0, Pack(raw[:ChunkSize])))
	check(t, w.Copy())
	if grown := fileSize(w.path) - size; grown < int64(len(raw)) || grown > int64(len(raw))+ChunkSize {
		t.Errorf("the file grew by %d bytes of %d", grown, len(raw))
	}
	check(t, w.Rollback())
	if fileSize(w.path+"-wal") < int64(len(raw)) {
		t.Error("the log was emptied")
	}
	kept2 := put(t, w, raw[1:]) // comes upon a log that is wholly copied
	if n := fileSize(w.path + "-wal"); n > int64(len(raw))+ChunkSize*2 {
		t.Errorf("the log did not start again: %d bytes", n)
	}
	for id, want := range map[ID][]byte{kept.ID: raw, kept2.ID: raw[1:]} {
		if got, err := readBack(r, id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 50 {
			if err := w.Copy(); err != nil {
				t.Error(err)
			}
		}
	})
	check(t, w.Close())
	wg.Wait()
	check(t, w.Copy())
}
