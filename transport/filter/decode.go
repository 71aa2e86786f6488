package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// each gives every JSON value of r to use, until one is refused.
func each(r io.Reader, use func(any) error) error {
	d := decoder{jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), map[string]string{}}
	for {
		v, err := d.value()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the document is not JSON, read it with lines or grep: %w", err)
		}
		if err := use(v); err != nil {
			return err
		}
	}
}

// decoder makes the values that gojq works on: of duplicate names the last counts,
// and numbers keep their spelling.
type decoder struct {
	*jsontext.Decoder
	names map[string]string // those seen, so that equal ones share their bytes
}

const maxNames = 10_000

func (d decoder) value() (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String()), nil
	case '[':
		return d.array()
	}
	return d.object()
}

// number is an int where that has the same spelling: it takes less room.
func number(s string) any {
	if n, err := strconv.Atoi(s); err == nil && s != "-0" {
		return n
	}
	return json.Number(s)
}

func (d decoder) array() (any, error) {
	array := []any{}
	for d.PeekKind() != ']' {
		v, err := d.value()
		if err != nil {
			return nil, inside(err)
		}
		array = append(array, v)
	}
	_, err := d.ReadToken()
	return array, err
}

func (d decoder) object() (any, error) {
	object := map[string]any{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, inside(err)
		}
		key := d.shared(name.String())
		v, err := d.value()
		if err != nil {
			return nil, inside(err)
		}
		object[key] = v
	}
	_, err := d.ReadToken()
	return object, err
}

// inside is err within a value, where the end of the document is no good one.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (d decoder) shared(name string) string {
	if known, ok := d.names[name]; ok {
		return known
	}
	if len(d.names) < maxNames {
		d.names[name] = name
	}
	return name
}
