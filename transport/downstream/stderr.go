package downstream

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	tailBytes  = 64 << 10 // of stderr that are kept
	errorChars = 500      // of stderr in an error text
	linesPerS  = 20       // of stderr in the log
	lineChars  = 300      // of it that are logged
)

// tail drains stderr for as long as the child lives and keeps the end of it.
type tail struct {
	mask masker
	log  zerolog.Logger
	life *atomic.Int64

	drained chan struct{} // closed at the end

	mu  sync.Mutex
	buf []byte // at most twice tailBytes, and what one read brings
	cut bool   // bytes before buf are gone

	part    []byte    // of a line that has no end yet, for the log
	second  time.Time // of the log's rate limit
	logged  int       // lines in it
	skipped int       // lines that the limit left out and nobody was told of
}

// drain reads r to its end.
func (t *tail) drain(r io.Reader) {
	defer close(t.drained)
	p := make([]byte, 8<<10)
	for {
		n, err := r.Read(p)
		if n > 0 {
			t.life.Store(time.Now().UnixNano())
			t.take(p[:n])
		}
		if err != nil {
			t.report([]byte("\n"))
			return
		}
	}
}

func (t *tail) take(p []byte) {
	t.mu.Lock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailBytes {
		t.buf = t.buf[:copy(t.buf, t.buf[len(t.buf)-tailBytes:])]
		t.cut = true
	}
	t.mu.Unlock()
	t.report(p)
}

// report logs the lines that came, whole ones: half a line may hold half a secret.
func (t *tail) report(p []byte) {
	if t.log.GetLevel() > zerolog.DebugLevel || zerolog.GlobalLevel() > zerolog.DebugLevel {
		t.part = nil
		return
	}
	most := 4*lineChars + 2*t.mask.longest() // more than show looks at
	for piece := range bytes.Lines(p) {
		t.part = append(t.part, piece[:min(len(piece), max(most-len(t.part), 0))]...)
		if piece[len(piece)-1] == '\n' {
			t.line(t.mask.show(t.part, lineChars))
			t.part = t.part[:0]
		}
	}
}

// line logs one line, as far as the rate limit allows.
func (t *tail) line(text string) {
	if text == "" {
		return
	}
	if now := time.Now(); now.Sub(t.second) > time.Second {
		if t.skipped > 0 {
			t.log.Debug().Int("lines", t.skipped).Msg("stderr: more than the log takes was left out")
		}
		t.second, t.logged, t.skipped = now, 0, 0
	}
	if t.logged++; t.logged > linesPerS {
		t.skipped++
		return
	}
	t.log.Debug().Str("stderr", text).Send()
}

// text is the kept end of stderr: whole lines where any say something, valid UTF-8,
// configured values hidden.
func (t *tail) text() string {
	t.mu.Lock()
	b := t.buf[max(0, len(t.buf)-tailBytes):]
	cut := t.cut || len(b) < len(t.buf)
	s := string(b)
	t.mu.Unlock()
	s = t.mask.mask(s)
	if cut {
		if _, after, _ := strings.Cut(s, "\n"); strings.TrimSpace(after) != "" {
			s = after
		} else { // half a secret may stand at the cut
			s = s[min(len(s), t.mask.longest()):]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// last is the end of stderr in one line for an error text.
func (t *tail) last() string {
	lines := strings.FieldsFunc(t.text(), func(r rune) bool { return r == '\n' || r == '\r' })
	out := ""
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		switch {
		case line == "":
			continue
		case out == "":
			out = clip(line, errorChars)
		case len(line)+3+len(out) > errorChars:
			return out
		default:
			out = line + " | " + out
		}
	}
	return out
}

// show makes bytes of a server fit for a log line or an error text. They are hidden
// before they are cut, so that no half of a secret is left at the end.
func (m masker) show(b []byte, n int) string {
	b = bytes.TrimSpace(b)
	window := b[:min(len(b), 4*n+m.longest())]
	s := m.mask(strings.ToValidUTF8(string(window), "\uFFFD"))
	if len(window) < len(b) {
		s = strings.ToValidUTF8(s[:max(len(s)-m.longest(), 0)], "")
	}
	return clip(s, n)
}

// clip cuts s after n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
