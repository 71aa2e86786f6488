package main

import (
	"strings"
	"testing"
)

func TestTheTableShowsMediansRatiosAndGoals(t *testing.T) {
	var cells []cell
	for _, v := range []float64{1, 100, 2} { // the outlier must not matter
		cells = append(cells,
			cell{Scenario: "1m", Target: floorName, M: map[string]float64{"p50_ms": v}},
			cell{Scenario: "1m", Target: "mcphubd", M: map[string]float64{"p50_ms": 4 * v}})
	}
	cells = append(cells, cell{Scenario: "1m", Target: "mcphubd", M: map[string]float64{"p50_ms": 1}, Err: "broken"})
	var b strings.Builder
	printTable(&b, cells)
	if want := "| 1 MiB stored, until the receipt | p50, ms | 2.00 | 8.00 | 4.00 | ≤ 3× | missed |"; !strings.Contains(b.String(), want) {
		t.Errorf("no row %s in\n%s", want, &b)
	}
	for i := range cells {
		cells[i].Down = overHTTP
	}
	printTable(&b, cells)
	if want := "| 1 MiB stored, until the receipt, server over HTTP | p50, ms |"; !strings.Contains(b.String(), want) {
		t.Errorf("no row %s in\n%s", want, &b)
	}
	if !strings.Contains(b.String(), "broken") {
		t.Error("the error is not shown")
	}
}

func TestGoalsAreJudgedAgainstTheRelayOrAlone(t *testing.T) {
	for _, c := range []struct {
		g           goal
		ours, floor float64
		want        string
	}{
		{times(1.25), 5, 4, "met"}, {times(1.25), 6, 4, "missed"}, {times(1.25), 6, 0, ""},
		{atLeast(0.85), 85, 100, "met"}, {atLeast(0.85), 84, 100, "missed"},
		{atMost(64), 64, 0, "met"}, {atMost(64), 65, 0, "missed"}, {none, 1, 1, ""},
	} {
		if got := c.g.verdict(c.ours, c.floor); got != c.want {
			t.Errorf("%v: %v beside %v is %q, want %q", c.g, c.ours, c.floor, got, c.want)
		}
	}
}
