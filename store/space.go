package store

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"zombiezen.com/go/sqlite"
)

// How long the write-ahead log gets before Begin sees to it, which Copy is to make
// needless: at walSoft it copies what it can, at walHard it also waits a moment for
// readers, so that the log can start again from its beginning. Where the disk has less
// than roomy left it is walShort in place of walSoft.
const (
	walShort = 4 << 20
	walSoft  = 24 << 20
	walHard  = 64 << 20
	roomy    = 128 << 20
)

// upkeep is room on the disk that no result may take. On a disk without any, the
// log cannot be copied into the file, the file cannot be pruned, and expired
// results would stay for ever. It holds the file's growth when the log is copied at its
// usual longest there (walShort and one transaction of 4 MiB), and some air. Call records
// may take half of it.
const upkeep = 12 << 20

// checkpointWait bounds how long a checkpoint waits for readers.
const checkpointWait = 100 * time.Millisecond

// tally is what is counted along, so that Usage scans no table.
type tally struct{ results, raw, calls int64 }

func (w *Writer) count() (err error) {
	err = run(w.conn, resultCount, func(s *sqlite.Stmt) error {
		w.tally.results, w.tally.raw = s.ColumnInt64(0), s.ColumnInt64(1)
		return nil
	})
	if err != nil {
		return err
	}
	w.tally.calls, err = number(w.conn, callCount)
	return err
}

// Usage is the size of the store. An expired result counts until Prune takes it.
// It is cheap enough to be asked every few seconds.
func (w *Writer) Usage() (Usage, error) {
	oldest, err := number(w.conn, resultOldest)
	if err != nil {
		return Usage{}, fmt.Errorf("measure store: %w", err)
	}
	u := Usage{
		Results:   w.tally.results,
		RawBytes:  w.tally.raw,
		Calls:     w.tally.calls,
		UsedBytes: w.Used(),
		FileBytes: fileSize(w.path),
		WALBytes:  fileSize(w.path + "-wal"),
	}
	if oldest != 0 {
		u.OldestExpiry = time.Unix(0, oldest)
	}
	return u, nil
}

// Used is the number of bytes in pages that hold something. It takes microseconds.
// Should SQLite not answer it is 0.
func (w *Writer) Used() int64 {
	pages, err1 := number(w.conn, "pragma page_count")
	free, err2 := number(w.conn, "pragma freelist_count")
	if err1 != nil || err2 != nil {
		return 0
	}
	return (pages - free) * w.pageSize
}

// Shrink gives up to pages free pages back; the file gets shorter at the next
// checkpoint. It returns how many it gave.
func (w *Writer) Shrink(pages int) (freed int, err error) {
	err = w.atomic(func() error {
		before, err := number(w.conn, "pragma freelist_count")
		if err != nil || before == 0 {
			return err
		}
		if err := pragmas(w.conn, fmt.Sprintf("incremental_vacuum(%d)", max(pages, 1))); err != nil {
			return err
		}
		after, err := number(w.conn, "pragma freelist_count")
		freed = int(before - after)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("shrink store: %w", err)
	}
	return freed, nil
}

// Checkpoint copies the write-ahead log into the file, empties the log and gives cached
// pages back: right when the daemon is idle. A reader in the way is no error; the next
// checkpoint goes further.
func (w *Writer) Checkpoint() error {
	if err := w.checkpoint("truncate"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return pragmas(w.conn, "shrink_memory")
}

// Copy copies what it can of the log beside whatever the Writer does meanwhile: it may be
// called from another goroutine, also after Close, when it does nothing. The log starts
// again from its beginning when the Writer comes upon it wholly copied.
func (w *Writer) Copy() error {
	w.copying.Lock()
	defer w.copying.Unlock()
	if w.copier == nil {
		return nil
	}
	defer lend()()
	defer w.again.Store(true)
	if err := run(w.copier, "pragma wal_checkpoint(passive)", nil); err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	return nil
}

// checkpoint waits for a Copy under way, which has all but the end of its work done.
func (w *Writer) checkpoint(mode string) error {
	w.copying.Lock()
	defer w.copying.Unlock()
	defer lend()()
	w.again.Store(true)
	w.conn.SetBusyTimeout(checkpointWait)
	defer w.conn.SetBusyTimeout(busyTimeout)
	return run(w.conn, "pragma wal_checkpoint("+mode+")", nil)
}

// trimWAL keeps the log bounded. What goes wrong here goes wrong in the write
// that follows, where it is reported.
func (w *Writer) trimWAL() {
	switch size := fileSize(w.path + "-wal"); {
	case size > walHard:
		w.checkpoint("truncate")
	case size > walSoft, size > walShort && w.left() < roomy:
		w.checkpoint("passive")
	}
}

// fileSize asks for the size by name: opening the file would cost SQLite its locks.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// room refuses to write when less than want is left on the disk.
func (w *Writer) room(want int64) error {
	if left := w.left(); left < want {
		return fmt.Errorf("the disk is full: %d KiB are left, and %d KiB are kept for upkeep", left>>10, want>>10)
	}
	return nil
}

// diskLeft is how many bytes an ordinary user may still write to the disk of path.
// A disk that does not tell has room until SQLite finds out.
func diskLeft(path string) int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &fs); err != nil {
		return math.MaxInt64
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}
