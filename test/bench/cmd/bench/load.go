package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mcphubd/test/bench/payload"
	"mcphubd/test/mcptest/proc"
)

// load lets agents call one tool again and again, all at once. Each of them is
// a connection of its own. size is that of the result, 0 for a small one.
func load(agents, calls int, tool, args string, size int64) func(*gateway, options, *cell) error {
	return func(g *gateway, o options, c *cell) error {
		calls := max(3, int(float64(calls)*o.scale))
		params := g.params(tool, args)
		crowd := make([]*agent, agents)
		for i := range crowd {
			a, err := g.agent()
			if err != nil {
				return fmt.Errorf("agent %d: %w", i, err)
			}
			defer a.close()
			crowd[i] = a
		}
		if err := warm(g, crowd[0], params, size, c); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
		before, began := proc.CPU(g.pid()), time.Now()
		took, err := storm(crowd, calls, params)
		if err != nil {
			return err
		}
		c.M["calls_s"] = float64(len(took)) / time.Since(began).Seconds()
		c.M["cpu_us"] = float64((proc.CPU(g.pid()) - before).Microseconds()) / float64(len(took))
		c.M["peak_mb"] = float64(proc.PeakRSS(g.pid())) / mb
		c.latency("", took)
		return nil
	}
}

// warm makes some calls that are not counted and looks at one of them: a large
// result must be a receipt with the right facts, or whole.
func warm(g *gateway, a *agent, params string, size int64, c *cell) error {
	r, err := a.call(params)
	if err != nil {
		return err
	}
	if size > 0 {
		want, _ := payload.New("json", size)
		rec, stored := r.receipt()
		switch {
		case stored && (rec.OriginalBytes != size || rec.SHA256 != want.SHA256()):
			return fmt.Errorf("the receipt is wrong: %+v", rec)
		case stored != (g.stores && size > 32*kb):
			return fmt.Errorf("stored is %v for %d bytes", stored, size)
		case !stored && string(r.raw) != string(want.Bytes()):
			return errors.New("the result was changed on its way")
		}
		c.Note = fmt.Sprintf("%d B on the wire", r.wire)
	}
	for range min(50, 8*mb/max(1, size)) {
		if err := a.fast(params); err != nil {
			return err
		}
	}
	return nil
}

// storm returns how long every call took, or the first error.
func storm(crowd []*agent, calls int, params string) (all []time.Duration, err error) {
	var wg sync.WaitGroup
	took := make([][]time.Duration, len(crowd))
	errs := make([]error, len(crowd))
	for i, a := range crowd {
		took[i] = make([]time.Duration, 0, calls)
		wg.Go(func() {
			for range calls {
				t := time.Now()
				if err := a.fast(params); err != nil {
					errs[i] = fmt.Errorf("agent %d: %w", i, err)
					return
				}
				took[i] = append(took[i], time.Since(t))
			}
		})
	}
	wg.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}

// latency adds p50 and p99 under names that start with prefix.
func (c *cell) latency(prefix string, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	c.M[prefix+"p50_ms"] = ms(took[len(took)/2])
	c.M[prefix+"p99_ms"] = ms(took[min(len(took)-1, len(took)*99/100)])
}
