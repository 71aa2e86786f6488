package downstream

import (
	"bytes"
	"strconv"
	"time"
)

// events reads an event stream by the rules of the HTML standard, in whatever pieces it
// comes. Data is passed on as it arrives: an event may be larger than memory.
type events struct {
	data func(p []byte)              // more of the data of the current event
	done func(name string, cut bool) // the event is complete; cut: the stream ended instead

	lastID string        // of the last complete event
	retry  time.Duration // asked for by the server, 0 = nothing asked

	begun  bool   // the first line is over
	skipLF bool   // the last byte was a CR
	field  []byte // the name of the current line's field, as far as it matters
	value  []byte // and its value, unless it is data
	part   part
	isData bool
	name   string // of the current event
	id     string
	lines  int // of data in the current event
}

// part says where in a line the reader stands.
type part int

const (
	inField part = iota
	atValue      // right behind the colon
	inValue
)

// maxField bounds what is kept of names and of values other than data.
const maxField = 1 << 10

var byteOrderMark = []byte("\xEF\xBB\xBF")

// feed takes the next bytes of the stream.
func (e *events) feed(p []byte) {
	for len(p) > 0 {
		if e.skipLF {
			e.skipLF = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		line := p[:max(end, 0)]
		if end < 0 {
			line = p
		}
		e.take(line)
		if end < 0 {
			return
		}
		e.skipLF = p[end] == '\r'
		e.endLine()
		p = p[end+1:]
	}
}

// lineEnd is where the first line of p ends, or -1.
func lineEnd(p []byte) int {
	n := bytes.IndexByte(p, '\n')
	rest := p
	if n >= 0 {
		rest = p[:n]
	}
	if r := bytes.IndexByte(rest, '\r'); r >= 0 {
		return r
	}
	return n
}

// take handles bytes inside a line.
func (e *events) take(p []byte) {
	if e.part == inField {
		colon := bytes.IndexByte(p, ':')
		name := p
		if colon >= 0 {
			name = p[:colon]
		}
		e.field = append(e.field, name[:min(len(name), maxField-len(e.field))]...)
		if colon < 0 {
			return
		}
		e.endField()
		p = p[colon+1:]
	}
	if len(p) == 0 {
		return
	}
	if e.part == atValue {
		e.part = inValue
		if p[0] == ' ' {
			p = p[1:]
		}
	}
	switch {
	case len(p) == 0:
	case e.isData:
		e.data(p)
	default:
		e.value = append(e.value, p[:min(len(p), maxField-len(e.value))]...)
	}
}

// endField follows the name of a field.
func (e *events) endField() {
	if !e.begun {
		e.field = bytes.TrimPrefix(e.field, byteOrderMark)
	}
	e.part = atValue
	if e.isData = string(e.field) == "data"; e.isData {
		if e.lines++; e.lines > 1 {
			e.data([]byte{'\n'})
		}
	}
}

func (e *events) endLine() {
	if e.part == inField {
		e.endField()
		if len(e.field) == 0 {
			e.dispatch()
		}
	}
	e.begun = true
	switch string(e.field) {
	case "event":
		e.name = string(e.value)
	case "id":
		if bytes.IndexByte(e.value, 0) < 0 {
			e.id = string(e.value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(e.value), 10, 31); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	}
	e.field, e.value, e.part, e.isData = e.field[:0], e.value[:0], inField, false
}

// dispatch follows the blank line behind an event.
func (e *events) dispatch() {
	e.lastID = e.id
	if e.lines > 0 {
		e.done(e.name, false)
	}
	e.name, e.lines = "", 0
}

// end follows the last byte of the stream. What comes after it is a new stream, which
// goes on from the last event.
func (e *events) end() {
	if e.lines > 0 {
		e.done(e.name, true)
	}
	*e = events{data: e.data, done: e.done, lastID: e.lastID, id: e.lastID, retry: e.retry}
}
