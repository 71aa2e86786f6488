package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

func TestResultsSurviveARestart(t *testing.T) {
	w, _ := open(t)
	res := put(t, w, text(ChunkSize*3))
	check(t, w.Close())
	if size := fileSize(w.path + "-wal"); size != 0 {
		t.Errorf("a log of %d bytes is left", size)
	}
	// A closed store can be read without a writer, as `mcphubd stats` does.
	if _, err := readBack(openR(t, w.path), res.ID); err != nil {
		t.Error(err)
	}
	openW(t, w.path)
	if _, err := readBack(openR(t, w.path), res.ID); err != nil {
		t.Error(err)
	}
}

func TestFilesBelongToTheirOwner(t *testing.T) {
	w, r := open(t)
	res := put(t, w, text(100))
	look := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(w.path + suffix)
			check(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", suffix, info.Mode())
			}
		}
	}
	look()
	if _, err := readBack(r, res.ID); err != nil {
		t.Error(err)
	}
	check(t, w.Close())
	check(t, os.Chmod(w.path, 0o644))
	w = openW(t, w.path)
	put(t, w, text(100))
	look()
}

func TestOpenRefusesWhatIsNotItsOwn(t *testing.T) {
	foreign := func(path string) {
		conn, err := sqlite.OpenConn(path, sqlite.OpenCreate|sqlite.OpenReadWrite)
		check(t, err)
		check(t, sqlitex.ExecuteScript(conn, "create table x (a)", nil))
		check(t, conn.Close())
	}
	newer := func(path string) {
		w := openW(t, path)
		check(t, pragmas(w.conn, "user_version = 99"))
		check(t, w.Close())
	}
	garbage := func(path string) {
		check(t, os.WriteFile(path, []byte(strings.Repeat("not a database ", 5000)), 0o600))
	}
	damaged := func(path string) {
		w := openW(t, path)
		put(t, w, noise(1<<20))
		check(t, w.Close())
		b, err := os.ReadFile(path)
		check(t, err)
		copy(b[100:], make([]byte, 16000)) // the page that holds the schema
		check(t, os.WriteFile(path, b, 0o600))
	}
	for _, c := range []struct {
		name, says, advice string
		make               func(path string)
	}{
		{"foreign", "another program", "another data directory", foreign},
		{"newer", "schema 99", "run that version", newer},
		{"garbage", "damaged", "move it away", garbage},
		{"damaged", "damaged", "move it away", damaged},
	} {
		path := filepath.Join(t.TempDir(), c.name+".db")
		c.make(path)
		before, err := os.ReadFile(path)
		check(t, err)
		for _, open := range []func() error{
			func() error { _, err := OpenWriter(path, t0); return err },
			func() error { _, err := OpenReader(path); return err },
		} {
			err := open()
			if err == nil {
				t.Fatalf("%s: opened", c.name)
			}
			for _, part := range []string{path, c.says, c.advice} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", c.name, err, part)
				}
			}
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "x.db")
	if _, err := OpenWriter(path, t0); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := OpenReader(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
}
