package store

import (
	"embed"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The statements, one a file, named table_verb. None ends in a semicolon.
//
//go:embed sql
var sqlFiles embed.FS

var (
	chunkInsert   = query("chunk_insert")
	chunkGet      = query("chunk_get")
	chunkDelete   = query("chunk_delete")
	chunkLast     = query("chunk_last")
	chunkMeasure  = query("chunk_measure")
	keyLast       = query("key_last")
	keyOrphans    = query("key_orphans")
	markSet       = query("mark_set")
	resultInsert  = query("result_insert")
	resultGet     = query("result_get")
	resultList    = query("result_list")
	resultSize    = query("result_size")
	resultExpired = query("result_expired")
	resultGone    = query("result_gone")
	resultForget  = query("result_forget")
	resultCount   = query("result_count")
	resultOldest  = query("result_oldest")
	resultRecent  = query("result_recent")
	resultNamed   = query("result_named")
	callInsert    = query("call_insert")
	callList      = query("call_list")
	callForget    = query("call_forget")
	callCount     = query("call_count")
	callStats     = query("call_stats")
	knownSet      = query("known_set")
	knownList     = query("known_list")
)

func query(name string) string {
	b, err := sqlFiles.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // embedded
	}
	return string(b)
}

// schemas are the steps from an empty file to the present schema. A step that was
// released is never changed.
var schemas = []string{query("schema/01"), query("schema/02")}

// run runs one statement; a connection prepares each text once. row, if not nil,
// sees every row.
func run(conn *sqlite.Conn, text string, row func(*sqlite.Stmt) error, args ...any) error {
	return sqlitex.Execute(conn, text, &sqlitex.ExecOptions{Args: args, ResultFunc: row})
}

// number runs a statement whose answer is one number, 0 when it has no row.
func number(conn *sqlite.Conn, text string, args ...any) (n int64, err error) {
	err = run(conn, text, func(s *sqlite.Stmt) error {
		n = s.ColumnInt64(0)
		return nil
	}, args...)
	return n, err
}

// pragmas runs settings in their order.
func pragmas(conn *sqlite.Conn, list ...string) error {
	for _, p := range list {
		if err := sqlitex.ExecuteTransient(conn, "pragma "+p, nil); err != nil {
			return fmt.Errorf("pragma %s: %w", p, err)
		}
	}
	return nil
}
