package config

import (
	"errors"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// node is one value of a TOML file together with where it stands.
type node struct {
	key      toml.Key
	line     int // where the value begins; of a table, its header
	data     any // as the TOML package decodes it
	isTable  bool
	children []node // of a table, in the order of the file
}

func (n node) name() string { return n.key[len(n.key)-1] }

// dotted is the key as it may be written in a file.
func (n node) dotted() string { return n.key.String() }

// parseTOML reads text into a tree. The TOML package knows the line of every
// key but only tells it in errors, so each line is asked for with a decode that
// always fails.
func parseTOML(name string, text []byte) (node, *Problem) {
	var top map[string]toml.Primitive
	meta, err := toml.Decode(string(text), &top)
	if err != nil {
		return node{}, syntaxProblem(name, err)
	}
	d := document{meta: meta, order: map[string]int{}}
	for i, key := range meta.Keys() {
		d.order[key.String()] = i
	}
	return node{isTable: true, children: d.nodes(nil, top)}, nil
}

type document struct {
	meta  toml.MetaData
	order map[string]int // place of a key in the file, by dotted key
}

func (d *document) nodes(parent toml.Key, table map[string]toml.Primitive) []node {
	nodes := make([]node, 0, len(table))
	for name, value := range table {
		key := append(append(toml.Key{}, parent...), name)
		nodes = append(nodes, d.node(key, value))
	}
	sort.Slice(nodes, func(i, j int) bool { return d.before(nodes[i], nodes[j]) })
	return nodes
}

// before orders siblings as they stand in the file; a table that is only
// implied by its children stands where the first of them does.
func (d *document) before(a, b node) bool {
	if a.line != b.line {
		return a.line < b.line
	}
	return d.order[a.dotted()] < d.order[b.dotted()]
}

func (d *document) node(key toml.Key, value toml.Primitive) node {
	n := node{key: key, line: d.line(value)}
	_ = d.meta.PrimitiveDecode(value, &n.data) // any value fits an any
	if _, n.isTable = n.data.(map[string]any); !n.isTable {
		return n
	}
	var table map[string]toml.Primitive
	_ = d.meta.PrimitiveDecode(value, &table) // and any table a map
	n.children = d.nodes(key, table)
	if n.line == 0 && len(n.children) > 0 {
		n.line = n.children[0].line
	}
	return n
}

func (d *document) line(value toml.Primitive) int {
	var where toml.ParseError
	errors.As(d.meta.PrimitiveDecode(value, &refusal{}), &where)
	return where.Position.Line
}

// refusal refuses every value.
type refusal struct{}

func (*refusal) UnmarshalTOML(any) error { return errors.New("only the line is wanted") }

// syntaxProblem words an error of the TOML package. The package quotes the
// source, and the source may hold a secret: what it quotes is left out.
func syntaxProblem(name string, err error) *Problem {
	p := Problem{File: name, Message: "not valid TOML"}
	var syntax toml.ParseError
	if !errors.As(err, &syntax) {
		return &p
	}
	p.Line = syntax.Position.Line
	message := strings.ReplaceAll(syntax.Message, "\n", " ")
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("expected value but found"):
		p.Message, p.Fix = "a value is missing or is not one", `text stands in quotes: key = "text"`
	case has("out of range"), has("nvalid float"), has("nvalid integer"), has(" number: "), has("on-decimal numbers"), has("expected a digit"):
		p.Message, p.Fix = "this is not a number", `text stands in quotes: key = "text"`
	case has("invalid datetime"):
		p.Message, p.Fix = "this is not a date", `text stands in quotes: key = "text"`
	case has("has already been defined"), has("already created"):
		p.Message, p.Fix = "k"+strings.TrimSuffix(strings.TrimPrefix(message, "K"), "."), "write every key and every [table] once"
	case has("strings cannot contain newlines"):
		p.Message, p.Fix = "the text has no closing quote on its line", `close it with "`
	case has("expected '.' or '='"):
		p.Message, p.Fix = "a key without a value", "write key = value"
	case has("unexpected EOF"):
		p.Message, p.Fix = "the file ends in the middle of something", "close the text, list or table that is open"
	case has(`but got '\n' instead`):
		p.Line-- // the package is on the next line already
		p.Message, p.Fix = "the line ends too early", "close what is open on it"
	case has("escape"), has("hexadecimal digits"):
		p.Message, p.Fix = "a backslash sequence that TOML does not know", `write \\ for a backslash, or use 'single quotes'`
	case has("UTF-8"):
		p.Message, p.Fix = "the file is not UTF-8", "save it as UTF-8"
	default:
		p.Message = "not valid TOML: " + withoutQuotes(message)
	}
	return &p
}

// withoutQuotes replaces what stands between quotes in s, single characters
// excepted.
func withoutQuotes(s string) string {
	for _, quote := range []string{`"`, "'"} {
		parts := strings.Split(s, quote)
		for i := 1; i < len(parts)-1; i += 2 {
			if utf8.RuneCountInString(parts[i]) > 1 {
				parts[i] = "…"
			}
		}
		s = strings.Join(parts, quote)
	}
	return s
}
