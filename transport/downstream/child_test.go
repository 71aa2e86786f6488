package downstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
	"mcphubd/config"
)

// The test binary is its own server: with CHILD set it serves instead of testing.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD") == "official" {
		_ = officialChild().Run(context.Background(), &mcp.StdioTransport{})
		os.Exit(0)
	}
	if mode := os.Getenv("CHILD"); mode != "" {
		(&child{mode: mode}).serve()
		os.Exit(0)
	}
	trustTests() // not in a child, which may be killed before it took its file away
	os.Exit(m.Run())
}

// child is a scripted MCP server.
type child struct {
	mode  string
	asked []message // calls that wait for an answer of the client
	mu    sync.Mutex
	out   bufio.Writer
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
	raw []byte
}

// order is what arguments of the scripted tools may say.
type order struct {
	Ms     int      `json:"ms"`
	Code   int      `json:"code"`
	Bytes  int      `json:"bytes"`
	Text   string   `json:"text"`
	Lines  []string `json:"lines"` // written as they are, $ID is the id of the request
	Stderr string   `json:"stderr"`
}

func (c *child) serve() {
	c.out = *bufio.NewWriterSize(os.Stdout, 64<<10)
	switch c.mode {
	case "mute":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "exit":
		fmt.Fprintln(os.Stderr, "boom: config missing, token "+os.Getenv("TOKEN"))
		os.Exit(3)
	case "stubborn": // ignores everything but KILL, like its helper
		signal.Ignore(syscall.SIGTERM)
		helper := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
		helper.Stdout, helper.Stderr = os.Stdout, os.Stderr
		_ = helper.Start()
		defer func() { select {} }()
	case "polite": // says how often it was told to end, once it has been and its stdin is shut
		told := make(chan os.Signal, 8)
		signal.Notify(told, syscall.SIGTERM)
		fmt.Println("up")
		<-told
		fmt.Println("told")
		_, _ = io.Copy(io.Discard, os.Stdin)
		signal.Stop(told) // what was delivered is in the channel after this
		fmt.Println(1 + len(told))
		select {}
	case "helper": // leaves one behind that keeps the pipes open
		helper := exec.Command("sleep", "3600")
		helper.Stdout, helper.Stderr = os.Stdout, os.Stderr
		_ = helper.Start()
	case "escapee": // leaves one behind that has also left the group
		helper := exec.Command("sh", "-c", "while :; do echo tick; echo tock >&2; sleep 0.01; done")
		helper.Stdout, helper.Stderr = os.Stdout, os.Stderr
		helper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = helper.Start()
	case "banner":
		os.Stdout.WriteString("\xEF\xBB\xBFLoading tools...\n\n   \r\n{\"level\":\"info\",\"msg\":\"ready\"}\n[1,2]\n\x1b[31mred\x1b[0m\n" +
			strings.Repeat("[", 100000) + "\nnot json\n{}\n{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}\n")
	case "loud":
		os.Stderr.WriteString(strings.Repeat("log line\n", 120000))
	}
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	if c.mode == "slow" {
		in = bufio.NewReaderSize(slow{}, 1<<10)
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			fmt.Fprintf(os.Stderr, "broken line of %d bytes\n", len(line))
			os.Exit(9)
		}
		m.raw = bytes.TrimSpace(line)
		c.handle(m)
	}
}

func (c *child) handle(m message) {
	if c.mode == "neither" && m.ID != nil {
		c.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no ` + m.Method + ` here"}}` + "\n")
		return
	}
	switch m.Method {
	case "": // an answer to one of ours
		fmt.Fprintf(os.Stderr, "answered: %s\n", m.raw)
		if len(c.asked) > 0 {
			c.result(c.asked[0], string(m.raw))
			c.asked = c.asked[1:]
		}
	case "initialize":
		if c.mode == "stringer" {
			m.ID = json.RawMessage(`"` + string(m.ID) + `"`)
		}
		if c.mode == "banner" {
			c.write("{\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"result\":" + hello + "}\r\n")
			return
		}
		c.result(m, hello)
		if c.mode == "deaf" {
			select {}
		}
	case "tools/call":
		var o order
		_ = json.Unmarshal(m.Params.Arguments, &o)
		c.call(m, o)
	case "notifications/cancelled":
		fmt.Fprintf(os.Stderr, "told: %s\n", m.raw)
	case "tools/list":
		c.result(m, `{"tools":[{"name":"x","inputSchema":{"type":"object"},"description":"`+strings.Repeat("d", 3<<20)+`"}]}`)
	}
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"x":1.0},"serverInfo":{"name":"child","version":"7"},"instructions":"be kind"}`

func (c *child) call(m message, o order) {
	switch m.Params.Name {
	case "echo":
		c.result(m, string(m.Params.Arguments))
	case "late":
		go func() {
			time.Sleep(time.Duration(o.Ms) * time.Millisecond)
			c.result(m, string(m.Params.Arguments))
		}()
	case "never":
	case "request": // what was received, whole
		c.result(m, string(m.raw))
	case "env":
		b, _ := json.Marshal(os.Environ())
		c.result(m, `{"env":`+string(b)+`}`)
	case "ask": // answered with the client's next answer, as it came
		c.asked = append(c.asked, m)
		for _, line := range o.Lines {
			c.write(strings.ReplaceAll(line, "$ID", string(m.ID)) + "\n")
		}
	case "lines":
		fmt.Fprint(os.Stderr, o.Stderr)
		for _, line := range o.Lines {
			c.write(strings.ReplaceAll(line, "$ID", string(m.ID)) + "\n")
		}
	case "big": // the id behind the result
		c.write(`{"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", o.Bytes) + `"}]},"jsonrpc":"2.0","id":` + string(m.ID) + "}\n")
	case "bigfirst":
		c.result(m, `{"content":[{"type":"text","text":"`+strings.Repeat("x", o.Bytes)+`"}]}`)
	case "stderr":
		fmt.Fprint(os.Stderr, strings.Repeat(o.Text, o.Bytes/len(o.Text)))
		c.result(m, `{}`)
	case "exit":
		fmt.Fprint(os.Stderr, o.Stderr)
		os.Exit(o.Code)
	case "answerandexit":
		c.result(m, `{"last":"words"}`)
		os.Exit(0)
	case "stopreading":
		c.result(m, `{}`)
		select {}
	}
}

func (c *child) result(m message, result string) {
	c.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + "}\n")
}

func (c *child) write(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.WriteString(s)
	c.out.Flush()
}

// slow reads stdin in small pieces, and goes on only when it has got rid of each on
// stderr and on stdout.
type slow struct{}

func (slow) Read(p []byte) (int, error) {
	n, err := os.Stdin.Read(p[:min(len(p), 1<<10)])
	os.Stderr.Write(p[:n])
	os.Stdout.Write(append(bytes.TrimSpace(p[:n]), '\n'))
	return n, err
}

func descriptors() []string {
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var out []string
	for _, d := range dir {
		out = append(out, d.Name())
	}
	return out
}

// bound ends what hangs. It measures nothing: 64 MB take their time on a busy machine.
const bound = 3 * time.Minute

// stdio is a Connector for a child in this mode.
func stdio(t *testing.T, mode string) *Stdio {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Stdio{
		Server: config.Server{Name: "fake", Command: exe, Env: map[string]string{"CHILD": mode, "TOKEN": "s3cr3t-value"}},
		Grace:  200 * time.Millisecond, MaxFrame: 1 << 30,
	}
}

// connect starts the child and ends it with the test.
func connect(t *testing.T, s *Stdio, events actors.Events) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	conn, err := s.Connect(ctx, events)
	if err != nil {
		t.Fatal(err)
	}
	c := conn.(*Conn)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// tool calls a tool and returns the bytes of its result.
func tool(ctx context.Context, c *Conn, name, arguments string) (string, error) {
	a, err := c.Call(ctx, toolCall(name, arguments))
	if err != nil {
		return "", err
	}
	if a.Error != nil {
		return "", fmt.Errorf("error object %s", a.Error)
	}
	defer a.Result.Close()
	var b strings.Builder
	if _, err := a.Result.WriteTo(&b); err != nil {
		return "", err
	}
	return b.String(), nil
}

func toolCall(name, arguments string) actors.Request {
	return actors.Request{Method: "tools/call", Token: -1, Hold: 64 << 10, Params: [][]byte{
		[]byte(`{"name":"`), []byte(name), []byte(`","arguments":`), []byte(arguments), []byte(`}`),
	}}
}

// works asserts that the connection still does its work.
func works(t *testing.T, c *Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	want := `{"v":12345678901234567890}`
	if got, err := tool(ctx, c, "echo", want); err != nil || got != want {
		t.Fatalf("echo: %.200s, %v", got, err)
	}
}

// script has the child write lines, in which $ID is the id of this very call.
func script(ctx context.Context, c *Conn, lines ...string) (string, error) {
	b, _ := json.Marshal(order{Lines: lines})
	return tool(ctx, c, "lines", string(b))
}

// eventually waits for cond, which nothing announces.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
