package excerpt

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The source of a benchmark makes its bytes from nothing, so that memory is that of
// the reading alone.

// made is a result whose text or array repeats one piece of bytes.
type made struct {
	head, tail string
	piece      string // what is repeated; it ends with what separates pieces
	n          int64
}

func (m *made) Size() int64 {
	return int64(len(m.head)) + m.n*int64(len(m.piece)) + int64(len(m.tail))
}

func (m *made) ReadAt(p []byte, off int64) (n int, err error) {
	mid := int64(len(m.head)) + m.n*int64(len(m.piece))
	for n < len(p) && off < m.Size() {
		var k int
		switch {
		case off < int64(len(m.head)):
			k = copy(p[n:], m.head[off:])
		case off < mid:
			i := (off - int64(len(m.head))) % int64(len(m.piece))
			k = copy(p[n:], m.piece[i:min(int64(len(m.piece)), i+mid-off)])
		default:
			k = copy(p[n:], m.tail[off-mid:])
		}
		n, off = n+k, off+int64(k)
	}
	return n, nil
}

const benchSize = 100 << 20

// logResult is 100 MB of log lines in a text block, with one line to find near the end.
func logResult() *made {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `2026-03-%02dT10:00:00Z INFO worker %d: request handled in %d ms, status \"ok\"\n`, i%28+1, i, i*7%300)
	}
	m := &made{head: `{"content":[{"type":"text","text":"`, piece: b.String(), tail: `2026-04-01T00:00:00Z ERROR disk is full\nbye\n"}]}`}
	m.n = benchSize / int64(len(m.piece))
	return m
}

// recordResult is a JSON array of n records in structuredContent, or as text.
func recordResult(n int64, text bool) *made {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `{"id":%d,"name":"record number %d","tags":["a","b%d"],"score":%d.5},`, i, i, i%3, i)
	}
	m := &made{head: `{"content":[],"structuredContent":{"total":1,"items":[`, piece: b.String(), n: n / 100, tail: `{"id":-1}]}}`}
	if text {
		m.head = `{"content":[{"type":"text","text":"{\"items\":[`
		m.piece = strings.ReplaceAll(m.piece, `"`, `\"`)
		m.tail = `{\"id\":-1}]}"}]}`
	}
	return m
}

// peak watches how much the heap grows while f runs, in bytes above what it was.
func peak(f func()) int64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var most atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&now)
				most.Store(max(most.Load(), int64(now.HeapAlloc)-int64(before.HeapAlloc)))
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most.Load()
}

// benchmarkRead measures the first reading of a result (with the index to be made) and
// the following ones.
func benchmarkRead(b *testing.B, m *made, args, want string) {
	read := func(x *Index) {
		q, err := ParseRequest([]byte(args))
		if err != nil {
			b.Fatal(err)
		}
		a, err := Reading{Index: x, Src: m, CallID: callID, Limits: Limits{Bytes: 32 << 10}}.Read(q)
		if err != nil || !bytes.Contains(a.Result, []byte(want)) {
			b.Fatalf("%v %.1000s", err, a.Result)
		}
	}
	b.Run("first", func(b *testing.B) {
		b.SetBytes(m.Size())
		most := peak(func() {
			for b.Loop() {
				read(NewIndex(m.Size()))
			}
		})
		b.ReportMetric(float64(most)/(1<<20), "peak-MiB")
	})
	b.Run("again", func(b *testing.B) {
		x := NewIndex(m.Size())
		read(x)
		for b.Loop() {
			read(x)
		}
		b.ReportMetric(float64(x.Cost())/(1<<10), "index-KiB")
	})
}

func BenchmarkGrep100MB(b *testing.B) {
	for _, pattern := range []string{"ERROR", "(?i)error", "E[A-Z]+ disk"} {
		b.Run(pattern, func(b *testing.B) {
			benchmarkRead(b, logResult(), `{"grep":"`+pattern+`"}`, "matching lines 1-1 of 1")
		})
	}
}

func BenchmarkLinesAtTheEndOf100MB(b *testing.B) {
	benchmarkRead(b, logResult(), `{"lines":"-20"}`, "bye")
}

func BenchmarkRecordsAt900000(b *testing.B) {
	for _, text := range []bool{false, true} {
		b.Run(fmt.Sprintf("text=%v", text), func(b *testing.B) {
			benchmarkRead(b, recordResult(1_000_000, text), `{"records":"/items","offset":900000,"limit":20}`, "records 900000-900019 of 1000001")
		})
	}
}

func BenchmarkOutline100MB(b *testing.B) {
	b.Run("log", func(b *testing.B) { benchmarkRead(b, logResult(), `{}`, "outline of") })
	b.Run("json", func(b *testing.B) { benchmarkRead(b, recordResult(1_300_000, false), `{}`, "items:[1300001×{") })
	b.Run("text", func(b *testing.B) { benchmarkRead(b, recordResult(1_300_000, true), `{}`, "items:[1300001×{") })
}
