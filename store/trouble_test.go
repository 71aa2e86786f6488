package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
)

func TestC51AFullDiskIsAnErrorAndThenItWorksAgain(t *testing.T) {
	w, r := open(t)
	early := put(t, w, noise(1<<20))
	pages, err := number(w.conn, "pragma page_count")
	check(t, err)
	check(t, pragmas(w.conn, fmt.Sprintf("max_page_count = %d", pages+40)))

	raw := noise(5 << 20)
	check(t, w.Begin())
	err = appendAll(w, w.NextKey(), raw)
	if sqlite.ErrCode(err) != sqlite.ResultFull {
		t.Fatalf("a full disk says %v", err)
	}
	check(t, w.Rollback())
	small := put(t, w, text(100)) // what fits is still taken
	before, _ := w.Usage()

	for range 3 { // without a transaction around it
		if err := appendAll(w, w.NextKey(), raw); err == nil {
			t.Fatal("appended to a full disk")
		}
	}
	if err := w.Record(make([]Call, 20_000)); err == nil {
		t.Error("recorded on a full disk")
	}
	check(t, w.Record([]Call{{At: t0}}))
	if after, _ := w.Usage(); after.Results != before.Results || after.Calls != before.Calls+1 {
		t.Errorf("counted %+v, before %+v", after, before)
	}

	check(t, pragmas(w.conn, "max_page_count = 1000000"))
	late := put(t, w, raw)
	for _, res := range []Result{early, small, late} {
		if _, err := readBack(r, res.ID); err != nil {
			t.Error(err)
		}
	}
}

func TestC51PruningMakesRoomOnAFullDisk(t *testing.T) {
	w, _ := open(t)
	old := put(t, w, noise(4<<20))
	pages, err := number(w.conn, "pragma page_count")
	check(t, err)
	check(t, pragmas(w.conn, fmt.Sprintf("max_page_count = %d", pages+2)))
	if err := appendAll(w, w.NextKey(), noise(1<<20)); err == nil {
		t.Fatal("appended to a full disk")
	}
	pruneAll(t, w, old.Expires, 4)
	put(t, w, noise(3<<20))
}

func TestNothingIsWrittenAfterSQLiteEndedTheTransaction(t *testing.T) {
	w, r := open(t)
	raw := text(ChunkSize * 2)
	res := result(w.NextKey(), raw)
	check(t, w.Begin())
	check(t, w.Append(res.Key, 0, Pack(raw[:ChunkSize])))
	check(t, run(w.conn, "rollback", nil)) // as SQLite does after some errors
	for _, err := range []error{
		w.Append(res.Key, 1, Pack(raw[ChunkSize:])),
		w.Seal(res),
		w.Record([]Call{{}}),
		w.Drop(res.Key),
		w.Commit(),
	} {
		if !errors.Is(err, errLost) {
			t.Errorf("it went on: %v", err)
		}
	}
	check(t, w.Rollback())
	putResult(t, w, res, raw)
	if _, err := readBack(r, res.ID); err != nil {
		t.Error(err)
	}
}

func TestAChunkThatCannotBeFilledIsNotKeptAsZeros(t *testing.T) {
	w, r := open(t)
	raw := text(ChunkSize * 2)
	res := result(w.NextKey(), raw)
	check(t, w.Begin())
	check(t, w.Append(res.Key, 0, Pack(raw[:ChunkSize])))
	check(t, run(w.conn, "create index filled on chunk (data)", nil)) // nobody may write into its blobs now
	if err := w.Append(res.Key, 1, Pack(raw[ChunkSize:])); err == nil {
		t.Fatal("filled an indexed column")
	}
	if err := w.Seal(res); !errors.Is(err, ErrDamaged) {
		t.Errorf("sealed with a chunk missing: %v", err)
	}

	check(t, run(w.conn, "create trigger kept before delete on chunk begin select raise(abort, 'kept'); end", nil))
	if err := w.Append(res.Key, 1, Pack(raw[ChunkSize:])); err == nil {
		t.Fatal("filled an indexed column")
	}
	if err := w.Seal(res); !errors.Is(err, errLost) {
		t.Errorf("sealed zeros: %v", err)
	}
	check(t, w.Rollback())
	putResult(t, w, res, raw)
	if _, err := readBack(r, res.ID); err != nil {
		t.Error(err)
	}
}

func TestAStoreThatBecameReadOnlySaysSo(t *testing.T) {
	w, _ := open(t)
	check(t, pragmas(w.conn, "query_only = on"))
	err := appendAll(w, w.NextKey(), text(100))
	if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultReadOnly {
		t.Errorf("appended to a read-only store: %v", err)
	}
	check(t, pragmas(w.conn, "query_only = off"))
	put(t, w, text(100))
}

func TestDamageIsAnErrorAndNeverOtherBytes(t *testing.T) {
	raw := append(text(ChunkSize*2), noise(ChunkSize*2)...)
	for name, damage := range map[string]string{
		"a missing chunk":     "delete from chunk where k & 0xffffff = %d",
		"changed bytes":       "update chunk set data = cast(substr(data, 1, 99) || x'00' || substr(data, 101) as blob) where k & 0xffffff = %d",
		"fewer bytes":         "update chunk set data = substr(data, 1, length(data) - 1) where k & 0xffffff = %d",
		"more bytes":          "update chunk set data = cast(data || data as blob) where k & 0xffffff = %d",
		"another length":      "update chunk set n = n - 1 where k & 0xffffff = %d",
		"another compression": "update chunk set zip = not zip where k & 0xffffff = %d",
	} {
		for seq := range 4 {
			w, r := open(t)
			res := put(t, w, raw)
			check(t, run(w.conn, fmt.Sprintf(damage, seq), nil))
			if w.conn.Changes() != 1 {
				t.Fatalf("%s: changed %d rows", name, w.conn.Changes())
			}
			ctx := context.Background()
			page := make([]byte, 1000)
			at := int64(seq*ChunkSize + 5)
			if n, err := r.ReadAt(ctx, res.Key, page, at); !errors.Is(err, ErrDamaged) || n != 0 {
				t.Errorf("%s in chunk %d: a page gave %d bytes, %v", name, seq, n, err)
			}
			var out bytes.Buffer
			n, err := r.Copy(ctx, &out, res.Key, 0, res.Bytes)
			if !errors.Is(err, ErrDamaged) || n != int64(seq*ChunkSize) || !bytes.Equal(out.Bytes(), raw[:n]) {
				t.Errorf("%s in chunk %d: a copy gave %d bytes, %v", name, seq, n, err)
			}
		}
	}
}

func TestAClosedStoreAnswersWithErrors(t *testing.T) {
	w, _ := open(t)
	r, err := OpenReader(w.path)
	check(t, err)
	res := put(t, w, text(10))
	check(t, w.Close())
	check(t, w.Close())
	check(t, r.Close())
	check(t, r.Close())
	_, getErr := r.Get(context.Background(), res.ID, t0)
	_, pruneErr := w.Prune(t0, 1)
	_, usageErr := w.Usage()
	for _, err := range []error{getErr, pruneErr, usageErr, w.Begin(), w.Append(9, 0, Pack([]byte("x"))), w.Seal(res), w.Checkpoint()} {
		if err == nil {
			t.Error("it worked")
		}
	}
}

func TestCopyStopsWithTheClient(t *testing.T) {
	w, r := open(t)
	res := put(t, w, noise(ChunkSize*3))
	n, err := r.Copy(context.Background(), brokenPipe{}, res.Key, 0, res.Bytes)
	if n != 10 || err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("%d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Copy(ctx, brokenPipe{}, res.Key, 0, res.Bytes); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write(p []byte) (int, error) { return 10, errors.New("broken pipe") }

func TestC51ResultsLeaveRoomForUpkeepOnTheDisk(t *testing.T) {
	w, r := open(t)
	old := put(t, w, noise(1<<20))
	w.left = func() int64 { return upkeep - 1 }
	check(t, w.Begin())
	err := appendAll(w, w.NextKey(), text(100))
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("appended to a full disk: %v", err)
	}
	check(t, w.Rollback())
	check(t, w.Record([]Call{{At: t0}}))
	w.left = func() int64 { return 0 }
	if err := w.Record([]Call{{At: t0}}); err == nil {
		t.Error("recorded on a full disk")
	}
	if p := pruneAll(t, w, old.Expires, 3); p.Results != 1 {
		t.Errorf("pruned %+v", p)
	}
	w.left = func() int64 { return upkeep }
	if _, err := readBack(r, put(t, w, noise(1<<20)).ID); err != nil {
		t.Error(err)
	}
}

func TestTheRoomOnTheDiskIsKnown(t *testing.T) {
	w, _ := open(t)
	if left := w.left(); left <= 0 || left > 1<<60 {
		t.Errorf("%d bytes are left", left)
	}
	if left := diskLeft("/no/such/directory/x.db"); left < 1<<62 {
		t.Errorf("an unknown disk has %d bytes left", left)
	}
}
