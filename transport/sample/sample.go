// Package sample is a small MCP server over a real directory tree: what the demo
// runs, and something to try the gateway with when no other server is at hand. It
// only reads, and only below its root. It can keep a ledger of what it wrote, so
// that others can prove what became of it.
package sample

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxFile is the largest file that is read, maxAll the most that read_all gathers.
	maxFile = 16 << 20
	maxAll  = 64 << 20
)

// Serve answers on in and out until in ends. Every result is noted in ledger, if
// it is not nil, before it is written.
func Serve(ctx context.Context, root *os.Root, in io.Reader, out io.Writer, ledger io.Writer) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "mcphubd-sample", Title: "Directory tree", Version: "1"}, nil)
	t := tree{root}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "list_directory", Annotations: readOnly,
		Description: "Names, kinds and sizes of what is in one folder."}, t.list)
	mcp.AddTool(s, &mcp.Tool{Name: "directory_tree", Annotations: readOnly,
		Description: "Everything below a folder, as nested JSON."}, t.tree)
	mcp.AddTool(s, &mcp.Tool{Name: "read_text_file", Annotations: readOnly,
		Description: "The text of one file."}, t.read)
	mcp.AddTool(s, &mcp.Tool{Name: "read_all", Annotations: readOnly,
		Description: "Every text file below a folder with its text, as a JSON array."}, t.readAll)
	return s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: &witness{out: out, ledger: ledger}})
}

// place is what every tool takes.
type place struct {
	Path string `json:"path,omitempty" jsonschema:"below the root; default the root itself"`
}

func (p place) clean() string { return path.Clean("./" + p.Path) }

type tree struct{ root *os.Root }

func (t tree) list(_ context.Context, _ *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
	entries, err := fs.ReadDir(t.root.FS(), in.clean())
	if err != nil {
		return nil, nil, err
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it went away meanwhile
		}
		fmt.Fprintf(&b, "%s %10d %s\n", kind(e), info.Size(), e.Name())
	}
	return text(b.String()), nil, nil
}

func kind(e fs.DirEntry) string {
	if e.IsDir() {
		return "[DIR] "
	}
	return "[FILE]"
}

// node is one entry of directory_tree.
type node struct {
	Name     string `json:"name"`
	Size     int64  `json:"size,omitempty"`
	Children []node `json:"children,omitempty"`
}

func (t tree) tree(ctx context.Context, _ *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
	n, err := t.nodes(ctx, in.clean())
	if err != nil {
		return nil, nil, err
	}
	return jsonText(n)
}

func (t tree) nodes(ctx context.Context, dir string) ([]node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.root.FS(), dir)
	if err != nil {
		return nil, err
	}
	all := make([]node, 0, len(entries))
	for _, e := range entries {
		n := node{Name: e.Name()}
		if e.IsDir() {
			n.Children, _ = t.nodes(ctx, path.Join(dir, e.Name())) // one closed folder spoils nothing
		} else if info, err := e.Info(); err == nil {
			n.Size = info.Size()
		}
		all = append(all, n)
	}
	return all, nil
}

func (t tree) read(_ context.Context, _ *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
	b, err := t.file(in.clean())
	if err != nil {
		return nil, nil, err
	}
	return text(string(b)), nil, nil
}

var errNotText = errors.New("not a text file, or larger than 16 MiB")

func (t tree) file(name string) ([]byte, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxFile || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0:
		return nil, fmt.Errorf("%s: %w", name, errNotText)
	}
	return b, nil
}

// document is one entry of read_all.
type document struct {
	Path string `json:"path"`
	Size int    `json:"size"`
	Text string `json:"text"`
}

func (t tree) readAll(ctx context.Context, _ *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
	var all []document
	total := 0
	err := fs.WalkDir(t.root.FS(), in.clean(), func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || total >= maxAll:
			return nil
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && name != ".":
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		if b, err := t.file(name); err == nil {
			total += len(b)
			all = append(all, document{name, len(b), string(b)})
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return jsonText(all)
}

func jsonText(v any) (*mcp.CallToolResult, any, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, nil, err
	}
	return text(b.String()), nil, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
