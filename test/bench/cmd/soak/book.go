package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mcphubd/store"
	"mcphubd/test/mcptest"
)

// book holds what was promised, and what was not kept.
type book struct {
	right, refused, readBacks atomic.Int64

	mu         sync.Mutex
	receipts   []mcptest.Receipt
	violations []string
	stored     int64 // bytes
}

func (b *book) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.violations) < 20 {
		fmt.Fprintln(os.Stderr, "soak: VIOLATION:", text)
	}
	b.violations = append(b.violations, text)
}

func (b *book) keep(r mcptest.Receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.receipts = append(b.receipts, r)
	b.stored += r.OriginalBytes
}

func (b *book) compare(who string, r mcptest.Receipt, data []byte) {
	sum := sha256.Sum256(data)
	if hex.EncodeToString(sum[:]) != r.SHA256 || int64(len(data)) != r.OriginalBytes {
		b.violate("%s read %d bytes with digest %x for the receipt %+v", who, len(data), sum, r)
	}
	b.readBacks.Add(1)
}

// overWire is how many results are read back over the wire in the end. All of them are
// read from the store.
const overWire = 100

// readAll reads the results of all receipts back, whoever got them and however often
// the daemon died since.
func (b *book) readAll(ctx context.Context, h *house) {
	r, err := store.OpenReader(filepath.Join(h.data, "mcphubd.db"))
	if err != nil {
		b.violate("the store: %v", err)
		return
	}
	defer r.Close()
	c := over(mcptest.NewModern("http://" + h.addr + "/mcp/reader"))
	defer c.close()
	every := max(len(b.receipts)/overWire, 1)
	for i, receipt := range b.receipts {
		if ctx.Err() != nil {
			return
		}
		data, err := fromStore(ctx, r, receipt)
		if err == nil && i%every == 0 {
			b.compare("the store", receipt, data)
			data, err = pages(ctx, c, receipt)
		}
		if err != nil {
			b.violate("receipt %s of %s: %v", receipt.CallID, receipt.Namespaced, err)
			continue
		}
		b.compare("the reader", receipt, data)
	}
}

func fromStore(ctx context.Context, r *store.Reader, receipt mcptest.Receipt) ([]byte, error) {
	res, err := r.Get(ctx, store.ID(receipt.CallID), time.Now())
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	_, err = r.Copy(ctx, &data, res.Key, 0, res.Bytes)
	return data.Bytes(), err
}

func (b *book) print(w io.Writer, h *house, length time.Duration, agents int, before, after measure) {
	s, _ := h.state(context.Background())
	mb := func(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
	fmt.Fprintf(w, "\n| %d agents, %d servers, %s | |\n|---|---:|\n", agents, len(calm)+len(shifting)+len(others), length)
	for _, row := range [][2]any{
		{"right answers", b.right.Load()},
		{"calls refused or cut off by what was done to their server or the daemon", b.refused.Load()},
		{"receipts", len(b.receipts)}, {"bytes they stand for", mb(b.stored)},
		{"results read back whole", b.readBacks.Load()},
		{"results stored in the end", s.Spool.Results}, {"stored with fail-open", s.Spool.FailedOpen},
		{"crashes of servers", h.falls.Load()}, {"reloads", h.reloads.Load()},
		{"SIGTERM to the daemon", h.stops.Load()}, {"kill -9 of the daemon", h.kills.Load()},
		{"RSS before, after", mb(before.rss) + ", " + mb(after.rss)},
		{"goroutines before, after", fmt.Sprint(before.goroutines, ", ", after.goroutines)},
		{"descriptors before, after", fmt.Sprint(before.fds, ", ", after.fds)},
		{"processes before, after", fmt.Sprint(before.processes, ", ", after.processes)},
		{"violations", len(b.violations)},
	} {
		fmt.Fprintf(w, "| %v | %v |\n", row[0], row[1])
	}
}
