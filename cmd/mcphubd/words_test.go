package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestSizesAndTimesAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KB", 184320: "180 KB", 3 << 29: "1.5 GB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{99_999: "99999", 100_000: "100.0k", 2_500_000_000: "2500.0M"} {
		if got := countText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1500 * time.Microsecond: "2ms", 1500 * time.Millisecond: "1.5s", 59 * time.Second: "59s",
		61 * time.Second: "1m01s", 25*time.Hour + time.Minute: "25h01m", 73 * time.Hour: "3d01h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestSinceTakesSpansAndDates(t *testing.T) {
	for given, want := range map[string]time.Duration{"90m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour} {
		var f sinceFlag
		before := time.Now()
		if err := f.UnmarshalText([]byte(given)); err != nil {
			t.Error(err)
		}
		if f.Before(before.Add(-want)) || f.After(time.Now().Add(-want)) {
			t.Errorf("%s: %v", given, f)
		}
	}
	var f sinceFlag
	if err := f.UnmarshalText([]byte("2026-03-01")); err != nil || f.Format(time.DateOnly) != "2026-03-01" {
		t.Errorf("a date: %v, %v", f, err)
	}
	for _, wrong := range []string{"", "7", "-7d", "d", "yesterday", "NaNd", "1e9d", "-5m"} {
		if err := f.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q passes for %v", wrong, f)
		}
	}
}

// What a server is called, and what it says, reaches a terminal as text only.
func TestNothingThatIsShownIsObeyedByATerminal(t *testing.T) {
	const hostile = "a\x1b[31mred\x1b]0;title\x07\x9b2J\r\nb\u202eltr\xff"
	var out bytes.Buffer
	s := &screen{w: bufio.NewWriter(&out), colour: false}
	s.table([]cell{text(hostile), text(hostile)})
	s.line(text(hostile))
	s.pairs([2]string{"name", hostile})
	if _, err := s.Write([]byte("first\n" + hostile + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(out.String(), "\x1b\x07\r\u009b\u202e"); i >= 0 {
		t.Errorf("%q", out.String()[i:])
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d lines: %q", n, out.String())
	}
}

func TestColumnsStandUnderEachOtherWithAndWithoutColour(t *testing.T) {
	show := func(colour bool) string {
		var out bytes.Buffer
		s := &screen{w: bufio.NewWriter(&out), colour: colour}
		s.table(heads("NAME", ">N", "STATE", "CAUSE"),
			[]cell{text("größer"), number("7"), painted("ready", good), text("")},
			[]cell{text("b"), number("1234"), painted("", bad), text("why")})
		s.close()
		return out.String()
	}
	want := "NAME       N  STATE  CAUSE\ngrößer     7  ready\nb       1234         why\n"
	if got := show(false); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	coloured := show(true)
	if !strings.Contains(coloured, "\x1b[32mready\x1b[0m") {
		t.Errorf("no colour: %q", coloured)
	}
	for _, p := range []paint{head, good, bad, faint} {
		coloured = strings.ReplaceAll(coloured, "\x1b["+string(p)+"m", "")
	}
	if got := strings.ReplaceAll(coloured, "\x1b[0m", ""); got != want {
		t.Errorf("with colour the columns move:\n%s", got)
	}
}
