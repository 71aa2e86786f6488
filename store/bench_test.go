package store

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkAppend stores results of 1 MiB, each in one transaction.
func BenchmarkAppend(b *testing.B) {
	for name, raw := range map[string][]byte{"text": text(1 << 20), "noise": noise(1 << 20)} {
		b.Run(name, func(b *testing.B) {
			w, _ := open(b)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				put(b, w, raw)
			}
		})
	}
}

// BenchmarkStream stores one result of 256 MiB in transactions of 4 MiB.
func BenchmarkStream(b *testing.B) {
	for name, raw := range map[string][]byte{"text": text(4 << 20), "noise": noise(4 << 20)} {
		b.Run(name, func(b *testing.B) {
			w, _ := open(b)
			b.SetBytes(256 << 20)
			for b.Loop() {
				stream(b, w, raw, 64)
			}
		})
	}
}

// BenchmarkPageAnyOffset reads pages of 8 KiB anywhere in a result of 512 MiB.
func BenchmarkPageAnyOffset(b *testing.B) {
	for name, raw := range map[string][]byte{"text": text(4 << 20), "noise": noise(4 << 20)} {
		b.Run(name, func(b *testing.B) {
			w, r := open(b)
			res := stream(b, w, raw, 128)
			check(b, w.Checkpoint())
			page := make([]byte, 8<<10)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := r.ReadAt(context.Background(), res.Key, page, rand.Int64N(res.Bytes)); err != nil && err != io.EOF {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkPageThrough reads 1 MiB to its end in pages of 8 KiB.
func BenchmarkPageThrough(b *testing.B) {
	w, r := open(b)
	res := put(b, w, text(1<<20))
	page := make([]byte, 8<<10)
	for b.Loop() {
		for off := int64(0); off < res.Bytes; off += int64(len(page)) {
			if _, err := r.ReadAt(context.Background(), res.Key, page, off); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkPack(b *testing.B) {
	raw := text(ChunkSize)
	b.SetBytes(ChunkSize)
	b.ReportAllocs()
	for b.Loop() {
		Pack(raw).Free()
	}
}

func BenchmarkUsed(b *testing.B) {
	w, _ := open(b)
	put(b, w, text(1<<20))
	for b.Loop() {
		w.Used()
	}
}

// BenchmarkPrune removes a result of 64 MiB in slices of 64 chunks; one is timed.
func BenchmarkPrune(b *testing.B) {
	w, _ := open(b)
	raw := noise(4 << 20)
	for b.Loop() {
		b.StopTimer()
		res := stream(b, w, raw, 16)
		b.StartTimer()
		for more := true; more; {
			p, err := w.Prune(res.Expires, 64)
			check(b, err)
			more = p.More
		}
	}
}

// stream stores a result that consists of raw, times over.
func stream(b *testing.B, w *Writer, raw []byte, times int) Result {
	k := w.NextKey()
	seq := 0
	for range times {
		check(b, w.Begin())
		for at := 0; at < len(raw); at += ChunkSize {
			check(b, w.Append(k, seq, Pack(raw[at:at+ChunkSize])))
			seq++
		}
		check(b, w.Commit())
	}
	r := result(k, nil)
	r.Bytes = int64(len(raw) * times)
	check(b, w.Seal(r))
	return r
}
