package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"mcphubd/actors"
	"mcphubd/config"
)

// serverCmd holds the commands about servers.
type serverCmd struct {
	Ls      serverLsCmd      `cmd:"" help:"List the servers and how they are."`
	Show    serverShowCmd    `cmd:"" help:"Tell all that is known about a server, with the end of its stderr."`
	Restart serverRestartCmd `cmd:"" help:"Start a server anew, after its calls in flight had their time."`
	Login   serverLoginCmd   `cmd:"" help:"Sign in to a server that wants OAuth, once, in the browser."`
	Probe   serverProbeCmd   `cmd:"" help:"Start another copy of a configured server, list its tools and end it; needs no daemon."`
}

type serverLsCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (cmd serverLsCmd) Run(a *app) error {
	s, raw, err := a.look()
	if err != nil {
		return err
	}
	rows := [][]cell{heads("SERVER", "STATE", ">FOR", ">TOOLS", ">CALLS", ">IN FLIGHT", ">P95", ">STARTS", ">PID", "PROTOCOL", "CAUSE")}
	for _, v := range s.Servers {
		pid := ""
		if v.Info.PID != 0 {
			pid = fmt.Sprint(v.Info.PID)
		}
		state, cause := stateOf(v), v.Cause
		if !v.Enabled {
			cause = "enabled = false in the configuration"
		}
		rows = append(rows, []cell{text(v.Name), painted(state, stateColour(state)), number(ago(v.Since)), number(fmt.Sprint(v.Tools)),
			number(countText(v.Tally.Calls)), number(fmt.Sprint(v.InFlight)), number(pace(v.Tally.Pace)), number(fmt.Sprint(v.Starts)), number(pid), text(v.Info.Protocol), painted(cause, faint)})
	}
	return a.list(cmd.JSON, partOf(raw, "servers"), rows, "no server is configured")
}

// stateOf is the state of a server in a word.
func stateOf(v actors.ServerLine) string {
	if !v.Enabled {
		return "disabled"
	}
	return string(v.State)
}

func sinceText(v actors.ServerLine) string {
	if !v.Enabled {
		return stateOf(v)
	}
	return stateOf(v) + " for " + ago(v.Since)
}

type serverShowCmd struct {
	Name string `arg:"" complete:"server"`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (cmd serverShowCmd) Run(a *app) error {
	s, _, err := a.look()
	if err != nil {
		return err
	}
	v, err := serverIn(s, cmd.Name)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return a.writeJSON(v)
	}
	return showServer(a.screen(), v)
}

func showServer(out *screen, v actors.ServerLine) error {
	pid := ""
	if v.Info.PID != 0 {
		pid = fmt.Sprint(v.Info.PID)
	}
	out.pairs(
		[2]string{"server", v.Name},
		[2]string{"state", sinceText(v)},
		[2]string{"cause", v.Cause},
		[2]string{"next try", left(v.NextTry)},
		[2]string{"is", strings.TrimSpace(v.Info.Name + " " + v.Info.Version)},
		[2]string{"protocol", v.Info.Protocol},
		[2]string{"pid", pid},
		[2]string{"starts", fmt.Sprint(v.Starts)},
		[2]string{"tools", fmt.Sprint(v.Tools)},
		[2]string{"calls", fmt.Sprintf("%d in flight, %s since the start, %s of them failed", v.InFlight, countText(v.Tally.Calls), countText(v.Tally.Errors))},
		[2]string{"p95", pace(v.Tally.Pace)},
		[2]string{"list error", v.ListErr},
		[2]string{"other lists", strings.Join(v.FeatureErr, "; ")},
		[2]string{"stdout", noiseText(v.Noise, v.FirstNoise)},
	)
	for _, b := range v.Bad {
		out.line(painted(fmt.Sprintf("left out of its list: %+v", b), warn))
	}
	if v.Stderr != "" {
		out.line()
		out.line(painted("the end of its stderr", head))
		fmt.Fprint(out, strings.TrimSuffix(v.Stderr, "\n")+"\n")
	}
	return out.close()
}

// pace is how long 95 of 100 took at most, "" when there was none.
func pace(p actors.Pace) string {
	if p.P95 == 0 {
		return ""
	}
	return span(p.P95)
}

func serverIn(s state, name string) (actors.ServerLine, error) {
	var names []string
	for _, v := range s.Servers {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return actors.ServerLine{}, noServer(name, names)
}

func noServer(name string, names []string) error {
	return fail(codeNotFound, fmt.Errorf("no server is called %q; there is: %s", name, orNone(names)))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

type serverRestartCmd struct {
	Name string `arg:"" complete:"server"`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (cmd serverRestartCmd) Run(a *app) error {
	r, err := a.remote()
	if err != nil {
		return err
	}
	answer, err := r.ask(a.ctx, http.MethodPost, "/debug/servers/"+url.PathEscape(cmd.Name)+"/restart")
	if err != nil {
		return fmt.Errorf("restart server %s: %w", cmd.Name, err)
	}
	return a.acted(cmd.JSON, answer, "server %s is started anew; see mcphubd server show %s", cmd.Name, cmd.Name)
}

type serverProbeCmd struct {
	Name string `arg:"" complete:"server"`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (serverProbeCmd) Help() string {
	return `Starts the server as it is configured, as a process of its own: what the daemon runs is not
touched. Exit code 6 when it does not come up; mcphubd doctor --explain CODE tells more.`
}

func (cmd serverProbeCmd) Run(a *app) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	s, ok := c.Servers[cmd.Name]
	if !ok {
		return noServer(cmd.Name, serverNames(c))
	}
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	p := probe(a.ctx, c, data, s)
	if cmd.JSON {
		err = a.writeJSON(p)
	} else {
		err = showProbe(a.screen(), p)
	}
	if err == nil && !p.OK {
		err = fail(codeUnhealthy, errTold)
	}
	return err
}

func serverNames(c *config.Config) (names []string) {
	for n := range c.Servers {
		names = append(names, n)
	}
	return sorted(names)
}

func showProbe(out *screen, p probed) error {
	if p.OK {
		out.line(text(p.Server+": "), painted("ok", good))
	} else {
		out.line(text(p.Server+": "), painted(p.Code, bad), text("  "+p.Error))
	}
	var is, tools string
	if p.Protocol != "" {
		is = fmt.Sprintf("%s %s, MCP %s, in %.0f ms", p.Name, p.Version, p.Protocol, p.HandshakeMs)
		tools = fmt.Sprintf("%d, in %.0f ms", p.Tools, p.ListMs)
	}
	out.pairs(
		[2]string{"  is", is},
		[2]string{"  tools", tools},
		[2]string{"  stdout", noiseText(p.Noise, p.FirstNoise)},
		[2]string{"  stderr", oneLine(p.Stderr, 500)},
	)
	return out.close()
}
