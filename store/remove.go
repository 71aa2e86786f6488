package store

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// Remove ends a result before its time. From the commit on it cannot be read; its
// bytes are removed by Prune. Of one that has ended already it returns ErrNotFound.
func (w *Writer) Remove(id ID) error {
	err := w.atomic(func() error {
		var k Key
		var size int64
		err := run(w.conn, resultGet, func(s *sqlite.Stmt) error {
			if r := resultOf(s); s.ColumnInt64(15) == kept {
				k, size = r.Key, r.Bytes
			}
			return nil
		}, id)
		if err != nil {
			return err
		}
		if k == 0 {
			return ErrNotFound
		}
		if err := run(w.conn, resultGone, nil, leaving, int64(k)); err != nil {
			return err
		}
		w.tally.results--
		w.tally.raw -= size
		return nil
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("remove result: %w", err)
	}
	return err
}
