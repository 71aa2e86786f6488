package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"mcphubd/store"
)

// callCmd holds the commands about calls.
type callCmd struct {
	Ls     callLsCmd     `cmd:"" help:"List the calls in flight, or with --done those that ended."`
	Cancel callCancelCmd `cmd:"" help:"End a call in flight; its agent gets an error."`
}

type callLsCmd struct {
	Done   bool      `help:"List calls that ended, the newest first."`
	Failed bool      `help:"With --done: only those that did not end well."`
	Agent  string    `help:"Only of this agent." complete:"agent"`
	Server string    `help:"Only to this server." complete:"server"`
	Since  sinceFlag `default:"24h" help:"With --done: how far back, such as 90m, 7d or 2026-03-01."`
	Limit  int       `default:"50" help:"With --done: how many at most."`
	JSON   bool      `name:"json" help:"Print JSON."`
}

func (callLsCmd) Help() string {
	return `Calls in flight are read from the daemon. Calls that ended are read from the store, where they
stay for 30 days; that works without a daemon too. Neither shows arguments or results.`
}

func (cmd callLsCmd) Run(a *app) error {
	if cmd.Done || cmd.Failed {
		return cmd.ended(a)
	}
	s, _, err := a.look()
	if err != nil {
		return err
	}
	calls := s.Calls[:0]
	rows := [][]cell{heads(">CALL", "AGENT", "SERVER", "TOOL", ">RUNS FOR")}
	for _, c := range s.Calls {
		if cmd.Agent != "" && c.Agent != cmd.Agent || cmd.Server != "" && c.Server != cmd.Server {
			continue
		}
		calls = append(calls, c)
		rows = append(rows, []cell{number(fmt.Sprint(c.Serial)), text(c.Agent), text(c.Server), text(c.Tool), number(ago(c.Since))})
	}
	return a.list(cmd.JSON, calls, rows, "no call is in flight; those that ended: mcphubd call ls --done")
}

// doneCall is what call ls --done --json prints of a call.
type doneCall struct {
	At          time.Time `json:"at"`
	Agent       string    `json:"agent"`
	Server      string    `json:"server"`
	Tool        string    `json:"tool"`
	Outcome     string    `json:"outcome"`
	Ms          float64   `json:"ms"`
	ArgBytes    int64     `json:"argBytes"`
	ResultBytes int64     `json:"resultBytes"`
	Stored      bool      `json:"stored"`
	Error       string    `json:"error,omitempty"`
}

func (cmd callLsCmd) ended(a *app) error {
	r, err := a.openStore()
	if err != nil {
		return err
	}
	defer r.Close()
	all, err := r.Calls(a.ctx, cmd.Since.Time, cmd.scan())
	if err != nil {
		return err
	}
	done := []doneCall{}
	for _, c := range all {
		if cmd.wants(c) && len(done) < cmd.Limit {
			done = append(done, doneCall{At: c.At, Agent: c.Agent, Server: c.Server, Tool: c.Tool, Outcome: c.Outcome, Ms: ms(c.Took),
				ArgBytes: c.ArgBytes, ResultBytes: c.ResultBytes, Stored: c.Stored, Error: c.Error})
		}
	}
	rows := [][]cell{heads("ENDED", "AGENT", "SERVER", "TOOL", "OUTCOME", ">TOOK", ">BYTES", "STORED", "ERROR")}
	for _, c := range done {
		outcome := painted(c.Outcome, good)
		if c.Outcome != "ok" {
			outcome.paint = bad
		}
		took := time.Duration(c.Ms * float64(time.Millisecond))
		rows = append(rows, []cell{text(c.At.Add(took).Local().Format(time.DateTime)), text(c.Agent), text(c.Server), text(c.Tool), outcome,
			number(span(took)), number(bytesText(c.ResultBytes)), text(yes(c.Stored)), painted(c.Error, faint)})
	}
	return a.list(cmd.JSON, done, rows, "no such call ended in that time")
}

// scan is how many records are looked at: all, when some of them are left out.
func (cmd callLsCmd) scan() int {
	if cmd.Failed || cmd.Agent != "" || cmd.Server != "" {
		return 1_000_000
	}
	return cmd.Limit
}

func (cmd callLsCmd) wants(c store.Call) bool {
	return (!cmd.Failed || c.Outcome != "ok") && (cmd.Agent == "" || c.Agent == cmd.Agent) && (cmd.Server == "" || c.Server == cmd.Server)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

type callCancelCmd struct {
	Call int64 `arg:"" help:"The number of the call, from mcphubd call ls." complete:"call"`
	JSON bool  `name:"json" help:"Print JSON."`
}

func (cmd callCancelCmd) Run(a *app) error {
	r, err := a.remote()
	if err != nil {
		return err
	}
	answer, err := r.ask(a.ctx, http.MethodPost, fmt.Sprintf("/debug/calls/%d/cancel", cmd.Call))
	if err != nil {
		return fmt.Errorf("cancel call %d: %w", cmd.Call, err)
	}
	return a.acted(cmd.JSON, answer, "call %d is cancelled", cmd.Call)
}

// acted tells that the daemon did something: in words on stderr, or as JSON.
func (a *app) acted(asJSON bool, answer []byte, format string, args ...any) error {
	if !asJSON {
		a.say(format, args...)
		return nil
	}
	if json.Valid(answer) {
		return a.writeJSON(json.RawMessage(answer))
	}
	return a.writeJSON(map[string]bool{"ok": true})
}
