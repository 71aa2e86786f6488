package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"mcphubd/config"
)

type doctorCmd struct {
	Probe   bool   `help:"Start the servers that no daemon runs, to see whether they come up."`
	Explain string `placeholder:"CODE" help:"Explain one kind of problem and what to do about it." complete:"code"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (doctorCmd) Help() string {
	return `Looks at configuration, store, daemon and servers, with and without a running daemon, and says
what is wrong, each with a code and one thing to do. A warning is what costs something; a
problem is what does not work, and makes the exit code 6. Nothing is changed.`
}

// finding is one thing that is not as it should be.
type finding struct {
	Code    string   `json:"code"`
	Warning bool     `json:"warning"` // it works all the same
	Subject string   `json:"subject"` // which file, server, agent
	Text    string   `json:"text"`
	Detail  []string `json:"detail,omitempty"` // what was seen: stderr, a first line
	Fix     string   `json:"fix"`
}

// checkup is one look at everything.
type checkup struct {
	*app
	data   string
	conf   *config.Config // nil when it is invalid
	daemon *remote        // nil when none runs
	state  state
	sizes  map[string][]listing // tools by server, as far as they are known

	well     [][2]string // what was looked at and is as it should be
	findings []finding
}

// checkupShown is what doctor --json prints.
type checkupShown struct {
	OK       bool        `json:"ok"` // no finding but warnings
	Running  bool        `json:"running"`
	Findings []finding   `json:"findings"`
	Well     [][2]string `json:"well"`
}

func (cmd doctorCmd) Run(a *app) error {
	if cmd.Explain != "" {
		return explain(a.screen(), cmd.Explain)
	}
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	c := &checkup{app: a, data: data, sizes: map[string][]listing{}}
	c.configuration()
	c.process()
	c.store()
	c.servers(cmd.Probe)
	c.contexts()
	ok := true
	for _, f := range c.findings {
		ok = ok && f.Warning
	}
	if cmd.JSON {
		err = a.writeJSON(checkupShown{ok, c.daemon != nil, append([]finding{}, c.findings...), c.well})
	} else {
		err = c.show(a.screen())
	}
	if err == nil && !ok {
		err = fail(codeUnhealthy, errTold)
	}
	return err
}

func (c *checkup) show(out *screen) error {
	for _, w := range c.well {
		out.line(painted("ok       ", good), text(w[0]+": "+w[1]))
	}
	for _, f := range c.findings {
		kind := painted("problem  ", bad)
		if f.Warning {
			kind = painted("warning  ", warn)
		}
		out.line(kind, painted(f.Code, head), text("  "+f.Subject+": "+f.Text))
		for _, d := range f.Detail {
			out.line(painted("         "+oneLine(d, 400), faint))
		}
		out.line(painted("         do: ", faint), text(f.Fix))
	}
	if len(c.findings) > 0 {
		out.line()
		out.line(painted("mcphubd doctor --explain CODE tells more about each", faint))
	}
	return out.close()
}

func (c *checkup) ok(what, format string, args ...any) {
	c.well = append(c.well, [2]string{what, fmt.Sprintf(format, args...)})
}

// found notes a problem; its fix is that of its code.
func (c *checkup) found(code, subject, format string, args ...any) *finding {
	c.findings = append(c.findings, finding{Code: code, Subject: subject, Text: fmt.Sprintf(format, args...), Fix: fixFor(code, subject)})
	return &c.findings[len(c.findings)-1]
}

// warned notes what works all the same.
func (c *checkup) warned(code, subject, format string, args ...any) *finding {
	f := c.found(code, subject, format, args...)
	f.Warning = true
	return f
}

func (f *finding) with(detail ...string) {
	for _, d := range detail {
		if d != "" {
			f.Detail = append(f.Detail, d)
		}
	}
}

// configuration reads the file as a daemon would.
func (c *checkup) configuration() {
	conf, err := config.Load(c.ConfigFile)
	var invalid *config.Error
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			code := "config-invalid"
			if strings.HasSuffix(p.Message, "is not set") || strings.HasPrefix(p.Message, "${file:") {
				code = "secret-missing"
			}
			subject := fmt.Sprintf("%s:%d", p.File, p.Line)
			f := c.found(code, subject, "%s: %s", p.Key, p.Message)
			if p.Fix != "" {
				f.Fix = p.Fix
			}
		}
		return
	case err != nil:
		c.found("config-invalid", "configuration", "%v", err)
		return
	}
	c.conf = conf
	c.ok("configuration", "%s: %s, %s", origin(conf), count(len(conf.Servers), "server"), count(len(conf.Agents), "agent"))
	for _, w := range conf.Warnings {
		c.warned("config-invalid", "configuration", "%s", w).Fix = "mcphubd config show --sources tells where each value came from"
	}
}

// process looks for the daemon, and if there is none, for what would keep it from
// starting.
func (c *checkup) process() {
	r, err := c.remote()
	if err != nil {
		c.absent()
		return
	}
	s, _, err := r.state(c.ctx)
	if err != nil {
		c.found("daemon-silent", "daemon", "%v", err)
		return
	}
	c.daemon, c.state = r, s
	mine, theirs := thisBuild().Version, s.Daemon.Version
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", r.PID))
	switch {
	case mine != theirs:
		c.warned("version-skew", "daemon", "the daemon (pid %d) is %s, this command is %s", r.PID, theirs, mine)
	case strings.HasSuffix(exe, " (deleted)"):
		c.warned("version-skew", "daemon", "the program of the daemon (pid %d) was replaced after it started", r.PID)
	default:
		c.ok("daemon", "pid %d answers; version %s", r.PID, theirs)
	}
	for _, p := range s.Problems {
		if p.Code != "server-down" && p.Code != "server-unauthorized" { // servers are looked at below
			c.found(p.Code, p.Subject, "%s", p.Text).Fix = p.Fix
		}
	}
}

func (c *checkup) absent() {
	if pid, lives := lockOwner(c.data); lives {
		c.found("daemon-silent", "daemon", "process %d holds %s and does not answer on its socket", pid, c.data)
		return
	}
	c.ok("daemon", "none runs")
	if c.conf == nil {
		return
	}
	if path := socketPath(c.conf, c.data); exists(path) {
		c.warned("socket-stale", path, "nobody listens on it")
	}
	if c.conf.Listen == "" {
		return
	}
	if err := mayListen(c.conf.Listen); err != nil {
		c.found("port-taken", c.conf.Listen, "%v", err)
		return
	}
	c.ok("address", "%s is free", c.conf.Listen)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
