package excerpt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcphubd/actors/shape"
)

const (
	namedKeys   = 12
	namedArrays = 8
)

// resolve follows a JSON Pointer to an array. A step into a string goes into the
// JSON that it holds.
func (d *document) resolve(src Source, pointer string) (array, error) {
	if pointer[0] != '/' {
		return array{}, fmt.Errorf("records %q is no JSON Pointer: it begins with /, such as /items or /data/0/rows; %s", clip(pointer), d.nearest(pointer))
	}
	p := &path{src: src, in: d.text, c: cursorAt(d.text, src, 0)}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if ok, err := p.step(step); err != nil {
			return array{}, err
		} else if !ok {
			return array{}, fmt.Errorf("records %s: %s %s; %s", pointerName(pointer), pointerName(p.at()), p.miss(step), d.nearest(pointer))
		}
		p.done = append(p.done, step)
	}
	return p.array(d, pointer)
}

// A path is how far a pointer was followed.
type path struct {
	src  Source
	in   doc
	c    *cursor // at a value
	done []string
	keys []string // of the object that lacked the step
	n    int64    // elements of the array that lacked it
	kind byte
}

func (p *path) at() string {
	if len(p.done) == 0 {
		return "the document"
	}
	var b strings.Builder
	for _, s := range p.done {
		b.WriteString("/" + pointerEscape.Replace(s))
	}
	return b.String()
}

// enter goes into the JSON that a string at the cursor holds.
func (p *path) enter() error {
	for range maxWrapped {
		if !p.c.space() || p.c.p[0] != '"' {
			break
		}
		s := p.c.span()
		v, err := newView(p.src, p.in, s.a+1, s.b-1, unquoted)
		if err != nil {
			return err
		}
		p.in, p.c = v, cursorAt(v, p.src, 0)
	}
	return p.c.fault()
}

// step goes one step further; false when there is no such member or element.
func (p *path) step(name string) (bool, error) {
	if err := p.enter(); err != nil {
		return false, err
	}
	p.kind = 0
	if p.c.space() {
		p.kind = p.c.p[0]
	}
	switch p.kind {
	case '{':
		return p.member(name)
	case '[':
		return p.element(name)
	}
	return false, p.c.fault()
}

func (p *path) member(name string) (bool, error) {
	p.keys = nil
	x := &lexer{c: p.c, loose: true}
	x.next()
	for {
		t := x.next()
		if t.kind == ',' {
			continue
		}
		if t.kind != '"' {
			return false, p.c.fault()
		}
		key := x.decoded()
		whole := x.whole
		if x.next().kind != ':' {
			return false, p.c.fault()
		}
		if key == name && whole {
			return true, nil
		}
		if len(p.keys) < 200 {
			p.keys = append(p.keys, key)
		}
		p.c.value()
	}
}

func (p *path) element(name string) (bool, error) {
	want, err := strconv.ParseInt(name, 10, 64)
	if err != nil || want < 0 {
		want = -1
	}
	p.c.skip(1)
	for p.n = 0; p.c.space() && p.c.p[0] != ']'; p.n++ {
		if p.c.p[0] == ',' {
			p.c.skip(1)
			p.c.space()
		}
		if p.n == want {
			return true, nil
		}
		at := p.c.at
		if p.c.value(); p.c.at == at {
			break
		}
	}
	return false, p.c.fault()
}

// miss says why a step leads nowhere.
func (p *path) miss(step string) string {
	switch p.kind {
	case '{':
		return fmt.Sprintf("has no member %s, but %s", shape.Name(step), p.members(step))
	case '[':
		return fmt.Sprintf("is an array of %d, in which %s is no element", p.n, shape.Name(step))
	}
	return fmt.Sprintf("has no members, so no %s", shape.Name(step))
}

// members names the keys of the object at hand, those most like name first.
func (p *path) members(name string) string {
	if len(p.keys) == 0 {
		return "none"
	}
	if name != "" {
		slices.SortStableFunc(p.keys, func(a, b string) int { return distance(a, name) - distance(b, name) })
	}
	var b strings.Builder
	for i, k := range p.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == namedKeys {
			b.WriteString("…")
			break
		}
		b.WriteString(shape.Name(k))
	}
	return b.String()
}

// array is the array at the cursor.
func (p *path) array(d *document, pointer string) (array, error) {
	if err := p.enter(); err != nil {
		return array{}, err
	}
	if p.c.space() && p.c.p[0] == '[' {
		at := p.c.span()
		return array{pointer: pointer, in: p.in, at: at}, p.c.fault()
	}
	is := "no array"
	if p.c.more() && p.c.p[0] == '{' {
		if _, err := p.member("\x00"); err != nil {
			return array{}, err
		}
		is = "no array but an object with the members " + p.members("")
	}
	return array{}, fmt.Errorf("records: %s is %s; %s", pointerName(pointer), is, d.nearest(pointer))
}

// nearest names the arrays that exist, the likeliest first.
func (d *document) nearest(pointer string) string {
	if len(d.arrays) == 0 {
		return "there is no array in " + d.label()
	}
	list := slices.Clone(d.arrays)
	slices.SortStableFunc(list, func(a, b array) int { return distance(a.pointer, pointer) - distance(b.pointer, pointer) })
	var names []string
	for _, a := range list[:min(namedArrays, len(list))] {
		name := a.pointer
		if name == "" {
			name = `""`
		}
		names = append(names, fmt.Sprintf("%s (%d)", clip(name), a.count))
	}
	return "arrays with their counts: " + strings.Join(names, ", ")
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:wholeRunes([]byte(s), 80)] + "…"
	}
	return s
}

// distance is how many characters have to change between two names.
func distance(a, b string) int {
	a, b = strings.ToLower(clip(a)), strings.ToLower(clip(b))
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}
