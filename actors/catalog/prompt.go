package catalog

import (
	"bytes"
	"cmp"
	"slices"
)

// Prompt is one entry of a server's prompts/list.
type Prompt struct{ listed }

// Name is the server's own name of the prompt.
func (p Prompt) Name() string { return p.Key }

// ParsePrompts reads the results of prompts/list, page by page.
func ParsePrompts(pages [][]byte) (prompts []Prompt, bad []Bad) {
	all, bad := parseEntries(pages, "prompts", "name")
	for _, e := range all {
		prompts = append(prompts, Prompt{e})
	}
	return prompts, bad
}

// SamePrompts reports whether both lists are the same to the byte.
func SamePrompts(a, b []Prompt) bool {
	return slices.EqualFunc(a, b, func(x, y Prompt) bool { return bytes.Equal(x.Raw, y.Raw) })
}

// PromptEntry says what stands behind an exposed prompt name.
type PromptEntry struct{ Server, Prompt, Exposed string }

// Prompts is the prompts of all servers under their exposed names, which are made
// by the rules for tools. It never changes.
type Prompts struct {
	items  []promptItem // by server, then prompt
	byName map[string]int
}

type promptItem struct {
	PromptEntry
	prompt *Prompt
	asIs   bool
}

// BuildPrompts names the prompts of servers. Names do not depend on the order in
// which servers or prompts come.
func BuildPrompts(servers map[string][]Prompt) *Prompts {
	c := &Prompts{}
	for server, prompts := range servers {
		for i := range prompts {
			c.items = append(c.items, promptItem{PromptEntry{Server: server, Prompt: prompts[i].Name()}, &prompts[i], false})
		}
	}
	slices.SortFunc(c.items, func(a, b promptItem) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Prompt, b.Prompt))
	})
	names, byName := nameAll(len(c.items), MaxName, func(i int) (string, string) { return c.items[i].Server, c.items[i].Prompt })
	for i, n := range names {
		c.items[i].Exposed, c.items[i].asIs = n.name, n.asIs
	}
	c.byName = byName
	return c
}

// Lookup finds what stands behind an exposed prompt name.
func (c *Prompts) Lookup(exposed string) (PromptEntry, bool) {
	if c == nil {
		return PromptEntry{}, false
	}
	i, ok := c.byName[exposed]
	if !ok {
		return PromptEntry{}, false
	}
	return c.items[i].PromptEntry, true
}

// Find finds a server's prompt by its own name.
func (c *Prompts) Find(server, prompt string) (PromptEntry, bool) {
	if c != nil {
		for _, it := range c.items {
			if it.Server == server && it.Prompt == prompt {
				return it.PromptEntry, true
			}
		}
	}
	return PromptEntry{}, false
}

// List returns the JSON array of the prompts that scope sees, by server and then
// by name. An entry is as its server wrote it but for the name; a name that had to
// be changed stays visible as the title, if there is none.
func (c *Prompts) List(scope Scope) []byte {
	b := []byte{'['}
	if c != nil {
		for i := range c.items {
			it := &c.items[i]
			if !scope.Sees(it.Server, it.Exposed) {
				continue
			}
			name := quote(it.Exposed)
			if !it.asIs && !it.prompt.Titled {
				name = append(append(name, `,"title":`...), quote(it.Prompt)...)
			}
			b = append(it.prompt.appendAs(b, name), ',')
		}
	}
	return closeList(b)
}

// ListOf returns the JSON array of one server's prompts that scope sees, as the
// server wrote them.
func (c *Prompts) ListOf(server string, scope Scope) []byte {
	b := []byte{'['}
	if c != nil {
		for _, it := range c.items {
			if it.Server == server && scope.Sees(it.Server, it.Exposed) {
				b = append(append(b, it.prompt.Raw...), ',')
			}
		}
	}
	return closeList(b)
}
