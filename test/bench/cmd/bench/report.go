package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// printTable prints one row a number: the relay's median, ours, and the ratio.
func printTable(w io.Writer, cells []cell) {
	fmt.Fprint(w, "\n| scenario | number | relay | mcphubd | ratio | goal | |\n|---|---|---:|---:|---:|---|---|\n")
	for _, s := range scenarios {
		label := s.what + reached(cells)
		for _, m := range s.show {
			floor, hasFloor := median(cells, s.id, floorName, m.key)
			ours, hasOurs := median(cells, s.id, "mcphubd", m.key)
			if !hasFloor && !hasOurs {
				continue
			}
			row := []string{label, m.name, "–", "–", "–", m.goal.String(), ""}
			if hasFloor {
				row[2] = number(floor)
			}
			if hasOurs {
				row[3] = number(ours)
			}
			if hasFloor && hasOurs && floor > 0 {
				row[4] = number(ours / floor)
			}
			if hasOurs {
				row[6] = m.goal.verdict(ours, floor)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", row[0], row[1], row[2], row[3], row[4], row[5], row[6])
			label = ""
		}
	}
	for _, c := range cells {
		if c.Err != "" {
			fmt.Fprintf(w, "\n- %s on %s, repetition %d: %s\n", c.Scenario, c.Target, c.Rep, c.Err)
		}
	}
}

// reached is what a row has to say of servers that are no children.
func reached(cells []cell) string {
	if len(cells) > 0 && cells[0].Down == overHTTP {
		return ", server over HTTP"
	}
	return ""
}

func (g goal) String() string {
	limit := strconv.FormatFloat(g.limit, 'g', -1, 64)
	switch {
	case g == none:
		return ""
	case g.atLeast:
		return "≥ " + limit + "×"
	case g.ratio:
		return "≤ " + limit + "×"
	}
	return "≤ " + limit
}

// verdict compares a number with its goal; a ratio needs the relay's.
func (g goal) verdict(ours, floor float64) string {
	v := ours
	if g.ratio {
		if floor <= 0 {
			return ""
		}
		v /= floor
	}
	switch {
	case g == none:
		return ""
	case g.atLeast && v >= g.limit, !g.atLeast && v <= g.limit:
		return "met"
	}
	return "missed"
}

func median(cells []cell, scenario, target, key string) (float64, bool) {
	var v []float64
	for _, c := range cells {
		if x, ok := c.M[key]; ok && c.Err == "" && c.Scenario == scenario && c.Target == target {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return 0, false
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}

// number prints three digits that matter.
func number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
