package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"mcphubd/test/mcptest"
)

// quoted is s as a JSON string that holds every character as itself.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}

func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + quoted(text) + `}]}`
}

func TestC05WhatAReceiptStandsForCanBeReadToTheEnd(t *testing.T) {
	t.Parallel()
	nested := quoted(quoted(`{"rows":"` + strings.Repeat(`a "quoted" \ text, `, 8000) + `"}`))
	results := map[string]string{
		"plain":  textResult(strings.Repeat("two hundred KiB of text. ", 200<<10/25)),
		"nested": textResult(nested),
	}
	h := one(t, "response_budget = \"4KB\"\n", mcptest.Script{Tools: toolsNamed("plain", "nested"), Rules: answers(results)})
	for era, agent := range eras {
		a := agent(h)
		for tool, want := range results {
			r := call(t, a, "d__"+tool, "")
			if n := len(r.Result()); n > 4<<10 {
				t.Errorf("%s %s: a receipt of %d bytes", era, tool, n)
			}
			same(t, era+" "+tool, readBack(t, a, receiptOf(t, r)), []byte(want))
		}
	}
}

func TestC46NoBudgetCutsACharacter(t *testing.T) {
	t.Parallel()
	pattern := "é読😀e\u0301\r\n"
	var conf strings.Builder
	results, shifts := map[string]string{}, []string{}
	for shift := range 9 {
		name := fmt.Sprintf("shift%d", shift)
		shifts = append(shifts, name)
		results[name] = textResult(strings.Repeat("a", shift) + strings.Repeat(pattern, 2000/len(pattern)))
	}
	budgets := []int{512, 513, 514, 515, 516, 517, 518, 519, 520, 1500, 1501, 1502, 1503}
	for _, b := range budgets {
		fmt.Fprintf(&conf, "[agents.b%d]\nresponse_budget = \"%dB\"\n", b, b)
	}
	h := one(t, "", mcptest.Script{Tools: toolsNamed(shifts...), Rules: answers(results)}, conf.String())
	err := all(len(budgets), func(i int) error {
		for _, a := range []*mcptest.Agent{h.Agent(fmt.Sprintf("b%d", budgets[i])), h.Modern(fmt.Sprintf("b%d", budgets[i]))} {
			for tool, want := range results {
				if err := readInPages(t, a, tool, want, budgets[i]); err != nil {
					return fmt.Errorf("budget %d, %s, protocol %s: %w", budgets[i], tool, a.Protocol, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// readInPages makes a call and reads its stored result: no answer exceeds the
// budget, the preview is the beginning of the text in whole characters, and the
// pages are the result.
func readInPages(t testing.TB, a *mcptest.Agent, tool, want string, budget int) error {
	r, err := a.Call(background(t), "d__"+tool, "")
	receipt, ok := mcptest.ReceiptOf(r.Result())
	switch {
	case err != nil || !ok:
		return fmt.Errorf("no receipt: %w: %s", err, r.Body)
	case len(r.Result()) > budget:
		return fmt.Errorf("a receipt of %d bytes", len(r.Result()))
	case !utf8.Valid(r.Body) || strings.ContainsRune(receipt.Preview, utf8.RuneError):
		return fmt.Errorf("a character was cut: %q", receipt.Preview)
	}
	head, _, _ := strings.Cut(receipt.Preview, "\n[…")
	if whole := mcptest.Text([]byte(want)); !strings.HasPrefix(whole, head) {
		return fmt.Errorf("the preview %q does not begin the text", head)
	}
	var got []byte
	for done := false; !done; {
		p, err := a.Page(background(t), receipt.CallID, int64(len(got)))
		switch {
		case err != nil:
			return err
		case p.Size > budget:
			return fmt.Errorf("a page of %d bytes", p.Size)
		case len(p.Bytes) == 0:
			return fmt.Errorf("a page without progress at %d", len(got))
		}
		got, done = append(got, p.Bytes...), p.Done
	}
	if string(got) != want {
		return fmt.Errorf("%d bytes in pages for %d", len(got), len(want))
	}
	return nil
}

func TestC50ManyAgentsStoreAndReadAtOnce(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	first := receiptOf(t, call(t, h.Agent("first"), "d__blob", `{"bytes":1048576,"kind":"random"}`))
	quit, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-quit:
				watched <- nil
				return
			default:
			}
			if status, _, err := h.Get("/debug/state"); err != nil || status != 200 {
				watched <- fmt.Errorf("look %d at the state: HTTP %d, %w", n, status, err)
				return
			}
		}
	}()
	agents := 3 * full(20)
	err := all(agents, func(i int) error {
		a := h.Modern(fmt.Sprintf("agent%d", i))
		switch i % 3 {
		case 0:
			r, err := a.Call(background(t), "d__blob", `{"bytes":1048576,"kind":"json"}`)
			if err != nil {
				return err
			}
			if _, ok := mcptest.ReceiptOf(r.Result()); !ok {
				return fmt.Errorf("no receipt: %.300s", r.Body)
			}
		case 1:
			b, err := a.ReadBack(background(t), first.CallID)
			if err == nil && digest(b) != first.SHA256 {
				err = errors.New("the bytes read back are other ones")
			}
			return err
		case 2:
			for range 50 {
				if r, err := a.Call(background(t), "d__echo", `{"v":"x"}`); err != nil || r.Text() != "x" {
					return fmt.Errorf("echo: %w, %s", err, r.Body)
				}
			}
		}
		return nil
	})
	close(quit)
	if err := errors.Join(err, <-watched); err != nil {
		t.Error(err)
	}
	mcptest.Eventually(t, "all results to be counted", func() bool { return int(h.state(t).Spool.Results) >= 1+agents/3 })
	if s := h.state(t); s.Spool.FailedOpen != 0 || int(s.Spool.Results) != 1+agents/3 || strings.Contains(h.Log(), "locked") {
		t.Errorf("the spool is %+v after %d results", s.Spool, 1+agents/3)
	}
}

func TestC51AFullDiskCostsNoBytesAndNoService(t *testing.T) {
	t.Parallel()
	conf, servers := tables(t, "", map[string]mcptest.Script{"d": {}})
	h := hub{mcptest.NewDaemon(t, conf), servers}
	grow := smallDisk(t, h, conf)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	a, began := h.Agent("a"), time.Now()
	var receipts []mcptest.Receipt
	const calls = 18
	for i := range calls {
		size := 1 << 20
		if i >= calls-3 {
			size *= 5
		}
		r := call(t, a, "d__blob", fmt.Sprintf(`{"bytes":%d,"kind":"random"}`, size))
		wrote := h.d().Ledger.Last(t, "blob")
		if receipt, ok := mcptest.ReceiptOf(r.Result()); ok {
			receipts = append(receipts, receipt)
		} else if digest(r.Result()) != wrote.SHA256 {
			t.Errorf("neither a receipt nor the whole result: %.300s", r.Body)
		}
		echo(t, a, "d__echo")
	}
	s := h.state(t)
	if n := len(receipts); n == 0 || n > calls-5 || int(s.Spool.FailedOpen) != calls-n {
		t.Errorf("%d receipts of %d, and the spool says %+v", n, calls, s.Spool)
	}
	if h.problem(t, "result-not-stored") == "" {
		t.Errorf("no result is said to be missing: %+v", s.Problems)
	}
	h.AwaitLog("result was not stored")
	if warned, most := strings.Count(h.Log(), "result was not stored"), 1+int(time.Since(began)/time.Minute); warned == 0 || warned > most {
		t.Errorf("%d lines in the log, want one a minute", warned)
	}
	grow()
	a = h.Agent("a")
	receipts = append(receipts, receiptOf(t, call(t, a, "d__blob", `{"bytes":3145728,"kind":"random"}`)))
	if text := h.problem(t, "spool-failing"); text != "" {
		t.Errorf("the store takes results and is said not to: %s", text)
	}
	h.Restart()
	a = h.Agent("a")
	for _, r := range receipts {
		readBack(t, a, r)
	}
}

// smallDisk puts the data directory on a file system of 20 MiB, and returns what
// makes it larger. Who may not mount gets a store that is bounded by its settings.
func smallDisk(t *testing.T, h hub, conf string) (grow func()) {
	t.Helper()
	if err := os.Mkdir(h.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", h.Data, "tmpfs", 0, "size=20m,mode=0700"); err != nil {
		t.Logf("no file system of its own: mount: %v", err)
		h.SetConfig("[spool]\nmax_bytes = \"8MB\"\n" + conf)
		return func() {
			h.SetConfig(conf)
			h.Restart()
		}
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
		if err := syscall.Unmount(h.Data, 0); err != nil {
			t.Error(err)
		}
	})
	return func() {
		if err := syscall.Mount("tmpfs", h.Data, "tmpfs", syscall.MS_REMOUNT, "size=80m"); err != nil {
			t.Fatal(err)
		}
	}
}
