package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"mcphubd/test/mcptest"
)

// bridge is a client that launches `mcphubd connect` and speaks lines with it.
type bridge struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	modern bool
	gone   chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[string]chan answer
}

func newBridge(h *house, name string, modern bool) (*bridge, error) {
	b := &bridge{cmd: h.command("connect", "--agent", name), modern: modern, gone: make(chan struct{}), waiting: map[string]chan answer{}}
	in, err := b.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	b.in = in
	go b.read(out)
	if modern {
		return b, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if a, err := b.ask(ctx, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}`); err != nil || a.result == nil {
		return nil, fmt.Errorf("initialize over a bridge: %v %s", err, a.fault)
	}
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return b, err
}

// read gives every answer to whoever asked under its id.
func (b *bridge) read(out io.Reader) {
	defer close(b.gone)
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		m := mcptest.Members(line)
		b.mu.Lock()
		to := b.waiting[string(m["id"])]
		delete(b.waiting, string(m["id"]))
		b.mu.Unlock()
		if to != nil && m["method"] == nil {
			to <- answer{m["result"], m["error"]}
		}
	}
}

func (b *bridge) call(ctx context.Context, tool, args string) (answer, error) {
	meta := ""
	if b.modern {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	name, _ := json.Marshal(tool)
	return b.ask(ctx, "tools/call", `{"name":`+string(name)+`,"arguments":`+args+meta+`}`)
}

func (b *bridge) ask(ctx context.Context, method, params string) (answer, error) {
	to := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	id := fmt.Sprintf(`"q%d"`, b.last)
	b.waiting[id] = to
	b.mu.Unlock()
	if _, err := fmt.Fprintf(b.in, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		return answer{}, err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	select {
	case a := <-to:
		return a, nil
	case <-b.gone:
		return answer{}, errors.New("the bridge is gone")
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func (b *bridge) close() {
	b.in.Close()
	select {
	case <-b.gone:
	case <-time.After(5 * time.Second):
		b.cmd.Process.Kill()
	}
	b.cmd.Wait()
}
