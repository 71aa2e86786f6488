package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// peer is an agent that attaches over HTTP: as little MCP as the commands need.
type peer struct {
	url      string
	http     *http.Client
	session  string
	protocol string
	serial   int
}

// attach does the handshake with the daemon at url as the agent that its path names.
func attach(ctx context.Context, url, client string) (*peer, error) {
	return attachWith(ctx, &peer{url: url, http: http.DefaultClient}, client)
}

// attachWith does the handshake of p.
func attachWith(ctx context.Context, p *peer, client string) (*peer, error) {
	url := p.url
	result, err := p.request(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": client, "version": thisBuild().Version}})
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", url, err)
	}
	var hello struct{ ProtocolVersion string }
	if err := json.Unmarshal(result, &hello); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", url, err)
	}
	p.protocol = hello.ProtocolVersion
	_, err = p.post(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return p, err
}

// detach ends the session.
func (p *peer) detach(ctx context.Context) {
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, p.url, nil)
	if err != nil {
		return
	}
	r.Header.Set("Mcp-Session-Id", p.session)
	if res, err := p.http.Do(r); err == nil {
		res.Body.Close()
	}
}

// call makes one tools/call and returns the exact bytes of its result.
func (p *peer) call(ctx context.Context, tool string, args any) (json.RawMessage, error) {
	return p.request(ctx, "tools/call", map[string]any{"name": tool, "arguments": args})
}

func (p *peer) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p.serial++
	body, err := p.post(ctx, map[string]any{"jsonrpc": "2.0", "id": p.serial, "method": method, "params": params})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	var m struct {
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("%s: answer: %w", method, err)
	}
	if m.Error != nil {
		return nil, fmt.Errorf("%s: %s (%d)", method, m.Error.Message, m.Error.Code)
	}
	return m.Result, nil
}

// post sends one message and returns the last one that came back.
func (p *peer) post(ctx context.Context, message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
		r.Header.Set("Mcp-Protocol-Version", p.protocol)
	}
	res, err := p.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		p.session = id
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		return lastEvent(answer)
	}
	if res.StatusCode >= 300 && !json.Valid(answer) {
		return nil, fmt.Errorf("HTTP %s: %s", res.Status, strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

// lastEvent is the data of the last event of a stream: the answer.
func lastEvent(stream []byte) ([]byte, error) {
	for _, line := range bytes.Split(bytes.TrimSpace(stream), []byte("\n")) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			stream = bytes.TrimSpace(data)
		}
	}
	if !json.Valid(stream) {
		return nil, errors.New("the stream ended without an answer")
	}
	return stream, nil
}
