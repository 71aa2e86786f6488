package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"mcphubd/actors/catalog"
)

const (
	// maxPages bounds a list whose cursors never end (case C15).
	maxPages = 1000
	// listHold is how much of one page of a list is kept in memory.
	listHold = 1 << 20
)

// listing is what reading a server's tools came to. With err set it may be part.
type listing struct {
	tools []catalog.Tool
	bad   []catalog.Bad
	err   error
}

// declared is what a server said in the handshake that it has.
type declared struct {
	any, tools, prompts, resources, subscribe, completions, logging bool
}

func declaredBy(c Conn) declared { return declaredIn(c.Info().Capabilities) }

func declaredIn(capabilities []byte) (d declared) {
	var raw map[string]json.RawMessage
	if json.Unmarshal(capabilities, &raw) != nil {
		return d
	}
	has := func(name string) bool {
		v, ok := raw[name]
		return ok && string(v) != "null" && string(v) != "false"
	}
	var r struct{ Subscribe bool }
	_ = json.Unmarshal(raw["resources"], &r) // of another kind, it says nothing
	return declared{any: len(raw) > 0, tools: has("tools"), prompts: has("prompts"), resources: has("resources"),
		subscribe: r.Subscribe, completions: has("completions"), logging: has("logging")}
}

// listTools reads all pages of a server's tools, as raw bytes. A server that
// declared what it has, and no tools, is not asked (case C101); one that declared
// nothing at all is.
func listTools(ctx context.Context, c Conn) listing {
	if caps := declaredBy(c); caps.any && !caps.tools {
		return listing{}
	}
	pages, err := readPages(ctx, c, "tools/list")
	tools, bad := catalog.ParseTools(pages, checksFor(c.Info())...)
	return listing{tools, bad, err}
}

// checksFor is what the way to a server asks of its tools: at a URL, the newest revision has
// arguments in headers.
func checksFor(i ConnInfo) []func(catalog.Tool) error {
	if i.Protocol < firstWithRounds || i.PID != 0 {
		return nil
	}
	return []func(catalog.Tool) error{catalog.CheckHeaders}
}

// readPages reads all pages of a list. With an error come those before it.
func readPages(ctx context.Context, c Conn, method string) (pages [][]byte, err error) {
	seen := map[string]bool{}
	params := []byte("{}")
	for len(pages) < maxPages {
		page, err := callRaw(ctx, c, method, params)
		if err != nil {
			return pages, fmt.Errorf("%s, page %d: %w", method, len(pages)+1, err)
		}
		pages = append(pages, page)
		cursor, more := catalog.NextCursor(page)
		if !more {
			return pages, nil
		}
		if seen[cursor] {
			return pages, fmt.Errorf("%s: cursor %s came twice; what was read until then is kept", method, cursor)
		}
		seen[cursor] = true
		params = []byte(`{"cursor":` + cursor + `}`)
	}
	return pages, fmt.Errorf("%s: more than %d pages; what was read until then is kept", method, maxPages)
}

// callRaw sends one request of the control plane and returns the result's bytes.
func callRaw(ctx context.Context, c Conn, method string, params []byte) ([]byte, error) {
	answer, err := c.Call(ctx, Request{Method: method, Params: [][]byte{params}, Token: -1, Hold: listHold})
	if err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, RawError(answer.Error)
	}
	defer answer.Result.Close()
	var b bytes.Buffer
	if _, err := answer.Result.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// sameList reports whether two lists are the same to the byte.
func sameList(a, b []catalog.Tool) bool {
	return slices.EqualFunc(a, b, func(x, y catalog.Tool) bool { return bytes.Equal(x.Raw, y.Raw) })
}
