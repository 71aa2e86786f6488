package catalog

import (
	"bytes"
	"errors"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/actors/budget"
)

// branch is where the server's own schema stands in a union.
const branch = "#/anyOf/0"

var errNoUnion = errors.New("outputSchema cannot be united with a receipt's")

// unite returns a schema that accepts what schema accepts, and receipts. Its root
// is an object, as clients demand; what can only stand at the root ($schema, $id)
// or is found from there ($defs, definitions) moves up, and references that are
// paths from the root are led to where the schema went. All else is as written.
func unite(schema []byte) ([]byte, error) {
	u := union{raw: schema}
	if err := u.read(); err != nil {
		return nil, err
	}
	b := []byte(`{"type":"object",`)
	for _, m := range u.up {
		if m.key == "$schema" || m.key == "$id" {
			b = u.appendMember(b, m)
		}
	}
	b = append(b, `"anyOf":[{`...)
	for _, m := range u.stay {
		b = u.appendMember(b, m)
	}
	b = append(bytes.TrimSuffix(b, []byte(",")), `},`...)
	b = append(append(b, budget.ReceiptSchema...), ']')
	for _, m := range u.up {
		if m.key != "$schema" && m.key != "$id" {
			b = append(b, ',')
			b = bytes.TrimSuffix(u.appendMember(b, m), []byte(","))
		}
	}
	return append(b, '}'), nil
}

// union is a schema on its way into one.
type union struct {
	raw      []byte
	up, stay []member // of the root, by where they go
	root     *url.URL // the root's own name, without a fragment; empty when it has none
	edits    []edit   // references to lead elsewhere, in order
	depth    int
}

// maxDepth is how deep a schema may be nested that is united: more than people
// write, and little enough to look ahead at every level.
const maxDepth = 100

// read parts the root's members and finds the references.
func (u *union) read() error {
	seen := map[string]bool{}
	u.root = &url.URL{}
	err := eachMember(u.raw, func(m member) error {
		if seen[m.key] {
			return errNoUnion
		}
		seen[m.key] = true
		m.value = nil // is good for this call only
		up := false
		switch m.key {
		case "$schema", "$defs", "definitions":
			up = true
		case "$id":
			id := unquote(u.raw[m.at.A:m.at.B])
			if up = !strings.HasPrefix(id, "#"); up { // else it is an anchor
				var err error
				if u.root, err = url.Parse(id); err != nil || u.raw[m.at.A] != '"' {
					return errNoUnion
				}
				u.root.Fragment = ""
			}
		case "id": // the $id of draft 4
			if u.raw[m.at.A] == '"' {
				return errNoUnion
			}
		}
		if up {
			u.up = append(u.up, m)
		} else {
			u.stay = append(u.stay, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(u.raw), tolerant...)
	return u.schema(d, u.root, true)
}

// appendMember appends a member with its references led right, and a comma.
func (u *union) appendMember(b []byte, m member) []byte {
	b = append(append(b, quote(m.key)...), ':')
	at := m.at.A
	for _, e := range u.edits {
		if e.at.A >= m.at.A && e.at.B <= m.at.B {
			b = append(append(b, u.raw[at:e.at.A]...), e.by...)
			at = e.at.B
		}
	}
	return append(append(b, u.raw[at:m.at.B]...), ',')
}

// schema reads the next value as a schema whose references are relative to base.
// Of a value that is none it looks at what could be one.
func (u *union) schema(d *jsontext.Decoder, base *url.URL, isRoot bool) error {
	if u.depth++; u.depth > maxDepth {
		return errNoUnion
	}
	defer func() { u.depth-- }()
	switch d.PeekKind() {
	case '[':
		return u.array(d, base)
	case '{':
	default:
		return d.SkipValue()
	}
	if !isRoot {
		base = baseOf(u.raw[d.InputOffset():], base)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		k, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := u.keyword(d, k.String(), base); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (u *union) array(d *jsontext.Decoder, base *url.URL) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for k := d.PeekKind(); k != ']'; k = d.PeekKind() {
		if k == 0 {
			return errNoUnion
		}
		if err := u.schema(d, base, false); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (u *union) keyword(d *jsontext.Decoder, key string, base *url.URL) error {
	switch key {
	case "const", "enum", "default", "examples", "example":
		return d.SkipValue() // data, whatever it looks like
	case "$recursiveRef", "$recursiveAnchor":
		return errNoUnion // of one draft only, and bound to the root
	case "$ref", "$dynamicRef":
		return u.reference(d, base)
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		if d.PeekKind() == '{' {
			return u.named(d, base)
		}
	}
	return u.schema(d, base, false)
}

// named reads an object whose members are schemas under names of their own.
func (u *union) named(d *jsontext.Decoder, base *url.URL) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		if err := d.SkipValue(); err != nil {
			return err
		}
		if err := u.schema(d, base, false); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (u *union) reference(d *jsontext.Decoder, base *url.URL) error {
	if d.PeekKind() != '"' {
		return u.schema(d, base, false)
	}
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	end := int(d.InputOffset())
	at := Span{end - len(v), end}
	if ref, led := u.lead(unquote(v), base); led {
		u.edits = append(u.edits, edit{at, quote(ref)})
	}
	return nil
}

// lead returns where a reference leads in the union. Those to anchors, into $defs
// and to other documents lead where they did.
func (u *union) lead(ref string, base *url.URL) (string, bool) {
	target, err := base.Parse(ref)
	if err != nil {
		return ref, false
	}
	target.Fragment, target.RawFragment = "", ""
	if target.String() != u.root.String() {
		return ref, false
	}
	doc, path, _ := strings.Cut(ref, "#")
	if path != "" && path[0] != '/' {
		return ref, false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if name, err := url.PathUnescape(first); err == nil && (name == "$defs" || name == "definitions") {
		return ref, false
	}
	return doc + branch + path, true
}

// baseOf returns what references in the schema that raw begins with are relative
// to: its own $id, if it has one.
func baseOf(raw []byte, base *url.URL) *url.URL {
	if i := bytes.IndexByte(raw, '{'); i >= 0 { // behind a colon or a comma
		raw = raw[i:]
	}
	found := base
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), tolerant...)
	if _, err := d.ReadToken(); err != nil {
		return base
	}
	for d.PeekKind() == '"' {
		k, err := d.ReadToken()
		if err != nil {
			return base
		}
		if k.String() != "$id" {
			if d.SkipValue() != nil {
				return base
			}
			continue
		}
		v, err := d.ReadValue()
		if err != nil {
			return base
		}
		id := unquote(v)
		if at, err := base.Parse(id); err == nil && v.Kind() == '"' && !strings.HasPrefix(id, "#") {
			at.Fragment, at.RawFragment = "", ""
			found = at
		}
	}
	return found
}
