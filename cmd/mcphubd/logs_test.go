package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcphubd/config"
)

func TestTailIsTheLastLinesThatAreWanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, `{"level":"info","server":"%c","n":%d}`+"\n", 'a'+rune(i%2), i)
	}
	all.WriteString(`{"level":"info","server":"a"`) // its end has not come yet
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := logsCmd{Level: "debug", Server: "b"}
	lines, at, err := tailOf(f, 2, cmd.wants)
	if err != nil || len(lines) != 2 || !strings.Contains(string(lines[0]), `"n":4997}`) || !strings.Contains(string(lines[1]), `"n":4999}`) {
		t.Errorf("%s, %v", lines, err)
	}
	if want := int64(strings.LastIndexByte(all.String(), '\n') + 1); at != want {
		t.Errorf("it goes on at %d, want %d", at, want)
	}
}

// A log that is rotated while it is followed loses no line.
func TestFollowingGoesOnInTheNextFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	got := make(chan string, 100)
	ended := make(chan error, 1)
	go func() {
		err := follow(ctx, path, &f, func(line []byte) { got <- string(line) }, func() {})
		f.Close()
		ended <- err
	}()
	var want []string
	for i := range 30 {
		if i%10 == 9 {
			if err := w.Rotate(); err != nil {
				t.Fatal(err)
			}
		}
		line := fmt.Sprintf("line %d", i)
		want = append(want, line)
		if _, err := w.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		if i%10 == 8 { // two rotations between two looks are more than anybody can follow
			for len(want) > 0 {
				line := <-got
				if line != want[0] {
					t.Fatalf("%q, want %q", line, want[0])
				}
				want = want[1:]
			}
		}
	}
	for _, line := range want {
		if g := <-got; g != line {
			t.Fatalf("%q, want %q", g, line)
		}
	}
	stop()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

func TestOldLogsAreBoundedAndTheirOwnersOnly(t *testing.T) {
	dir := t.TempDir()
	w, err := openLog(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if w.MaxSize != logMegabytes || w.MaxBackups != logFiles || w.MaxAge != logDays {
		t.Errorf("the bounds are not in force: %+v", w)
	}
	log, flush := newLog(&config.Config{Log: config.Log{Level: "info"}}, w)
	log.Info().Msg("one")
	flush()
	if err := w.Rotate(); err != nil {
		t.Fatal(err)
	}
	log.Warn().Msg("two")
	w.Close()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	var texts []string
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	for _, word := range []string{"one", "two"} {
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, word) }) {
			t.Errorf("%s is lost", word)
		}
	}
}

// What is written after a look and before the file is replaced comes from the old one, and
// what comes later from the new one.
func TestFollowingGoesOnAfterTheLastLinesOfAnOldLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	add("one\ntw")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	steps := []func(){
		func() { add("o\nlast\n"); os.Rename(path, path+".old"); add("new\n") },
		func() { add("newer\n") },
		func() { add("newest\n") },
		func() {},
	}
	var got []string
	err = follow(ctx, path, &f, func(line []byte) { got = append(got, string(line)) }, func() {
		if steps[0](); len(steps) == 1 {
			stop()
			return
		}
		steps = steps[1:]
	})
	if want := []string{"one", "two", "last", "new", "newer", "newest"}; err != context.Canceled || !slices.Equal(got, want) {
		t.Errorf("%v, %q, want %q", err, got, want)
	}
}
