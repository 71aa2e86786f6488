package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// seen watches path and returns what its content was each time it was told of.
func seen(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	told, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		// An hour: what these tests see was told by the system, not found by looking.
		File(ctx, path, Options{Settle: 20 * time.Millisecond, Poll: time.Hour, Deaf: func(err error) { t.Error(err) }}, func() {
			b, err := os.ReadFile(path)
			if err != nil {
				b = []byte("missing")
			}
			told <- string(b)
		})
	}()
	t.Cleanup(func() { stop(); <-done })
	return told
}

func expect(t *testing.T, told <-chan string, want string) {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case got := <-told:
			if got == want {
				return
			}
		case <-timeout:
			t.Fatalf("nobody was told of %q", want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	must(t, os.Rename(path+".new", path))
}

func TestEveryWayToChangeAFileIsSeen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, "one")
	told := seen(t, path)
	expect(t, told, "one")
	write(t, path, "two")
	expect(t, told, "two")
	replace(t, path, "three")
	expect(t, told, "three")
	must(t, os.Rename(path, path+"~")) // as some editors keep the old one
	expect(t, told, "missing")
	write(t, path, "four")
	expect(t, told, "four")
	must(t, os.Remove(path))
	expect(t, told, "missing")
	replace(t, path, "five")
	expect(t, told, "five")
}

func TestLinksOnTheWayMayBeTurned(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"v1", "v2", "elsewhere"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o700))
		write(t, filepath.Join(dir, d, "conf"), "of "+d)
	}
	turn := func(to, link string) {
		t.Helper()
		must(t, os.Symlink(to, filepath.Join(dir, "new")))
		must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, link)))
	}
	turn("v1", "data") // as a mounted set of files is: a -> data/conf, data -> v1
	turn("data/conf", "a")
	told := seen(t, filepath.Join(dir, "a"))
	expect(t, told, "of v1")
	turn("v2", "data")
	expect(t, told, "of v2")
	replace(t, filepath.Join(dir, "v2", "conf"), "of v2, replaced")
	expect(t, told, "of v2, replaced")
	turn(filepath.Join(dir, "elsewhere", "conf"), "a")
	expect(t, told, "of elsewhere")
	write(t, filepath.Join(dir, "elsewhere", "conf"), "written there")
	expect(t, told, "written there")
}

func TestAFolderMayComeLaterAndGo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x", "y", "conf")
	told := seen(t, path)
	expect(t, told, "missing")
	for range 2 {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		write(t, path, "here")
		expect(t, told, "here")
		must(t, os.RemoveAll(filepath.Join(dir, "x")))
		expect(t, told, "missing")
	}
}

func TestTheSameContentIsNotToldTwice(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, "one")
	told := seen(t, path)
	expect(t, told, "one")
	replace(t, path, "one")
	must(t, os.Chtimes(path, time.Now(), time.Now()))
	write(t, filepath.Join(dir, "b"), "another file")
	replace(t, path, "two")
	if got := <-told; got != "two" {
		t.Errorf("told of %q", got)
	}
}

// TestWhatIsMadeBeforeItsFolderIsWatchedIsNotMissed: nobody is told of it.
func TestWhatIsMadeBeforeItsFolderIsWatchedIsNotMissed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x", "y", "conf")
	notify, err := fsnotify.NewWatcher()
	must(t, err)
	defer notify.Close()
	w := &watcher{path: path, notify: notify}
	w.add = func(folder string) error {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		return notify.Add(folder)
	}
	must(t, w.aim())
	if !w.places.concern(path) {
		t.Errorf("watched is %v", w.places)
	}
}

// TestWhatIsToldIsNeverAnOlderContentForGood: whoever is told reads the file a little later
// than it was looked at.
func TestWhatIsToldIsNeverAnOlderContentForGood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "one")
	next, read := []string{"two", "one"}, ""
	w := &watcher{path: path}
	w.changed = func() {
		if len(next) > 0 {
			write(t, path, next[0])
			next = next[1:]
		}
		b, err := os.ReadFile(path)
		must(t, err)
		read = string(b)
	}
	w.look()
	write(t, path, "one") // as it was looked at, and not as it was read
	w.look()
	if read != "one" {
		t.Errorf("read was %q last, the file holds one", read)
	}
}

// TestWithoutTheSystemsHelpLookingIsEnough: there may be no watches left.
func TestWithoutTheSystemsHelpLookingIsEnough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "one")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	told := make(chan struct{}, 100)
	w := &watcher{path: path, changed: func() { told <- struct{}{} }, settle: time.Millisecond}
	w.look()
	<-told
	go w.run(ctx, 5*time.Millisecond)
	write(t, path, "two")
	<-told
}
