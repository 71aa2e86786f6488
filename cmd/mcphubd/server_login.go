package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"mcphubd/config"
	"mcphubd/transport/grant"
)

type serverLoginCmd struct {
	Name    string        `arg:"" complete:"server"`
	Browser bool          `default:"true" negatable:"" help:"Open the browser, too."`
	Scope   []string      `sep:" " help:"What to ask for besides what the server names."`
	Port    int           `help:"Where the browser comes back to on this machine, for clients that were registered with one port; 0 = any."`
	Timeout time.Duration `default:"5m" help:"How long to wait for you."`
}

func (serverLoginCmd) Help() string {
	return `Finds out whom the server trusts, registers mcphubd there, and prints the address at which you
say yes. What is granted is kept in the data directory, for you only, and renewed by itself. The
browser has to run on this machine, or reach --port of it. Nothing else ever asks you to sign in.`
}

func (cmd serverLoginCmd) Run(a *app) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	s, ok := c.Servers[cmd.Name]
	switch {
	case !ok:
		return noServer(cmd.Name, serverNames(c))
	case s.URL == "":
		return fmt.Errorf("server %s is a program on this machine: what it needs goes to env", s.Name)
	case s.HasCredential():
		return fmt.Errorf("server %s has a credential in headers or url, and gets that one: take it out first", s.Name)
	}
	ctx, cancel := context.WithTimeoutCause(a.ctx, cmd.Timeout, fmt.Errorf("nobody said yes within %s", cmd.Timeout))
	defer cancel()
	path, login, asked := grantPath(data, s), cmd.login(a, s), false
	show := login.Show
	login.Show = func(address string) {
		asked = true
		show(address)
	}
	if err := login.Run(ctx, path); err != nil {
		why := strings.TrimRight(config.Mask(err.Error(), s.Secrets), ": \n")
		if !asked {
			why += fmt.Sprintf("; a server that takes no OAuth wants a credential in headers of [servers.%s] instead", s.Name)
		}
		return fmt.Errorf("sign in to %s: %s", s.Name, why)
	}
	a.say("signed in to %s; what was granted is in %s", s.Name, path)
	return cmd.tell(a)
}

func (cmd serverLoginCmd) login(a *app, s config.Server) grant.Login {
	header := http.Header{}
	for name, value := range s.Headers {
		header.Set(name, value)
	}
	o := s.OAuth
	return grant.Login{URL: s.URL, Stream: s.Transport == "sse", Header: header, Port: cmd.Port,
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: slices.Concat(o.Scopes, cmd.Scope),
		Show: func(address string) {
			a.say("open this address, and say yes there:\n\n%s\n", address)
			if !cmd.Browser {
				return
			}
			if err := exec.CommandContext(a.ctx, "xdg-open", address).Start(); err != nil {
				a.say("no browser could be started (%v); open it yourself", err)
			}
		}}
}

// tell has a running daemon use what was granted at once.
func (cmd serverLoginCmd) tell(a *app) error {
	r, err := a.remote()
	if codeOf(err) == codeNotRunning {
		return nil
	}
	if err == nil {
		_, err = r.ask(a.ctx, http.MethodPost, "/debug/servers/"+url.PathEscape(cmd.Name)+"/restart")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the daemon was not told: mcphubd server restart %s does that", cmd.Name), err)
	}
	return nil
}

// grantPath is the file of what was granted at a server.
func grantPath(data string, s config.Server) string {
	if s.OAuth.Grant != "" {
		return s.OAuth.Grant
	}
	return grant.Path(data, s.Name)
}
