package filter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// hint helps who guessed a key: it names the keys that are there, where the first
// path of the program leaves the document, else at its top.
func hint(query *gojq.Query, doc any) string {
	var s search
	s.query(query, place{".", doc, true})
	if s.found != "" {
		return s.found
	}
	switch doc := doc.(type) {
	case map[string]any:
		return "the document has " + keysOf(doc)
	case []any:
		if len(doc) == 0 {
			return "the document is an empty array"
		}
		if first, ok := doc[0].(map[string]any); ok {
			return fmt.Sprintf("the document is an array of %d, its first element has %s", len(doc), keysOf(first))
		}
		return fmt.Sprintf("the document is an array of %d", len(doc))
	}
	return ""
}

// keysOf names the keys of an object, as many as a message can take.
func keysOf(object map[string]any) string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, shortened(name, 60))
	}
	slices.Sort(names)
	total := len(names)
	if total == 0 {
		return "no keys"
	}
	for len(names) > 1 && len(strings.Join(names, ", ")) > maxMessage/3 {
		names = names[:len(names)/2]
	}
	text := "the keys " + strings.Join(names, ", ")
	if len(names) < total {
		text += fmt.Sprintf(" and %d more", total-len(names))
	}
	return text
}

// search follows a program's paths through a document, without running it: of arrays
// it looks at the first element, and it stops where it does not know better.
type search struct{ found string }

// place is a value and the path to it. Unless known, there is nothing to say.
type place struct {
	path  string
	value any
	known bool
}

func (p place) below(key string, value any) place {
	if p.path == "." && key[0] == '.' {
		p.path = ""
	}
	return place{p.path + key, value, true}
}

func (s *search) query(q *gojq.Query, at place) place {
	switch {
	case q == nil || !at.known || s.found != "":
	case q.Term != nil:
		return s.term(q.Term, at)
	case q.Op == gojq.OpPipe && len(q.Patterns) > 0: // … as $name | …
		s.query(q.Left, at)
		return s.query(q.Right, at)
	case q.Op == gojq.OpPipe:
		return s.query(q.Right, s.query(q.Left, at))
	case q.Op == gojq.OpAlt: // the program is ready for what is missing
	default:
		s.query(q.Left, at)
		s.query(q.Right, at)
	}
	return place{}
}

func (s *search) term(t *gojq.Term, at place) place {
	for _, suffix := range t.SuffixList {
		if suffix.Optional { // as above
			return place{}
		}
	}
	at = s.head(t, at)
	for _, suffix := range t.SuffixList {
		switch {
		case suffix.Index != nil:
			at = s.index(suffix.Index, at)
		case suffix.Iter:
			s.text(at)
			at = element(at)
		}
	}
	return at
}

// head is a term without its suffixes.
func (s *search) head(t *gojq.Term, at place) place {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return at
	case gojq.TermTypeIndex:
		return s.index(t.Index, at)
	case gojq.TermTypeQuery:
		return s.query(t.Query, at)
	case gojq.TermTypeArray:
		s.query(t.Array.Query, at)
	case gojq.TermTypeObject:
		for _, pair := range t.Object.KeyVals {
			s.query(pair.Val, at)
		}
	case gojq.TermTypeFunc:
		return s.call(t.Func, at)
	}
	return place{}
}

// call follows the functions that look into their input.
func (s *search) call(f *gojq.Func, at place) place {
	if len(f.Args) != 1 {
		return place{}
	}
	switch f.Name {
	case "select":
		s.query(f.Args[0], at)
		return at
	case "sort_by", "group_by", "unique_by":
		s.query(f.Args[0], element(at))
		return at
	case "map", "min_by", "max_by":
		s.query(f.Args[0], element(at))
	}
	return place{}
}

func (s *search) index(i *gojq.Index, at place) place {
	key, ok := keyOf(i)
	switch value := at.value.(type) {
	case map[string]any:
		below, there := value[key]
		if ok && !there && s.found == "" {
			s.found = fmt.Sprintf("%s has no key %q but %s", shortened(at.path, 100), shortened(key, 60), keysOf(value))
		}
		if ok && there {
			return at.below("."+key, below)
		}
	case []any:
		switch first, _ := element(at).value.(map[string]any); {
		case i.IsSlice:
			return at
		case !ok:
			return element(at)
		case s.found == "" && first != nil:
			s.found = fmt.Sprintf("%s is an array, take its elements with []; the first has %s", shortened(at.path, 100), keysOf(first))
		}
	default:
		s.text(at)
	}
	return place{}
}

// text helps who goes into a string as if it were the JSON that it holds.
func (s *search) text(at place) {
	v, _ := at.value.(string)
	v = strings.TrimSpace(v)
	if s.found == "" && v != "" && strings.ContainsRune("{[", rune(v[0])) && json.Valid([]byte(v)) {
		path := shortened(at.path, 100)
		s.found = fmt.Sprintf("%s is a string that holds JSON: go into it with %s|fromjson", path, path)
	}
}

// keyOf is the key that i is about, if it is plain.
func keyOf(i *gojq.Index) (string, bool) {
	text := i.Str
	switch {
	case i.IsSlice:
		return "", false
	case i.Name != "":
		return strings.TrimPrefix(i.Name, "."), true
	case text == nil && i.Start != nil && i.Start.Term != nil && len(i.Start.Term.SuffixList) == 0:
		text = i.Start.Term.Str
	}
	if text == nil || len(text.Queries) > 0 {
		return "", false
	}
	return text.Str, true
}

// element is the first element of an array.
func element(at place) place {
	if array, ok := at.value.([]any); ok && len(array) > 0 {
		return at.below("[]", array[0])
	}
	return place{}
}
