package store

import (
	"testing"
	"time"
)

func BenchmarkRecord(b *testing.B) {
	w, err := OpenWriter(b.TempDir()+"/x.db", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	calls := make([]Call, 256)
	for i := range calls {
		calls[i] = Call{At: time.Now(), Agent: "claude-code", Server: "github", Tool: "search_issues", Outcome: "ok", Took: time.Millisecond, ArgBytes: 80, ResultBytes: 2000}
	}
	for b.Loop() {
		if err := w.Begin(); err != nil {
			b.Fatal(err)
		}
		if err := w.Record(calls); err != nil {
			b.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/row")
}
