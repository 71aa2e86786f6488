package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"
)

// Writer is the one connection that writes. One goroutine uses it at a time; Copy alone
// may run beside it.
//
// Append, Seal, Drop, Record and Prune belong to the transaction that is open, or
// to one of their own. A refused Append or Seal changes nothing, and the
// transaction may go on, unless SQLite had to end it, as it does when the disk is
// full: then every call fails until Rollback, after which the Writer works again.
type Writer struct {
	conn *sqlite.Conn
	path string
	next Key
	open bool // Begin without Commit or Rollback yet

	pageSize int64
	left     func() int64 // bytes left on the disk

	tally tally
	saved tally // as it was at Begin

	copying sync.Mutex   // one checkpoint at a time
	copier  *sqlite.Conn // of Copy
	again   atomic.Bool  // the log was copied: the next commit may begin it anew, which flushes

	dropped  []Key // keys whose chunks Prune still has to remove
	finished []Key // keys taken off dropped by the open transaction
}

// errLost: SQLite ended the transaction itself, as it does when the disk is full.
var errLost = errors.New("the transaction was lost to an earlier error")

// maxChunks is how many chunks the numbering has room for in one result.
const maxChunks = 1 << 24

// maxErrorText is how much of the error of a call is recorded, in characters.
const maxErrorText = 500

// Begin opens a transaction. It is also where a write-ahead log that grew too
// long is brought back, when nobody waits for an answer yet.
func (w *Writer) Begin() error {
	if w.open {
		return errors.New("begin: a transaction is open")
	}
	w.trimWAL()
	if err := run(w.conn, "begin immediate", nil); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	w.open, w.saved = true, w.tally
	return nil
}

// Commit makes the transaction durable against a crash of the process. After an
// error the transaction is still to be rolled back.
func (w *Writer) Commit() error {
	if err := w.alive(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if w.again.Swap(false) {
		defer lend()()
	}
	if err := run(w.conn, "commit", nil); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.open, w.finished = false, nil
	return nil
}

// Rollback undoes the transaction. Without one it does nothing.
func (w *Writer) Rollback() error {
	if !w.open {
		return nil
	}
	w.open, w.tally = false, w.saved
	w.dropped, w.finished = append(w.dropped, w.finished...), nil
	if w.conn.AutocommitEnabled() {
		return nil // SQLite was faster
	}
	if err := run(w.conn, "rollback", nil); err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	return nil
}

// NextKey returns a key that no result has had in the life of this process and
// none in the file has. It does not write.
func (w *Writer) NextKey() Key {
	k := w.next
	w.next++
	return k
}

// Append writes chunk number seq of the result k. The chunks of a result count
// from 0, and all but the last hold ChunkSize bytes.
func (w *Writer) Append(k Key, seq int, c Chunk) error {
	if k < 1 || seq < 0 || seq >= maxChunks || c.N < 1 || c.N > ChunkSize {
		return fmt.Errorf("append chunk %d of result %d: %d bytes do not fit the numbering", seq, k, c.N)
	}
	err := w.atomic(func() error {
		if err := w.room(upkeep); err != nil {
			return err
		}
		return w.append(int64(k)<<24|int64(seq), c)
	})
	if err != nil {
		return fmt.Errorf("append chunk: %w", err)
	}
	return nil
}

// append makes a row of zeros and writes the data into it. To bind the data would copy it
// twice on its way, each time into memory fresh from the system: that is half of the work.
func (w *Writer) append(row int64, c Chunk) error {
	s, err := w.conn.Prepare(chunkInsert)
	if err != nil {
		return err
	}
	s.BindInt64(1, row)
	s.BindInt64(2, int64(c.N))
	s.BindBool(3, c.Zip)
	s.BindInt64(4, int64(c.Sum))
	s.BindZeroBlob(5, int64(len(c.Data)))
	_, err = s.Step()
	if err = errors.Join(err, s.Reset()); err != nil {
		return err
	}
	if err := w.fill(row, c.Data); err != nil {
		return errors.Join(err, w.undo(row))
	}
	return nil
}

func (w *Writer) fill(row int64, data []byte) error {
	blob, err := w.conn.OpenBlob("", "chunk", "data", row, true)
	if err != nil {
		return err
	}
	_, err = blob.Write(data)
	return errors.Join(err, blob.Close())
}

// undo takes away a row that could not be filled, or else the whole transaction: a result
// must not be sealed with zeros in it.
func (w *Writer) undo(row int64) error {
	err := run(w.conn, chunkDelete, nil, row, row+1, 1)
	if err == nil {
		return nil
	}
	return errors.Join(err, run(w.conn, "rollback", nil))
}

// Seal writes the row of a result, after all of its chunks. It refuses a result
// whose chunks do not add up to its Bytes, and one kept for longer than Retention.
func (w *Writer) Seal(r Result) error {
	if err := w.seal(r); err != nil {
		return fmt.Errorf("seal result: %w", err)
	}
	w.tally.results++
	w.tally.raw += r.Bytes
	return nil
}

func (w *Writer) seal(r Result) error {
	switch {
	case !r.ID.Valid():
		return fmt.Errorf("%q is no result id", r.ID)
	case r.Expires.After(r.Stored.Add(Retention)):
		return fmt.Errorf("it would be kept for %v", r.Expires.Sub(r.Stored))
	}
	if err := w.alive(); err != nil {
		return err
	}
	if err := w.whole(r.Key, r.Bytes); err != nil {
		return err
	}
	return run(w.conn, resultInsert, nil, int64(r.Key), r.ID, r.Agent, r.Server, r.Tool, r.Exposed,
		r.Bytes, r.Lines, r.SHA256, r.IsError, r.Stored.UnixNano(), r.Expires.UnixNano(), r.Parent, r.Query, r.Facts)
}

// whole reports whether the chunks of k are all there and hold size bytes.
func (w *Writer) whole(k Key, size int64) error {
	var count, last, sum int64
	err := run(w.conn, chunkMeasure, func(s *sqlite.Stmt) error {
		count, last, sum = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2)
		return nil
	}, k.first(), k.end())
	if err != nil {
		return err
	}
	if sum != size || count != chunks(size) || count > 0 && last != k.first()+count-1 {
		return fmt.Errorf("%w: %d chunks with %d bytes instead of %d with %d", ErrDamaged, count, sum, chunks(size), size)
	}
	return nil
}

// Drop removes the chunks of k unless k is sealed. Of a large result it removes
// the beginning; Prune takes the rest in its slices, and a crash leaves it to the
// next start.
func (w *Writer) Drop(k Key) error {
	if err := w.alive(); err != nil {
		return fmt.Errorf("drop result: %w", err)
	}
	sealed := false
	err := run(w.conn, resultSize, func(*sqlite.Stmt) error {
		sealed = true
		return nil
	}, int64(k))
	if err != nil || sealed {
		return err
	}
	w.dropped = append(w.dropped, k)
	_, err = w.pruneDropped(dropSlice)
	return err
}

// Record writes the records of calls.
func (w *Writer) Record(calls []Call) error {
	err := w.atomic(func() error {
		if err := w.room(upkeep / 2); err != nil {
			return err
		}
		s, err := w.conn.Prepare(callInsert)
		if err != nil {
			return err
		}
		var before *Call
		for i := range calls {
			if err := w.record(s, &calls[i], before); err != nil {
				return err
			}
			before = &calls[i]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record calls: %w", err)
	}
	return nil
}

// record is written out, because every call of every agent comes by here. s still has
// the values of the record before it, if there is one: a text is only set when it is
// another, since that costs as much as all the rest.
func (w *Writer) record(s *sqlite.Stmt, c, before *Call) error {
	text := func(at int, of func(*Call) string) {
		if is := of(c); before == nil || is != of(before) {
			s.BindText(at, is)
		}
	}
	text(2, func(c *Call) string { return c.Agent })
	text(3, func(c *Call) string { return c.Server })
	text(4, func(c *Call) string { return c.Tool })
	text(5, func(c *Call) string { return c.Outcome })
	text(10, func(c *Call) string { return clip(c.Error, maxErrorText) })
	s.BindInt64(1, c.At.UnixNano())
	s.BindInt64(6, int64(c.Took))
	s.BindInt64(7, c.ArgBytes)
	s.BindInt64(8, c.ResultBytes)
	s.BindBool(9, c.Stored)
	_, err := s.Step()
	if err = errors.Join(err, s.Reset()); err == nil {
		w.tally.calls++
	}
	return err
}

// Close ends the open transaction, empties the write-ahead log into the file and
// closes it. Later calls fail, but for Close, which may be called again.
func (w *Writer) Close() error {
	if w.conn == nil {
		return nil
	}
	err := errors.Join(w.Rollback(), w.Checkpoint())
	w.copying.Lock()
	defer w.copying.Unlock()
	err = errors.Join(err, w.copier.Close(), w.conn.Close())
	w.conn, w.copier = nil, nil // a connection without a value answers with errors
	return err
}

// recover removes chunks that no result row vouches for and finds the next key.
func (w *Writer) recover() error {
	last, err := number(w.conn, keyLast)
	if err != nil {
		return err
	}
	w.next = Key(last) + 1
	err = run(w.conn, keyOrphans, func(s *sqlite.Stmt) error {
		w.dropped = append(w.dropped, Key(s.ColumnInt64(0)))
		return nil
	})
	if err != nil {
		return err
	}
	for len(w.dropped) > 0 {
		if _, err := w.pruneDropped(sweepSlice); err != nil {
			return err
		}
		w.trimWAL()
	}
	if err := run(w.conn, markSet, nil, int64(w.next)); err != nil {
		return err
	}
	if w.pageSize, err = number(w.conn, "pragma page_size"); err != nil {
		return err
	}
	return w.count()
}

// alive refuses to write when the transaction the caller believes in is gone:
// what it wrote before would be missing.
func (w *Writer) alive() error {
	if w.open && w.conn.AutocommitEnabled() {
		return errLost
	}
	return nil
}

// atomic runs f inside the open transaction, or inside one of its own.
func (w *Writer) atomic(f func() error) error {
	if w.open {
		if err := w.alive(); err != nil {
			return err
		}
		return f()
	}
	if err := w.Begin(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, w.Rollback())
	}
	if err := w.Commit(); err != nil {
		return errors.Join(err, w.Rollback())
	}
	return nil
}

// first and end bound the rows of the chunks of k.
func (k Key) first() int64 { return int64(k) << 24 }
func (k Key) end() int64   { return int64(k+1) << 24 }

// chunks is the number of chunks of a result of size bytes.
func chunks(size int64) int64 { return (size + ChunkSize - 1) / ChunkSize }

// clip cuts s to n characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
