package catalog

import (
	"cmp"
	"slices"
)

// Server is what one server listed.
type Server struct {
	Name  string
	Tools []Tool
}

// Entry says what stands behind an exposed name.
type Entry struct {
	Server, Tool         string
	Exposed              string // what scope and store go by
	Shown                string // what agents see: Exposed, unless theirs have to be shorter
	ReadOnly, Idempotent bool
	Asked                int64 // bytes that the tool asks for each result; 0 = nothing
}

// Catalog is the tools of all servers under their exposed names. It never changes.
type Catalog struct {
	items  []item // by server, then tool
	byName map[string]int
}

type item struct {
	Entry
	tool  *Tool
	asIs  bool // Shown shows both names as they are
	short bool // Shown lacks part of them
}

// Build names the tools of servers. A pair of server and tool has the same
// exposed name in whatever company, short of a tool that is named to collide.
// Of two servers with one name, or two tools of a server, the first counts.
func Build(servers []Server) *Catalog {
	c := &Catalog{}
	for i := range servers {
		for j := range servers[i].Tools {
			t := &servers[i].Tools[j]
			c.items = append(c.items, item{tool: t, Entry: Entry{
				Server: servers[i].Name, Tool: t.Name, ReadOnly: t.ReadOnly, Idempotent: t.Idempotent, Asked: t.Asked,
			}})
		}
	}
	slices.SortStableFunc(c.items, byPair)
	c.items = slices.CompactFunc(c.items, func(a, b item) bool { return byPair(a, b) == 0 })
	c.name(MaxName)
	for i := range c.items {
		c.items[i].Exposed = c.items[i].Shown
	}
	return c
}

// Within is the same tools for agents that can bear names of at most longest bytes.
// What they see still depends on server and tool alone; Exposed does not change.
func (c *Catalog) Within(longest int) *Catalog {
	s := &Catalog{items: slices.Clone(c.items)}
	s.name(longest)
	return s
}

func byPair(a, b item) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
}

// name gives every item its name of at most longest bytes.
func (c *Catalog) name(longest int) {
	names, byName := nameAll(len(c.items), longest, func(i int) (string, string) { return c.items[i].Server, c.items[i].Tool })
	for i, n := range names {
		it := &c.items[i]
		it.Shown, it.asIs, it.short = n.name, n.asIs, n.short
	}
	c.byName = byName
}

// Lookup finds what stands behind a name that is shown.
func (c *Catalog) Lookup(shown string) (Entry, bool) {
	if c == nil {
		return Entry{}, false
	}
	i, ok := c.byName[shown]
	if !ok {
		return Entry{}, false
	}
	return c.items[i].Entry, true
}

// Entries returns all entries, by server and then by tool.
func (c *Catalog) Entries() []Entry {
	if c == nil {
		return nil
	}
	out := make([]Entry, len(c.items))
	for i, it := range c.items {
		out[i] = it.Entry
	}
	return out
}

// Output says what becomes of a tool's outputSchema in a list.
type Output uint8

const (
	KeepSchema  Output = iota // it is listed as it is
	StripSchema               // it is left out
	UniteSchema               // it accepts receipts too; left out where that cannot be said
)

// List returns the JSON array of the tools that scope sees, by server and then by
// name, followed by own. An entry is as its server wrote it but for the name; a
// name that had to be changed stays visible as the title, and one that lost a part, or
// has another title, is told whole in the description; a
// description beyond maxDescription is cut, with a mark; and outputSchema is
// treated as output says (nil keeps all), or cut out when clients could not bear
// it. The same tools give the same bytes.
func (c *Catalog) List(scope Scope, own [][]byte, output func(Entry) Output) []byte {
	b := make([]byte, 1, c.size())
	b[0] = '['
	if c != nil {
		for i := range c.items {
			it := &c.items[i]
			if scope.Sees(it.Server, it.Exposed) {
				how := KeepSchema
				if output != nil {
					how = output(it.Entry)
				}
				b = append(it.appendTo(b, how), ',')
			}
		}
	}
	for _, o := range own {
		b = append(append(b, o...), ',')
	}
	if len(b) > 1 {
		b = b[:len(b)-1]
	}
	return append(b, ']')
}

// size is about what a list of everything takes.
func (c *Catalog) size() int {
	n := 4 << 10
	if c != nil {
		for _, it := range c.items {
			n += len(it.tool.Raw) + len(it.tool.Union) + 2*MaxName
		}
	}
	return n
}

func (it *item) appendTo(b []byte, how Output) []byte {
	t := it.tool
	name := quote(it.Shown)
	if !it.asIs && !t.Titled {
		name = append(append(name, `,"title":`...), quote(t.Name)...)
	}
	edits := append([]edit{{t.NameAt, name}}, t.cuts...)
	if it.short || !it.asIs && t.Titled {
		edits = it.tellWhole(edits)
	}
	switch {
	case t.OutputAt.B == 0, how == KeepSchema && !t.BadSchema:
	case how == UniteSchema && t.Union != nil:
		edits = append(edits, edit{t.OutputAt, t.Union})
	default:
		edits = append(edits, edit{t.SchemaAt, nil})
	}
	slices.SortFunc(edits, func(x, y edit) int { return cmp.Compare(x.at.A, y.at.A) })
	from := 0
	for _, e := range edits {
		b = append(append(b, t.Raw[from:e.at.A]...), e.by...)
		from = e.at.B
	}
	return append(b, t.Raw[from:]...)
}

// tellWhole begins the description with both names as they are. The name is the first
// of edits.
func (it *item) tellWhole(edits []edit) []edit {
	at, whole := it.tool.DescAt, quote("Tool "+it.Tool+" of "+it.Server+". ")
	cut := slices.IndexFunc(edits, func(e edit) bool { return e.at == at })
	switch {
	case at.B == 0:
		edits[0].by = append(append(edits[0].by, `,"description":`...), whole...)
	case cut >= 0:
		edits[cut].by = slices.Concat(whole[:len(whole)-1], edits[cut].by[1:])
	case it.tool.Raw[at.A] != '"': // null, say
		edits = append(edits, edit{at, whole})
	default:
		edits = append(edits, edit{Span{at.A, at.A + 1}, whole[:len(whole)-1]})
	}
	return edits
}

// edit puts other bytes in place of a span.
type edit struct {
	at Span
	by []byte
}
