package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mcphubd/test/mcptest/proc"
)

// echoFor lets an agent of its own echo at a steady pace and times it.
func echoFor(g *gateway, d time.Duration) (took []time.Duration, err error) {
	a, err := g.agent()
	if err != nil {
		return nil, err
	}
	defer a.close()
	params := g.params("echo", echoArgs)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		t := time.Now()
		if err := a.fast(params); err != nil {
			return took, err
		}
		took = append(took, time.Since(t))
	}
	return took, nil
}

// besideSleep echoes while another agent's call of the same server waits.
func besideSleep(g *gateway, o options, c *cell) error {
	a, err := g.agent()
	if err != nil {
		return err
	}
	defer a.close()
	span := scaled(5*time.Second, o)
	slept := make(chan error, 1)
	go func() { slept <- a.fast(g.params("sleep", fmt.Sprintf(`{"ms":%d}`, span.Milliseconds()))) }()
	took, err := echoFor(g, span*8/10)
	if err != nil {
		return err
	}
	c.latency("", took)
	return <-slept
}

// besideLoop echoes while another agent gets 4 MB from the same server, over and over.
func besideLoop(g *gateway, o options, c *cell) error {
	a, err := g.agent()
	if err != nil {
		return err
	}
	defer a.close()
	params := g.params("blob", blob("json", 4*mb))
	if err := a.fast(params); err != nil {
		return err
	}
	stop, looped, loops := make(chan struct{}), make(chan error, 1), 0
	go func() {
		for {
			select {
			case <-stop:
				looped <- nil
				return
			default:
			}
			if err := a.fast(params); err != nil {
				looped <- err
				return
			}
			loops++
		}
	}()
	took, err := echoFor(g, scaled(5*time.Second, o))
	close(stop)
	if err := errors.Join(err, <-looped); err != nil {
		return err
	}
	c.latency("", took)
	c.M["loops"], c.M["peak_mb"] = float64(loops), float64(proc.PeakRSS(g.pid()))/mb
	return nil
}

// idle measures what the gateway costs when nobody uses it.
func idle(g *gateway, o options, c *cell) error {
	time.Sleep(scaled(2*time.Second, o)) // let the start settle
	before, span := proc.CPU(g.pid()), scaled(10*time.Second, o)
	time.Sleep(span)
	c.M["idle_cpu"] = ms(proc.CPU(g.pid())-before) / span.Seconds()
	c.M["rss_mb"] = float64(proc.RSS(g.pid())) / mb
	c.M["threads"] = float64(proc.Threads(g.pid()))
	return nil
}

// crash kills the server while one agent waits for it and another wants to use it.
func crash(g *gateway, _ options, c *cell) error {
	victim, err := g.agent()
	if err != nil {
		return err
	}
	defer victim.close()
	r, err := victim.call(g.params("pid", `{}`))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(r.text)
	if err != nil || !strings.HasSuffix(proc.Cmdline(pid), "fakemcp") {
		return fmt.Errorf("no server with process id %q", r.text)
	}
	other, err := g.agent()
	if err != nil {
		return err
	}
	defer other.close()
	type end struct {
		at  time.Time
		err error
	}
	told := make(chan end, 1)
	go func() {
		_, err := victim.call(g.params("sleep", `{"ms":20000}`))
		told <- end{time.Now(), err}
	}()
	time.Sleep(200 * time.Millisecond) // the call is on its way
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	for params := g.params("echo", echoArgs); other.fast(params) != nil; time.Sleep(2 * time.Millisecond) {
		if time.Since(killed) > 30*time.Second {
			return errors.New("not usable again within 30 s")
		}
	}
	c.M["again_ms"] = ms(time.Since(killed))
	e := <-told
	if e.err == nil {
		return errors.New("the call that was killed is said to have succeeded")
	}
	c.M["told_ms"], c.Note = ms(e.at.Sub(killed)), e.err.Error()
	return nil
}

func scaled(d time.Duration, o options) time.Duration {
	return max(500*time.Millisecond, time.Duration(float64(d)*o.scale))
}
