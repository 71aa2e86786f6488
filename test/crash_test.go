package test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"mcphubd/store"
	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// sizes of the results that are being stored when the daemon is killed: around one
// chunk, around one commit, and far beyond both.
var crashSizes = []int{40 << 10, 300 << 10, 64 << 10, 262_144, 90 << 10, 1 << 20, 48 << 10, 700 << 10, 41_000, 6 << 20, 262_145, 2_500_000}

// crash is a daemon that is killed again and again, and what agents were promised.
type crash struct {
	hub
	agents   []string
	mu       sync.Mutex
	receipts []mcptest.Receipt
	checked  map[store.ID]bool // results found whole in the store
}

func TestNoReceiptIsEverBrokenByKillNine(t *testing.T) {
	t.Parallel()
	rounds := 50
	if testing.Short() || raced {
		rounds = 5 // all fifty belong to the build that users get
	}
	c := &crash{agents: []string{"a", "b", "c", "d"}, checked: map[store.ID]bool{}}
	stubborn := mcptest.Script{IgnoreEOF: true, IgnoreTERM: true, Start: []mcptest.Step{{Fork: &mcptest.Helper{Seconds: 600, IgnoreTERM: true}}}}
	c.hub = one(t, "[spool]\nmax_bytes = \"8GB\"\n", stubborn)
	for round := range rounds {
		before := len(c.receipts)
		kids := c.storm(t, round)
		mcptest.Eventually(t, "all processes of the dead daemon to be gone", func() bool { return !slices.ContainsFunc(kids, proc.Alive) })
		c.StartAgain()
		c.promisesHold(t, c.receipts[before:])
		c.listedIsWhole(t)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	clear(c.checked)
	c.listedIsWhole(t)
	for _, r := range c.receipts {
		if !c.checked[store.ID(r.CallID)] {
			t.Errorf("of all receipts this one leads to nothing at the end: %+v", r)
		}
	}
	t.Logf("%d rounds, %d receipts, %d results in the store", rounds, len(c.receipts), len(c.checked))
	if len(c.receipts) < rounds {
		t.Errorf("only %d receipts reached an agent: nothing much was proven", len(c.receipts))
	}
}

// storm has all agents store results at once and kills the daemon in the middle.
// It returns the processes that the daemon had.
func (c *crash) storm(t *testing.T, round int) (kids []int) {
	t.Helper()
	echo(t, c.Modern("a"), "d__echo")
	if kids = c.Children(); len(kids) < 2 {
		t.Fatalf("the daemon has only the processes %v", kids)
	}
	first := make(chan struct{}, len(c.agents))
	var wg sync.WaitGroup
	for i, name := range c.agents {
		wg.Go(func() {
			a := c.Modern(name)
			for n := round*7 + i*5; ; n++ {
				receipt, ok := blob(a, crashSizes[n%len(crashSizes)], []string{"json", "text", "random"}[n%3])
				if !ok {
					return
				}
				c.mu.Lock()
				c.receipts = append(c.receipts, receipt)
				c.mu.Unlock()
				select {
				case first <- struct{}{}:
				default:
				}
			}
		})
	}
	<-first
	// Not a wait for something: the moment of the blow is to be any.
	<-time.After(time.Duration(rand.IntN(80_000)) * time.Microsecond)
	c.Kill9()
	wg.Wait()
	return kids
}

// blob makes a call whose result is stored; false when the daemon is gone.
func blob(a *mcptest.Agent, size int, kind string) (mcptest.Receipt, bool) {
	r, err := a.Call(context.Background(), "d__blob", fmt.Sprintf(`{"bytes":%d,"kind":%q}`, size, kind))
	if err != nil {
		return mcptest.Receipt{}, false
	}
	return mcptest.ReceiptOf(r.Result())
}

// promisesHold reads every receipt back over the wire and compares it with what
// the server noted that it wrote.
func (c *crash) promisesHold(t *testing.T, receipts []mcptest.Receipt) {
	t.Helper()
	wrote := map[string]bool{}
	for _, e := range c.d().Ledger.All() {
		wrote[e.SHA256+" "+strconv.FormatInt(e.Bytes, 10)] = true
	}
	err := all(len(receipts), func(i int) error {
		r := receipts[i]
		b, err := c.Modern(c.agents[i%len(c.agents)]).ReadBack(context.Background(), r.CallID)
		switch {
		case err != nil:
			return fmt.Errorf("receipt %+v: %w", r, err)
		case digest(b) != r.SHA256 || int64(len(b)) != r.OriginalBytes:
			return fmt.Errorf("%d bytes with digest %s for receipt %+v", len(b), digest(b), r)
		case !wrote[r.SHA256+" "+strconv.Itoa(len(b))]:
			return fmt.Errorf("the server never wrote what receipt %+v stands for", r)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// listedIsWhole reads what the store lists and was not read before, also what no
// receipt was given for.
func (c *crash) listedIsWhole(t *testing.T) {
	t.Helper()
	r, err := store.OpenReader(filepath.Join(c.Data, "mcphubd.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := context.Background()
	for _, agent := range c.agents {
		list, err := r.List(ctx, agent, time.Now(), 1<<20)
		if err != nil {
			t.Error(err)
		}
		for _, res := range list {
			if c.checked[res.ID] {
				continue
			}
			sum := sha256.New()
			n, err := r.Copy(ctx, sum, res.Key, 0, res.Bytes)
			if err != nil || n != res.Bytes || hex.EncodeToString(sum.Sum(nil)) != res.SHA256 {
				t.Errorf("%s is listed with %d bytes and %s, and has %d with %x: %v", res.ID, res.Bytes, res.SHA256, n, sum.Sum(nil), err)
			}
			c.checked[res.ID] = true
		}
	}
}
