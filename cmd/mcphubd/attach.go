package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcphubd/config"
)

type attachCmd struct {
	Client string `arg:"" optional:"" help:"Which client; without one, those that are known are listed." complete:"client"`
	Agent  string `help:"As which agent it attaches; else under its own name."`
	HTTP   bool   `name:"http" help:"Attach over HTTP; else by the command mcphubd connect, which starts the daemon if none runs."`
	Write  bool   `help:"Change the client's file. It is kept as it was beside it, and the difference printed."`
}

func (attachCmd) Help() string {
	return `Prints what has to stand in the file of a client, and where. With --write it is put there:
nothing else in the file changes, and a client that has it already is left alone.`
}

// client is how a program keeps its servers.
type client struct {
	file  string // below the home directory
	key   string // of the object of servers; "" = a TOML table
	typed bool   // an entry says its type
}

var clients = map[string]client{
	"claude-code":    {".claude.json", "mcpServers", true},
	"claude-desktop": {".config/Claude/claude_desktop_config.json", "mcpServers", false},
	"codex":          {".codex/config.toml", "", false},
	"cursor":         {".cursor/mcp.json", "mcpServers", false},
	"gemini":         {".gemini/settings.json", "mcpServers", false},
	"vscode":         {".config/Code/User/mcp.json", "servers", true},
	"windsurf":       {".codeium/windsurf/mcp_config.json", "mcpServers", false},
}

func (cmd attachCmd) Run(a *app) error {
	names := slices.Sorted(maps.Keys(clients))
	c, ok := clients[cmd.Client]
	switch {
	case cmd.Client == "":
		for _, n := range names {
			fmt.Fprintf(a.stdout, "%-15s ~/%s\n", n, clients[n].file)
		}
		return nil
	case !ok:
		return fail(codeNotFound, fmt.Errorf("no client is called %q; there is: %s", cmd.Client, strings.Join(names, ", ")))
	}
	cmd.Agent = cmp.Or(cmd.Agent, cmd.Client)
	if !config.ValidAgentName(cmd.Agent) {
		return fail(codeUsage, fmt.Errorf("--agent: %q cannot be a name", cmd.Agent))
	}
	return cmd.add(a, c)
}

// add shows, or makes, what lets c use the daemon.
func (cmd attachCmd) add(a *app, c client) error {
	how, err := cmd.how(a, c)
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	path := filepath.Join(home, filepath.FromSlash(c.file))
	f, err := readClientFile(path)
	if err != nil {
		return err
	}
	changed, err := c.add(f.text, how)
	switch {
	case errors.Is(err, errThere):
		a.say("%s has an entry mcphub already", path)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w; add this to it by hand:\n%s", path, err, c.entry(how))
	case !cmd.Write:
		a.say("to be added to %s (--write does it):", path)
		_, err = fmt.Fprintln(a.stdout, c.entry(how))
		return err
	}
	return f.attach(a, changed)
}

// entry is a server, as the client shall see it.
type entry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	URL     string   `json:"url,omitempty"`
}

// how the client reaches the daemon that flags and environment lead to now: the
// client has another environment.
func (cmd attachCmd) how(a *app, c client) (e entry, err error) {
	kind := "stdio"
	if cmd.HTTP {
		kind = "http"
		e, err = cmd.byURL(a)
	} else {
		e, err = cmd.byCommand(a)
	}
	if c.typed {
		e.Type = kind
	}
	return e, err
}

func (cmd attachCmd) byURL(a *app) (entry, error) {
	conf, err := a.load()
	if err != nil {
		return entry{}, err
	}
	base := "http://" + conf.Listen
	if r, err := a.remote(); err == nil {
		base = r.URL
	}
	if conf.Listen == "" || base == "" || strings.HasSuffix(base, ":0") {
		return entry{}, fail(codeUsage, fmt.Errorf("listen = %q is no address to attach to; attach without --http", conf.Listen))
	}
	return entry{URL: base + "/mcp/" + cmd.Agent}, nil
}

func (cmd attachCmd) byCommand(a *app) (entry, error) {
	self, err := os.Executable()
	if err != nil {
		return entry{}, err
	}
	e := entry{Command: self, Args: []string{"connect", "--agent", cmd.Agent}}
	for _, given := range [][2]string{
		{"--config", cmp.Or(a.ConfigFile, os.Getenv("MCPHUBD_CONFIG"))}, {"--data", cmp.Or(a.DataDir, os.Getenv("MCPHUBD_DATA"))}} {
		if given[1] == "" {
			continue
		}
		path, err := filepath.Abs(given[1])
		if err != nil {
			return entry{}, err
		}
		e.Args = append(e.Args, given[0], path)
	}
	return e, nil
}

// entry is what to add to a file that has none of it yet.
func (c client) entry(how entry) string {
	if c.key == "" {
		return how.toml()
	}
	text, _ := c.add(nil, how) // an empty file takes everything
	return strings.TrimSuffix(string(text), "\n")
}

func (e entry) toml() string {
	if e.URL != "" {
		return "[mcp_servers.mcphub]\nurl = " + tomlQuote(e.URL)
	}
	var args []string
	for _, arg := range e.Args {
		args = append(args, tomlQuote(arg))
	}
	return "[mcp_servers.mcphub]\ncommand = " + tomlQuote(e.Command) + "\nargs = [" + strings.Join(args, ", ") + "]"
}

// errThere says that the client has its entry.
var errThere = errors.New("it is there already")

// add puts the entry into a file of the client, and changes nothing else in it.
func (c client) add(text []byte, how entry) ([]byte, error) {
	if c.key != "" {
		return c.addJSON(text, how)
	}
	if bytes.Contains(text, []byte("[mcp_servers.mcphub]")) {
		return nil, errThere
	}
	if len(text) > 0 {
		text = append(bytes.TrimRight(text, "\n"), "\n\n"...)
	}
	return append(text, how.toml()+"\n"...), nil
}

func (c client) addJSON(text []byte, how entry) ([]byte, error) {
	value, err := json.MarshalIndent(how, "    ", "  ")
	if err != nil {
		return nil, err
	}
	member := "\n    \"mcphub\": " + string(value)
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte("{\n  \"" + c.key + "\": {" + member + "\n  }\n}\n"), nil
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("it is no plain JSON: %w", err)
	}
	if file == nil {
		return nil, errors.New("it is null and no object")
	}
	var servers map[string]json.RawMessage
	if file[c.key] != nil {
		if err := json.Unmarshal(file[c.key], &servers); err != nil || servers == nil {
			return nil, fmt.Errorf("%s in it is no object", c.key)
		}
	}
	if servers["mcphub"] != nil {
		return nil, errThere
	}
	at, empty, ok := memberAt(text, c.key)
	if !ok { // the object comes first in the file
		at = bytes.IndexByte(text, '{') + 1
		empty = len(file) == 0
		member = "\n  \"" + c.key + "\": {" + member + "\n  }"
	}
	switch {
	case !empty:
		member += ","
	case ok:
		member += "\n  "
	default:
		member += "\n"
	}
	return slices.Concat(text[:at], []byte(member), text[at:]), nil
}

// memberAt finds the object under a key of the outermost object: the place right
// behind its brace, and whether it is empty.
func memberAt(text []byte, key string) (at int, empty, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, false, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return 0, false, false
		}
		if name != key {
			var skipped json.RawMessage
			if d.Decode(&skipped) != nil {
				return 0, false, false
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('{') {
			return 0, false, false
		}
		return int(d.InputOffset()), !d.More(), true
	}
	return 0, false, false
}

// readClientFile reads the file of a client; there may be none.
func readClientFile(path string) (f userFile, err error) {
	f.name = path
	f.path, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.path = path
		return f, nil
	}
	if err == nil {
		f.info, err = os.Stat(f.path)
	}
	if err == nil {
		f.text, err = os.ReadFile(f.path)
	}
	return f, err
}

// attach writes the file, keeps it as it was, and prints the difference.
func (f userFile) attach(a *app, changed []byte) error {
	diff, err := difference(f, changed)
	if err != nil {
		return err
	}
	if f.info == nil {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return err
		}
		out, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = out.Write(changed)
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
		a.say("%s: made", f.name)
	} else {
		backup, err := f.replace(changed)
		if err != nil {
			return err
		}
		a.say("%s: changed; as it was: %s", f.name, backup)
	}
	_, err = a.stdout.Write([]byte(diff))
	return err
}
