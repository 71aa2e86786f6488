package budget

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mcphubd/actors/shape"
)

// maxSample is how many elements of one array are looked at; the others are counted.
const maxSample = 16

// Shape says in at most limit bytes how the JSON is built that the result's text
// begins with, or its structuredContent where that is the large part; "" when it is
// none. It looks at the beginning alone, so it costs the same for every size: [400×int]
// has 400 elements, of [60+×int] the first 60 were seen, and … stands for what was not.
func (f Facts) Shape(limit int) string {
	text, more := f.data()
	if !looksLikeJSON(text) {
		return ""
	}
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var top shape.Shape
	values, err := int64(0), error(nil)
	for err == nil {
		if err = shapeValue(d, &top, shape.Depth); err == nil {
			values++
		}
	}
	switch torn := errors.Is(err, io.ErrUnexpectedEOF); {
	case err != io.EOF && !(torn && more):
		return "" // no JSON, or text that only begins like it
	case values == 0 || values == 1 && !torn && !more:
		return top.Text("", limit)
	case more:
		return top.Text(strconv.FormatInt(values, 10)+"+×", limit)
	}
	return top.Text(strconv.FormatInt(values, 10)+"×", limit)
}

// shapeValue adds the next value to s. The error is io.EOF where the text ends before
// it and io.ErrUnexpectedEOF where it ends inside.
func shapeValue(d *jsontext.Decoder, s *shape.Shape, depth int) error {
	switch k := d.PeekKind(); k {
	case '{':
		s.Object()
		return shapeObject(d, s, depth)
	case '[':
		s.Array()
		return shapeArray(d, s, depth)
	default:
		v, err := d.ReadValue()
		switch {
		case err == nil:
			s.Scalar(byte(v.Kind()), v)
		case k == '"' && errors.Is(err, io.ErrUnexpectedEOF):
			s.Scalar('"', nil) // of which not all was seen
		}
		return err
	}
}

func newShape() *shape.Shape { return new(shape.Shape) }

func shapeObject(d *jsontext.Decoder, s *shape.Shape, depth int) error {
	s.Open = true
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		of := s.Member(t.String(), newShape)
		if of == nil || depth <= 1 {
			of = newShape() // nobody looks, but it has to be passed over
		}
		if err := shapeValue(d, of, depth-1); err != nil {
			return inside(err)
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return inside(err)
	}
	s.Open = false
	return nil
}

func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func shapeArray(d *jsontext.Decoder, s *shape.Shape, depth int) error {
	s.Open = true
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if s.Elem == nil {
		s.Elem = newShape()
	}
	for d.PeekKind() != ']' {
		err := error(nil)
		switch {
		case s.Count >= maxSample:
			err = d.SkipValue()
		case depth <= 1:
			err = shapeValue(d, newShape(), 0)
		default:
			err = shapeValue(d, s.Elem, depth-1)
		}
		if err != nil {
			return inside(err)
		}
		s.Count++
	}
	if _, err := d.ReadToken(); err != nil {
		return inside(err)
	}
	s.Open = false
	return nil
}
