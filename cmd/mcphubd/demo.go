package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-isatty"

	"mcphubd/config"
	"mcphubd/transport/sample"
)

type demoCmd struct {
	Dir  string `default:"." help:"The folder whose files the built-in server offers." type:"path"`
	Keep bool   `help:"Leave the daemon running until interrupted, and tell how to attach."`
}

func (demoCmd) Help() string {
	return `Shows the whole way of a result with real parts and no network: a daemon in a temporary
folder, this binary again as a server over a real directory tree, an agent over HTTP, one
small call and one that exceeds the budget. The stored result is read back page by page and
its SHA-256 compared with what the server wrote. Nothing is left behind.`
}

func (cmd demoCmd) Run(a *app) error {
	root, err := os.OpenRoot(cmd.Dir) // as the server will, whose complaint nobody sees
	if err != nil {
		return fail(codeNotFound, fmt.Errorf("--dir: %w", err))
	}
	root.Close()
	dir, err := os.MkdirTemp("", "mcphubd-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{app: a, dir: dir, tree: cmd.Dir, out: bufio.NewWriter(a.stdout)}
	defer d.out.Flush()
	return d.run(cmd.Keep)
}

// demo is one showing.
type demo struct {
	*app
	dir, tree string
	out       *bufio.Writer
	daemon    *daemon
	agent     *peer
}

func (d *demo) run(keep bool) (err error) {
	if err := d.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.daemon.stop()) }()
	if d.agent, err = attach(d.ctx, d.daemon.URL()+"/mcp/demo", "mcphubd-demo"); err != nil {
		return err
	}
	defer d.agent.detach(context.WithoutCancel(d.ctx))
	if err := d.introduce(); err != nil {
		return err
	}
	if err := d.smallCall(); err != nil {
		return err
	}
	if err := d.bigCall(); err != nil {
		return err
	}
	if keep {
		return d.keep()
	}
	return nil
}

// start brings up the daemon with this binary as its only server.
func (d *demo) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	literal := func(path string) string { return strings.ReplaceAll(path, "${", "$${") }
	conf, err := config.Parse("demo.toml", fmt.Appendf(nil, `
listen = "127.0.0.1:0"
socket = %q
[servers.tree]
command = %q
args    = ["sample", "--dir", %q, "--ledger", %q]
`, literal(filepath.Join(d.dir, "sock")), literal(self), literal(d.tree), literal(d.ledger())), config.OS())
	if err != nil {
		return err
	}
	d.daemon, err = startDaemon(conf, "", filepath.Join(d.dir, "data"), io.Discard)
	return err
}

func (d *demo) ledger() string { return filepath.Join(d.dir, "ledger") }

func (d *demo) row(label, format string, args ...any) {
	fmt.Fprintf(d.out, "  %-14s "+format+"\n", append([]any{label}, args...)...)
	d.out.Flush()
}

func (d *demo) introduce() error {
	result, err := d.agent.request(d.ctx, "tools/list", map[string]any{})
	if err != nil {
		return err
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &list); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "\nmcphubd: every result is bounded, and nothing is ever lost")
	fmt.Fprintln(d.out)
	d.row("daemon", "%s, its data in a temporary folder", d.daemon.URL())
	d.row("server", "tree: this binary as a child process, over %s", d.tree)
	d.row("agent", "demo, attached over HTTP with MCP %s; it sees %d tools", d.agent.protocol, len(list.Tools))
	fmt.Fprintln(d.out)
	return nil
}

func (d *demo) smallCall() error {
	result, err := d.agent.call(d.ctx, "tree__list_directory", map[string]any{})
	if err != nil {
		return err
	}
	wrote, err := d.lastWritten()
	if err != nil {
		return err
	}
	d.row("small call", "tree__list_directory {}")
	d.row("", "%s, under the budget of %s: passed through, %s", size(len(result)), d.daemon.conf.started.ResponseBudget, d.verdict(result, wrote))
	fmt.Fprintln(d.out)
	return nil
}

// bigCall makes the call that exceeds the budget, and reads its result back.
func (d *demo) bigCall() error {
	d.row("oversized call", "tree__read_all {}")
	began := time.Now()
	answer, err := d.agent.call(d.ctx, "tree__read_all", map[string]any{})
	if err != nil {
		return err
	}
	wrote, err := d.lastWritten()
	if err != nil {
		return err
	}
	receipt, ok := receiptIn(answer)
	if !ok {
		d.row("", "%s: not over the budget of %s after all; give --dir a folder with more text in it", size(len(answer)), d.daemon.conf.started.ResponseBudget)
		return nil
	}
	d.row("", "the server wrote %s in %s; the agent got a receipt of %s:", size(wrote.Bytes), time.Since(began).Round(time.Millisecond), size(len(answer)))
	fmt.Fprintln(d.out)
	d.showReceipt(receipt)
	fmt.Fprintln(d.out)
	began = time.Now()
	back, pages, err := d.recover(receipt.CallID)
	if err != nil {
		return err
	}
	d.row("recovery", "%s in %d pages in %s", size(len(back)), pages, time.Since(began).Round(time.Millisecond))
	d.row("server wrote", "%s", wrote.SHA256)
	d.row("agent has", "%s  %s", hash(back), d.verdict(back, wrote))
	fmt.Fprintln(d.out)
	if hash(back) != wrote.SHA256 {
		return fmt.Errorf("the bytes read back are not the bytes that the server wrote")
	}
	return nil
}

// receipt is what the demo shows of one.
type receipt struct {
	CallID        string `json:"callId"`
	Status        string `json:"status"`
	Namespaced    string `json:"namespaced"`
	OriginalBytes int    `json:"originalBytes"`
	BudgetBytes   int    `json:"budgetBytes"`
	Lines         int    `json:"lines"`
	Preview       string `json:"preview"`
	NextAction    string `json:"nextAction"`
}

// receiptIn reads a receipt out of the text of a result.
func receiptIn(result json.RawMessage) (receipt, bool) {
	var r receipt
	return r, unmarshalText(result, &r) == nil && r.Status == "stored"
}

// unmarshalText reads the JSON in the first text block of a result.
func unmarshalText(result json.RawMessage, into any) error {
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	if len(r.Content) == 0 {
		return errors.New("the result has no content")
	}
	return json.Unmarshal([]byte(r.Content[0].Text), into)
}

func (d *demo) showReceipt(r receipt) {
	d.row("  callId", "%s", r.CallID)
	d.row("  size", "%d bytes in place of %d allowed, %d lines", r.OriginalBytes, r.BudgetBytes, r.Lines)
	d.row("  preview", "%s", oneLine(r.Preview, 72))
	d.row("  nextAction", "%s", r.NextAction)
}

// recover reads a stored result from its first byte to its last.
func (d *demo) recover(id string) (all []byte, pages int, err error) {
	for cursor := 0; ; pages++ {
		d.progress(pages, len(all))
		answer, err := d.agent.call(d.ctx, "mcphub_get_result", map[string]any{"callId": id, "cursor": cursor})
		if err != nil {
			return nil, pages, err
		}
		var page struct {
			Status, Data string
			NextCursor   int
			Done         bool
		}
		if err := unmarshalText(answer, &page); err != nil {
			return nil, pages, err
		}
		b, err := base64.StdEncoding.DecodeString(page.Data)
		if page.Status != "ok" || err != nil {
			return nil, pages, fmt.Errorf("page at %d: status %q, %v", cursor, page.Status, err)
		}
		all = append(all, b...)
		if page.Done {
			d.progress(0, 0)
			return all, pages + 1, nil
		}
		cursor = page.NextCursor
	}
}

// progress tells a terminal how far the pages are; 0 bytes wipes the line.
func (d *demo) progress(pages, bytes int) {
	f, ok := d.stderr.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) || pages%50 != 0 {
		return
	}
	fmt.Fprint(f, "\r\033[K")
	if bytes > 0 {
		fmt.Fprintf(f, "  reading back: %d pages, %s", pages, size(bytes))
	}
}

// lastWritten is the last line of the server's ledger: what it wrote last.
func (d *demo) lastWritten() (line sample.Line, err error) {
	b, err := os.ReadFile(d.ledger())
	if err != nil {
		return line, err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return line, json.Unmarshal([]byte(lines[len(lines)-1]), &line)
}

func (d *demo) verdict(got []byte, wrote sample.Line) string {
	if hash(got) == wrote.SHA256 && len(got) == wrote.Bytes {
		return "equal to the byte"
	}
	return "DIFFERENT"
}

// keep leaves the daemon running until the user interrupts.
func (d *demo) keep() error {
	url := d.daemon.URL()
	d.row("running", "attach any agent to %s/mcp/NAME, for example:", url)
	d.row("", "claude mcp add --transport http mcphub %s/mcp/claude-code", url)
	d.row("", "curl %s/debug/state", url)
	d.row("", "Ctrl-C ends it and removes its data")
	select {
	case <-d.ctx.Done():
		return nil
	case err := <-d.daemon.failed:
		return err
	}
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// size is a number of bytes for people: exact, with a rounded unit beside it when
// it is large.
func size(n int) string {
	if n < 10<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d bytes (%s)", n, humanize.IBytes(uint64(n)))
}
