package npm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// with puts environment before a command line.
func with(env string, command ...string) []string {
	return append([]string{"/usr/bin/env", env}, command...)
}

// memory is the memory server over a graph of so many entities.
func memory(t *testing.T, npm string, entities int) []string {
	t.Helper()
	var graph strings.Builder
	for n := range entities {
		fmt.Fprintf(&graph, `{"type":"entity","name":"e%d","entityType":"thing","observations":["ähnlich <&> \u2028 %d","%s"]}`+"\n", n, n, strings.Repeat("o", 200))
	}
	file := filepath.Join(t.TempDir(), "memory.json")
	if err := os.WriteFile(file, []byte(graph.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return with("MEMORY_FILE_PATH="+file, node(npm), script(npm, "@modelcontextprotocol/server-memory/dist/index.js"))
}

// gitServer is a git server that writes to nowhere else than dir.
func gitServer(npm, dir string) []string {
	return with("MCP_TRANSPORT_TYPE=stdio", with("LOGS_DIR="+filepath.Join(dir, "logs"),
		with("MCP_LOG_LEVEL=error", node(npm), script(npm, "@cyanheads/git-mcp-server/dist/index.js"))...)...)
}

// repository is a git repository with so many commits, the same ones every time.
func repository(t *testing.T, commits int) string {
	t.Helper()
	dir := t.TempDir()
	var in strings.Builder
	for n := range commits {
		message := fmt.Sprintf("change %d\n\n%s\n", n, strings.Repeat("why <&> ähnlich; ", 20))
		text := lines(64)
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata %d\n%s\nM 100644 inline f%d.txt\ndata %d\n%s\n",
			1700000000+n, len(message), message, n, len(text), text)
	}
	for _, step := range []struct{ command, in string }{
		{"init -q -b main .", ""}, {"fast-import --quiet", in.String()}, {"reset -q --hard main", ""},
	} {
		cmd := exec.Command("git", strings.Fields(step.command)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(step.in)
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", step.command, err, out)
		}
	}
	return dir
}

func TestLargeAnswersOfMemoryAndGitComeBackByteForByte(t *testing.T) {
	npm := need(t)
	repo := repository(t, 800)
	for server, c := range map[string]struct {
		command   []string
		tool      string
		arguments map[string]any
		small     string // a tool whose answer passes whole
		few       map[string]any
	}{
		"memory": {memory(t, npm, 2000), "read_graph", map[string]any{}, "open_nodes", map[string]any{"names": []string{"e7"}}},
		"git":    {gitServer(npm, t.TempDir()), "git_log", map[string]any{"path": repo, "maxCount": 800}, "git_branch", map[string]any{"path": repo, "mode": "list"}},
	} {
		t.Run(server, func(t *testing.T) {
			asked := dial(t, c.command)
			want, small := asked.call(c.tool, c.arguments), asked.call(c.small, c.few)
			d := mcptest.StartReady(t, table(server, c.command))
			for era, agent := range map[string]*mcptest.Agent{"older": d.Agent("older"), "newest": d.Modern("newest")} {
				comesBack(t, agent, server+"__"+c.tool, c.arguments, want)
				answer, err := agent.Call(t.Context(), server+"__"+c.small, raw(c.few))
				if err != nil {
					t.Fatal(err)
				}
				if got := answer.Result(); mcptest.Text(got) == "" || mcptest.Text(got) != mcptest.Text(small) || era == "older" && !bytes.Equal(got, small) {
					t.Errorf("%s: %s answers %.500s, not %.500s", era, c.small, got, small)
				}
			}
		})
	}
}

// comesBack calls a tool whose answer is too large for an agent: the receipt names
// size and hash of what the server writes when asked directly, and the way back gives
// exactly that.
func comesBack(t *testing.T, agent *mcptest.Agent, tool string, arguments any, want []byte) {
	t.Helper()
	answer, err := agent.Call(t.Context(), tool, raw(arguments))
	if err != nil {
		t.Fatal(err)
	}
	r, ok := mcptest.ReceiptOf(answer.Result())
	if !ok {
		t.Fatalf("no receipt but %d bytes: %.300s", len(answer.Result()), answer.Body)
	}
	sum := sha256.Sum256(want)
	if r.OriginalBytes != int64(len(want)) || r.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the receipt says %d bytes, %s; the server wrote %d, %x", r.OriginalBytes, r.SHA256, len(want), sum)
	}
	if int64(len(answer.Result())) > r.BudgetBytes {
		t.Errorf("the receipt has %d bytes, the budget is %d", len(answer.Result()), r.BudgetBytes)
	}
	got, err := agent.ReadBack(t.Context(), r.CallID)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, and they are not the %d that the server wrote", len(got), len(want))
	}
}

// The server thinks in steps and keeps count: agents who share it go on where the other
// one was.
func TestSequentialThinkingGoesOnAsIfAskedDirectly(t *testing.T) {
	npm := need(t)
	command := []string{node(npm), script(npm, "@modelcontextprotocol/server-sequential-thinking/dist/index.js")}
	server := dial(t, command)
	d := mcptest.StartReady(t, table("think", command))
	a, b := d.Agent("a"), d.Agent("b")
	for n, agent := range []*mcptest.Agent{a, b, a} {
		thought := map[string]any{"thought": fmt.Sprintf("ähnlich <&> %d", n), "thoughtNumber": n + 1, "totalThoughts": 3, "nextThoughtNeeded": n < 2}
		want := server.call("sequentialthinking", thought)
		answer, err := agent.Call(t.Context(), "think__sequentialthinking", raw(thought))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(answer.Result(), want) {
			t.Errorf("thought %d: %.500s, not %.500s", n+1, answer.Body, want)
		}
	}
}
