package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"mcphubd/config"
)

// toolCmd holds the commands about tools. They are agents like any other, attached
// over the socket.
type toolCmd struct {
	Ls   toolLsCmd   `cmd:"" help:"List the tools that an agent sees."`
	Call toolCallCmd `cmd:"" help:"Call a tool and print its result."`
}

// enter attaches to the running daemon as that agent.
func (a *app) enter(ctx context.Context, agent string) (*peer, error) {
	r, err := a.remote()
	if err != nil {
		return nil, err
	}
	c, err := a.load()
	if err != nil {
		return nil, err
	}
	path := "/mcp/" + agent
	if agent == config.DefaultAgent {
		path = "/mcp"
	}
	return attachWith(ctx, &peer{url: "http://localhost" + path, http: withToken(r.http, c.Agents[agent].Token)}, "mcphubd-cli")
}

type toolLsCmd struct {
	Agent  string `default:"default" help:"As which agent." complete:"agent"`
	Server string `help:"Only of this server." complete:"server"`
	JSON   bool   `name:"json" help:"Print the tools as the agent gets them."`
}

// toolEntry is a tool as an agent sees it, and as it was sent.
type toolEntry struct {
	Name, Title, Description string
	raw                      json.RawMessage
}

func (cmd toolLsCmd) Run(a *app) error {
	ctx, cancel := context.WithTimeout(a.ctx, time.Minute)
	defer cancel()
	p, err := a.enter(ctx, cmd.Agent)
	if err != nil {
		return err
	}
	defer p.detach(context.WithoutCancel(ctx))
	tools, err := p.tools(ctx)
	if err != nil {
		return err
	}
	raws := []json.RawMessage{}
	rows := [][]cell{heads("TOOL", ">BYTES", "DESCRIPTION")}
	for _, t := range tools {
		if cmd.Server != "" && !strings.HasPrefix(t.Name, cmd.Server+"__") {
			continue
		}
		raws = append(raws, t.raw)
		rows = append(rows, []cell{text(t.Name), number(fmt.Sprint(len(t.raw))), painted(oneLine(t.Description, 120), faint)})
	}
	return a.list(cmd.JSON, raws, rows, "this agent sees no tool of a server")
}

// tools reads all pages of the list.
func (p *peer) tools(ctx context.Context) (all []toolEntry, err error) {
	params := map[string]any{}
	for {
		result, err := p.request(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []json.RawMessage
			NextCursor string
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		for _, raw := range page.Tools {
			t := toolEntry{raw: raw}
			if err := json.Unmarshal(raw, &t); err != nil {
				return nil, fmt.Errorf("tools/list: %w", err)
			}
			all = append(all, t)
		}
		if page.NextCursor == "" {
			return all, nil
		}
		params["cursor"] = page.NextCursor
	}
}

type toolCallCmd struct {
	Name    string        `arg:"" help:"The tool, as mcphubd tool ls names it." complete:"tool"`
	Args    []string      `arg:"" optional:"" help:"The arguments: one JSON object, or - to read it from stdin, or NAME=VALUE each."`
	Agent   string        `default:"default" help:"As which agent." complete:"agent"`
	Timeout time.Duration `default:"30m" help:"How long to wait for the result; exit code 8 when it is over."`
	JSON    bool          `name:"json" help:"Print the exact result, not only its text."`
}

func (toolCallCmd) Help() string {
	return `Prints what an agent would get: a result over the budget is stored, and its receipt printed;
mcphubd result cat has the rest. A VALUE that is JSON is taken as such, every other one as a
text. Exit code 1 when the tool reports an error.`
}

func (cmd toolCallCmd) Run(a *app) error {
	args, err := argsFrom(cmd.Args, a.stdin)
	if err != nil {
		return fail(codeUsage, err)
	}
	ctx, cancel := context.WithTimeout(a.ctx, cmd.Timeout)
	defer cancel()
	p, err := a.enter(ctx, cmd.Agent)
	if err != nil {
		return err
	}
	defer p.detach(context.WithoutCancel(a.ctx))
	result, err := p.call(ctx, cmd.Name, args)
	if err != nil {
		if strings.Contains(err.Error(), "unknown tool") {
			err = fail(codeNotFound, err)
		}
		return err
	}
	var r struct {
		Content []contentBlock
		IsError bool
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("result of %s: %w", cmd.Name, err)
	}
	if cmd.JSON {
		_, err = fmt.Fprintf(a.stdout, "%s\n", result)
	} else {
		err = writeContent(a.stdout, r.Content)
	}
	if err == nil && r.IsError {
		err = fail(codeFailed, errTold)
	}
	return err
}

type contentBlock struct{ Type, Text, MimeType, Data, URI string }

// writeContent prints the text of a result, and names what is no text.
func writeContent(w io.Writer, blocks []contentBlock) error {
	for _, b := range blocks {
		line := b.Text
		if b.Type != "text" {
			line = strings.TrimSpace(fmt.Sprintf("[%s %s %s]", b.Type, b.MimeType, b.URI))
			if b.Data != "" {
				line = fmt.Sprintf("[%s %s, %s]", b.Type, b.MimeType, bytesText(int64(len(b.Data)/4*3)))
			}
		}
		if _, err := io.WriteString(w, strings.TrimSuffix(line, "\n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// argsFrom makes the arguments of a call out of those of the command.
func argsFrom(given []string, stdin io.Reader) (any, error) {
	if len(given) == 1 && (given[0] == "-" || strings.HasPrefix(strings.TrimSpace(given[0]), "{")) {
		raw := []byte(given[0])
		if given[0] == "-" {
			var err error
			if raw, err = io.ReadAll(stdin); err != nil {
				return nil, err
			}
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
		return json.RawMessage(raw), nil
	}
	args := map[string]any{}
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is no argument; write NAME=VALUE, or all of them as one JSON object", pair)
		}
		args[name] = value
		if json.Valid([]byte(value)) {
			args[name] = json.RawMessage(value)
		}
	}
	return args, nil
}
