package actors

import (
	"math"
	"math/bits"
	"time"
)

// window is the time over which a meter looks back: the one that runs, and the one
// before it.
const window = time.Minute

// meter tells how often something happens and how long it takes, over the last
// minute or two. It takes constant room; whoever owns it locks it.
type meter struct {
	began       int64 // unix nanoseconds of the window that runs
	now, before spread
}

// spread counts durations in classes that are a quarter of a power of two wide.
type spread struct {
	n       int64
	classes [4 * 44]uint32
}

func (m *meter) add(at time.Time, took time.Duration) {
	m.turn(at)
	m.now.n++
	m.now.classes[classOf(took)]++
}

// turn begins a new window when the one that runs is over.
func (m *meter) turn(at time.Time) {
	now := at.UnixNano()
	switch passed := time.Duration(now - m.began); {
	case passed < window:
		return
	case passed < 2*window:
		m.before, m.began = m.now, m.began+int64(window)
	default:
		m.before, m.began = spread{}, now
	}
	m.now = spread{}
}

// Pace is what a meter shows.
type Pace struct {
	PerMinute float64       `json:"perMinute"`
	P50       time.Duration `json:"p50Ns"`
	P95       time.Duration `json:"p95Ns"`
}

func (m *meter) read(at time.Time) Pace {
	m.turn(at)
	if m.now.n+m.before.n == 0 {
		return Pace{}
	}
	passed := float64(at.UnixNano()-m.began) / float64(window)
	rate := float64(m.now.n) + float64(m.before.n)*(1-passed)
	p := Pace{PerMinute: math.Round(rate*10) / 10}
	both := m.now
	both.plus(&m.before)
	p.P50, p.P95 = both.quantiles()
	return p
}

func (s *spread) plus(o *spread) {
	s.n += o.n
	for i, n := range o.classes {
		s.classes[i] += n
	}
}

// quantiles are zero where nothing was counted.
func (s *spread) quantiles() (p50, p95 time.Duration) {
	if s.n == 0 {
		return 0, 0
	}
	n := float64(s.n)
	half, most, sum := int64(math.Ceil(0.50*n)), int64(math.Ceil(0.95*n)), int64(0)
	for i := range s.classes {
		sum += int64(s.classes[i])
		if p50 == 0 && sum >= half {
			p50 = middleOf(i)
		}
		if sum >= most {
			return p50, middleOf(i)
		}
	}
	return p50, 0
}

func classOf(d time.Duration) int {
	n := uint64(max(d, 4))
	e := bits.Len64(n)
	return min(e*4+int(n>>(e-3)&3), len(spread{}.classes)-1)
}

// middleOf is the middle of a class.
func middleOf(class int) time.Duration {
	e, quarter := class/4, class%4
	low := float64(uint64(1) << (e - 1))
	return time.Duration(low * (1 + (float64(quarter)+0.5)/4))
}
