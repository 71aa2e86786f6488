// Package watch tells when a file may have other content than before: it was written,
// replaced, linked to another one, removed, or made. It watches folders, not the file,
// because most editors replace what they edit; and every folder that has a part in the
// path, because each link on the way can be turned.
package watch

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options says how a file is watched. The zero value is good.
type Options struct {
	Settle time.Duration // without news before the file is read; 0 = 150 ms
	Poll   time.Duration // between looks that nothing asked for; 0 = a minute
	// Deaf is told once when the system cannot watch folders. Then looking is all there
	// is, and it is done every two seconds. May be nil.
	Deaf func(error)
}

const (
	usualSettle = 150 * time.Millisecond
	usualPoll   = time.Minute
	deafPoll    = 2 * time.Second
	// longest bounds the wait for an end of the news: somebody may write all the time.
	longest = 2 * time.Second
)

// File calls changed when the file at path has other content than the last time, and
// once at the beginning, until ctx ends. What is there is for changed to read. A file
// that is not a regular one is left alone: to read it may take its content away.
func File(ctx context.Context, path string, o Options, changed func()) {
	w := &watcher{path: path, changed: changed, settle: orElse(o.Settle, usualSettle)}
	poll := orElse(o.Poll, usualPoll)
	notify, err := fsnotify.NewWatcher()
	if err == nil {
		defer notify.Close()
		w.notify, w.add = notify, notify.Add
		err = w.aim()
	}
	if err != nil {
		if o.Deaf != nil {
			o.Deaf(err)
		}
		poll = min(poll, deafPoll)
	}
	w.look()
	w.run(ctx, poll)
}

func orElse(d, usual time.Duration) time.Duration {
	if d == 0 {
		return usual
	}
	return d
}

type watcher struct {
	path    string
	settle  time.Duration
	changed func()
	notify  *fsnotify.Watcher // nil when the system cannot
	add     func(dir string) error
	places  places // that are watched
	last    [sha256.Size]byte
	looked  bool
}

func (w *watcher) run(ctx context.Context, every time.Duration) {
	var events chan fsnotify.Event
	var faults chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(every)
	defer poll.Stop()
	quiet := time.NewTimer(w.settle)
	quiet.Stop()
	var since time.Time // of the first news that was not looked at yet
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if !w.places.concern(e.Name) {
				continue
			}
			if since.IsZero() {
				since = time.Now()
			}
			quiet.Reset(max(0, min(w.settle, longest-time.Since(since))))
			continue
		case <-faults: // some were lost
		case <-quiet.C:
		case <-poll.C:
		}
		since = time.Time{}
		w.aim()
		w.look()
	}
}

// look tells when the content is another one.
func (w *watcher) look() {
	info, err := os.Stat(w.path)
	if err == nil && !info.Mode().IsRegular() {
		return
	}
	now := sum(w.path)
	if w.looked && now == w.last {
		return
	}
	w.changed()
	// What changed read may be newer than what was seen before. If it is, the next look
	// tells once more, whatever is there by then.
	w.last, w.looked = now, sum(w.path) == now
}

// sum is what stands for the content: also for there being none, and for not being
// allowed to see it.
func sum(path string) [sha256.Size]byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return sha256.Sum256([]byte("error: " + err.Error()))
	}
	return sha256.Sum256(append([]byte("text: "), text...))
}

// aimMost is how often aim begins anew when the way is turned under its hands.
const aimMost = 10

// aim watches the folders that have a part in the path as it leads now. What was made or
// turned in a folder before it was watched told nobody, so aim looks again afterwards.
func (w *watcher) aim() (err error) {
	if w.notify == nil {
		return nil
	}
	now := onTheWay(w.path)
	for range aimMost {
		err = w.aimAt(now)
		was := now
		if now = onTheWay(w.path); maps.EqualFunc(now, was, maps.Equal) {
			break
		}
	}
	return err
}

func (w *watcher) aimAt(now places) error {
	var errs []error
	for dir := range now {
		// Also one that is watched: it may be another folder of the same name.
		if err := w.add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for dir := range w.places {
		if now[dir] == nil {
			w.notify.Remove(dir)
		}
	}
	w.places = now
	return errors.Join(errs...)
}

// places are folders, each with the names in it that matter.
type places map[string]map[string]bool

// concern reports whether what happened to name may matter.
func (p places) concern(name string) bool {
	return p[name] != nil || p[filepath.Dir(name)][filepath.Base(name)]
}

func (p places) add(dir, name string) {
	if p[dir] == nil {
		p[dir] = map[string]bool{}
	}
	p[dir][name] = true
}

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// onTheWay finds the places where the way to an absolute path can be turned: every
// link on it, and its end, which is the first thing that is missing.
func onTheWay(path string) places {
	p, at := places{}, "/"
	todo := parts(path)
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil, len(todo) == 0 && info.Mode()&fs.ModeSymlink == 0:
			p.add(at, name)
			return p
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		p.add(at, name)
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return p
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		todo = append(parts(to), todo...)
	}
	return p
}

// parts are the names in a path. One that goes up stays as it is: what is above a link
// depends on where it leads.
func parts(path string) (names []string) {
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}
