package store

import (
	"runtime"
	"testing"
)

func TestWhatIsLentIsGivenBack(t *testing.T) {
	usual := runtime.GOMAXPROCS(0)
	one, two := lend(), lend()
	for _, step := range []struct {
		do   func()
		want int
	}{{func() {}, usual + 1}, {one, usual + 1}, {one, usual + 1}, {two, usual}, {two, usual}} {
		step.do()
		if got := runtime.GOMAXPROCS(0); got != step.want {
			t.Errorf("%d processors, want %d", got, step.want)
		}
	}

	w, _ := open(t)
	for range 3 { // the second and third transaction find a log that starts again
		put(t, w, noise(1<<20))
		check(t, w.Copy())
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Fatalf("%d processors are left of %d", got, usual)
		}
	}
}
