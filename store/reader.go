package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
)

// readers is how many connections read at the same time; others wait their turn.
const readers = 4

// Reader reads the store. It is safe for concurrent use, and sees what has been
// committed, never less than was committed before the call.
type Reader struct {
	path   string
	slots  chan struct{}     // one a connection that may be in use
	idle   chan *sqlite.Conn // opened when first needed
	closed chan struct{}
	once   sync.Once
	cache  chunkCache
}

// OpenReader opens a store that a Writer has made.
func OpenReader(path string) (*Reader, error) {
	r := &Reader{
		path:   path,
		slots:  make(chan struct{}, readers),
		idle:   make(chan *sqlite.Conn, readers),
		closed: make(chan struct{}),
	}
	conn, err := connect(r.path)
	if err != nil {
		return nil, fmt.Errorf("open store %s for reading: %w", path, advise(err))
	}
	r.idle <- conn
	return r, nil
}

// Get finds a result by its id. An expired result comes with ErrExpired and its
// row, so that the caller can see whom it may tell.
func (r *Reader) Get(ctx context.Context, id ID, now time.Time) (Result, error) {
	if !id.Valid() {
		return Result{}, ErrNotFound
	}
	var res Result
	err := ErrNotFound
	readErr := r.read(ctx, func(conn *sqlite.Conn) error {
		return run(conn, resultGet, func(s *sqlite.Stmt) error {
			res, err = resultOf(s), nil
			if s.ColumnInt64(15) != kept || !res.Expires.After(now) {
				err = ErrExpired
			}
			return nil
		}, id)
	})
	if readErr != nil {
		return Result{}, fmt.Errorf("get result %s: %w", id, readErr)
	}
	return res, err
}

// List returns the unexpired results of agent, the newest first.
func (r *Reader) List(ctx context.Context, agent string, now time.Time, limit int) ([]Result, error) {
	var list []Result
	err := r.read(ctx, func(conn *sqlite.Conn) error {
		return run(conn, resultList, func(s *sqlite.Stmt) error {
			list = append(list, resultOf(s))
			return nil
		}, agent, now.UnixNano(), max(limit, 0))
	})
	if err != nil {
		return nil, fmt.Errorf("list results of %s: %w", agent, err)
	}
	return list, nil
}

// Calls returns the records of calls since a time, the newest first.
func (r *Reader) Calls(ctx context.Context, since time.Time, limit int) ([]Call, error) {
	var list []Call
	err := r.read(ctx, func(conn *sqlite.Conn) error {
		return run(conn, callList, func(s *sqlite.Stmt) error {
			list = append(list, callOf(s))
			return nil
		}, since.UnixNano(), max(limit, 0))
	})
	if err != nil {
		return nil, fmt.Errorf("list calls: %w", err)
	}
	return list, nil
}

// Close waits for the reads that are running and closes the connections. Later
// reads fail.
func (r *Reader) Close() error {
	var errs []error
	r.once.Do(func() {
		close(r.closed)
		for range readers {
			r.slots <- struct{}{}
		}
		close(r.idle)
		for conn := range r.idle {
			errs = append(errs, conn.Close())
		}
	})
	return errors.Join(errs...)
}

// read lends a connection to f.
func (r *Reader) read(ctx context.Context, f func(*sqlite.Conn) error) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closed:
		return errors.New("the store is closed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var conn *sqlite.Conn
	select {
	case conn = <-r.idle:
	default:
		var err error
		if conn, err = connect(r.path); err != nil {
			return err
		}
	}
	defer func() { r.idle <- conn }()
	return f(conn)
}

// snapshot lends a connection whose reads all see the same moment.
func (r *Reader) snapshot(ctx context.Context, f func(*sqlite.Conn) error) error {
	return r.read(ctx, func(conn *sqlite.Conn) (err error) {
		if err := run(conn, "begin", nil); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, run(conn, "rollback", nil)) }()
		return f(conn)
	})
}

// connect opens one more connection to the store at path, which changes nothing in it.
func connect(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyTimeout)
	err = errors.Join(recognise(conn), pragmas(conn, "query_only = on", "cache_size = -256", "temp_store = memory"))
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func resultOf(s *sqlite.Stmt) Result {
	r := Result{
		Key: Key(s.ColumnInt64(0)), ID: ID(s.ColumnText(1)),
		Agent: s.ColumnText(2), Server: s.ColumnText(3), Tool: s.ColumnText(4), Exposed: s.ColumnText(5),
		Bytes: s.ColumnInt64(6), Lines: s.ColumnInt64(7), SHA256: s.ColumnText(8), IsError: s.ColumnBool(9),
		Stored: time.Unix(0, s.ColumnInt64(10)), Expires: time.Unix(0, s.ColumnInt64(11)),
		Parent: ID(s.ColumnText(12)), Query: s.ColumnText(13),
	}
	if n := s.ColumnLen(14); n > 0 {
		r.Facts = make([]byte, n)
		s.ColumnBytes(14, r.Facts)
	}
	return r
}

func callOf(s *sqlite.Stmt) Call {
	return Call{
		At: time.Unix(0, s.ColumnInt64(0)), Agent: s.ColumnText(1), Server: s.ColumnText(2), Tool: s.ColumnText(3),
		Outcome: s.ColumnText(4), Took: time.Duration(s.ColumnInt64(5)), ArgBytes: s.ColumnInt64(6),
		ResultBytes: s.ColumnInt64(7), Stored: s.ColumnBool(8), Error: s.ColumnText(9),
	}
}
