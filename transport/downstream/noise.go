package downstream

import (
	"sync"
	"time"
)

// noise counts lines on stdout that are no message, and keeps the first of them.
type noise struct {
	mask masker
	tell func(count int64, last string)

	mu      sync.Mutex
	count   int64
	samples []string
	told    time.Time
}

const (
	maxSamples  = 5
	sampleChars = 200
)

// add counts a line. A flood of them is told ten times a second, no more.
func (n *noise) add(line []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	text := ""
	if len(n.samples) < maxSamples {
		text = n.mask.show(line, sampleChars)
		n.samples = append(n.samples, text)
	}
	now := time.Now()
	if n.tell == nil || n.count > 64 && now.Sub(n.told) < 100*time.Millisecond {
		return
	}
	n.told = now
	if text == "" {
		text = n.mask.show(line, sampleChars)
	}
	n.tell(n.count, text)
}

// Noise returns how many lines on stdout were no message, and the first few.
func (x *exchange) Noise() (count int64, samples []string) {
	x.noise.mu.Lock()
	defer x.noise.mu.Unlock()
	return x.noise.count, append([]string(nil), x.noise.samples...)
}
