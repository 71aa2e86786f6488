package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mcphubd/test/bench/payload"
	"mcphubd/test/mcptest/proc"
)

// child is a fake server as a process of its own, with the test on its pipes.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err string // the file of its stderr: a forked helper keeps it open, and nobody waits for that
}

func start(t testing.TB, script Script) (*child, Server) {
	t.Helper()
	s := NewServer(t, script)
	c := &child{t: t, cmd: exec.Command(s.Command), err: filepath.Join(t.TempDir(), "stderr")}
	for k, v := range s.Env {
		c.cmd.Env = append(c.cmd.Env, k+"="+v)
	}
	stderr, err := os.Create(c.err)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	c.cmd.Stderr = stderr
	in, err1 := c.cmd.StdinPipe()
	out, err2 := c.cmd.StdoutPipe()
	if err1 != nil || err2 != nil || c.cmd.Start() != nil {
		t.Fatal("the fake server does not start")
	}
	c.in, c.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	return c, s
}

func (c *child) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) call(id int, tool, args string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args))
}

func (c *child) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("no line from the server: %v (stderr %q)", err, c.stderr())
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *child) stderr() string {
	b, _ := os.ReadFile(c.err)
	return string(b)
}

func (c *child) code() int {
	c.t.Helper()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

func TestTheServerWritesResultsByteForByteAndNotesTheirDigest(t *testing.T) {
	exact := `{"content":[] , "n":1.0,"bad":"` + "\xff\xfe" + `"}`
	file := filepath.Join(t.TempDir(), "result")
	if err := os.WriteFile(file, []byte(`{"from":"file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, s := start(t, Script{Rules: []Rule{
		{Method: "tools/call", Tool: "exact", Do: []Step{Result(exact)}},
		{Method: "tools/call", Tool: "file", Do: []Step{{Answer: &Answer{File: file}}}},
	}})
	random, _ := payload.New("random", 300_000)
	for i, want := range []struct{ tool, args, result string }{
		{"exact", "{}", exact},
		{"file", "{}", `{"from":"file"}`},
		{"echo", `{"v":"\u00e9 <&>"}`, `{"content":[{"type":"text","text":"\u00e9 <&>"}]}`},
		{"blob", `{"bytes":300000,"kind":"random"}`, string(random.Bytes())},
		{"hostile", `{"pad":100000}`, string(Hostile(100000))},
	} {
		c.call(i, want.tool, want.args)
		got := ResultBytes([]byte(c.line()))
		if string(got) != want.result {
			t.Errorf("%s: %d bytes that differ from the %d ordered: %.200q", want.tool, len(got), len(want.result), got)
		}
		if e := s.Ledger.Last(t, want.tool); e.SHA256 != digestOf(got) || e.Bytes != int64(len(got)) || string(e.Args) != want.args {
			t.Errorf("%s: the ledger says %+v", want.tool, e)
		}
	}
	if n := len(s.Record.Await(t, "tools/call", 5)); n != 5 {
		t.Errorf("%d lines recorded, want 5", n)
	}
}

func TestAnswersComeOutOfOrderTwiceLateAndNever(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	c, _ := start(t, Script{Rules: []Rule{
		{Method: "tools/call", Tool: "never"},
		{Method: "tools/call", Tool: "late", Do: []Step{{Wait: gate}, {Default: true}, Result(`"late"`)}},
		{Method: "tools/call", Tool: "twice", Do: []Step{{Answer: &Answer{Result: `2`, Times: 2}}}},
		{Method: "tools/call", Tool: "three", Do: []Step{{Gather: 3}, Result(`3`)}},
	}})
	c.call(1, "never", "{}")
	c.call(2, "late", "{}")
	c.call(3, "twice", "{}")
	answers := []string{c.line(), c.line()}
	for id := 4; id <= 6; id++ {
		c.call(id, "three", "{}")
	}
	answers = append(answers, c.line(), c.line(), c.line())
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.line() // the built-in answer: no such tool
	answers = append(answers, c.line())
	var ids []string
	for _, a := range answers {
		ids = append(ids, string(Members([]byte(a))["id"]))
	}
	slots := strings.Join(ids, " ")
	// Which of three arrives first is the server's scheduler's choice.
	if !strings.HasPrefix(slots, "3 3 ") || !strings.HasSuffix(slots, " 2") {
		t.Errorf("answers to %s", slots)
	}
}

func TestMemberOrderAndIDFollowTheScript(t *testing.T) {
	c, _ := start(t, Script{ResultFirst: true, StringID: true, Rules: []Rule{
		{Method: "tools/call", Tool: "wild", Do: []Step{{Write: `[{"jsonrpc":"2.0","id":$ID,"result":{}}` + "]\n"}}},
	}})
	c.call(7, "echo", `{"v":"x"}`)
	if got, want := c.line(), `{"result":{"content":[{"type":"text","text":"x"}]},"jsonrpc":"2.0","id":"7"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.call(8, "wild", `{}`)
	if got, want := c.line(), `[{"jsonrpc":"2.0","id":8,"result":{}}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPagesOfTheListCoverItOnce(t *testing.T) {
	c, _ := start(t, Script{PageSize: 4})
	var names []string
	for cursor := ""; ; {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":` + quote(cursor) + `}}`)
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if err := json.Unmarshal(ResultBytes([]byte(c.line())), &page); err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if strings.Join(names, " ") != "echo sleep blob hostile raw fail refuse progress changed count pid env fds crash" {
		t.Errorf("got %v", names)
	}
}

func TestTheServerDiesOnOrderAndLeavesAHelperOnThePipe(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "helper")
	c, _ := start(t, Script{Rules: []Rule{{Method: "tools/call", Tool: "die", Do: []Step{
		{Fork: &Helper{Seconds: 60, PIDFile: pidFile}}, {Stderr: "boom\n"}, Exit(3)}}}})
	c.call(1, "die", "{}")
	_ = c.cmd.Wait()
	if code := c.cmd.ProcessState.ExitCode(); code != 3 || c.stderr() != "boom\n" {
		t.Errorf("exit %d, stderr %q", code, c.stderr())
	}
	b, _ := os.ReadFile(pidFile)
	pid, _ := strconv.Atoi(string(b))
	if !proc.Alive(pid) {
		t.Fatalf("helper %d is not there", pid)
	}
	if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
		t.Errorf("helper %d cannot be ended", pid)
	}
}

func TestAServerEndsAtTheEndOfInputUnlessItIsStubborn(t *testing.T) {
	c, _ := start(t, Script{})
	c.call(1, "sleep", `{"ms":60000}`)
	_ = c.in.Close()
	if code := c.code(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c, _ = start(t, Script{IgnoreEOF: true, IgnoreTERM: true, Start: []Step{{Write: "banner\n"}}})
	c.line()
	c.call(1, "echo", `{"v":"x"}`)
	c.line()
	_ = c.in.Close()
	_ = c.cmd.Process.Signal(os.Interrupt) // reaches it after EOF and TERM did nothing
	if c.code() == 0 {
		t.Error("it ended as if it had been asked nicely")
	}
}

func TestACancelledCallIsNeverAnswered(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	c, _ := start(t, Script{Rules: []Rule{{Method: "tools/call", Tool: "echo", Do: []Step{{Wait: gate}, {Default: true}}}}})
	c.call(1, "echo", `{"v":"x"}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.call(2, "count", `{}`)
	if id := string(Members([]byte(c.line()))["id"]); id != "2" {
		t.Errorf("answered %s", id)
	}
	// Lines are taken in order, so by now it is cancelled. What stood would pass the gate.
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.call(3, "echo", `{"v":"y","ms":100}`)
	if id := string(Members([]byte(c.line()))["id"]); id != "3" {
		t.Errorf("answered %s", id)
	}
}

func TestASlowReaderStillReadsAll(t *testing.T) {
	c, _ := start(t, Script{ReadBytes: 8 << 10, ReadMS: 1})
	text := strings.Repeat("z", 100_000)
	c.call(1, "echo", `{"v":"`+text+`"}`)
	if got := Text(ResultBytes([]byte(c.line()))); got != text {
		t.Errorf("%d bytes echoed", len(got))
	}
}

func TestHostileIsLegalJSON(t *testing.T) {
	for _, pad := range []int{0, 1, 100_000} {
		if !json.Valid(Hostile(pad)) || !json.Valid(HostilePretty(pad)) {
			t.Errorf("pad %d is not JSON", pad)
		}
		if len(Hostile(pad)) < pad || bytes.ContainsAny(Hostile(pad), "\r\n") {
			t.Errorf("pad %d: %d bytes, or more than one line", pad, len(Hostile(pad)))
		}
		if !SameButWhiteSpace(Hostile(pad), HostilePretty(pad)) {
			t.Errorf("pad %d: pretty differs in more than white space", pad)
		}
	}
}
