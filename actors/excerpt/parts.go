package excerpt

import (
	"fmt"
	"slices"
	"strings"
)

// texts lists the blocks whose text makes up the text of the result.
func (l *layout) texts() (list []int) {
	for i, p := range l.parts {
		if p.hasText && p.kind == "text" {
			list = append(list, i)
		}
	}
	if list == nil {
		for i, p := range l.parts {
			if p.hasText {
				list = append(list, i)
			}
		}
	}
	return list
}

// auto is the part that is read when none is named: the text, if there is any.
func (l *layout) auto() int {
	texts := l.texts()
	empty := !slices.ContainsFunc(texts, func(i int) bool { return l.parts[i].text.size() > 0 })
	switch {
	case empty && l.structured.size() > 0:
		return partStructured
	case len(texts) == 1:
		return texts[0]
	case len(texts) > 1:
		return partAuto
	}
	return partResult
}

func (x *Index) partText(src Source, l *layout, part int) (*view, error) {
	switch {
	case part == partAuto:
		return x.joinTexts(src, l)
	case part == partStructured && l.structured.size() > 0:
		return newView(src, x.root, l.structured.a, l.structured.b, asIs)
	case part == partResult:
		return newView(src, x.root, 0, x.root.n, asIs)
	case part < 0 || part >= len(l.parts):
		return nil, fmt.Errorf("there is no part %s; the parts are %s", partName(part), l.names())
	}
	p := l.parts[part]
	if p.hasText {
		return newView(src, x.root, p.text.a, p.text.b, unquoted)
	}
	return newView(src, x.root, p.at.a, p.at.b, asIs)
}

// joinTexts is the text of all text blocks, each on lines of its own.
func (x *Index) joinTexts(src Source, l *layout) (*view, error) {
	var j joined
	for _, i := range l.texts() {
		p := l.parts[i].text
		v, err := newView(src, x.root, p.a, p.b, unquoted)
		if err != nil {
			return nil, err
		}
		if v.n == 0 {
			continue
		}
		x.cost += v.cost()
		j.parts, j.gaps = append(j.parts, v), append(j.gaps, v.cut)
	}
	if n := len(j.gaps); n > 0 {
		j.gaps[n-1] = false
	}
	j.sum()
	return newView(src, j, 0, j.size(), asIs)
}

func partName(part int) string {
	switch part {
	case partAuto:
		return "text"
	case partStructured:
		return "structured"
	case partResult:
		return "result"
	}
	return fmt.Sprint(part)
}

// label names the document in a header.
func (d *document) label() string {
	switch d.part {
	case partAuto:
		return "all text blocks"
	case partStructured:
		return "structuredContent"
	case partResult:
		return "the whole result"
	}
	return fmt.Sprintf("part %d", d.part)
}

// names lists what part may be.
func (l *layout) names() string {
	var list []string
	for i := range l.parts {
		if i == 8 && len(l.parts) > 10 {
			list = append(list, fmt.Sprintf("… %d", len(l.parts)-1))
			break
		}
		list = append(list, fmt.Sprint(i))
	}
	if l.structured.size() > 0 {
		list = append(list, `"structured"`)
	}
	return strings.Join(append(list, `"result"`), ", ")
}
