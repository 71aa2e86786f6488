package store

import (
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"
)

const (
	tombstonesKept = 7 * 24 * time.Hour  // how long an expired id is still known
	callsKept      = 30 * 24 * time.Hour // how long call records are kept
	dropSlice      = 64                  // chunks that Drop removes at once
	sweepSlice     = 256                 // chunks that go in one transaction at the start
)

// The column gone of a result.
const (
	kept      = iota
	leaving   // expired, and chunks are being removed
	tombstone // no chunk is left
)

// Prune removes what is over at now, at most slice chunks and as many rows of
// other kinds: first the bytes of expired results, the longest over first, then
// rows of results that expired a week ago, then call records older than 30 days.
// It also finishes what Drop left. Nothing that is unexpired is touched.
func (w *Writer) Prune(now time.Time, slice int) (Pruned, error) {
	var p Pruned
	err := w.atomic(func() error {
		var err error
		p, err = w.prune(now, max(slice, 1))
		return err
	})
	if err != nil {
		return Pruned{}, fmt.Errorf("prune: %w", err)
	}
	return p, nil
}

func (w *Writer) prune(now time.Time, slice int) (p Pruned, err error) {
	if p.Chunks, err = w.pruneDropped(slice); err != nil {
		return p, err
	}
	left := slice - p.Chunks
	for left > 0 {
		n, done, err := w.pruneResult(now, left)
		if err != nil {
			return p, err
		}
		if n == 0 && !done {
			break // nothing is expired
		}
		p.Chunks += n
		left -= max(n, 1)
		if done {
			p.Results++
		}
	}
	forgotten, err := w.forget(resultForget, now.Add(-tombstonesKept), slice)
	if err != nil {
		return p, err
	}
	if p.Calls, err = w.forget(callForget, now.Add(-callsKept), slice); err != nil {
		return p, err
	}
	w.tally.calls -= int64(p.Calls)
	p.More = left <= 0 || forgotten == slice || p.Calls == slice
	return p, nil
}

// pruneResult removes up to limit chunks of one expired result. done tells that
// none of it is left. The row is marked before its first chunk goes, so that no
// step of the clock brings back half a result.
func (w *Writer) pruneResult(now time.Time, limit int) (n int, done bool, err error) {
	var k Key
	var size, gone int64
	err = run(w.conn, resultExpired, func(s *sqlite.Stmt) error {
		k, size, gone = Key(s.ColumnInt64(0)), s.ColumnInt64(1), s.ColumnInt64(2)
		return nil
	}, now.UnixNano())
	if err != nil || k == 0 {
		return 0, false, err
	}
	if gone == kept {
		if err := run(w.conn, resultGone, nil, leaving, int64(k)); err != nil {
			return 0, false, err
		}
		w.tally.results--
		w.tally.raw -= size
	}
	if n, err = w.removeChunks(k, limit); err != nil || n == limit {
		return n, false, err
	}
	return n, true, run(w.conn, resultGone, nil, tombstone, int64(k))
}

// pruneDropped removes up to limit chunks of dropped keys.
func (w *Writer) pruneDropped(limit int) (removed int, err error) {
	for len(w.dropped) > 0 && removed < limit {
		n, err := w.removeChunks(w.dropped[0], limit-removed)
		if err != nil {
			return removed, err
		}
		removed += n
		if removed == limit {
			break // perhaps there is more
		}
		if w.open {
			w.finished = append(w.finished, w.dropped[0])
		}
		w.dropped = slices.Delete(w.dropped, 0, 1)
	}
	return removed, nil
}

func (w *Writer) removeChunks(k Key, limit int) (int, error) {
	if err := run(w.conn, chunkDelete, nil, k.first(), k.end(), limit); err != nil {
		return 0, err
	}
	return w.conn.Changes(), nil
}

func (w *Writer) forget(text string, until time.Time, limit int) (int, error) {
	if err := run(w.conn, text, nil, until.UnixNano(), limit); err != nil {
		return 0, err
	}
	return w.conn.Changes(), nil
}
