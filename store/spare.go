package store

import (
	"runtime"
	"sync"
)

// spares counts who waits for the disk, in the whole process.
var spares struct {
	sync.Mutex
	lent  int
	usual int // GOMAXPROCS while none is lent
}

// lend gives goroutines one more processor while somebody waits for the disk, until back is
// called. A thread that sleeps in a system call takes along the one that it ran on, until
// the runtime notices, which may take 10 ms: where there are two, calls wait for that. To
// lend and to give back stops the world for a moment and empties every sync.Pool, so it is
// only for what flushes, and that is done seldom.
func lend() (back func()) {
	spares.Lock()
	defer spares.Unlock()
	if spares.lent++; spares.lent == 1 {
		spares.usual = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(spares.usual + 1)
	}
	return sync.OnceFunc(func() {
		spares.Lock()
		defer spares.Unlock()
		if spares.lent--; spares.lent == 0 {
			runtime.GOMAXPROCS(spares.usual)
		}
	})
}
