package config

import (
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// outline is what a user's file speaks of, and where: set or commented out counts
// alike. The text has to be valid TOML.
type outline struct {
	bom     string
	newline string
	lines   []string // each with its end

	spoken map[string]bool // by pattern, every key and all it is part of
	ends   map[string]int  // by table, the line after the last that belongs to it
	parked map[string]int  // the same for tables that are commented out
	dotted map[string]bool // tables of the top level that have no header
	first  int             // the line before which the first table begins, with what is said about it
}

const bom = "\uFEFF"

func outlineOf(text string) outline {
	o := outline{newline: "\n", spoken: map[string]bool{}, ends: map[string]int{}, parked: map[string]int{}, dotted: map[string]bool{}, first: -1}
	if strings.HasPrefix(text, bom) {
		o.bom, text = bom, text[len(bom):]
	}
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		o.newline = "\r\n"
	}
	if text != "" {
		o.lines = strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		if strings.HasSuffix(text, "\n") {
			o.lines[len(o.lines)-1] += "\n"
		}
	}
	o.read()
	if o.first < 0 {
		o.first = len(o.lines)
	}
	return o
}

// placeOf is the line before which more keys of table can be added, if there is one.
func (o outline) placeOf(table toml.Key) (int, bool) {
	if len(table) == 0 {
		return o.topEnd(), true
	}
	at, ok := o.ends[table.String()]
	if !ok {
		at, ok = o.parked[table.String()]
	}
	return at, ok
}

// topEnd is the line before which more keys of the top level can be added.
func (o outline) topEnd() int {
	if at, ok := o.ends[""]; ok {
		return at
	}
	return o.first
}

// read goes through the file, a statement or a comment at a time.
func (o *outline) read() {
	var table, parked toml.Key // where we are; parked: below a header that is commented out
	isParked, remarks := false, 0
	for i := 0; i < len(o.lines); {
		end := i + 1
		switch line := strings.TrimSpace(o.lines[i]); {
		case line == "":
			remarks = end
		case line[0] == '[':
			table, isParked = keysIn(line)[0], false
			o.begins(remarks)
			o.speaks(table)
			o.ends[table.String()] = end
		case line[0] != '#':
			end, isParked = i+statementLines(o.lines[i:]), false
			o.sets(table, keysIn(strings.Join(o.lines[i:end], "")))
			o.ends[table.String()] = end
		default:
			header, key := remark(line)
			switch {
			case header != nil:
				parked, isParked = header, true
				o.begins(remarks)
				o.parked[parked.String()] = end
			case key != nil && isParked:
				o.speaks(under(parked, key...))
				o.parked[parked.String()] = end
			case key != nil:
				o.speaks(under(table, key...))
				o.ends[table.String()] = end
			}
		}
		if i = end; i > 0 && !isRemark(o.lines[i-1]) {
			remarks = i
		}
	}
}

func isRemark(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// begins notes where the first table begins.
func (o *outline) begins(at int) {
	if o.first < 0 {
		o.first = at
	}
}

// sets notes the keys of one statement in table.
func (o *outline) sets(table toml.Key, keys []toml.Key) {
	for _, key := range keys {
		o.speaks(under(table, key...))
	}
	if len(table) == 0 && len(keys) > 0 {
		o.dotted[toml.Key{keys[0][0]}.String()] = true
	}
}

func (o *outline) speaks(key toml.Key) {
	for n := range key {
		o.spoken[pattern(key[:n+1])] = true
	}
}

// keysIn are the keys of a statement or header, those in inline tables too.
func keysIn(text string) []toml.Key {
	var any map[string]any
	meta, err := toml.Decode(text, &any)
	if err != nil {
		return nil
	}
	return meta.Keys()
}

var (
	remarkHeader = regexp.MustCompile(`^#+\s*(\[[^\[\]]+\])\s*(#.*)?$`)
	remarkKey    = regexp.MustCompile(`^#+\s*([\w."'-]+)\s*=`)
)

// remark is what a comment has commented out: the header of a table that there can be,
// or a key.
func remark(line string) (header, key toml.Key) {
	if m := remarkHeader.FindStringSubmatch(line); m != nil {
		if keys := keysIn(m[1]); len(keys) > 0 && isTable(keys[0][0]) {
			return keys[0], nil
		}
	}
	if m := remarkKey.FindStringSubmatch(line); m != nil {
		if keys := keysIn(m[1] + " = 0"); len(keys) > 0 {
			return nil, keys[0]
		}
	}
	return nil, nil
}

func isTable(name string) bool {
	f := (&reader{}).topFields(&Config{})[name]
	return f.table != nil || f.named != nil
}

// statementLines is how many of lines the statement takes that they begin with.
func statementLines(lines []string) int {
	open, quote := 0, "" // brackets, and the quotes we are within
	for n, line := range lines {
		for i := 0; i < len(line); i++ {
			rest := line[i:]
			switch {
			case quote != "":
				i, quote = insideText(line, i, quote)
			case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
				quote, i = rest[:3], i+2
			case rest[0] == '"', rest[0] == '\'':
				quote = rest[:1]
			case rest[0] == '#':
				i = len(line)
			case rest[0] == '[', rest[0] == '{':
				open++
			case rest[0] == ']', rest[0] == '}':
				open--
			}
		}
		if open <= 0 && quote == "" {
			return n + 1
		}
	}
	return len(lines)
}

// insideText goes past one piece of a text: where it ends, and the quotes that are
// still open then.
func insideText(line string, i int, quote string) (int, string) {
	switch {
	case line[i] == '\\' && quote[0] == '"':
		return i + 1, quote
	case !strings.HasPrefix(line[i:], quote):
		return i, quote
	}
	i += len(quote) - 1
	if len(quote) == 3 { // up to two more quotes before the end belong to the text
		for more := 0; more < 2 && i+1 < len(line) && line[i+1] == quote[0]; more++ {
			i++
		}
	}
	return i, ""
}
