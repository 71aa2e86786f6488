package wire

import (
	"bytes"
	"errors"
)

// Span is the half-open byte range [A,B) of a message.
type Span struct{ A, B int }

// OK reports whether the span covers anything.
func (s Span) OK() bool { return s.B > s.A }

// Of returns the bytes of b that s covers.
func (s Span) Of(b []byte) []byte { return b[s.A:s.B] }

// ErrScan reports bytes that are not one JSON object.
var ErrScan = errors.New("not a JSON object")

// MaxDepth is how deep values may nest. It is what encoding/json allows as well.
const MaxDepth = 10000

// Envelope says where the top-level members of one JSON-RPC message stand. Of a
// member that came twice it holds the first.
type Envelope struct {
	Version, ID, Method, Params, Result, Error Span
	Odd                                        bool // a member came twice, or under an escaped key
}

// ScanEnvelope finds the members of a JSON-RPC message in one pass, without
// allocating or decoding. It does not validate what it skips. With an error it
// still returns the members seen so far.
func ScanEnvelope(b []byte) (Envelope, error) {
	var e Envelope
	for it := members(b); ; {
		key, v, more, err := it.next()
		if !more {
			return e, err
		}
		e.put(key, v)
	}
}

// put notes one member.
func (e *Envelope) put(key []byte, v Span) {
	at := e.member(key)
	if at == nil {
		if bytes.IndexByte(key, '\\') < 0 {
			return
		}
		var plain [10]byte
		if at = e.member(unescape(plain[:0], key)); at == nil {
			return
		}
		e.Odd = true
	}
	if at.OK() {
		e.Odd = true
		return
	}
	*at = v
}

func (e *Envelope) member(key []byte) *Span {
	switch string(key) {
	case "jsonrpc":
		return &e.Version
	case "id":
		return &e.ID
	case "method":
		return &e.Method
	case "params":
		return &e.Params
	case "result":
		return &e.Result
	case "error":
		return &e.Error
	}
	return nil
}

// ScanObject calls f for each member of the object b, in order, with its key as
// written (without quotes) and where its value stands, until f returns false.
func ScanObject(b []byte, f func(key []byte, value Span) bool) error {
	for it := members(b); ; {
		key, v, more, err := it.next()
		if !more || !f(key, v) {
			return err
		}
	}
}

// Flatten appends b to dst with raw line breaks replaced by spaces. Inside a JSON
// document they can only be insignificant white space.
func Flatten(dst, b []byte) []byte {
	n := len(dst)
	dst = append(dst, b...)
	for _, c := range []byte{'\n', '\r'} {
		for at := n; ; {
			k := bytes.IndexByte(dst[at:], c)
			if k < 0 {
				break
			}
			dst[at+k] = ' '
			at += k + 1
		}
	}
	return dst
}

// walker goes from member to member of one object.
type walker struct {
	b       []byte
	at      int
	started bool
}

func members(b []byte) walker { return walker{b: b} }

// next returns the next member. more is false at the end of the object and on an error.
func (w *walker) next() (key []byte, v Span, more bool, err error) {
	b, i := w.b, skipSpace(w.b, w.at)
	if !w.started {
		if i >= len(b) || b[i] != '{' {
			return nil, v, false, ErrScan
		}
		if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
			return w.end(i)
		}
		w.started = true
	} else {
		switch {
		case i >= len(b):
			return nil, v, false, ErrScan
		case b[i] == '}':
			return w.end(i)
		case b[i] != ',':
			return nil, v, false, ErrScan
		}
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '"' {
		return nil, v, false, ErrScan
	}
	end := skipString(b, i)
	if end < 0 {
		return nil, v, false, ErrScan
	}
	key = b[i+1 : end-1]
	if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
		return nil, v, false, ErrScan
	}
	v.A = skipSpace(b, i+1)
	if v.B = skipValue(b, v.A); v.B < 0 {
		return nil, Span{}, false, ErrScan
	}
	w.at = v.B
	return key, v, true, nil
}

// end checks that nothing follows the object, whose brace stands at i.
func (w *walker) end(i int) ([]byte, Span, bool, error) {
	if skipSpace(w.b, i+1) != len(w.b) {
		return nil, Span{}, false, ErrScan
	}
	return nil, Span{}, false, nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that opens at i, or -1. Every
// byte is looked at once, however many backslashes there are.
func skipString(b []byte, i int) int {
	i++
	if n := shortString(b[i:]); n > 0 {
		return i + n
	}
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		quote := i + n
		k := quote
		for k > i && b[k-1] == '\\' {
			k--
		}
		if (quote-k)%2 == 0 {
			return quote + 1
		}
		i = quote + 1
	}
}

// shortString returns the length of a string up to and with its closing quote if it is
// short and has no escapes, else 0. Most keys and values are; calling IndexByte for
// them costs more than looking.
func shortString(b []byte) int {
	for i, c := range b[:min(len(b), 16)] {
		switch c {
		case '"':
			return i + 1
		case '\\':
			return 0
		}
	}
	return 0
}

// skipValue returns the index after the value that starts at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && !endsScalar[b[i]] {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func skipNested(b []byte, i int) int {
	var n nesting
	end, closed, ok := n.skip(b[i:])
	if !closed || !ok {
		return -1
	}
	return i + end
}

var endsScalar = [256]bool{
	',': true, ':': true, '"': true, '{': true, '[': true, '}': true, ']': true,
	' ': true, '\n': true, '\r': true, '\t': true,
}

// unescape appends key with its \u escapes of ASCII characters resolved, as far
// as dst has room: enough to recognise a short name written in a strange way.
func unescape(dst, key []byte) []byte {
	for len(key) > 0 && len(dst) < cap(dst) {
		if len(key) >= 6 && key[0] == '\\' && key[1] == 'u' && key[2] == '0' && key[3] == '0' {
			dst = append(dst, hex(key[4])<<4|hex(key[5]))
			key = key[6:]
			continue
		}
		dst = append(dst, key[0])
		key = key[1:]
	}
	return dst
}

func hex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}
