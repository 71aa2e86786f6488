package downstream

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// logged is what the log has of what a server wrote to stderr in these pieces.
func logged(mask masker, pieces ...string) string {
	var out bytes.Buffer
	t := tail{mask: mask, log: zerolog.New(&out), life: new(atomic.Int64), drained: make(chan struct{})}
	for _, p := range pieces {
		if p == "" {
			time.Sleep(2 * time.Second)
			continue
		}
		t.take([]byte(p))
	}
	t.drain(strings.NewReader("")) // it ends
	return out.String()
}

func TestStderrIsLoggedInWholeLines(t *testing.T) {
	got := logged(masker{}, "one\ntw", "o\r\n\n", "thr", "ee")
	want := `{"level":"debug","stderr":"one"}` + "\n" + `{"level":"debug","stderr":"two"}` + "\n" + `{"level":"debug","stderr":"three"}` + "\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestC20AFloodOnStderrIsCountedInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := logged(masker{}, strings.Repeat("flood\n", 1000), "", "calm\n")
		if n := strings.Count(got, `"flood"`); n != linesPerS {
			t.Errorf("%d lines of the flood, want %d", n, linesPerS)
		}
		if want := fmt.Sprintf(`"lines":%d`, 1000-linesPerS); !strings.Contains(got, want) || !strings.Contains(got, `"calm"`) {
			t.Errorf("no %s or what came later in\n%s", want, got)
		}
	})
}

func TestNoHalfOfASecretIsLoggedFromStderr(t *testing.T) {
	const secret = "hunter2-and-more-of-it"
	mask := newMasker(map[string]string{"KEY": secret})
	for before := range 2*lineChars + 4*len(secret) {
		line := strings.Repeat(".", before) + secret + strings.Repeat("x", 5000) + "\n"
		cut := before + len(secret)/2 // between two reads
		if got := logged(mask, line[:cut], line[cut:]); strings.Contains(got, secret[:5]) || strings.Contains(got, "xxx") != (before+3+3 <= lineChars) {
			t.Fatalf("after %d: %s", before, got)
		}
		many := strings.Repeat(secret, before) + "\n"
		if got := logged(mask, many); strings.Contains(got, secret[:5]) {
			t.Fatalf("%d times: %s", before, got)
		}
	}
}

// TestC44TheKeptEndOfStderrBeginsWithNoHalfOfASecret, wherever in one it was cut.
func TestC44TheKeptEndOfStderrBeginsWithNoHalfOfASecret(t *testing.T) {
	const secret = "hunter2-and-more-of-it"
	mask := newMasker(map[string]string{"KEY": secret})
	for shift := range 2 * len(secret) {
		tl := &tail{mask: mask, log: zerolog.Nop(), life: &atomic.Int64{}}
		tl.take([]byte(strings.Repeat(".", shift)))
		for !tl.cut {
			tl.take([]byte(strings.Repeat(secret, 300)))
		}
		if got := tl.text(); strings.Contains(got, secret[len(secret)-3:]) {
			t.Fatalf("shifted by %d it begins with %.60q", shift, got)
		}
	}
}

func TestC20ALastLineLongerThanWhatIsKeptIsShownAsFarAsItIs(t *testing.T) {
	const secret = "hunter2-and-more-of-it"
	mask := newMasker(map[string]string{"KEY": secret})
	for _, end := range []string{"", "\n", "\r\n\n"} {
		for shift := range 2 * len(secret) {
			tl := &tail{mask: mask, log: zerolog.Nop(), life: &atomic.Int64{}}
			tl.take([]byte(strings.Repeat(".", shift)))
			for !tl.cut {
				tl.take([]byte(strings.Repeat(secret, 300)))
			}
			tl.take([]byte("boom" + end))
			text, last := tl.text(), tl.last()
			if !strings.HasSuffix(text, "boom"+end) || last == "" {
				t.Fatalf("with %q at the end it ends with %q, and an error says %q", end, text[max(len(text)-20, 0):], last)
			}
			if strings.Contains(text+last, secret[len(secret)-3:]) {
				t.Fatalf("shifted by %d it begins with %.60q", shift, text)
			}
		}
	}
}
