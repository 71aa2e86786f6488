package config

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Setting is one value in force, fit to be shown: of environment variables,
// headers and tokens only the names are there, and other secrets are masked.
type Setting struct {
	Key    toml.Key
	Value  any    // string, bool, int, Size, time.Duration or []string
	Source string // as in Sources
}

// Settings is all that is in force, in the order of default.toml, servers and
// agents by name. What is not set and has no default is left out.
func (c *Config) Settings() []Setting {
	l := &lister{config: c}
	l.add("listen", c.Listen)
	l.add("socket", c.Socket)
	l.add("response_budget", c.ResponseBudget)
	l.add("max_per_call_override", c.MaxPerCallOverride)
	l.add("verbatim", c.Verbatim)
	l.add("fail_open", c.FailOpen)
	l.add("output_schema", c.OutputSchema)
	l.add("max_frame", c.MaxFrame)
	l.add("max_request", c.MaxRequest)
	l.add("connect_timeout", c.ConnectTimeout)
	l.add("call_timeout", c.CallTimeout)
	l.add("idle_timeout", c.IdleTimeout)
	l.add("drain_timeout", c.DrainTimeout)
	l.add("session_idle", c.SessionIdle)
	l.in("results").add("preview", c.Results.Preview)
	l.add("owner_only", c.Results.OwnerOnly)
	l.in("spool").add("max_bytes", c.Spool.MaxBytes)
	l.in("log").add("level", c.Log.Level)
	l.in("debug").add("enabled", c.Debug.Enabled)
	if c.Debug.Token != "" {
		l.add("token", hidden)
	}
	for _, name := range sortedNames(c.Servers) {
		l.server(c.Servers[name])
	}
	for _, name := range sortedNames(c.Agents) {
		l.agent(c.Agents[name])
	}
	return l.settings
}

// lister collects settings below one table at a time.
type lister struct {
	config   *Config
	table    toml.Key
	settings []Setting
}

func (l *lister) in(table ...string) *lister {
	l.table = table
	return l
}

func (l *lister) add(name string, value any) {
	key := under(l.table, name)
	source, ok := l.config.Sources[key.String()]
	if !ok {
		source = "default"
	}
	l.settings = append(l.settings, Setting{key, value, source})
}

func (l *lister) addText(name, value string) {
	if value != "" {
		l.add(name, value)
	}
}

func (l *lister) addList(name string, value []string) {
	if value != nil {
		l.add(name, value)
	}
}

func (l *lister) addSize(name string, value *Size) {
	if value != nil {
		l.add(name, *value)
	}
}

func (l *lister) addCount(name string, value int) {
	if value != 0 {
		l.add(name, value)
	}
}

// addHidden adds only the names of texts.
func (l *lister) addHidden(texts map[string]string) {
	for _, name := range sortedNames(texts) {
		l.add(name, hidden)
	}
}

func (l *lister) server(s Server) {
	l.in("servers", s.Name)
	l.addText("command", Mask(s.Command, s.Secrets))
	if s.Args != nil {
		args := make([]string, len(s.Args))
		for i, arg := range s.Args {
			args[i] = Mask(Mask(arg, argSecrets(s.Args, i)), s.Secrets)
		}
		l.add("args", args)
	}
	l.addText("cwd", Mask(s.Cwd, s.Secrets))
	l.addText("url", Mask(Mask(s.URL, urlSecrets(s.URL)), s.Secrets))
	l.addText("transport", s.Transport)
	l.add("isolation", s.Isolation)
	l.addText("era", s.Era)
	l.add("enabled", s.Enabled)
	l.add("store", s.Store)
	l.addSize("response_budget", s.ResponseBudget)
	l.add("call_timeout", s.CallTimeout)
	l.add("idle_timeout", s.IdleTimeout)
	l.add("connect_timeout", s.ConnectTimeout)
	l.in("servers", s.Name, "env").addHidden(s.Env)
	l.in("servers", s.Name, "headers").addHidden(s.Headers)
	l.in("servers", s.Name, "oauth").addText("grant", s.OAuth.Grant)
	l.addText("client_id", s.OAuth.ClientID)
	if s.OAuth.ClientSecret != "" {
		l.add("client_secret", hidden)
	}
	l.addList("scopes", s.OAuth.Scopes)
	l.in("servers", s.Name, "tools").addList("allow", s.Tools.Allow)
	l.addList("deny", s.Tools.Deny)
	for _, tool := range sortedNames(s.Tool) {
		l.in("servers", s.Name, "tool", tool).addSize("response_budget", s.Tool[tool].ResponseBudget)
	}
}

func (l *lister) agent(a Agent) {
	l.in("agents", a.Name)
	l.addList("servers", a.Servers)
	l.addList("tools", a.Tools)
	l.addSize("response_budget", a.ResponseBudget)
	l.addCount("max_lines", a.MaxLines)
	l.addCount("max_tool_name", a.MaxToolName)
	if a.Token != "" {
		l.add("token", hidden)
	}
}

// Write writes settings as TOML, each with its source behind it if sources.
func Write(w io.Writer, settings []Setting, sources bool) error {
	var b strings.Builder
	table := ""
	for _, s := range settings {
		last := len(s.Key) - 1
		if in := s.Key[:last].String(); in != table {
			table = in
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		line := s.Key[last:].String() + " = " + literal(s.Value)
		if sources {
			line = fmt.Sprintf("%-45s # %s", line, s.Source)
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Tree is settings as nested maps, for JSON.
func Tree(settings []Setting) map[string]any {
	top := map[string]any{}
	for _, s := range settings {
		table, last := top, len(s.Key)-1
		for _, name := range s.Key[:last] {
			below, ok := table[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				table[name] = below
			}
			table = below
		}
		table[s.Key[last]] = s.plain()
	}
	return top
}

// plain is the value as JSON holds it: sizes and times as a file has them.
func (s Setting) plain() any {
	switch v := s.Value.(type) {
	case Size:
		return v.String()
	case time.Duration:
		return duration(v)
	}
	return s.Value
}

// literal is a value as TOML has it.
func literal(value any) string {
	switch v := value.(type) {
	case Size:
		return quote(v.String())
	case time.Duration:
		return quote(duration(v))
	case string:
		return quote(v)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(value)
}

// duration drops the empty parts that time.Duration writes: 30m, not 30m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quote writes a basic string of TOML.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u` + fmt.Sprintf("%04X", r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
