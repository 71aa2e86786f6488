package catalog

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/actors/budget"
)

// Tool is one entry of a server's tools/list.
type Tool struct {
	Name       string // the server's own name, decoded
	Raw        []byte // the entry as it was written, line breaks as spaces
	NameAt     Span   // the value of "name" in Raw
	SchemaAt   Span   // what to cut to be rid of "outputSchema"; empty when there is none
	DescAt     Span   // the value of "description"; empty when there is none
	OutputAt   Span   // the value of "outputSchema"
	BadSchema  bool   // outputSchema is of no use to clients: it is always cut
	Union      []byte // what accepts receipts as well as OutputAt does; nil when there can be none
	Asked      int64  // bytes that its _meta asks for each result
	Titled     bool   // has a title of its own
	ReadOnly   bool   // annotations say readOnlyHint
	Idempotent bool   // annotations say idempotentHint

	cuts []edit // descriptions that are too long, shortened
}

// maxDescription is how many bytes of a description an agent gets: far more than
// any that is written for a model, and little beside its context (case C83).
const maxDescription = 16 << 10

// Span is the half-open byte range [A,B).
type Span struct{ A, B int }

// Bad is an entry, or a part of one, that was left out.
type Bad struct {
	Page   int    `json:"page"`  // where it stood, counted from 0
	Index  int    `json:"index"` // -1 for the page itself
	Name   string `json:"name"`  // "" when it has none
	Reason string `json:"reason"`
}

func (b Bad) String() string {
	return fmt.Sprintf("tools/list page %d entry %d (%q): %s", b.Page+1, b.Index+1, b.Name, b.Reason)
}

// tolerant reads what strict clients would refuse: it is for us to refuse it, one
// entry at a time.
var tolerant = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// ParseTools reads the results of tools/list, page by page. An entry that would
// spoil the list for clients is left out by itself; of two with one name the
// first counts. more are further reasons to leave one out. Nothing of what is returned
// shares memory with the pages.
func ParseTools(pages [][]byte, more ...func(Tool) error) (tools []Tool, bad []Bad) {
	seen := map[string]bool{}
	for p, page := range pages {
		entries, err := arrayIn(page, "tools")
		for i, raw := range entries {
			t, err := parseTool(raw)
			for _, check := range more {
				if err == nil {
					err = check(t)
				}
			}
			switch {
			case err != nil:
				bad = append(bad, Bad{p, i, t.Name, err.Error()})
				continue
			case seen[t.Name]:
				bad = append(bad, Bad{p, i, t.Name, "name was listed before"})
				continue
			}
			for _, part := range t.spoilt() {
				bad = append(bad, Bad{p, i, t.Name, part})
			}
			seen[t.Name] = true
			tools = append(tools, t)
		}
		if err != nil {
			bad = append(bad, Bad{p, -1, "", err.Error()})
		}
	}
	return tools, bad
}

// spoilt says which parts of t are not listed as they are.
func (t *Tool) spoilt() (parts []string) {
	switch {
	case t.BadSchema:
		parts = append(parts, "outputSchema left out: its type is not object")
	case t.Union == nil && t.OutputAt.B > 0:
		parts = append(parts, "outputSchema left out where results may be stored: "+errNoUnion.Error())
	}
	for _, c := range t.cuts {
		parts = append(parts, fmt.Sprintf("description of %d bytes cut to %d", c.at.B-c.at.A-2, maxDescription))
	}
	return parts
}

// NextCursor returns the cursor of the page after page, as it was written; ok is
// false when page is the last: the cursor is absent, null or empty.
func NextCursor(page []byte) (cursor string, ok bool) {
	err := eachMember(page, func(m member) error {
		if m.key == "nextCursor" {
			cursor = string(m.value)
		}
		return nil
	})
	switch {
	case err != nil, cursor == "", cursor == "null", cursor == `""`:
		return "", false
	}
	return cursor, true
}

func parseTool(raw []byte) (t Tool, err error) {
	if jsontext.Value(raw).Kind() != '{' {
		return t, errors.New("entry is not an object")
	}
	t.Raw = flat(raw)
	seen := map[string]bool{}
	var input jsontext.Value
	err = eachMember(t.Raw, func(m member) error {
		switch m.key {
		case "name", "inputSchema", "outputSchema", "annotations":
			if seen[m.key] {
				return fmt.Errorf("member %s comes twice", m.key)
			}
			seen[m.key] = true
		}
		switch m.key {
		case "name":
			if m.value.Kind() != '"' {
				return errors.New("name is not a string")
			}
			t.Name, t.NameAt = unquote(m.value), m.at
		case "description":
			t.DescAt = m.at
			t.describe(m)
		case "_meta":
			t.Asked = budget.Asked(m.value)
		case "title":
			t.Titled = true
		case "annotations":
			t.annotate(m.value)
		case "inputSchema":
			input = m.value
		case "outputSchema":
			t.SchemaAt, t.OutputAt = m.whole, m.at
			if t.BadSchema = checkSchema(m.value) != nil; !t.BadSchema {
				t.Union, _ = unite(m.value)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return t, err
	case t.Name == "":
		return t, errors.New("name is missing or empty")
	case input == nil:
		return t, errors.New("inputSchema is missing")
	}
	if err := readable(t.Raw); err != nil {
		return t, err
	}
	if err := checkSchema(input); err != nil {
		return t, fmt.Errorf("inputSchema: %w", err)
	}
	return t, nil
}

// describe shortens a description that would flood an agent, and marks it.
func (t *Tool) describe(m member) {
	if len(m.value) <= maxDescription || m.value.Kind() != '"' {
		return
	}
	text := unquote(m.value)
	if len(text) <= maxDescription {
		return
	}
	mark := fmt.Sprintf("… [cut: the description has %d bytes]", len(text))
	n := maxDescription - len(mark)
	for !utf8.RuneStart(text[n]) {
		n--
	}
	t.cuts = append(t.cuts, edit{m.at, quote(text[:n] + mark)})
}

// annotate reads the hints that decide whether a call may be repeated.
func (t *Tool) annotate(v jsontext.Value) {
	_ = eachMember(v, func(m member) error { // annotations of another kind give no hints
		switch m.key {
		case "title":
			t.Titled = true
		case "readOnlyHint":
			t.ReadOnly = m.value.Kind() == 't'
		case "idempotentHint":
			t.Idempotent = m.value.Kind() == 't'
		}
		return nil
	})
}
