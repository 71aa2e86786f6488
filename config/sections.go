package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// section is a table of default.toml, as it is to be added to a file.
type section struct {
	table     toml.Key // empty = the top level
	isExample bool     // commented out in default.toml
	blocks    []block
}

// block is what stands between two empty lines: comments and the keys they are about.
type block []sectionLine

type sectionLine struct {
	text     string // commented out
	key      string // "" = a comment
	isHeader bool   // left out where the table is open
}

var (
	sectionHeader = regexp.MustCompile(`^(#?)\[(.+)\]$`)
	sectionKey    = regexp.MustCompile(`^#?([a-z_]+) = `)
)

// sections takes default.toml apart. What it says at its beginning belongs to no key.
func sections(text string) []section {
	all := []section{{}}
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		var b block
		for _, line := range strings.Split(paragraph, "\n") {
			l := sectionLine{text: line}
			if key := sectionKey.FindStringSubmatch(line); key != nil {
				l.key = key[1]
			} else if header := sectionHeader.FindStringSubmatch(line); header != nil {
				l.isHeader = true
				all = append(all, section{table: strings.Split(header[2], "."), isExample: header[1] != ""})
			}
			if (l.isHeader || l.key != "") && line[0] != '#' {
				l.text = "#" + line
			}
			b = append(b, l)
		}
		last := &all[len(all)-1]
		last.blocks = append(last.blocks, b)
	}
	return all
}

// without is s without the keys that are spoken of, and the comments on them.
func (s section) without(spoken map[string]bool) section {
	var kept []block
	var header block // of a block that fell away
	for _, b := range s.blocks {
		missing := b.without(s.table, spoken)
		switch {
		case hasKey(missing):
			kept = append(kept, append(header, missing...))
			header = nil
		case hasHeader(b):
			header = headerOf(b)
		}
	}
	s.blocks = kept
	return s
}

func (b block) without(table toml.Key, spoken map[string]bool) (missing block) {
	for _, line := range b {
		if line.key == "" || !spoken[pattern(under(table, line.key))] {
			missing = append(missing, line)
		}
	}
	return missing
}

// headerOf is the header of b without its keys. What was said about both of them is
// replaced.
func headerOf(b block) (header block) {
	const lead = "# What more can stand in a table like this:"
	if hasKey(b) {
		header = block{{text: lead, isHeader: true}}
	}
	for _, line := range b {
		if line.isHeader || !hasKey(b) {
			line.isHeader = true
			header = append(header, line)
		}
	}
	return header
}

func hasKey(b block) bool {
	return slices.ContainsFunc(b, func(line sectionLine) bool { return line.key != "" })
}

func hasHeader(b block) bool {
	return slices.ContainsFunc(b, func(line sectionLine) bool { return line.isHeader })
}

func (s section) isEmpty() bool { return len(s.blocks) == 0 }

// form is how a section is written.
type form int

const (
	withHeader form = iota
	keysOnly        // where its table is open
	dottedKeys      // at the top level, next to dotted keys of the same table
)

func (s section) lines(how form) []string {
	var lines []string
	for i, b := range s.blocks {
		if i > 0 {
			lines = append(lines, "")
		}
		for _, line := range b {
			switch {
			case line.isHeader && how != withHeader:
			case line.key != "" && how == dottedKeys:
				lines = append(lines, "#"+s.table.String()+"."+strings.TrimPrefix(line.text, "#"))
			default:
				lines = append(lines, line.text)
			}
		}
	}
	return lines
}
