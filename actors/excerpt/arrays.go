package excerpt

import (
	"cmp"
	"slices"
)

const (
	nestedTexts = 4 // strings of a document that are looked into
	nestedDepth = 3
)

// listArrays gathers the arrays of the document and of the JSON that its largest
// strings hold.
func (d *document) listArrays(src Source) error {
	if err := d.addArrays(src, d.survey, "", -1, 0); err != nil {
		return err
	}
	slices.SortStableFunc(d.arrays, compareArrays)
	return nil
}

func (d *document) addArrays(src Source, s *survey, prefix string, order int64, depth int) error {
	add := func(list []array) {
		for _, a := range list {
			a.pointer = prefix + a.pointer
			if order >= 0 {
				a.order = order
			}
			d.arrays = append(d.arrays, a)
		}
	}
	add(s.arrays)
	for _, a := range s.inner {
		if a.at.size() >= d.text.n/20 {
			add([]array{a})
		}
	}
	if depth == nestedDepth {
		return nil
	}
	for _, t := range s.texts[:min(nestedTexts, len(s.texts))] {
		v, err := newView(src, t.in, t.at.a+1, t.at.b-1, unquoted)
		if err != nil {
			return err
		}
		in, err := surveyOf(src, v)
		if err != nil {
			return err
		}
		if in.valid && in.values == 1 {
			if err := d.addArrays(src, in, prefix+t.pointer, cmp.Or(max(order, 0), t.order), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// largest is the array that is read when none is named.
func (d *document) largest() (array, bool) {
	if len(d.arrays) == 0 {
		return array{}, false
	}
	return d.arrays[0], true
}

// longLines is the mean length from which lines of JSON are shown in another way.
const longLines = 4096

// show returns the view that lines and grep read. JSON on one line, or on few, is
// shown with an element or a member a line.
func (x *Index) show(src Source, d *document) (*view, error) {
	if d.shown != nil {
		return d.shown, nil
	}
	v, as := d.text, "text"
	if d.wrapped > 0 {
		as = "text inside a JSON string"
	}
	var err error
	if d.kind == kindJSON && (v.lines <= 1 || v.n/v.lines > longLines) {
		if a, ok := d.largest(); ok && a.count > 1 && a.at.size() >= v.n/2 {
			v, err = newView(src, a.in, a.at.a+1, a.at.b-1, elements)
			as = "one element of " + pointerName(a.pointer) + " a line"
		} else {
			v, err = newView(src, v, 0, v.n, indented)
			as = "indented JSON"
		}
		if err != nil {
			return nil, err
		}
		x.cost += v.cost()
	}
	d.shown, d.as = v, as
	return v, nil
}
