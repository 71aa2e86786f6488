package main

import (
	"testing"
	"time"
)

func TestGarbageGathersOnlyInABusyDaemonThatIsSmall(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		inUse uint64
		since time.Duration
		want  int
	}{
		{4 * mb, 50 * time.Millisecond, 400},
		{8 * mb, 50 * time.Millisecond, 200},
		{9 * mb, 50 * time.Millisecond, 175},
		{100 << 10, 50 * time.Millisecond, 1000},
		{16 * mb, 50 * time.Millisecond, usualGC},
		{500 * mb, 50 * time.Millisecond, usualGC},
		{4 * mb, 2 * time.Minute, usualGC},
		{0, 0, usualGC},
	} {
		got := gcPercent(c.inUse, c.since)
		if got != c.want {
			t.Errorf("%d bytes in use, %v after the last one: %d%%, want %d%%", c.inUse, c.since, got, c.want)
		}
		if c.inUse > 0 && got > usualGC && uint64(got)*c.inUse/100 > collectorRoom {
			t.Errorf("%d bytes in use: %d%% are more than there is room for", c.inUse, got)
		}
	}
}
