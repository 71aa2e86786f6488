package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"mcphubd/test/bench/payload"
	"mcphubd/test/mcptest/proc"
)

// paging stores 1 MB and reads it back to the end; the bytes must be the same.
func paging(kind string) func(*gateway, options, *cell) error {
	return func(g *gateway, _ options, c *cell) error {
		a, err := g.agent()
		if err != nil {
			return err
		}
		defer a.close()
		params, want := g.params("blob", blob(kind, mb)), must(payload.New(kind, mb)).Bytes()
		if err := a.fast(params); err != nil { // the server makes the blob
			return err
		}
		before, began := proc.CPU(g.pid()), time.Now()
		r, err := a.call(params)
		if err != nil {
			return err
		}
		rec, ok := r.receipt()
		if !ok {
			return errors.New("no receipt")
		}
		trips, wire, got := 1, r.wire, make([]byte, 0, mb)
		for done := false; !done; trips++ {
			p, err := a.page(rec.CallID, int64(len(got)))
			if err != nil {
				return err
			}
			got, done, wire = append(got, p.bytes...), p.Done, wire+p.wire
			if len(p.bytes) == 0 && !done {
				return fmt.Errorf("an empty page at %d", len(got))
			}
		}
		c.M["total_ms"] = ms(time.Since(began))
		c.M["cpu_us"] = float64((proc.CPU(g.pid()) - before).Microseconds()) / float64(trips)
		c.M["trips"], c.M["wire_kb"] = float64(trips), float64(wire)/kb
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%d bytes read back differ from the %d sent", len(got), len(want))
		}
		c.Note = "byte-identical"
		return nil
	}
}

// huge stores 1 GiB, which the server generates while it sends it, watches the
// memory of the gateway, and then reads pages at the start, the middle and the end.
func huge(g *gateway, o options, c *cell) error {
	size := int64(gb)
	if o.quick {
		size = 64 * mb
	}
	want := must(payload.New("json", size))
	digest := want.SHA256()
	a, err := g.agent()
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.fast(g.params("blob", blob("json", 8*mb))); err != nil { // warm-up
		return err
	}
	before, began := proc.RSS(g.pid()), time.Now()
	a.timeout = 10 * time.Minute
	r, err := a.call(g.params("blob", blob("json", size)))
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	c.M["seconds"], c.M["mb_s"] = seconds, float64(size)/mb/seconds
	rec, ok := r.receipt()
	if !ok || rec.OriginalBytes != size || rec.SHA256 != digest {
		return fmt.Errorf("the receipt is wrong: %+v", rec)
	}
	for part, from := range map[string]int64{"start_": 0, "middle_": size / 2, "end_": size - 2*mb} {
		took, err := samplePages(a, rec.CallID, want, from, max(50, int(400*o.scale)))
		if err != nil {
			return err
		}
		c.latency(part, took)
	}
	c.M["grown_mb"] = float64(max(0, proc.PeakRSS(g.pid())-before)) / mb
	return nil
}

// samplePages reads n pages at random offsets within 2 MiB and checks each byte.
func samplePages(a *agent, callID string, want *payload.Result, from int64, n int) (took []time.Duration, err error) {
	random := rand.New(rand.NewPCG(1, uint64(from)))
	for range n {
		at := from + random.Int64N(2*mb)
		t := time.Now()
		p, err := a.page(callID, at)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(t))
		expect := make([]byte, len(p.bytes))
		k, _ := want.ReadAt(expect, at)
		if k == 0 || k != len(p.bytes) || !bytes.Equal(expect, p.bytes) || p.TotalBytes != want.Size {
			return nil, fmt.Errorf("the page at %d is not what was sent there", at)
		}
	}
	return took, nil
}

func must(r *payload.Result, err error) *payload.Result {
	if err != nil {
		panic(err)
	}
	return r
}
