package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
)

// debugCmd holds the commands about the debug page.
type debugCmd struct {
	Open debugOpenCmd `cmd:"" help:"Print a link, good for one visit, to the debug page with the right to act."`
}

type debugOpenCmd struct {
	Browser bool `help:"Open it with the browser, too."`
	JSON    bool `name:"json" help:"Print JSON."`
}

func (debugOpenCmd) Help() string {
	return `Whoever follows the link within two minutes can restart servers and cancel calls on the page.
It works once. Looking needs no link, unless the configuration has a token under [debug].`
}

func (cmd debugOpenCmd) Run(a *app) error {
	r, err := a.remote()
	if err != nil {
		return err
	}
	answer, err := r.ask(a.ctx, http.MethodPost, "/debug/link")
	if err != nil {
		return err
	}
	var link struct{ URL string }
	if err := json.Unmarshal(answer, &link); err != nil {
		return fmt.Errorf("ask the daemon for a link: %w", err)
	}
	if cmd.JSON {
		return a.writeJSON(json.RawMessage(answer))
	}
	fmt.Fprintln(a.stdout, link.URL)
	if !cmd.Browser {
		return nil
	}
	if err := exec.CommandContext(a.ctx, "xdg-open", link.URL).Run(); err != nil {
		a.say("no browser could be started (%v); open the link yourself", err)
	}
	return nil
}
