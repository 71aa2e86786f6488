// Command bench measures mcphubd beside the raw relay (nullgw) in one run and
// prints a markdown table of medians, each with its ratio to the relay:
//
//	go run ./test/bench/cmd/bench                     everything, three repetitions
//	go run ./test/bench/cmd/bench -s echo-1,1m -n 5   some scenarios
//	go run ./test/bench/cmd/bench -down http          servers over HTTP, beside a raw HTTP relay
//	go run ./test/bench/cmd/bench -quick              one short repetition, to see that it runs
//
// It builds what it needs into a temp directory, listens on loopback only, and
// starts a fresh gateway in a fresh home for every cell. Repetitions are
// interleaved, so that the noise of the machine hits both alike: believe the
// ratios, not the absolute values. test/bench/README.md says how to read them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are what the flags say.
type options struct {
	only  string
	reps  int
	scale float64
	out   string
	quick bool
	down  string
}

// cell is one measured repetition of a scenario on a target.
type cell struct {
	Scenario string             `json:"scenario"`
	Target   string             `json:"target"`
	Rep      int                `json:"rep"`
	At       time.Time          `json:"at"`
	M        map[string]float64 `json:"m,omitempty"`
	Down     string             `json:"down"` // how servers are reached: stdio or http
	Note     string             `json:"note,omitempty"`
	Err      string             `json:"err,omitempty"`
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.only, "s", "", "comma list of scenarios (default all): "+strings.Join(ids(), " "))
	flag.IntVar(&o.reps, "n", 3, "repetitions")
	flag.Float64Var(&o.scale, "scale", 1, "scales the number of calls and the times")
	flag.StringVar(&o.out, "o", "", "write every cell as JSON to this file")
	flag.BoolVar(&o.quick, "quick", false, "one repetition, a tenth of the calls, 64 MiB in place of 1 GiB, a tenth of what is read")
	flag.StringVar(&o.down, "down", "stdio", "how servers are reached: stdio, or http beside a relay from HTTP to HTTP")
	flag.Parse()
	if o.quick {
		o.reps, o.scale = 1, o.scale/10
	}
	if err := check(o); err != nil {
		log.Fatal(err)
	}
	cells, err := runAll(o)
	if err == nil && o.out != "" {
		err = save(o.out, cells)
	}
	if err != nil {
		log.Fatal(err)
	}
	if o.quick {
		fmt.Println("\nA quick run, with 64 MiB in place of 1 GiB: not to be quoted.")
	}
	printTable(os.Stdout, cells)
	for _, c := range cells {
		if c.Err != "" {
			os.Exit(1)
		}
	}
}

func ids() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.id)
	}
	return names
}

func check(o options) error {
	for _, name := range strings.Split(o.only, ",") {
		if name != "" && !slices.Contains(ids(), name) {
			return fmt.Errorf("no scenario %q; there are %s", name, strings.Join(ids(), " "))
		}
	}
	if o.down != "stdio" && o.down != overHTTP {
		return fmt.Errorf("-down %s: it is stdio or http", o.down)
	}
	return nil
}

// runAll measures scenario by scenario, and within one repetition by repetition.
func runAll(o options) (cells []cell, err error) {
	bin, err := build()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	defer cleanOnInterrupt(bin)()
	for _, s := range scenarios {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), s.id) {
			continue
		}
		if s.childOnly && o.down == overHTTP {
			continue
		}
		for rep := 1; rep <= o.reps; rep++ {
			for _, t := range targets {
				if t.name == floorName && s.noFloor {
					continue
				}
				c := run(o, bin, s, t)
				c.Rep = rep
				fmt.Fprintln(os.Stderr, c)
				cells = append(cells, c)
			}
		}
	}
	return cells, nil
}

// cleanOnInterrupt leaves nothing behind when the user has had enough: gateways
// die with us, their servers with them, and all files are below dir.
func cleanOnInterrupt(dir string) (forget func()) {
	enough := make(chan os.Signal, 1)
	signal.Notify(enough, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, more := <-enough; more {
			_ = os.RemoveAll(dir)
			os.Exit(130)
		}
	}()
	return func() {
		signal.Stop(enough)
		close(enough)
	}
}

// run measures one cell.
func run(o options, bin string, s scenario, t *target) cell {
	c := cell{Scenario: s.id, Target: t.name, Down: o.down, At: time.Now(), M: map[string]float64{}}
	fail := func(err error) cell {
		c.Err = err.Error()
		return c
	}
	g, err := startGateway(t, bin, o.down, max(1, s.servers))
	if err != nil {
		return fail(err)
	}
	defer g.stop()
	list, ready, err := g.awaitReady()
	if err != nil {
		return fail(err)
	}
	c.M["list_ms"], c.M["ready_ms"] = ms(list), ms(ready)
	if err := s.run(g, o, &c); err != nil {
		return fail(fmt.Errorf("%w\n%s", err, g.tail()))
	}
	return c
}

func (c cell) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %-8s #%d", c.Scenario, c.Target, c.Rep)
	for _, k := range sortedKeys(c.M) {
		fmt.Fprintf(&b, " %s=%s", k, number(c.M[k]))
	}
	if c.Note != "" {
		fmt.Fprintf(&b, " (%s)", c.Note)
	}
	if c.Err != "" {
		fmt.Fprintf(&b, " ERROR %s", c.Err)
	}
	return b.String()
}

func save(path string, cells []cell) error {
	b, err := json.MarshalIndent(cells, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
