package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// minBudget is what the smallest receipt needs.
const minBudget = 512 * B

// minFrame leaves room for a handshake.
const minFrame = 4 * KB

func noFault(Size) (fault, fix string) { return "", "" }

func budgetFault(s Size) (fault, fix string) {
	if 0 < s && s < minBudget {
		return fmt.Sprintf("%s is too small for a receipt", s), `write at least "512B", or "0" for unlimited`
	}
	return "", ""
}

func frameFault(s Size) (fault, fix string) {
	if s < minFrame {
		return "a message needs a bound, and room for a handshake", `write at least "4KB"`
	}
	return "", ""
}

// under is key with more parts behind it.
func under(key toml.Key, parts ...string) toml.Key {
	return append(append(toml.Key{}, key...), parts...)
}

// checkServer judges what is known once all keys of a server were read.
func (r *reader) checkServer(n node, s *Server) {
	if fault := serverNameFault(s.Name); fault != "" {
		r.wrong(n.key, fault, suggestName(s.Name))
	}
	hasCommand, hasURL := n.has("command"), n.has("url")
	switch {
	case hasCommand && hasURL:
		r.wrong(n.key, "has both command and url", "keep command for a program to start, or url for one that runs elsewhere")
	case hasURL:
		r.checkRemote(n, s)
	case hasCommand:
		r.checkChild(n, s)
	default:
		r.wrong(n.key, "has neither command nor url", `write command = "program" or url = "https://…/mcp"`)
	}
	r.checkGlobs(under(n.key, "tools", "allow"), s.Tools.Allow)
	r.checkGlobs(under(n.key, "tools", "deny"), s.Tools.Deny)
}

func suggestName(name string) string {
	if legal := legalName(name); legal != "" {
		return fmt.Sprintf("call it %q", legal)
	}
	return "choose another name"
}

func (n node) has(name string) bool {
	return slices.ContainsFunc(n.children, func(child node) bool { return child.name() == name })
}

func (r *reader) checkChild(n node, s *Server) {
	if s.Command == "" && !r.isWrong(under(n.key, "command")) {
		r.wrong(under(n.key, "command"), "is empty", "write the program to start; its arguments go to args")
	}
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		r.wrong(under(n.key, "cwd"), "is relative, and a daemon has no folder of its own", "write the whole path, or begin it with ~")
	}
	for name := range s.Env {
		if name == "" || strings.Contains(name, "=") {
			r.wrong(under(n.key, "env", name), "is not a name for a variable", "take out the =")
		}
	}
	r.refuseKeys(n, "belongs to a server with url, and this one has command", "transport", "headers", "oauth")
}

func (r *reader) checkRemote(n node, s *Server) {
	if s.Transport == "" {
		s.Transport = "http"
	}
	u, err := url.Parse(s.URL)
	if !r.isWrong(under(n.key, "url")) && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		r.wrong(under(n.key, "url"), "is not an http or https address", `write it like "https://example.com/mcp"`)
	}
	for name, value := range s.Headers {
		switch key := under(n.key, "headers", name); {
		case !isHeaderName(name):
			r.wrong(key, "is not a name for a header", "use letters, digits and -")
		case strings.ContainsAny(value, "\r\n"):
			r.wrong(key, "holds a line break", "put it on one line")
		}
	}
	if s.OAuth.Grant != "" && !filepath.IsAbs(s.OAuth.Grant) {
		r.wrong(under(n.key, "oauth", "grant"), "is relative, and a daemon has no folder of its own", "write the whole path, or begin it with ~")
	}
	r.refuseKeys(n, "belongs to a server with command, and this one has url", "args", "env", "cwd")
}

func (r *reader) refuseKeys(n node, message string, names ...string) {
	for _, name := range names {
		if n.has(name) {
			r.wrong(under(n.key, name), message, "take it out")
		}
	}
}

// isWrong reports whether key was found wrong already; one word is enough.
func (r *reader) isWrong(key toml.Key) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Key == key.String() })
}

func isHeaderName(s string) bool {
	for _, c := range s {
		if c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) {
			return false
		}
	}
	return s != ""
}

func (r *reader) checkGlobs(key toml.Key, globs []string) {
	for _, glob := range globs {
		if _, err := path.Match(glob, ""); err != nil {
			r.wrong(key, fmt.Sprintf("%q is not a pattern", glob), "use * for any text and ? for one character")
		}
	}
}

func (r *reader) checkAgent(n node, a Agent) {
	if fault := agentNameFault(a.Name); fault != "" {
		r.wrong(n.key, fault, suggestName(a.Name))
	}
	token := under(n.key, "token")
	switch {
	case !n.has("token") || r.isWrong(token):
	case a.Token == "":
		r.wrong(token, "is empty", "write one, or take the key out: then no token is asked for")
	case !isToken(a.Token):
		r.wrong(token, "holds what a bearer token cannot carry", "use letters, digits and - . _ ~ + / =, without spaces or line breaks")
	}
}

// isToken reports whether s can be sent as a bearer token.
func isToken(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// checkWhole judges what needs more than one table to see.
func (r *reader) checkWhole(c *Config) {
	r.checkListen(c.Listen)
	tokens := map[string]string{} // agent by token
	for _, name := range sortedNames(c.Agents) {
		agent := c.Agents[name]
		r.checkAgentServers(c, agent)
		if other, taken := tokens[agent.Token]; taken && agent.Token != "" {
			r.wrong(toml.Key{"agents", name, "token"}, fmt.Sprintf("is the same as that of agent %s", other), "give each agent a token of its own")
		}
		tokens[agent.Token] = name
	}
}

func (r *reader) checkAgentServers(c *Config, a Agent) {
	key := toml.Key{"agents", a.Name, "servers"}
	known := sortedNames(c.Servers)
	for _, server := range a.Servers {
		if _, ok := c.Servers[server]; ok {
			continue
		}
		fix := "configured are: " + strings.Join(known, ", ")
		if near := nearest(server, known); near != "" {
			fix = fmt.Sprintf("did you mean %q?", near)
		} else if len(known) == 0 {
			fix = fmt.Sprintf("add [servers.%s] first", server)
		}
		r.wrong(key, fmt.Sprintf("there is no server %q", server), fix)
	}
}

// checkListen lets in loopback addresses only: whoever reaches the port can
// call every tool of every server as the owner.
func (r *reader) checkListen(listen string) {
	key := toml.Key{"listen"}
	const fix = `write "127.0.0.1:9820", or "" for the socket only`
	if listen == "" || r.isWrong(key) {
		return
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		r.wrong(key, fmt.Sprintf("%q is not host:port", listen), fix)
		return
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		r.wrong(key, fmt.Sprintf("%q is not a port", port), "write a number from 0 to 65535")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		r.wrong(key, fmt.Sprintf("%q is not loopback, and whoever reaches this port can call every tool", host), fix)
	}
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// warnings names what is legal and yet of no use.
func (r *reader) warnings(c *Config) []string {
	var all []string
	warn := func(key toml.Key, text string) {
		all = append(all, fmt.Sprintf("%s: %s: %s", place(r.file, r.lines[key.String()]), key, text))
	}
	if 0 < c.MaxPerCallOverride && c.MaxPerCallOverride <= c.ResponseBudget {
		warn(toml.Key{"max_per_call_override"}, fmt.Sprintf(
			`%s never raises a budget of %s; write more, or "0" to switch it off`, c.MaxPerCallOverride, c.ResponseBudget))
	}
	if c.OutputSchema == "keep" && !c.Verbatim && c.ResponseBudget > 0 {
		warn(toml.Key{"output_schema"}, `"keep" makes clients that validate refuse the receipt of a stored result; write "union" or "strip", or verbatim = true`)
	}
	if _, ok := r.lines["agents"]; ok && len(c.Agents) == 0 {
		warn(toml.Key{"agents"}, "holds no agent, so every name is welcome and sees everything")
	}
	for _, name := range sortedNames(c.Servers) {
		key := toml.Key{"servers", name, "oauth"}
		if _, ok := r.lines[key.String()]; ok && c.Servers[name].HasCredential() {
			warn(key, "is of no use: the server has a credential in headers or url, and gets that one")
		}
	}
	for _, name := range sortedNames(c.Agents) {
		for _, tool := range c.Agents[name].Tools {
			server, _, ok := strings.Cut(tool, "__")
			if _, known := c.Servers[server]; ok && !known && !strings.ContainsAny(server, "*?[") {
				warn(toml.Key{"agents", name, "tools"}, fmt.Sprintf("%q is of no configured server", tool))
			}
		}
	}
	return all
}
