package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStatsCountWhatTheCallsOfAToolCameTo(t *testing.T) {
	w, r := open(t)
	var calls []Call
	for i := 1; i <= 100; i++ {
		c := Call{At: t0.Add(time.Duration(i) * time.Second), Agent: "a", Server: "s", Tool: "busy", Outcome: "ok",
			Took: time.Duration(101-i) * time.Millisecond, ArgBytes: 2, ResultBytes: 10}
		switch i {
		case 1:
			c.Outcome = "tool_error"
		case 2:
			c.Outcome = "cancelled"
		case 3:
			c.Stored, c.ResultBytes = true, 1<<20
		}
		calls = append(calls, c)
	}
	calls = append(calls,
		Call{At: t0.Add(time.Minute), Server: "s", Tool: "other", Outcome: "timeout", Took: time.Hour},
		Call{At: t0.Add(time.Minute), Server: "z", Tool: "busy", Outcome: "ok", Took: time.Second},
		Call{At: t0.Add(-time.Nanosecond), Server: "s", Tool: "busy", Outcome: "ok"})
	check(t, w.Record(calls))
	got, err := r.Stats(context.Background(), t0, true)
	check(t, err)
	want := []CallStats{
		{Server: "s", Tool: "busy", Calls: 100, Errors: 1, Stored: 1, P95: 95 * time.Millisecond, ArgBytes: 200, ResultBytes: 990 + 1<<20, StoredBytes: 1 << 20, Last: t0.Add(100 * time.Second)},
		{Server: "s", Tool: "other", Calls: 1, Errors: 1, P95: time.Hour, Last: t0.Add(time.Minute)},
		{Server: "z", Tool: "busy", Calls: 1, P95: time.Second, Last: t0.Add(time.Minute)},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if last := got[i].Last; !last.Equal(want[i].Last) {
			t.Errorf("last call at %v, want %v", last, want[i].Last)
		}
		got[i].Last = want[i].Last
		if got[i] != want[i] {
			t.Errorf("%+v\nwant %+v", got[i], want[i])
		}
	}
	got, err = r.Stats(context.Background(), t0, false)
	check(t, err)
	if len(got) != 2 || got[0].Calls != 101 || got[0].Tool != "" || got[1].Server != "z" {
		t.Errorf("by server: %+v", got)
	}
}

func TestResultsAreFoundByTheBeginningOfTheirID(t *testing.T) {
	w, r := open(t)
	for i, id := range []ID{"aa000000000000000000000000000000", "aabb0000000000000000000000000000", "ffffffffffffffffffffffffffffffff"} {
		res := result(w.NextKey(), []byte("raw"))
		res.ID, res.Agent = id, string(rune('a'+i))
		check(t, w.Append(res.Key, 0, Pack([]byte("raw"))))
		check(t, w.Seal(res))
	}
	for _, c := range []struct {
		prefix string
		at     time.Time
		want   int
	}{
		{"aa", t0, 2}, {"aabb", t0, 1}, {"f", t0, 1}, {"ffffffffffffffffffffffffffffffff", t0, 1}, {"", t0, 3}, {"b", t0, 0},
		{"aa", t0.Add(Retention), 0}, {"%", t0, 0}, {"AA", t0, 0},
	} {
		got, err := r.Named(context.Background(), c.prefix, c.at, 10)
		check(t, err)
		if len(got) != c.want {
			t.Errorf("%q at %v: %d results, want %d", c.prefix, c.at, len(got), c.want)
		}
	}
	got, err := r.Recent(context.Background(), t0, 2)
	check(t, err)
	if len(got) != 2 || got[0].Agent != "c" || got[1].Agent != "b" {
		t.Errorf("the newest of all agents: %+v", got)
	}
}

func TestCheckTellsADamagedFileFromASoundOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	w, err := OpenWriter(path, t0)
	check(t, err)
	for range 50 {
		check(t, w.Record([]Call{{At: t0, Server: "s", Tool: "t", Outcome: "ok", Error: string(make([]byte, 400))}}))
	}
	check(t, w.Close())
	r, err := OpenReader(path)
	check(t, err)
	if err := r.Check(context.Background()); err != nil {
		t.Errorf("a sound file: %v", err)
	}
	check(t, r.Close())

	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	info, err := f.Stat()
	check(t, err)
	junk := make([]byte, 16384)
	for at := int64(len(junk)); at+int64(len(junk)) <= info.Size(); at += int64(len(junk)) {
		_, err := f.WriteAt(junk, at)
		check(t, err)
	}
	check(t, f.Close())
	if r, err = OpenReader(path); err == nil {
		err = r.Check(context.Background())
		check(t, r.Close())
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("every page but the first was wiped: %v", err)
	}
}
