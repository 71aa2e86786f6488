package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"mcphubd/store"
)

// resultCmd holds the commands about stored results. All but rm read the store
// itself, so they need no daemon.
type resultCmd struct {
	Ls   resultLsCmd   `cmd:"" help:"List stored results, the newest first."`
	Show resultShowCmd `cmd:"" help:"Tell all that is known about a stored result."`
	Cat  resultCatCmd  `cmd:"" help:"Write the exact bytes of a stored result to stdout."`
	Rm   resultRmCmd   `cmd:"" help:"Remove a stored result before its 24 hours are over."`
}

// resultLine is what is printed of a stored result as JSON.
type resultLine struct {
	ID      store.ID  `json:"callId"`
	Agent   string    `json:"agent"`
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	Exposed string    `json:"namespaced"`
	Bytes   int64     `json:"bytes"`
	Lines   int64     `json:"lines"`
	SHA256  string    `json:"sha256"`
	IsError bool      `json:"isError"`
	Stored  time.Time `json:"stored"`
	Expires time.Time `json:"expires"`
	Parent  store.ID  `json:"parent,omitempty"`
	Query   string    `json:"query,omitempty"`
}

func lineOf(r store.Result) resultLine {
	return resultLine{ID: r.ID, Agent: r.Agent, Server: r.Server, Tool: r.Tool, Exposed: r.Exposed, Bytes: r.Bytes, Lines: r.Lines,
		SHA256: r.SHA256, IsError: r.IsError, Stored: r.Stored, Expires: r.Expires, Parent: r.Parent, Query: r.Query}
}

type resultLsCmd struct {
	Agent string `help:"Only of this agent." complete:"agent"`
	Limit int    `default:"50" help:"How many at most."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (cmd resultLsCmd) Run(a *app) error {
	r, err := a.openStore()
	if err != nil {
		return err
	}
	defer r.Close()
	var list []store.Result
	if cmd.Agent != "" {
		list, err = r.List(a.ctx, cmd.Agent, time.Now(), cmd.Limit)
	} else {
		list, err = r.Recent(a.ctx, time.Now(), cmd.Limit)
	}
	if err != nil {
		return err
	}
	lines := []resultLine{}
	rows := [][]cell{heads("RESULT", "AGENT", "TOOL", ">SIZE", ">LINES", ">AGE", ">EXPIRES IN", "")}
	for _, s := range list {
		lines = append(lines, lineOf(s))
		note := ""
		switch {
		case s.IsError:
			note = "error"
		case s.Parent != "":
			note = "from " + string(s.Parent)
		}
		rows = append(rows, []cell{text(string(s.ID)), text(s.Agent), text(s.Exposed), number(bytesText(s.Bytes)),
			number(countText(s.Lines)), number(ago(s.Stored)), number(left(s.Expires)), painted(note, faint)})
	}
	return a.list(cmd.JSON, lines, rows, "nothing is stored")
}

// find opens the store and finds the one result whose id begins with given.
func (a *app) find(given string) (*store.Reader, store.Result, error) {
	r, err := a.openStore()
	if err != nil {
		return nil, store.Result{}, err
	}
	found, err := one(a, r, given)
	if err != nil {
		r.Close()
		return nil, found, err
	}
	return r, found, nil
}

func one(a *app, r *store.Reader, given string) (store.Result, error) {
	if id := store.ID(given); id.Valid() {
		found, err := r.Get(a.ctx, id, time.Now())
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExpired) {
			err = fail(codeNotFound, fmt.Errorf("result %s: %w; see mcphubd result ls", given, err))
		}
		return found, err
	}
	found, err := r.Named(a.ctx, given, time.Now(), 2)
	switch {
	case err != nil:
		return store.Result{}, err
	case len(found) == 0, len(given) < 4:
		return store.Result{}, fail(codeNotFound, fmt.Errorf("no stored result is called %q; give its id, or at least 4 digits of its beginning: mcphubd result ls", given))
	case len(found) > 1:
		return store.Result{}, fail(codeNotFound, fmt.Errorf("several stored results begin with %q: give more of the id", given))
	}
	return found[0], nil
}

type resultShowCmd struct {
	ID   string `arg:"" help:"The callId, or its beginning." complete:"result"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// resultShown is what result show --json prints.
type resultShown struct {
	resultLine
	Facts json.RawMessage `json:"facts,omitempty"` // how it is built: content blocks and their places
}

func (cmd resultShowCmd) Run(a *app) error {
	r, s, err := a.find(cmd.ID)
	if err != nil {
		return err
	}
	defer r.Close()
	if cmd.JSON {
		return a.writeJSON(resultShown{lineOf(s), s.Facts})
	}
	head := make([]byte, min(s.Bytes, 400))
	if n, err := r.ReadAt(a.ctx, s.Key, head, 0); n < len(head) {
		return fmt.Errorf("read result %s: %w", s.ID, err)
	}
	out := a.screen()
	out.pairs(
		[2]string{"callId", string(s.ID)},
		[2]string{"tool", s.Exposed + "  (" + s.Tool + " of " + s.Server + ")"},
		[2]string{"agent", s.Agent},
		[2]string{"bytes", strconv.FormatInt(s.Bytes, 10) + "  (" + bytesText(s.Bytes) + ")"},
		[2]string{"lines", strconv.FormatInt(s.Lines, 10)},
		[2]string{"sha256", s.SHA256},
		[2]string{"is error", yes(s.IsError)},
		[2]string{"stored", s.Stored.Local().Format(time.DateTime) + ", " + ago(s.Stored) + " ago"},
		[2]string{"expires", s.Expires.Local().Format(time.DateTime) + ", in " + left(s.Expires)},
		[2]string{"made from", string(s.Parent)},
		[2]string{"query", s.Query},
		[2]string{"begins", oneLine(string(head), 300)},
	)
	return out.close()
}

type resultCatCmd struct {
	ID string `arg:"" help:"The callId, or its beginning." complete:"result"`
}

func (resultCatCmd) Help() string {
	return `Writes the result value as the server sent it, with nothing added: same bytes, same SHA-256.
It is one JSON object; its text is: mcphubd result cat ID | jq -r '.content[].text'`
}

func (cmd resultCatCmd) Run(a *app) error {
	r, s, err := a.find(cmd.ID)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := r.Copy(a.ctx, io.MultiWriter(a.stdout, sum), s.Key, 0, s.Bytes); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
		return fmt.Errorf("result %s: its SHA-256 is %s, and was %s when it was stored", s.ID, got, s.SHA256)
	}
	return nil
}

type resultRmCmd struct {
	ID   []string `arg:"" help:"The callIds, or their beginnings." complete:"result"`
	JSON bool     `name:"json" help:"Print JSON."`
}

func (resultRmCmd) Help() string {
	return `The daemon removes the bytes, since nobody else writes to the store. An agent that asks for
the result is told that it is not available any more.`
}

func (cmd resultRmCmd) Run(a *app) error {
	daemon, err := a.remote()
	if err != nil {
		return err
	}
	r, err := a.openStore()
	if err != nil {
		return err
	}
	defer r.Close()
	for _, given := range cmd.ID {
		s, err := one(a, r, given)
		if err != nil {
			return err
		}
		answer, err := daemon.ask(a.ctx, http.MethodDelete, "/debug/results/"+string(s.ID))
		if err != nil {
			return fmt.Errorf("remove result %s: %w", s.ID, err)
		}
		if err := a.acted(cmd.JSON, answer, "result %s is removed (%s)", s.ID, bytesText(s.Bytes)); err != nil {
			return err
		}
	}
	return nil
}
