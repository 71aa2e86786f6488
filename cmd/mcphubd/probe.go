package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/actors/catalog"
	"mcphubd/config"
)

// probed is what starting a server once came to.
type probed struct {
	Server      string    `json:"server"`
	OK          bool      `json:"ok"`
	Code        string    `json:"code,omitempty"`  // of the problem
	Error       string    `json:"error,omitempty"` // what went wrong
	Noise       int64     `json:"noise,omitempty"` // lines on stdout that were no message
	FirstNoise  string    `json:"firstNoise,omitempty"`
	Stderr      string    `json:"stderr,omitempty"`
	Protocol    string    `json:"protocol,omitempty"`
	Name        string    `json:"name,omitempty"`
	Version     string    `json:"version,omitempty"`
	HandshakeMs float64   `json:"handshakeMs"`
	ListMs      float64   `json:"listMs"`
	Tools       int       `json:"tools"`
	listed      []listing // of its tools
}

// listing is how much of a context a tool takes.
type listing struct {
	name        string
	bytes       int // of its whole entry
	description int // bytes
}

// probe starts a server, reads its tools and ends it again. The daemon and its own
// copy of the server are not touched.
func probe(ctx context.Context, c *config.Config, data string, s config.Server) (p probed) {
	p.Server = s.Name
	var mu sync.Mutex
	events := actors.Events{Noise: func(n int64, line string) {
		mu.Lock()
		defer mu.Unlock()
		if p.Noise = n; p.FirstNoise == "" {
			p.FirstNoise = line
		}
	}}
	err := p.run(ctx, c, data, s, events)
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		p.Error, p.Code = err.Error(), troubleOf(err.Error(), p.Noise > 0)
	}
	p.OK = err == nil
	return p
}

func (p *probed) run(ctx context.Context, c *config.Config, data string, s config.Server, events actors.Events) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.ConnectTimeout,
		fmt.Errorf("no answer to initialize within %s (connect_timeout)", s.ConnectTimeout))
	defer cancel()
	began := time.Now()
	d := &daemon{log: zerolog.Nop(), data: data}
	conn, err := d.reach(s, actors.Spool{}, int64(c.MaxFrame), nil).Connect(ctx, events)
	p.HandshakeMs = ms(time.Since(began))
	if err != nil {
		return err
	}
	defer func() {
		p.Stderr = conn.Stderr()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		conn.Close(end)
	}()
	info := conn.Info()
	p.Protocol, p.Name, p.Version = info.Protocol, info.Name, info.Version
	began = time.Now()
	p.listed, err = readTools(ctx, conn, int64(c.MaxFrame))
	p.ListMs, p.Tools = ms(time.Since(began)), len(p.listed)
	return err
}

// readTools reads all pages of a server's tools.
func readTools(ctx context.Context, conn actors.Conn, hold int64) (all []listing, err error) {
	if caps := conn.Info().Capabilities; len(caps) > 2 && !bytes.Contains(caps, []byte(`"tools"`)) {
		return nil, nil // it says what it has, and no tools
	}
	params := []byte(`{}`)
	for range 1000 {
		answer, err := conn.Call(ctx, actors.Request{Method: "tools/list", Params: [][]byte{params}, Token: -1, Hold: hold})
		switch {
		case err != nil:
			return all, fmt.Errorf("tools/list: %w", err)
		case answer.Error != nil:
			return all, fmt.Errorf("tools/list: %w", actors.RawError(answer.Error))
		}
		var page bytes.Buffer
		_, err = answer.Result.WriteTo(&page)
		answer.Result.Close()
		if err != nil {
			return all, fmt.Errorf("tools/list: %w", err)
		}
		all = append(all, listingsIn(page.Bytes())...)
		cursor, more := catalog.NextCursor(page.Bytes())
		if !more {
			return all, nil
		}
		params = []byte(`{"cursor":` + cursor + `}`)
	}
	return all, errors.New("tools/list: its pages do not end")
}

// noiseText tells of lines on stdout that were no message, "" when there were none.
func noiseText(lines int64, first string) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("%s of something else than messages; the first: %s", count(int(lines), "line"), first)
}

// listingsIn measures the tools of a list.
func listingsIn(page []byte) (all []listing) {
	tools, _ := catalog.ParseTools([][]byte{page})
	for _, t := range tools {
		var entry struct{ Name, Description string }
		if json.Unmarshal(t.Raw, &entry) == nil {
			all = append(all, listing{entry.Name, len(t.Raw), len(entry.Description)})
		}
	}
	return all
}

// troubleOf is the code of why a server did not come up, by what was said of it.
func troubleOf(cause string, noisy bool) string {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(cause, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("command not found", "no such file", "not an executable file"):
		return "command-not-found"
	case has("initialize: ") && has(actors.ErrLost.Error()):
		return "exits-early"
	case noisy, has(actors.NoMessage):
		return "stdout-not-json"
	case has("no answer to initialize", "connect_timeout", "no answer within"):
		return "handshake-timeout"
	case has("dial tcp", "connection refused", "no such host", "tls: ", "x509: "):
		return "server-unreachable"
	case has("HTTP 401", "HTTP 403", actors.ErrSignIn.Error()):
		return "server-unauthorized"
	}
	return "server-down"
}
