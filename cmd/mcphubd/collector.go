package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectorRoom is how many bytes of garbage a busy daemon may gather before they are
	// collected. Its heap is so small that Go's own measure, as much as is in use, has
	// it collect dozens of times a second, for a tenth and more of all it does.
	collectorRoom = 16 << 20
	// busyWithin: collections that follow each other sooner are the mark of a busy daemon.
	busyWithin = time.Second
	usualGC    = 100 // Go's own measure, in percent of what is in use
	// startTakes is how long a daemon is busy with itself: then it gives back what only the
	// start needed.
	startTakes = time.Second
)

// collector sets, after each collection, how much garbage the next one waits for. An
// idle daemon keeps to Go's own measure, and so does one that has more in use than
// collectorRoom: its memory does not grow by this.
type collector struct {
	began   time.Time
	last    time.Time
	percent int
	inUse   []metrics.Sample
}

// paceCollector goes on for as long as the process lives. A GOGC of the user's wins.
func paceCollector(gogc string) {
	if gogc != "" {
		return
	}
	time.AfterFunc(startTakes, debug.FreeOSMemory)
	now := time.Now()
	c := &collector{began: now, last: now, percent: usualGC, inUse: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}}
	runtime.SetFinalizer(c, (*collector).collected)
}

// collected is called by the runtime after a collection: nothing refers to c, so each
// one finds it.
func (c *collector) collected() {
	now := time.Now()
	metrics.Read(c.inUse)
	sum := uint64(0)
	for _, s := range c.inUse {
		sum += s.Value.Uint64()
	}
	since := now.Sub(c.last)
	if now.Sub(c.began) < startTakes {
		since = busyWithin
	}
	if p := gcPercent(sum, since); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
	c.last = now
	runtime.SetFinalizer(c, (*collector).collected)
}

// gcPercent is how much garbage to wait for, in percent of the bytes in use, in steps
// of a quarter: a change of it stops the world for a moment.
func gcPercent(inUse uint64, since time.Duration) int {
	const step = usualGC / 4
	if since >= busyWithin || inUse == 0 || inUse >= collectorRoom {
		return usualGC
	}
	return min(int(collectorRoom*usualGC/inUse)/step*step, 10*usualGC)
}
