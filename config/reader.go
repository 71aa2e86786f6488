package config

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// reader takes one document along the schema into a Config and collects
// everything that is wrong on the way.
type reader struct {
	file     string
	expander expander
	sources  Sources
	lines    map[string]int // by dotted key
	problems []Problem
}

// fields is a level of the schema: the keys that a table may have.
type fields map[string]field

// field is what one key may hold; one of the three is set.
type field struct {
	value func(node) // a value
	table fields     // a table with known keys
	named entry      // a table of tables that the user names
}

// entry begins one table that the user named: what it may hold, and what is to
// be done when it was read.
type entry func(node) (fields, func())

func (f fields) names() []string { return sortedNames(f) }

// wrong notes a problem with key, at its line. What came out of a file or a
// variable named like a secret is masked in it.
func (r *reader) wrong(key toml.Key, message, fix string) {
	line := 0
	for n := len(key); n > 0 && line == 0; n-- {
		line = r.lines[key[:n].String()]
	}
	r.problems = append(r.problems, Problem{
		File: r.file, Line: line, Key: key.String(),
		Message: Mask(message, SecretSet(r.expander.secrets)), Fix: fix,
	})
}

// walk reads the children of table as known says.
func (r *reader) walk(table node, known fields) {
	for _, n := range table.children {
		r.lines[n.dotted()] = n.line
		f, ok := known[n.name()]
		switch {
		case !ok:
			r.unknown(n, known)
		case f.value != nil:
			r.sources[n.dotted()] = r.source(n)
			f.value(n)
		case !n.isTable:
			r.notTable(n)
		case f.table != nil:
			r.walk(n, f.table)
		default:
			r.walkNamed(n, f.named)
		}
	}
}

func (r *reader) walkNamed(table node, begin entry) {
	for _, n := range table.children {
		r.lines[n.dotted()] = n.line
		if !n.isTable {
			r.notTable(n)
			continue
		}
		known, done := begin(n)
		r.walk(n, known)
		done()
	}
}

func (r *reader) notTable(n node) {
	r.wrong(n.key, "is a table, not "+kind(n.data), fmt.Sprintf("write [%s] on a line of its own and its keys below", n.dotted()))
}

func (r *reader) unknown(n node, known fields) {
	fix := "known here: " + strings.Join(known.names(), ", ")
	if near := nearest(n.name(), known.names()); near != "" {
		fix = fmt.Sprintf("did you mean %s?", near)
	}
	r.wrong(n.key, "unknown key", fix)
}

func (r *reader) source(n node) string {
	if r.file == "" {
		return "default"
	}
	return place(r.file, n.line)
}
