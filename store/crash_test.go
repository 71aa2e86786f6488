package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
)

// crashEnv makes the test binary the process that is killed.
const crashEnv = "MCPHUBD_TEST_CRASH_DB"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled stores results in two transactions each, and says a line about
// every one once it is committed.
func writeUntilKilled(path string) {
	w, err := OpenWriter(path, t0)
	must(err)
	must(w.Append(w.NextKey(), 0, Pack([]byte("never sealed")))) // a leftover in every round
	for i := 1; ; i++ {
		raw := text(i * 77_777 % (4 * ChunkSize))
		k := w.NextKey()
		must(w.Begin())
		must(appendAll(w, k, raw[:len(raw)/ChunkSize/2*ChunkSize]))
		must(w.Commit())
		must(w.Begin())
		for at := len(raw) / ChunkSize / 2 * ChunkSize; at < len(raw); at += ChunkSize {
			must(w.Append(k, at/ChunkSize, Pack(raw[at:min(len(raw), at+ChunkSize)])))
		}
		must(w.Append(w.NextKey(), 0, Pack(text(ChunkSize)))) // of a result that is still arriving
		r := result(k, raw)
		must(w.Seal(r))
		must(w.Commit())
		fmt.Printf("%s %s\n", r.ID, r.SHA256)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestNothingSealedIsLostWhenTheProcessIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crash.db")
	promised := map[ID]string{}
	for round := range 8 {
		promiseUntilKilled(t, path, 1+round*5%13, promised)

		w := openW(t, path)
		r := openR(t, path)
		sealed := 0
		check(t, run(w.conn, "select id from result", func(s *sqlite.Stmt) error {
			sealed++
			if _, err := readBack(r, ID(s.ColumnText(0))); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			return nil
		}))
		for id, sha := range promised {
			res, err := r.Get(context.Background(), id, t0)
			if err != nil || res.SHA256 != sha {
				t.Errorf("round %d: promised %s: %v", round, id, err)
			}
		}
		orphans, err := number(w.conn, "select count(*) from chunk where k >> 24 not in (select k from result)")
		if err != nil || orphans != 0 {
			t.Errorf("round %d: %d chunks belong to nothing, %v", round, orphans, err)
		}
		if u, _ := w.Usage(); u.Results != int64(sealed) || sealed < len(promised) {
			t.Errorf("round %d: %d rows, %d promised, counted %d", round, sealed, len(promised), u.Results)
		}
		check(t, w.Close())
	}
}

// promiseUntilKilled runs the writing process, notes what it said, and kills it
// in the middle of its work after so many lines.
func promiseUntilKilled(t *testing.T, path string, lines int, promised map[ID]string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for said := bufio.NewScanner(out); said.Scan(); {
		id, sha, _ := strings.Cut(said.Text(), " ")
		promised[ID(id)] = sha
		if lines--; lines == 0 {
			check(t, cmd.Process.Kill())
			// What it said until the signal came is promised as well.
		}
	}
	if lines > 0 {
		t.Fatalf("it ended by itself: %s", stderr.String())
	}
}
