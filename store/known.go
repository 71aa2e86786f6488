package store

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// Known is what one server listed last.
type Known struct {
	Server string
	Origin string // how it was started; opaque to the store
	Tools  []byte // opaque to the store
}

// SetKnown replaces what is known of a server. It belongs to the transaction that is
// open.
func (w *Writer) SetKnown(k Known) error {
	if err := w.alive(); err != nil {
		return fmt.Errorf("set known tools of %s: %w", k.Server, err)
	}
	if err := run(w.conn, knownSet, nil, k.Server, k.Origin, k.Tools); err != nil {
		return fmt.Errorf("set known tools of %s: %w", k.Server, err)
	}
	return nil
}

// Known returns what is known of all servers.
func (r *Reader) Known(ctx context.Context) (all []Known, err error) {
	err = r.read(ctx, func(conn *sqlite.Conn) error {
		return run(conn, knownList, func(s *sqlite.Stmt) error {
			k := Known{Server: s.ColumnText(0), Origin: s.ColumnText(1), Tools: make([]byte, s.ColumnLen(2))}
			s.ColumnBytes(2, k.Tools)
			all = append(all, k)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read known tools: %w", err)
	}
	return all, nil
}
