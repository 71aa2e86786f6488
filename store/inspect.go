package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
)

// This file is what the commands of the owner read. They may run in a process of
// their own, beside the daemon or without one.

// CallStats is what the calls of one server, or of one tool of it, came to.
type CallStats struct {
	Server      string
	Tool        string // "" = all tools of the server
	Calls       int64
	Errors      int64 // every outcome but ok and cancelled
	Stored      int64 // calls whose result was stored
	P95         time.Duration
	ArgBytes    int64
	ResultBytes int64
	StoredBytes int64 // of ResultBytes: those that agents got a receipt for
	Last        time.Time
}

// Stats sums up the calls since a time, by server or by tool, the busiest first.
func (r *Reader) Stats(ctx context.Context, since time.Time, byTool bool) (all []CallStats, err error) {
	err = r.read(ctx, func(conn *sqlite.Conn) error {
		return run(conn, callStats, func(s *sqlite.Stmt) error {
			all = append(all, CallStats{
				Server: s.ColumnText(0), Tool: s.ColumnText(1), Calls: s.ColumnInt64(2), Errors: s.ColumnInt64(3),
				Stored: s.ColumnInt64(4), P95: time.Duration(s.ColumnInt64(5)), ArgBytes: s.ColumnInt64(6),
				ResultBytes: s.ColumnInt64(7), StoredBytes: s.ColumnInt64(8), Last: time.Unix(0, s.ColumnInt64(9)),
			})
			return nil
		}, byTool, since.UnixNano())
	})
	if err != nil {
		return nil, fmt.Errorf("sum up calls: %w", err)
	}
	return all, nil
}

// Recent returns the unexpired results of all agents, the newest first.
func (r *Reader) Recent(ctx context.Context, now time.Time, limit int) ([]Result, error) {
	return r.results(ctx, resultRecent, now.UnixNano(), max(limit, 0))
}

// Named returns the unexpired results whose id begins with prefix.
func (r *Reader) Named(ctx context.Context, prefix string, now time.Time, limit int) ([]Result, error) {
	if strings.Trim(prefix, "0123456789abcdef") != "" {
		return nil, nil
	}
	return r.results(ctx, resultNamed, prefix, now.UnixNano(), max(limit, 0))
}

func (r *Reader) results(ctx context.Context, text string, args ...any) (list []Result, err error) {
	err = r.read(ctx, func(conn *sqlite.Conn) error {
		return run(conn, text, func(s *sqlite.Stmt) error {
			list = append(list, resultOf(s))
			return nil
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list results: %w", err)
	}
	return list, nil
}

// Check looks for damage in the file, for as long as ctx lasts: the time grows
// with the file. What it finds wraps ErrDamaged; running out of time is no finding.
func (r *Reader) Check(ctx context.Context) error {
	found := ""
	err := r.read(ctx, func(conn *sqlite.Conn) error {
		defer conn.SetInterrupt(conn.SetInterrupt(ctx.Done()))
		return run(conn, "pragma quick_check(1)", func(s *sqlite.Stmt) error {
			found = s.ColumnText(0)
			return nil
		})
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("check store %s: %w", r.path, advise(err))
	case found != "ok":
		return fmt.Errorf("check store %s: %w: %s", r.path, ErrDamaged, found)
	}
	return nil
}
