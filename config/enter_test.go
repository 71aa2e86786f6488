package config

import "testing"

func TestEnterAsksForTheTokenOfAnAgentThatHasOne(t *testing.T) {
	none := &Config{}
	open := &Config{Agents: map[string]Agent{"a": {Name: "a"}}}
	mixed := &Config{Agents: map[string]Agent{"a": {Name: "a", Token: "tok-a"}, "b": {Name: "b", Token: "tok-b"}, "c": {Name: "c"}}}
	free := &Config{Agents: map[string]Agent{"a": {Name: "a", Token: "tok-a"}, "default": {Name: "default"}}}
	locked := &Config{Agents: map[string]Agent{"default": {Name: "default", Token: "tok-d"}}}
	for _, c := range []struct {
		what        string
		conf        *Config
		name, token string
		agent       string // "" = refused
	}{
		{"anybody", none, "x", "", "x"},
		{"nobody in particular", none, "", "", "default"},
		{"a token while there are none", none, "x", "whatever", "x"},
		{"a token while no agent has one", open, "a", "whatever", "a"},
		{"by path without the token", mixed, "a", "", ""},
		{"by path with the token", mixed, "a", "tok-a", "a"},
		{"by path with another's token", mixed, "a", "tok-b", ""},
		{"by path with a wrong token", mixed, "a", "tok-", ""},
		{"by path with the token and more", mixed, "a", "tok-ab", ""},
		{"an open one", mixed, "c", "", "c"},
		{"an open one with another's token", mixed, "c", "tok-a", ""},
		{"an open one with a wrong token", mixed, "c", "x", ""},
		{"a stranger, for Agent to refuse", mixed, "x", "", "x"},
		{"a stranger with a token", mixed, "x", "tok-a", ""},
		{"by token alone", mixed, "", "tok-b", "b"},
		{"by a wrong token alone", mixed, "", "tok-c", ""},
		{"by nothing", mixed, "", "", ""},
		{"by nothing where default is open", free, "", "", "default"},
		{"by token where default is open", free, "", "tok-a", "a"},
		{"by nothing where default has a token", locked, "", "", ""},
		{"by its name where default has a token", locked, "default", "", ""},
		{"by token where default has one", locked, "", "tok-d", "default"},
	} {
		agent, ok := c.conf.Enter(c.name, c.token)
		if !ok {
			agent = ""
		}
		if ok != (c.agent != "") || agent != c.agent {
			t.Errorf("%s: entered as %q, want %q", c.what, agent, c.agent)
		}
	}
}

// FuzzNoTokenButItsOwnOpensAnAgent is the property that identity stands on.
func FuzzNoTokenButItsOwnOpensAnAgent(f *testing.F) {
	f.Add("a", "tok-a", "tok-a")
	f.Add("", "tok-a", "tok-b")
	f.Add("default", "x", "")
	f.Fuzz(func(t *testing.T, name, own, brought string) {
		if own == "" {
			return
		}
		c := &Config{Agents: map[string]Agent{"a": {Name: "a", Token: own}, "default": {Name: "default"}}}
		if agent, ok := c.Enter(name, brought); ok && agent == "a" && brought != own {
			t.Errorf("Enter(%q, %q) opened the agent with the token %q", name, brought, own)
		}
	})
}
