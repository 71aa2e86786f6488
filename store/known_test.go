package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

func TestKnownToolsOutliveTheProcessAndAreReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcphubd.db")
	for _, step := range []struct{ set, want Known }{
		{Known{"a", "one", []byte("first\x00 list")}, Known{"a", "one", []byte("first\x00 list")}},
		{Known{"a", "two", []byte("x")}, Known{"a", "two", []byte("x")}},
	} {
		w, err := OpenWriter(path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := w.SetKnown(step.set); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		w, err = OpenWriter(path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r, err := OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.Known(context.Background())
		if err != nil || len(all) != 1 || all[0].Server != step.want.Server || all[0].Origin != step.want.Origin || string(all[0].Tools) != string(step.want.Tools) {
			t.Errorf("known: %+v %v, want %+v", all, err, step.want)
		}
		r.Close()
		w.Close()
	}
}
