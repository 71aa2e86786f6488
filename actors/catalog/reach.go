package catalog

import "slices"

// Touches reports whether a scope reaches anything of server: the server is in it,
// and so could be a name that begins with server__. It decides over what has no
// name of that kind: resources, instructions, completion of their arguments.
func (s Scope) Touches(server string) bool {
	if !s.SeesServer(server) {
		return false
	}
	prefix := []rune(mapped(server) + "__")
	return s.Tools == nil || slices.ContainsFunc(s.Tools, func(p string) bool { return canBegin([]rune(p), prefix) })
}

// canBegin reports whether some name that begins with prefix matches pattern.
func canBegin(pattern, prefix []rune) bool {
	for i, c := range prefix {
		switch {
		case i == len(pattern):
			return false
		case pattern[i] == '*':
			return true
		case pattern[i] != '?' && pattern[i] != c:
			return false
		}
	}
	return true
}

// Find finds a server's tool by its own name.
func (c *Catalog) Find(server, tool string) (Entry, bool) {
	if c == nil {
		return Entry{}, false
	}
	i, ok := slices.BinarySearchFunc(c.items, item{Entry: Entry{Server: server, Tool: tool}}, byPair)
	if !ok {
		return Entry{}, false
	}
	return c.items[i].Entry, true
}

// ListOf returns the JSON array of one server's tools that scope sees, under the
// server's own names, followed by own. With output nil all else is as the server
// wrote it, but for an outputSchema that clients could not bear; else it is treated
// as in List.
func (c *Catalog) ListOf(server string, scope Scope, own [][]byte, output func(Entry) Output) []byte {
	b := []byte{'['}
	if c != nil {
		for i := range c.items {
			it := c.items[i]
			if it.Server != server || !scope.Sees(it.Server, it.Exposed) {
				continue
			}
			if t := it.tool; output == nil && !t.BadSchema {
				b = append(append(b, t.Raw...), ',')
				continue
			}
			how := KeepSchema
			if output != nil {
				how = output(it.Entry)
			}
			it.Shown, it.asIs, it.short = it.Tool, true, false
			b = append(it.appendTo(b, how), ',')
		}
	}
	for _, o := range own {
		b = append(append(b, o...), ',')
	}
	return closeList(b)
}
