package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"mcphubd/actors"
)

type psCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (psCmd) Help() string {
	return `Shows every actor: its state and for how long, how many messages wait and how long the first
of them has, what it is doing now, how often it crashed. It can be read while an actor is stuck.`
}

func (cmd psCmd) Run(a *app) error {
	s, raw, err := a.look()
	if err != nil {
		return err
	}
	rows := [][]cell{heads("ACTOR", "STATE", ">FOR", ">INBOX", ">OLDEST", ">HANDLED", ">PER MIN", ">P95", ">CRASHES", "NOW, OR LAST ERROR")}
	for _, v := range tree(s.Actors) {
		rows = append(rows, actorRow(v))
	}
	return a.list(cmd.JSON, partOf(raw, "actors"), rows, "there is no actor")
}

// partOf is one member of a JSON object as it was sent.
func partOf(raw []byte, name string) json.RawMessage {
	var parts map[string]json.RawMessage
	_ = json.Unmarshal(raw, &parts) // it was read already
	return parts[name]
}

// branch is an actor and how deep below the root it is.
type branch struct {
	actors.Vitals
	depth int
}

// tree puts everybody under its parent.
func tree(all []actors.Vitals) (lines []branch) {
	placed := make([]bool, len(all))
	var under func(parent actors.Vitals, depth int)
	place := func(i, depth int) {
		placed[i] = true
		lines = append(lines, branch{all[i], depth})
		under(all[i], depth+1)
	}
	under = func(parent actors.Vitals, depth int) {
		for i, v := range all {
			if !placed[i] && (v.Parent == parent.ID || v.Parent == parent.Kind) {
				place(i, depth)
			}
		}
	}
	for i, v := range all {
		if !placed[i] && v.Parent == "" {
			place(i, 0)
		}
	}
	for i := range all { // those whose parent is gone
		if !placed[i] {
			place(i, 0)
		}
	}
	return lines
}

func actorRow(v branch) []cell {
	shade, now := stateColour(v.State), ""
	switch {
	case v.Doing != "":
		now = fmt.Sprintf("%s for %s", v.Doing, span(v.For))
	case v.LastError != "":
		now = v.LastError
	}
	crashes := number(fmt.Sprint(v.Crashes))
	if v.Crashes > 0 {
		crashes.paint = bad
	}
	oldest := ""
	if v.Depth > 0 {
		oldest = span(v.Oldest)
	}
	return []cell{text(strings.Repeat("  ", v.depth) + v.ID), painted(v.State, shade), number(ago(v.Since)),
		number(fmt.Sprint(v.Depth)), number(oldest), number(countText(v.Handled)),
		number(fmt.Sprintf("%.0f", v.Pace.PerMinute)), number(pace(v.Pace)), crashes, painted(now, faint)}
}

// stateColour is how a state looks.
func stateColour(state string) paint {
	switch actors.State(state) {
	case actors.Ready:
		return good
	case actors.BackingOff:
		return bad
	case actors.Connecting, actors.Draining:
		return warn
	case actors.Stopped:
		return faint
	}
	return plain
}
