package npm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"mcphubd/test/mcptest"
)

// direct speaks to a stdio server without anybody between, in raw lines.
type direct struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	ids int
}

// dial starts the server and does the handshake. The server ends with the test.
func dial(t *testing.T, command []string) *direct {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // t.Context kills what does not end by itself
	})
	d := &direct{t: t, in: in, out: bufio.NewReader(out)}
	d.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"direct","version":"1"}}`)
	d.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return d
}

func (d *direct) send(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// request returns the exact bytes of the result.
func (d *direct) request(method, params string) []byte {
	d.t.Helper()
	d.ids++
	id := fmt.Sprint(d.ids)
	d.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	for {
		line, err := d.out.ReadBytes('\n')
		if err != nil {
			d.t.Fatalf("%s: %v", method, err)
		}
		if m := mcptest.Members(line); string(m["id"]) == id && m["method"] == nil {
			if m["result"] == nil {
				d.t.Fatalf("%s: %.500s", method, line)
			}
			return m["result"]
		}
	}
}

// call returns the exact bytes of a tool's result.
func (d *direct) call(tool string, arguments any) []byte {
	d.t.Helper()
	return d.request("tools/call", `{"name":`+raw(tool)+`,"arguments":`+raw(arguments)+`}`)
}

func raw(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
