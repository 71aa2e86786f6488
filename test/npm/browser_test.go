package npm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mcphubd/test/mcptest"
)

// chromium returns Debian's browser, and ends the test when there is none.
func chromium(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("in CI nothing is skipped: %v", err)
	default:
		t.Skipf("SKIPPED, install Debian's chromium: %v", err)
	}
	return path
}

// A snapshot of a large page is what makes a browser unusable without a gateway that
// stores: here it comes as a receipt, and the agent finds its line in it.
func TestABrowserBehindTheDaemonShowsLargePages(t *testing.T) {
	npm := need(t)
	browser := chromium(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Large</title><h1>Large page</h1><ul>")
		for n := range 4000 {
			fmt.Fprintf(w, "<li>item %d &lt;ähnlich&gt;</li>", n)
		}
		fmt.Fprint(w, "</ul>")
	}))
	t.Cleanup(page.Close)
	home := t.TempDir()
	command := with("HOME="+home, node(npm), script(npm, "@playwright/mcp/cli.js"),
		"--headless", "--isolated", "--no-sandbox", "--executable-path", browser, "--output-dir", home,
		"--timeout-action", "120000", "--timeout-navigation", "120000")
	d := mcptest.StartReady(t, table("web", command))
	agent := d.Agent("reader")
	agent.Timeout = 2 * time.Minute // a browser's first page takes its time
	if there, err := agent.Call(t.Context(), "web__browser_navigate", raw(map[string]any{"url": page.URL})); err != nil || there.IsError() {
		t.Fatalf("going there: %v: %.2000s", err, there.Body)
	}
	answer, err := agent.Call(t.Context(), "web__browser_snapshot", "{}")
	if err != nil {
		t.Fatal(err)
	}
	r, ok := mcptest.ReceiptOf(answer.Result())
	if !ok {
		t.Fatalf("no receipt but %d bytes: %.2000s", len(answer.Result()), answer.Body)
	}
	whole, err := agent.ReadBack(t.Context(), r.CallID)
	if err != nil {
		t.Fatal(err)
	}
	if text := mcptest.Text(whole); !strings.Contains(text, "item 0 ") || !strings.Contains(text, "item 3999 <ähnlich>") {
		t.Errorf("the snapshot of %d bytes is not of that page: %.1000s", len(whole), text)
	}
	found, err := agent.Call(t.Context(), "mcphub_read_result", raw(map[string]any{"callId": r.CallID, "grep": "item 2718 "}))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(found.Text(), "item 2718 <ähnlich>") || len(found.Result()) > 4096 {
		t.Errorf("looking for one line gives %d bytes: %.1000s", len(found.Result()), found.Text())
	}
	if closed, err := agent.Call(t.Context(), "web__browser_close", "{}"); err != nil || closed.IsError() || !json.Valid(closed.Message()) {
		t.Errorf("closing it: %v: %.500s", err, closed.Body)
	}
}
