package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcphubd/config"
)

type importCmd struct {
	Files []string `arg:"" optional:"" type:"path" help:"JSON files of clients; else the usual places of those that are known."`
	JSON  bool     `name:"json" help:"Print what was found as JSON."`
}

func (importCmd) Help() string {
	return `Reads the servers that Claude, Cursor, VS Code and others have in their JSON files, and prints
them as tables for the configuration of mcphubd. Nothing is changed; to take them over:

    mcphubd import >> "$(mcphubd config path)"

Keys and tokens in those files are printed as they are: think of ${file:PATH} for them.`
}

// imported is a server as a client has it.
type imported struct {
	Name      string            `json:"name"`
	From      string            `json:"from"` // the file
	Type      string            `json:"type,omitempty"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	URL       string            `json:"url,omitempty"`
	ServerURL string            `json:"serverUrl,omitempty"` // as Windsurf says
	HTTPURL   string            `json:"httpUrl,omitempty"`   // as Gemini says
	Headers   map[string]string `json:"headers,omitempty"`
	Disabled  bool              `json:"disabled,omitempty"`
	Enabled   *bool             `json:"enabled,omitempty"`
}

func (cmd importCmd) Run(a *app) error {
	found, err := cmd.find(a)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	if c, err := config.Load(a.ConfigFile); err == nil {
		for name := range c.Servers {
			taken[name] = true
		}
	}
	kept := []imported{}
	for _, s := range found {
		if why := s.settle(taken); why != "" {
			a.say("%s: left out: %s", s.Name, why)
			continue
		}
		taken[s.Name] = true
		kept = append(kept, s)
	}
	if cmd.JSON {
		return a.writeJSON(kept)
	}
	return a.writeTables(kept)
}

// find reads the servers in all files. Of those that nobody named, what cannot be read is
// only told.
func (cmd importCmd) find(a *app) (found []imported, err error) {
	files, named := cmd.Files, true
	if len(files) == 0 {
		files, named = clientFiles(), false
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !named:
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, fail(codeNotFound, fmt.Errorf("import: %w", err))
		case err != nil:
			return nil, fmt.Errorf("import: %w", err)
		}
		servers, err := serversIn(b)
		if err != nil && named {
			return nil, fmt.Errorf("import %s: %w", path, err)
		}
		if err != nil {
			a.say("%s: left out: %v", path, err)
		}
		for _, s := range servers {
			s.From = path
			found = append(found, s)
		}
		a.say("%s: %s", path, count(len(servers), "server"))
	}
	return found, nil
}

// writeTables prints servers as TOML, and tells what the configuration would say of it.
func (a *app) writeTables(servers []imported) error {
	var b bytes.Buffer
	for _, s := range servers {
		s.write(&b)
	}
	_, err := config.Parse("what is printed", b.Bytes(), config.OS())
	var invalid *config.Error
	if errors.As(err, &invalid) {
		a.say("to be mended before it can be used:\n%v", invalid)
	}
	_, err = a.stdout.Write(b.Bytes())
	return err
}

// clientFiles is where clients keep their servers.
func clientFiles() (paths []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	settings, err := os.UserConfigDir()
	if err != nil {
		settings = filepath.Join(home, ".config")
	}
	return []string{
		filepath.Join(home, ".claude.json"),
		filepath.Join(settings, "Claude", "claude_desktop_config.json"),
		filepath.Join(home, ".cursor", "mcp.json"),
		filepath.Join(settings, "Code", "User", "mcp.json"),
		filepath.Join(home, ".codeium", "windsurf", "mcp_config.json"),
		filepath.Join(home, ".gemini", "settings.json"),
		filepath.Join(settings, "zed", "settings.json"),
		".mcp.json",
		filepath.Join(".cursor", "mcp.json"),
		filepath.Join(".vscode", "mcp.json"),
	}
}

// serversIn finds the servers in the JSON of a client, with or without comments.
func serversIn(text []byte) (all []imported, err error) {
	var file struct {
		MCPServers map[string]json.RawMessage `json:"mcpServers"`
		Servers    map[string]json.RawMessage `json:"servers"`
		Context    map[string]json.RawMessage `json:"context_servers"`
		MCP        struct {
			Servers map[string]json.RawMessage `json:"servers"`
		} `json:"mcp"`
		Projects map[string]struct {
			MCPServers map[string]json.RawMessage `json:"mcpServers"`
		} `json:"projects"`
	}
	if err := json.Unmarshal(withoutComments(text), &file); err != nil {
		return nil, fmt.Errorf("it is no JSON that can be read: %w", err)
	}
	groups := []map[string]json.RawMessage{file.MCPServers, file.Servers, file.Context, file.MCP.Servers}
	for _, dir := range slices.Sorted(maps.Keys(file.Projects)) {
		groups = append(groups, file.Projects[dir].MCPServers)
	}
	for _, group := range groups {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			s := imported{}
			if json.Unmarshal(group[name], &s) != nil {
				return all, fmt.Errorf("server %s has a form that is not known", name)
			}
			s.Name = name
			all = append(all, s)
		}
	}
	return all, nil
}

// withoutComments takes comments and commas before an end out of JSON, as editors
// allow them.
func withoutComments(text []byte) []byte {
	var out bytes.Buffer
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case text[i] == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			out.Write(text[i:end])
			i = end - 1
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return out.Bytes()
			}
			i += n - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return out.Bytes()
			}
			i += n + 3
		case text[i] == '}' || text[i] == ']':
			trimmed := bytes.TrimRight(out.Bytes(), " \t\r\n")
			if bytes.HasSuffix(trimmed, []byte(",")) {
				out.Truncate(len(trimmed) - 1)
			}
			out.WriteByte(text[i])
		default:
			out.WriteByte(text[i])
		}
	}
	return out.Bytes()
}

// settle makes a server fit for the configuration, or says why it is left out.
func (s *imported) settle(taken map[string]bool) (why string) {
	s.URL = cmp.Or(s.URL, s.HTTPURL, s.ServerURL)
	switch {
	case s.Command == "" && s.URL == "":
		return "it has neither a command nor a url"
	case strings.HasPrefix(filepath.Base(s.Command), "mcphubd"), slices.Contains(s.Args, "mcphubd"):
		return "this is mcphubd itself"
	}
	name := config.LegalServerName(s.Name)
	switch {
	case name == "":
		return "its name cannot be made one of the configuration"
	case taken[name]:
		return "there is a server " + name + " already"
	}
	s.Name = name
	return ""
}

// write prints s as a table of the configuration.
func (s imported) write(w io.Writer) {
	fmt.Fprintf(w, "\n# from %s\n[servers.%s]\n", s.From, s.Name)
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s = %s\n", key, tomlText(value))
		}
	}
	if s.URL != "" {
		line("url", s.URL)
		if s.Type == "sse" {
			line("transport", "sse")
		}
		fmt.Fprint(w, tomlTable("headers", s.Headers))
	} else {
		line("command", s.Command)
		if len(s.Args) > 0 {
			var args []string
			for _, a := range s.Args {
				args = append(args, tomlText(a))
			}
			fmt.Fprintf(w, "args = [%s]\n", strings.Join(args, ", "))
		}
		fmt.Fprint(w, tomlTable("env", s.Env))
		line("cwd", s.Cwd)
	}
	if s.Disabled || s.Enabled != nil && !*s.Enabled {
		fmt.Fprintln(w, "enabled = false")
	}
}

func tomlTable(key string, texts map[string]string) string {
	if len(texts) == 0 {
		return ""
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		pairs = append(pairs, tomlQuote(name)+" = "+tomlText(texts[name]))
	}
	return key + " = { " + strings.Join(pairs, ", ") + " }\n"
}

// elsewhere is what clients put into texts and only they know the value of.
var elsewhere = regexp.MustCompile(`\$\{(?:input:[^}]*|workspace[^}]*|relativeFile[^}]*|file(?:[A-Z][^}]*)?)\}`)

var notInVariable = regexp.MustCompile(`[^A-Za-z0-9]+`)

// tomlText is a value: what clients and we refer to in the same way stays, what only
// they know becomes a variable that has to be set.
func tomlText(s string) string {
	s = strings.ReplaceAll(s, "${userHome}", "${HOME}")
	s = elsewhere.ReplaceAllStringFunc(s, func(ref string) string {
		name := strings.TrimPrefix(strings.TrimSuffix(ref[2:], "}"), "input:")
		return "${" + strings.ToUpper(notInVariable.ReplaceAllString(name, "_")) + "}"
	})
	return tomlQuote(s)
}

// tomlQuote is a basic string; those of JSON are that, but for DEL.
func tomlQuote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}
