package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"mcphubd/actors"
	"mcphubd/config"
)

// This file is what doctor finds at servers, and at what agents get from them.

// servers looks at every configured server: as the daemon sees it, else by starting
// it once, if that is wished.
func (c *checkup) servers(start bool) {
	if c.conf == nil {
		return
	}
	var rest []config.Server
	for _, name := range serverNames(c.conf) {
		s := c.conf.Servers[name]
		switch line, err := serverIn(c.state, name); {
		case !s.Enabled:
		case c.daemon != nil && err == nil && line.State == actors.Ready:
			c.ok("server "+name, "ready for %s, %s", ago(line.Since), count(line.Tools, "tool"))
			c.left(line)
		case start:
			rest = append(rest, s)
		case c.daemon != nil && err == nil:
			c.notReady(line)
		default:
			c.unstarted(s)
		}
	}
	c.probe(rest)
}

// notReady looks at a server of the daemon that is not up.
func (c *checkup) notReady(line actors.ServerLine) {
	cause := line.Cause
	for _, p := range c.state.Problems {
		if p.Code == "server-down" && p.Subject == line.Name && cause == "" { // it is being tried again
			_, cause, _ = strings.Cut(p.Text, " is down: ")
		}
	}
	if cause == "" {
		c.ok("server "+line.Name, "%s for %s", line.State, ago(line.Since))
		return
	}
	c.down(line.Name, troubleOf(cause, false), cause, line.Stderr)
}

// unstarted looks only whether the command is there.
func (c *checkup) unstarted(s config.Server) {
	if s.URL != "" {
		return
	}
	path, ok := s.Env["PATH"]
	if !ok {
		path = os.Getenv("PATH")
	}
	if searched, ok := findCommand(s.Command, path, s.Cwd); !ok {
		c.found("command-not-found", s.Name, "%s is not there", s.Command).with(searched)
		return
	}
	c.ok("server "+s.Name, "its command is there; --probe starts it")
}

// left names what could not be taken from a server that is up.
func (c *checkup) left(line actors.ServerLine) {
	if line.Noise > 0 {
		c.noise(line.Name, line.Noise, line.FirstNoise)
	}
	if line.ListErr != "" {
		c.down(line.Name, "server-down", "its tools could not be read: "+line.ListErr, line.Stderr)
	}
}

// down notes why a server does not work.
func (c *checkup) down(name, code, cause, stderr string) {
	f := c.found(code, name, "%s", cause)
	if tail := lastLines(stderr, 5); tail != "" && !strings.Contains(cause, "stderr: ") {
		f.with("stderr: " + tail)
	}
}

// lastLines is the last n lines of a text, in one.
func lastLines(s string, n int) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(len(lines)-n, 0):], " | ")
}

// probe starts servers side by side, a few at a time.
func (c *checkup) probe(all []config.Server) {
	results := make([]probed, len(all))
	slots := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = probe(c.ctx, c.conf, c.data, s)
		})
	}
	wg.Wait()
	for _, p := range results {
		if !p.OK {
			c.down(p.Server, p.Code, p.Error, p.Stderr)
			continue
		}
		c.sizes[p.Server] = p.listed
		c.ok("server "+p.Server, "comes up in %.0f ms, %s", p.HandshakeMs, count(p.Tools, "tool"))
		if p.Noise > 0 {
			c.noise(p.Server, p.Noise, p.FirstNoise)
		}
	}
}

// noise warns of a server that comes up although it writes to stdout what no message is.
func (c *checkup) noise(server string, lines int64, first string) {
	c.warned("stdout-not-json", server, "on stdout: %s", noiseText(lines, first))
}

const (
	manyTools       = 128     // what some clients take at most
	longDescription = 2 << 10 // where some clients cut
)

// caps is what clients do with large results, by how their agents are named.
var caps = []struct {
	name  string
	bytes int64
	does  string
}{
	{"codex", 10 << 10, "cuts the middle out of what is above some 10 KB"},
	{"claude", 50_000, "moves what is above 50,000 characters into a file"},
}

// contexts looks at what reaches agents: budgets, numbers and sizes of tools.
func (c *checkup) contexts() {
	if c.conf == nil {
		return
	}
	for _, name := range c.agents() {
		if agent, known := c.conf.Agent(name); known {
			c.budget(agent)
			c.tools(agent)
		}
	}
	for _, server := range serverNames(c.conf) {
		if c.conf.Servers[server].Enabled {
			c.descriptions(server)
		}
	}
}

// tools counts what an agent sees.
func (c *checkup) tools(agent config.Agent) {
	n := 0
	for server, tools := range c.sizes {
		for _, t := range tools {
			if sees(c.conf, agent, server, t.name) {
				n++
			}
		}
	}
	if n > manyTools {
		c.warned("too-many-tools", agent.Name, "it sees %d tools; many clients take %d at most", n, manyTools)
	}
}

// descriptions looks for those of a server that clients would cut.
func (c *checkup) descriptions(server string) {
	var long []string
	for _, t := range c.sizes[server] {
		if t.description > longDescription {
			long = append(long, fmt.Sprintf("%s (%s)", t.name, bytesText(int64(t.description))))
		}
	}
	if len(long) > 0 {
		c.warned("long-descriptions", server, "%s over 2 KB", count(len(long), "description")).with(strings.Join(long, ", "))
	}
}

// agents is whoever is configured or was here.
func (c *checkup) agents() (names []string) {
	for n := range c.conf.Agents {
		names = append(names, n)
	}
	for _, s := range c.state.Sessions {
		names = append(names, s.Agent)
	}
	if len(names) == 0 {
		names = []string{config.DefaultAgent}
	}
	return slices.Compact(sorted(names))
}

// sees reports whether a server's tool is in an agent's scope. Shortened names are
// taken for what they were made of.
func sees(c *config.Config, agent config.Agent, server, tool string) bool {
	s, configured := c.Servers[server]
	return configured && s.Enabled && (agent.Servers == nil || slices.Contains(agent.Servers, server)) &&
		(agent.Tools == nil || slices.Contains(agent.Tools, server+"__"+tool))
}

// budget compares what an agent may get with what its client is known to take.
func (c *checkup) budget(agent config.Agent) {
	for _, client := range caps {
		if !strings.Contains(strings.ToLower(agent.Name), client.name) {
			continue
		}
		most := mostFor(c.conf, agent)
		switch {
		case c.conf.Verbatim, most == 0:
			c.warned("budget-above-cap", agent.Name, "its results have no bound, and the client %s", client.does)
		case most > client.bytes:
			c.warned("budget-above-cap", agent.Name, "it gets results of up to %s, and the client %s", bytesText(most), client.does)
		}
	}
}

// mostFor is the largest budget that a result for that agent can have, 0 = none.
// What a server may ask for on top of it is not counted.
func mostFor(c *config.Config, agent config.Agent) int64 {
	most, unbounded := int64(c.ResponseBudget), c.ResponseBudget == 0
	for name, s := range c.Servers {
		if agent.Servers != nil && !slices.Contains(agent.Servers, name) {
			continue
		}
		for _, b := range append([]*config.Size{s.ResponseBudget}, toolBudgets(s)...) {
			if b != nil {
				most, unbounded = max(most, int64(*b)), unbounded || *b == 0
			}
		}
	}
	ceiling := int64(0)
	if agent.ResponseBudget != nil {
		ceiling = int64(*agent.ResponseBudget)
	}
	switch {
	case unbounded:
		return ceiling
	case ceiling > 0:
		return min(most, ceiling)
	}
	return most
}

func toolBudgets(s config.Server) (all []*config.Size) {
	for _, t := range s.Tool {
		all = append(all, t.ResponseBudget)
	}
	return all
}
