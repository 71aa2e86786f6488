// Command soak is a bad week in a few minutes: many agents, over HTTP and over bridges,
// of both eras, work on ten servers, of which two crash, one is slow and one shouts,
// while the configuration changes and the daemon is ended and killed. It checks every
// answer against its question and reads every stored result back. At the end nothing may
// be wrong, lost or left over; it prints its figures, and exits with 1 if anything is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"mcphubd/test/mcptest"
)

func main() {
	mcptest.Main() // as a fake server it does not return
	length := flag.Duration("for", 2*time.Minute, "how long the agents work")
	agents := flag.Int("agents", 64, "how many there are")
	keep := flag.Bool("keep", false, "keep the folder with configuration, data and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *length, *agents, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, length time.Duration, agents int, keep bool) error {
	h, err := newHouse(keep)
	if err != nil {
		return err
	}
	defer h.end()
	fmt.Fprintln(os.Stderr, "soak: in", h.dir)
	if err := h.ensure(ctx); err != nil {
		return err
	}
	if err := h.greet(ctx, agents); err != nil {
		return err
	}
	before, err := h.settled(ctx, measure{})
	if err != nil {
		return err
	}
	b := &book{}
	if err := work(ctx, h, b, length, agents); err != nil {
		return err
	}
	if err := h.ensure(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "soak: reading %d results back\n", len(b.receipts))
	b.readAll(ctx, h)
	if err := h.greet(ctx, agents); err != nil {
		return err
	}
	after, err := h.settled(ctx, before)
	if err != nil {
		b.violate("%v", err)
	}
	b.print(os.Stdout, h, length, agents, before, after)
	if n := len(b.violations); n > 0 {
		return fmt.Errorf("%d violations", n)
	}
	return nil
}

// work lets the agents work while everything around them goes wrong.
func work(ctx context.Context, h *house, b *book, length time.Duration, n int) error {
	all := make([]*agent, n)
	for i := range all {
		a, err := newAgent(h, i)
		if err != nil {
			return err
		}
		all[i] = a
	}
	working, stop := context.WithTimeout(ctx, length)
	defer stop()
	var wg sync.WaitGroup
	for _, a := range all {
		wg.Go(func() {
			defer a.close()
			a.work(working, h, b)
		})
	}
	wg.Go(func() { h.crashes(working, b) })
	h.trouble(working, b)
	wg.Wait()
	return ctx.Err()
}
