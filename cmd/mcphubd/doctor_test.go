package main

import (
	"fmt"
	"testing"

	"mcphubd/config"
)

func TestDoctorCountsTheToolsThatAnAgentSees(t *testing.T) {
	c, err := config.Parse("test.toml", []byte(`
[servers.many]
command = "x"
[servers.few]
command = "x"
[servers.off]
command = "x"
enabled = false
[agents.all]
[agents.some]
servers = ["few"]
[agents.one]
tools = ["many__t0"]
`), config.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{manyTools - 1: "", manyTools: "too-many-tools all"} {
		check := checkup{app: &app{}, conf: c, sizes: map[string][]listing{"few": {{name: "a"}}}}
		for i := range n {
			tool := listing{name: fmt.Sprintf("t%d", i)}
			check.sizes["many"], check.sizes["off"] = append(check.sizes["many"], tool), append(check.sizes["off"], tool)
		}
		check.contexts()
		got := ""
		for _, f := range check.findings {
			got += f.Code + " " + f.Subject
		}
		if got != want {
			t.Errorf("with %d tools and one: %q, want %q", n, got, want)
		}
	}
}
