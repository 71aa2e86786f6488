package main

import (
	"fmt"
	"time"

	"mcphubd/store"
)

type statsCmd struct {
	Since sinceFlag `default:"7d" help:"How far back, such as 24h, 7d or 2026-03-01; calls are known for 30 days."`
	Tools bool      `help:"A line a tool in place of a line a server."`
	JSON  bool      `name:"json" help:"Print JSON."`
}

func (statsCmd) Help() string {
	return `Sums up the calls in the store: how many, how many failed, the time that 95 of 100 took at
most, and what they brought. "Kept out" is the bytes of results that agents got a receipt for,
in place of all of it in their context; tokens are estimated as bytes / 4.`
}

// statsLine is what stats --json prints of a server or a tool.
type statsLine struct {
	Server        string    `json:"server,omitempty"`
	Tool          string    `json:"tool,omitempty"`
	Calls         int64     `json:"calls"`
	Errors        int64     `json:"errors"`
	P95Ms         float64   `json:"p95Ms,omitempty"`
	ArgBytes      int64     `json:"argBytes"`
	ResultBytes   int64     `json:"resultBytes"`
	Tokens        int64     `json:"tokens"` // estimated, of all results
	Stored        int64     `json:"stored"` // results
	KeptOutBytes  int64     `json:"keptOutBytes"`
	KeptOutTokens int64     `json:"keptOutTokens"` // estimated
	Last          time.Time `json:"last,omitzero"`
}

// statsShown is what stats --json prints.
type statsShown struct {
	Since time.Time   `json:"since"`
	Rows  []statsLine `json:"rows"`
	Total statsLine   `json:"total"`
}

// bytesPerToken is the usual estimate.
const bytesPerToken = 4

func (cmd statsCmd) Run(a *app) error {
	r, err := a.openStore()
	if err != nil {
		return err
	}
	defer r.Close()
	all, err := r.Stats(a.ctx, cmd.Since.Time, cmd.Tools)
	if err != nil {
		return err
	}
	shown := statsShown{Since: cmd.Since.Time, Rows: []statsLine{}}
	for _, s := range all {
		shown.add(s)
	}
	if cmd.JSON {
		return a.writeJSON(shown)
	}
	return cmd.show(a.screen(), shown)
}

func (s *statsShown) add(c store.CallStats) {
	s.Rows = append(s.Rows, statsLine{Server: c.Server, Tool: c.Tool, Calls: c.Calls, Errors: c.Errors, P95Ms: ms(c.P95),
		ArgBytes: c.ArgBytes, ResultBytes: c.ResultBytes, Tokens: c.ResultBytes / bytesPerToken, Stored: c.Stored,
		KeptOutBytes: c.StoredBytes, KeptOutTokens: c.StoredBytes / bytesPerToken, Last: c.Last})
	t := &s.Total
	t.Calls += c.Calls
	t.Errors += c.Errors
	t.ArgBytes += c.ArgBytes
	t.ResultBytes += c.ResultBytes
	t.Stored += c.Stored
	t.KeptOutBytes += c.StoredBytes
	t.Tokens, t.KeptOutTokens = t.ResultBytes/bytesPerToken, t.KeptOutBytes/bytesPerToken
}

func (cmd statsCmd) show(out *screen, shown statsShown) error {
	names := []string{"SERVER", "TOOL", ">CALLS", ">ERRORS", ">P95", ">BYTES", ">STORED", ">KEPT OUT", ">TOKENS KEPT OUT"}
	if !cmd.Tools {
		names = append(names[:1], names[2:]...)
	}
	rows := [][]cell{heads(names...)}
	for _, l := range append(shown.Rows, shown.Total) {
		errors, server, p95 := number(countText(l.Errors)), text(l.Server), span(time.Duration(l.P95Ms*float64(time.Millisecond)))
		if l.Errors > 0 {
			errors.paint = bad
		}
		if l.Server == "" {
			server, p95 = painted("all", head), ""
		}
		row := []cell{server, text(l.Tool), number(countText(l.Calls)), errors, number(p95), number(bytesText(l.ResultBytes)),
			number(countText(l.Stored)), number(bytesText(l.KeptOutBytes)), number(countText(l.KeptOutTokens))}
		if !cmd.Tools {
			row = append(row[:1], row[2:]...)
		}
		rows = append(rows, row)
	}
	out.line(painted(fmt.Sprintf("since %s", shown.Since.Local().Format(time.DateTime)), faint))
	out.table(rows...)
	return out.close()
}
