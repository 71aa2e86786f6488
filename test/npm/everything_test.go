package npm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/test/mcptest"
)

// everything is the command line of the official server that uses all of MCP.
func everything(npm, transport string) []string {
	return []string{node(npm), script(npm, "@modelcontextprotocol/server-everything/dist/index.js"), transport}
}

// listening starts that server over HTTP and returns its address.
func listening(t *testing.T, npm, transport string) string {
	t.Helper()
	shim, err := filepath.Abs("loopback.mjs")
	if err != nil {
		t.Fatal(err)
	}
	command := everything(npm, transport)
	cmd := exec.CommandContext(t.Context(), command[0], append([]string{"--import", shim}, command[1:]...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "LISTENING "); ok {
			go io.Copy(io.Discard, stderr)
			return "http://127.0.0.1:" + port
		}
	}
	t.Fatalf("%s does not listen: %v", transport, lines.Err())
	return ""
}

// everyTransport is the table of that server, as ev, by the transport it is reached over.
func everyTransport(t *testing.T, npm string) map[string]string {
	t.Helper()
	return map[string]string{
		"stdio":          table("ev", everything(npm, "stdio")),
		"streamableHttp": fmt.Sprintf("[servers.ev]\nurl = %q\n", listening(t, npm, "streamableHttp")+"/mcp"),
		"sse":            fmt.Sprintf("[servers.ev]\nurl = %q\ntransport = \"sse\"\n", listening(t, npm, "sse")+"/sse"),
	}
}

// A talker is the Go SDK's client with a user who answers whatever is asked.
type talker struct {
	*mcp.ClientSession
	progressed, elicited, sampled atomic.Int64
}

const progressToken = "a token of mine"

func talk(t *testing.T, transport mcp.Transport, revision string) *talker {
	t.Helper()
	k := &talker{}
	client := mcp.NewClient(&mcp.Implementation{Name: "talker", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Sampling:    &mcp.SamplingCapabilities{},
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			k.elicited.Add(1)
			if r.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "check": true, "integer": 7}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			k.sampled.Add(1)
			b, err := json.Marshal(r.Params.Messages)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "I read " + string(b)}}, err
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if r.Params.ProgressToken == progressToken && r.Params.Total == 3 {
				k.progressed.Add(1)
			}
		},
	})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	k.ClientSession = session
	return k
}

// calls are the arguments for every tool of the server; one is called twice.
var calls = []struct {
	tool      string
	arguments map[string]any
}{
	{"echo", map[string]any{"message": "ähnlich <&> \u2028 \"quoted\""}},
	{"get-annotated-message", map[string]any{"messageType": "error", "includeImage": true}},
	{"get-env", map[string]any{}},
	{"get-resource-links", map[string]any{"count": 4}},
	{"get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 7}},
	{"get-structured-content", map[string]any{"location": "Chicago"}},
	{"get-sum", map[string]any{"a": 2, "b": 0.5}},
	{"get-tiny-image", map[string]any{}},
	{"gzip-file-as-resource", map[string]any{"name": "a.gz", "data": "data:text/plain,packed", "outputType": "resource"}},
	{"gzip-file-as-resource", map[string]any{"name": "b.gz", "data": "data:text/plain,packed", "outputType": "resourceLink"}},
	{"simulate-research-query", map[string]any{"topic": "daemons"}}, // refused: it wants to be a task
	{"toggle-simulated-logging", map[string]any{}},
	{"toggle-subscriber-updates", map[string]any{}},
	{"trigger-elicitation-request", map[string]any{}},
	{"trigger-long-running-operation", map[string]any{"duration": 0.3, "steps": 3}},
	{"trigger-sampling-request", map[string]any{"prompt": "who runs?", "maxTokens": 10}},
	{"trigger-url-elicitation", map[string]any{"url": "https://example.com/x", "elicitationId": "e1"}},
}

// all calls every tool there is and returns the answers. Every listed tool has a call.
func (k *talker) all(t *testing.T, prefix string) map[string]string {
	t.Helper()
	var listed, called []string
	for tool, err := range k.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(tool.Name, prefix); ok {
			listed = append(listed, name)
		}
	}
	got := map[string]string{}
	for i, c := range calls {
		p := &mcp.CallToolParams{Name: prefix + c.tool, Arguments: c.arguments}
		p.SetProgressToken(progressToken)
		r, err := k.CallTool(t.Context(), p)
		got[fmt.Sprintf("%02d %s", i, c.tool)] = said(r, err)
		called = append(called, c.tool)
	}
	slices.Sort(listed)
	if called = slices.Compact(called); !slices.Equal(listed, called) {
		t.Errorf("listed are %q, called were %q", listed, called)
	}
	return got
}

// What differs from one process, session or second to the next.
var fleeting = regexp.MustCompile(`created at [^"\\]*|(Started|Stopped) simulated[, ][^"]*|\\"[A-Z_]+\\": .*`)

// said is what an answer says, whoever it came through.
func said(r *mcp.CallToolResult, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	b, err := json.Marshal(map[string]any{"content": r.Content, "structured": r.StructuredContent, "isError": r.IsError})
	if err != nil {
		return err.Error()
	}
	return fleeting.ReplaceAllString(string(b), "…")
}

func TestEveryToolOfTheEverythingServerAnswersAsIfAskedDirectly(t *testing.T) {
	npm := need(t)
	stdio := everything(npm, "stdio")
	want := talk(t, &mcp.CommandTransport{Command: exec.Command(stdio[0], stdio[1:]...)}, "2025-11-25").all(t, "")
	for transport, server := range everyTransport(t, npm) {
		d := mcptest.StartReady(t, server)
		for path, prefix := range map[string]string{"/servers/ev/mcp": "", "/mcp/talker": "ev__"} {
			for _, revision := range []string{"2025-06-18", "2026-07-28"} {
				t.Run(transport+path+"/"+revision, func(t *testing.T) {
					k := talk(t, &mcp.StreamableClientTransport{Endpoint: "http://" + d.Addr() + path}, revision)
					if got := k.InitializeResult().ProtocolVersion; got != revision {
						t.Fatalf("it speaks %s", got)
					}
					for call, got := range k.all(t, prefix) {
						if got != want[call] {
							t.Errorf("%s\n got %.1500s\nwant %.1500s", call, got, want[call])
						}
					}
					if k.elicited.Load() != 2 || k.sampled.Load() != 1 {
						t.Errorf("the user was asked %d times and the model %d times", k.elicited.Load(), k.sampled.Load())
					}
					mcptest.Eventually(t, "three signs of progress under our token", func() bool { return k.progressed.Load() == 3 })
					k.follow(t, prefix)
				})
			}
		}
	}
}

// follow reads what a resource link in an answer leads to.
func (k *talker) follow(t *testing.T, prefix string) {
	t.Helper()
	r, err := k.CallTool(t.Context(), &mcp.CallToolParams{Name: prefix + "gzip-file-as-resource",
		Arguments: map[string]any{"name": "followed.gz", "data": "data:text/plain,unpacked", "outputType": "resourceLink"}})
	if err != nil || len(r.Content) != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	link, ok := r.Content[0].(*mcp.ResourceLink)
	if !ok {
		t.Fatalf("no link but %T", r.Content[0])
	}
	read, err := k.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
	if err != nil || len(read.Contents) != 1 {
		t.Fatalf("%s: %v: %+v", link.URI, err, read)
	}
	z, err := gzip.NewReader(bytes.NewReader(read.Contents[0].Blob))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != "unpacked" {
		t.Errorf("%s holds %q: %v", link.URI, text, err)
	}
}
