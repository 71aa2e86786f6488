package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// listed is one entry of a list of prompts, resources or templates.
type listed struct {
	Raw    []byte // as it was written, line breaks as spaces
	Key    string // what tells it from others, decoded
	KeyAt  Span   // the value of that member in Raw
	Titled bool
}

// parseEntries reads the pages of a list: the array called list, of objects that
// are told apart by the member called key. An entry that would spoil the list for
// clients is left out by itself; of two with one key the first counts.
func parseEntries(pages [][]byte, list, key string) (all []listed, bad []Bad) {
	seen := map[string]bool{}
	for p, page := range pages {
		entries, err := arrayIn(page, list)
		for i, raw := range entries {
			e, err := parseEntry(raw, key)
			switch {
			case err != nil:
				bad = append(bad, Bad{p, i, e.Key, err.Error()})
			case seen[e.Key]:
				bad = append(bad, Bad{p, i, e.Key, key + " was listed before"})
			default:
				seen[e.Key] = true
				all = append(all, e)
			}
		}
		if err != nil {
			bad = append(bad, Bad{p, -1, "", err.Error()})
		}
	}
	return all, bad
}

// arrayIn returns the raw elements of an array member. The last one of that name
// counts.
func arrayIn(page []byte, name string) (elements [][]byte, err error) {
	found := false
	err = eachMember(page, func(m member) error {
		if m.key != name {
			return nil
		}
		found, elements = true, nil
		if m.value.Kind() != '[' {
			return errors.New(name + " is not an array")
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(m.value), tolerant...)
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != ']' {
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			elements = append(elements, bytes.Clone(v))
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("result has no " + name)
	}
	return elements, err
}

func parseEntry(raw []byte, key string) (e listed, err error) {
	if jsontext.Value(raw).Kind() != '{' {
		return e, errors.New("entry is not an object")
	}
	e.Raw = flat(raw)
	err = eachMember(e.Raw, func(m member) error {
		switch m.key {
		case key:
			if e.KeyAt.B > 0 {
				return fmt.Errorf("member %s comes twice", key)
			}
			if m.value.Kind() != '"' {
				return fmt.Errorf("%s is not a string", key)
			}
			e.Key, e.KeyAt = unquote(m.value), m.at
		case "title":
			e.Titled = true
		}
		return nil
	})
	switch {
	case err != nil:
		return e, err
	case e.Key == "":
		return e, fmt.Errorf("%s is missing or empty", key)
	}
	return e, readable(e.Raw)
}

// readable refuses an entry that strict clients would refuse, and the list with it.
func readable(entry []byte) error {
	switch {
	case !utf8.Valid(entry):
		return errors.New("entry is not valid UTF-8")
	case !jsontext.Value(entry).IsValid(jsontext.AllowDuplicateNames(true)):
		return errors.New("entry has half a surrogate pair, which strict clients refuse")
	}
	return nil
}

// appendAs appends the entry with another value in place of its key.
func (e *listed) appendAs(b, key []byte) []byte {
	b = append(append(b, e.Raw[:e.KeyAt.A]...), key...)
	return append(b, e.Raw[e.KeyAt.B:]...)
}

// closeList ends a list that was begun with "[" and has a comma after each entry.
func closeList(b []byte) []byte {
	if len(b) > 1 {
		b = b[:len(b)-1]
	}
	return append(b, ']')
}
