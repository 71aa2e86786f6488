package catalog

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// member is one member of a JSON object. value is good until the next one is read.
type member struct {
	key   string
	value jsontext.Value
	at    Span // the value
	whole Span // the member with the comma that goes with it
}

// eachMember calls f for the members of obj in order. The last error counts: f's,
// or what is wrong with obj, in which case the members before it were seen.
func eachMember(obj []byte, f func(member) error) error {
	if jsontext.Value(obj).Kind() != '{' {
		return errors.New("not an object")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(obj), tolerant...)
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	before := int(d.InputOffset()) // where the member before ended
	for first := true; d.PeekKind() == '"'; first = false {
		k, err := d.ReadToken()
		if err != nil {
			return err
		}
		m := member{key: k.String()}
		if m.value, err = d.ReadValue(); err != nil {
			return err
		}
		end := int(d.InputOffset())
		m.at = Span{end - len(m.value), end}
		m.whole = Span{before, end}
		if first { // its comma stands behind it
			m.whole.B = end + comma(obj[end:])
		}
		if err := f(m); err != nil {
			return err
		}
		before = end
	}
	_, err := d.ReadToken()
	return err
}

// comma returns how many bytes of rest lead up to and over a comma; 0 when the
// next thing is none.
func comma(rest []byte) int {
	for i, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		case ',':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

func unquote(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, []byte(v))
	return string(b)
}

func quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s)
	return b
}

// flat copies JSON with line breaks, which are white space there, as spaces.
func flat(v []byte) []byte {
	b := bytes.Clone(v)
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}
