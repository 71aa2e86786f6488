package wire

import (
	"bytes"
	"errors"
)

// ErrHead reports a message whose members beside the result are too long to keep.
var ErrHead = errors.New("message is too long beside its result")

// Splitter is ScanEnvelope for a message that comes in pieces and need not fit
// in memory. The bytes of its result go to Result as they arrive; all else is
// collected in Head, in which null stands for the result. The id may stand
// before the result or behind it: many servers write it last.
type Splitter struct {
	Result  func(p []byte) // takes the next bytes of the result; p is valid during the call
	MaxHead int            // bytes of Head

	Head     []byte
	ResultAt int // where that null stands in Head; 0 while there was no result

	state    func(*Splitter, []byte) int // consumes some bytes and says how many; nil: start
	err      error
	key, id  []byte
	idSeen   bool // an id was complete
	esc, str bool // the next byte is escaped; inside a string
	nest     nesting
	closed   bool // the message's last brace was seen
	drop     bool
}

// Feed takes the next bytes of the message. After an error it ignores them.
func (s *Splitter) Feed(p []byte) {
	if s.state == nil {
		s.state = (*Splitter).open
	}
	for len(p) > 0 && s.err == nil {
		p = p[s.state(s, p):]
	}
}

// ID returns the id as it was written, once it has been seen whole.
func (s *Splitter) ID() ([]byte, bool) { return s.id, s.idSeen }

// Discard keeps no more bytes, except those of an id that is still to come.
func (s *Splitter) Discard() { s.drop, s.Head, s.Result = true, nil, nil }

// End says whether what was fed is one whole message that could be kept.
func (s *Splitter) End() error {
	switch {
	case s.err != nil:
		return s.err
	case !s.closed:
		return ErrScan
	case s.drop:
		return ErrHead
	}
	return nil
}

const maxKept = 64 // bytes of a key or an id that matter

// keep collects bytes that are no part of the result.
func (s *Splitter) keep(p []byte) {
	switch {
	case s.drop:
	case len(s.Head)+len(p) > s.MaxHead:
		s.Discard()
	default:
		s.Head = append(s.Head, p...)
	}
}

// value takes bytes of the value of the current member.
func (s *Splitter) value(p []byte) {
	switch string(s.key) {
	case "result":
		if s.Result != nil {
			s.Result(p)
		}
		return
	case "id":
		if !s.idSeen && len(s.id)+len(p) <= maxKept {
			s.id = append(s.id, p...)
		} else if !s.idSeen {
			s.id = append(s.id[:0], '?') // too long to be one of ours
		}
	}
	s.keep(p)
}

func (s *Splitter) fail() int {
	s.err = ErrScan
	return 0
}

// space keeps leading white space and returns its length.
func (s *Splitter) space(p []byte) int {
	n := skipSpace(p, 0)
	s.keep(p[:n])
	return n
}

// punct handles white space and then one byte, which next turns into a state.
func (s *Splitter) punct(p []byte, next func(c byte) func(*Splitter, []byte) int) int {
	n := s.space(p)
	if n == len(p) {
		return n
	}
	to := next(p[n])
	if to == nil {
		return s.fail()
	}
	s.keep(p[n : n+1])
	s.state = to
	return n + 1
}

func (s *Splitter) open(p []byte) int {
	return s.punct(p, func(c byte) func(*Splitter, []byte) int {
		if c == '{' {
			return (*Splitter).first
		}
		return nil
	})
}

func (s *Splitter) first(p []byte) int {
	return s.punct(p, func(c byte) func(*Splitter, []byte) int {
		if c == '}' {
			s.closed = true
			return (*Splitter).rest
		}
		return s.opened(c)
	})
}

func (s *Splitter) member(p []byte) int { return s.punct(p, s.opened) }

// opened begins a key at its quote.
func (s *Splitter) opened(c byte) func(*Splitter, []byte) int {
	if c != '"' {
		return nil
	}
	s.key = s.key[:0]
	return (*Splitter).inKey
}

func (s *Splitter) inKey(p []byte) int {
	n, closed := s.inString(p)
	s.keep(p[:n])
	part := p[:n]
	if closed {
		part = p[:n-1]
		s.state = (*Splitter).colon
	}
	s.key = append(s.key, part[:min(len(part), maxKept-len(s.key))]...)
	return n
}

func (s *Splitter) colon(p []byte) int {
	return s.punct(p, func(c byte) func(*Splitter, []byte) int {
		if c == ':' {
			return (*Splitter).begin
		}
		return nil
	})
}

// begin stands before the first byte of a value.
func (s *Splitter) begin(p []byte) int {
	n := s.space(p)
	if n == len(p) {
		return n
	}
	s.nest, s.str = nesting{}, false
	switch c := p[n]; {
	case c == '"':
		s.state = (*Splitter).text
	case c == '{' || c == '[':
		s.state = (*Splitter).nested
	case endsScalar[c]:
		return s.fail()
	default:
		s.state = (*Splitter).scalar
	}
	if string(s.key) == "result" {
		s.ResultAt = len(s.Head)
		s.keep([]byte("null"))
	}
	return n
}

func (s *Splitter) scalar(p []byte) int {
	n := 0
	for n < len(p) && !endsScalar[p[n]] {
		n++
	}
	s.value(p[:n])
	if n < len(p) {
		s.ended()
	}
	return n
}

// nested takes an object or an array up to its end.
func (s *Splitter) nested(p []byte) int {
	end, closed, ok := s.nest.skip(p)
	if !ok {
		return s.fail()
	}
	s.value(p[:end])
	if closed {
		s.ended()
	}
	return end
}

// text takes a string up to its end.
func (s *Splitter) text(p []byte) int {
	n := 0
	if !s.str { // the opening quote
		s.str, n = true, 1
	}
	k, closed := s.inString(p[n:])
	s.value(p[:n+k])
	if closed {
		s.ended()
	}
	return n + k
}

// ended follows the last byte of a value.
func (s *Splitter) ended() {
	if string(s.key) == "id" {
		s.idSeen = true
	}
	s.state = (*Splitter).after
}

func (s *Splitter) after(p []byte) int {
	return s.punct(p, func(c byte) func(*Splitter, []byte) int {
		switch c {
		case ',':
			return (*Splitter).member
		case '}':
			s.closed = true
			return (*Splitter).rest
		}
		return nil
	})
}

func (s *Splitter) rest(p []byte) int {
	n := s.space(p)
	if n < len(p) {
		return s.fail()
	}
	return n
}

// inString returns how far a string goes in p, and whether it closes there.
func (s *Splitter) inString(p []byte) (n int, closed bool) {
	i := 0
	if s.esc {
		s.esc = false
		i = 1
	} else if n := shortString(p); n > 0 {
		return n, true
	}
	for {
		q := bytes.IndexByte(p[i:], '"')
		end := i + q
		if q < 0 {
			end = len(p)
		}
		k := end
		for k > i && p[k-1] == '\\' {
			k--
		}
		odd := (end-k)%2 == 1
		switch {
		case q < 0:
			s.esc = odd
			return len(p), false
		case !odd:
			return end + 1, true
		}
		i = end + 1
	}
}
