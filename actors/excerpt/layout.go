package excerpt

import "github.com/go-json-experiment/json/jsontext"

// maxParts is how many content blocks are told apart.
const maxParts = 1 << 16

// A span is bytes a to b of a document.
type span struct{ a, b int64 }

func (s span) size() int64 { return s.b - s.a }

// A layout says where the parts of a result stand.
type layout struct {
	parts      []part
	more       int // blocks beyond maxParts
	structured span
}

// A part is one content block.
type part struct {
	kind, mime, uri string
	at              span // the block
	text            span // the inside of its text, if it has any
	hasText         bool
	bare            bool  // it is the inside of a block of type resource
	data            int64 // bytes of base64 in it
}

// layoutOf reads the result once: that of a tool, of a resource or of a prompt. One that
// is not laid out as the protocol says has no parts.
func layoutOf(src Source, r root) (*layout, error) {
	l := &layout{}
	x := lexerAt(r, src, 0)
	x.loose = true
	found := false
	l.object(x, func(key string) {
		switch key {
		case "content":
			l.parts, l.more, found = nil, 0, true
			l.list(x, l.content)
		case "contents", "messages": // of resources/read, of prompts/get
			switch {
			case found:
				x.c.value()
			case key == "contents":
				l.list(x, l.resource)
			default:
				l.list(x, l.message)
			}
		case "structuredContent":
			null := x.c.space() && x.c.p[0] == 'n'
			if l.structured = x.c.span(); null {
				l.structured = span{}
			}
		default:
			x.c.value()
		}
	})
	return l, x.c.fault()
}

// span passes over the value at the cursor and says where it stands.
func (c *cursor) span() span {
	c.space()
	a := c.at
	c.value()
	return span{a, c.at}
}

// object calls member for every member of the object at x; member passes over the
// value. A value that is no object is passed over.
func (l *layout) object(x *lexer, member func(key string)) {
	if !x.c.space() || x.c.p[0] != '{' {
		x.c.value()
		return
	}
	x.next()
	for {
		t := x.next()
		if t.kind == ',' {
			continue
		}
		if t.kind != '"' {
			return
		}
		key := x.decoded()
		if x.next().kind != ':' {
			return
		}
		member(key)
	}
}

// decoded is the last string, decoded.
func (l *lexer) decoded() string {
	r := rendering{how: unquoted}
	return string(r.end(r.feed(nil, l.text)))
}

// list calls element for every element of the array at x; element passes over it. A
// value that is no array is passed over.
func (l *layout) list(x *lexer, element func(*lexer)) {
	if !x.c.space() || x.c.p[0] != '[' {
		x.c.value()
		return
	}
	x.next()
	for x.c.space() {
		switch x.c.p[0] {
		case ',':
			x.c.skip(1)
		case ']':
			x.c.skip(1)
			return
		default:
			at := x.c.at
			if element(x); x.c.at == at {
				return // this is no JSON
			}
		}
	}
}

// content takes a content block.
func (l *layout) content(x *lexer) { l.add(l.block(x)) }

// resource takes one that lacks the block around it.
func (l *layout) resource(x *lexer) {
	isObject := x.c.p[0] == '{'
	p := l.block(x)
	if isObject {
		p.kind, p.bare = "resource", true
	}
	l.add(p)
}

// message takes what is in a message of a prompt: a block, or several.
func (l *layout) message(x *lexer) {
	l.object(x, func(key string) {
		switch {
		case key != "content":
			x.c.value()
		case x.c.space() && x.c.p[0] == '[':
			l.list(x, l.content)
		default:
			l.content(x)
		}
	})
}

func (l *layout) add(p part) {
	switch {
	case p.at.size() == 0: // no JSON
	case len(l.parts) < maxParts:
		l.parts = append(l.parts, p)
	default:
		l.more++
	}
}

func (l *layout) block(x *lexer) (p part) {
	p.at.a = x.c.at
	inResource := false // which cannot hold another: servers decide how deep things are
	var member func(string)
	member = func(key string) {
		switch key {
		case "type":
			p.kind = x.short()
		case "mimeType":
			p.mime = x.short()
		case "uri":
			p.uri = x.short()
		case "text":
			if x.c.space() && x.c.p[0] == '"' {
				s := x.c.span()
				p.text, p.hasText = span{s.a + 1, s.b - 1}, true
			} else {
				x.c.value()
			}
		case "data", "blob":
			p.data = max(x.c.span().size()-2, 0)
		case "resource":
			if inResource {
				x.c.value()
				return
			}
			inResource = true
			l.object(x, member)
			inResource = false
		default:
			x.c.value()
		}
	}
	l.object(x, member)
	p.at.b = x.c.at
	return p
}

// short reads a string that serves as a label.
func (l *lexer) short() string {
	if !l.c.space() || l.c.p[0] != '"' {
		l.c.value()
		return ""
	}
	if l.next(); len(l.text) > 200 {
		return ""
	}
	return l.decoded()
}

// show quotes a text for a line of an outline.
func show(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}
