package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
)

// Migrate returns the text of a file with every key of default.toml that it does
// not speak of, commented out and with its comment. What was there stays byte for
// byte, and what the file means stays the same; a text that lacks nothing comes back
// as it is. The arguments are those of Parse, and so is the error if the text is not
// a valid configuration.
func Migrate(name string, text []byte, env Env) ([]byte, error) {
	before, err := Parse(name, text, env)
	if err != nil {
		return nil, err
	}
	migrated := complete(string(text))
	after, err := Parse(name, []byte(migrated), env)
	if err != nil || !sameMeaning(before, after) {
		return nil, fmt.Errorf("migrate %s: %w", name, errors.Join(errors.New("the result would mean something else; nothing was changed, and this is a bug"), err))
	}
	return []byte(migrated), nil
}

// sameMeaning compares all but the lines where things stand.
func sameMeaning(a, b *Config) bool {
	x, y := *a, *b
	x.Sources, y.Sources = nil, nil
	x.Warnings, y.Warnings = nil, nil
	return reflect.DeepEqual(x, y)
}

// complete adds to text what it lacks of default.toml. Keys go to where the file
// speaks of their table: keys of the top level before the first table, others to the
// end of theirs. A table of the program that the file lacks follows the top level,
// and the examples of servers and agents go to the end.
func complete(text string) string {
	file := outlineOf(text)
	added := additions{}
	var absent []section
	for _, s := range sections(string(defaultFile)) {
		s = s.without(file.spoken)
		switch at, there := file.placeOf(s.table); {
		case s.isEmpty():
		case there:
			added.put(at, s.lines(keysOnly))
		case file.dotted[s.table.String()]:
			added.put(file.topEnd(), s.lines(dottedKeys))
		default:
			absent = append(absent, s)
		}
	}
	for _, s := range absent { // after what belongs to the table that stands there
		at := file.topEnd()
		if s.isExample {
			at = len(file.lines)
		}
		added.put(at, s.lines(withHeader))
	}
	return added.into(file)
}

// additions are the lines to add, by the line that they go before.
type additions map[int][]string

func (a additions) put(at int, lines []string) {
	if len(a[at]) > 0 {
		lines = append([]string{""}, lines...)
	}
	a[at] = append(a[at], lines...)
}

// into is the text of file with all additions, set off by empty lines.
func (a additions) into(file outline) string {
	var b strings.Builder
	b.WriteString(file.bom)
	for at := 0; at <= len(file.lines); at++ {
		if lines := a[at]; len(lines) > 0 {
			if at > 0 {
				b.WriteString(file.gapAfter(at - 1))
			}
			b.WriteString(strings.Join(lines, file.newline) + file.newline)
			if at < len(file.lines) && !isBlank(file.lines[at]) {
				b.WriteString(file.newline)
			}
		}
		if at < len(file.lines) {
			b.WriteString(file.lines[at])
		}
	}
	return b.String()
}

// gapAfter is what has to stand between a line and one that is set off from it.
func (f outline) gapAfter(i int) string {
	switch line := f.lines[i]; {
	case !strings.HasSuffix(line, "\n"):
		return f.newline + f.newline
	case isBlank(line):
		return ""
	}
	return f.newline
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// pattern is key as Keys has it: with * for the names that users choose.
func pattern(key toml.Key) string {
	p := append(toml.Key{}, key...)
	if len(p) > 1 && (p[0] == "servers" || p[0] == "agents") {
		p[1] = "*"
	}
	if len(p) > 3 && p[0] == "servers" && p[2] == "tool" {
		p[3] = "*"
	}
	return strings.Join(p, ".")
}
