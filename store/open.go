package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// appID marks the file as ours ("mcph"), for file(1) and against a mistaken path.
const appID = 0x6d637068

// busyTimeout is how long a connection waits for a lock that another process
// holds, such as a backup.
const busyTimeout = 5 * time.Second

// OpenWriter opens the store at path, and makes it if there is none. It removes
// what a crash left unfinished. The file and its companions can be read by their
// owner only. The time is not looked at yet: expired results wait for Prune, since
// a clock may be wrong right after the start.
func OpenWriter(path string, _ time.Time) (*Writer, error) {
	w, err := openWriter(path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, advise(err))
	}
	return w, nil
}

func openWriter(path string) (_ *Writer, err error) {
	if err := private(path); err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	conn.SetBusyTimeout(busyTimeout)
	if err := recognise(conn); err != nil {
		return nil, err
	}
	// The first two hold only for a file without tables and must come before WAL.
	// Checkpoints are ours: see Writer.Copy and Checkpoint.
	if err := pragmas(conn,
		"page_size = 16384", "auto_vacuum = incremental",
		"journal_mode = wal", "synchronous = normal", "journal_size_limit = 4194304",
		"wal_autocheckpoint = 0", "cache_size = -2048", "temp_store = memory"); err != nil {
		return nil, err
	}
	if err := migrate(conn); err != nil {
		return nil, err
	}
	w := &Writer{conn: conn, path: path, left: func() int64 { return diskLeft(path) }}
	if err := w.recover(); err != nil {
		return nil, err
	}
	if w.copier, err = connect(path); err != nil {
		return nil, err
	}
	return w, nil
}

// private makes the database file if it is missing, and takes an old one away
// from everybody but the owner. The companions get the mode of the database, as
// SQLite would make them: those of a file that was read-only are in the way.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() & 0o700
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil || info.Mode().Perm() == mode {
			continue
		}
		if err := os.Chmod(path+suffix, mode); err != nil {
			return err
		}
	}
	return nil
}

// recognise refuses a database that this program must not touch.
func recognise(conn *sqlite.Conn) error {
	tables, err := number(conn, "select count(*) from sqlite_schema")
	if err != nil {
		return err
	}
	app, err := number(conn, "pragma application_id")
	if err != nil {
		return err
	}
	if tables > 0 && app != appID {
		return errForeign
	}
	version, err := number(conn, "pragma user_version")
	if err != nil {
		return err
	}
	if version > int64(len(schemas)) {
		return fmt.Errorf("%w (schema %d, this program knows up to %d)", errNewer, version, len(schemas))
	}
	return nil
}

// migrate brings the schema up to date, all or nothing.
func migrate(conn *sqlite.Conn) (err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	version, err := number(conn, "pragma user_version")
	if err != nil {
		return err
	}
	if int(version) == len(schemas) {
		return nil
	}
	for _, script := range schemas[version:] {
		if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
			return err
		}
	}
	return pragmas(conn, fmt.Sprintf("application_id = %d", appID), fmt.Sprintf("user_version = %d", len(schemas)))
}

var (
	errForeign = errors.New("this is a database of another program")
	errNewer   = errors.New("this was written by a newer mcphubd")
)

// advise says what to do about an error of opening.
func advise(err error) error {
	code := sqlite.ErrCode(err).ToPrimary()
	switch {
	case errors.Is(err, errNewer):
		return fmt.Errorf("%w: run that version, or choose another data directory", err)
	case errors.Is(err, errForeign):
		return fmt.Errorf("%w: choose another data directory", err)
	case code == sqlite.ResultNotADB, code == sqlite.ResultCorrupt:
		return fmt.Errorf("the file is not sound, %w: move it away (with its -wal and -shm, if any) and start again, a new one is made: %w", ErrDamaged, err)
	case code == sqlite.ResultReadOnly, code == sqlite.ResultCantOpen, code == sqlite.ResultPerm, errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this user must be able to write the file and its directory", err)
	case code == sqlite.ResultFull:
		return fmt.Errorf("%w: make room on the disk", err)
	}
	return err
}
