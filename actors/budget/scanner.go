package budget

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/go-json-experiment/json/jsontext"
)

// Scanner gathers Facts from the bytes of one result value, fed in any pieces;
// how they are cut makes no difference. Its memory is bounded. It never fails:
// of malformed JSON it tells what it could see. Of members that come twice the
// last one counts.
//
// Text is what stands in the "text" member of a content block, or of the
// resource embedded in one. The preview of a result without text is taken from
// the JSON of its structuredContent.
type Scanner struct {
	f   Facts
	sum hash.Hash

	place   place
	below   int  // open brackets below place, whose contents are of no interest
	wantKey bool // the next string directly in place is a key
	key     key  // of the member at hand

	str   role   // of the string at hand
	esc   esc    // where in an escape the string at hand is
	hex   rune   // the digits of a \u escape so far
	high  rune   // a high surrogate that waits for its other half
	raw   []byte // of the key at hand
	stage [stageSize]byte

	grab  grab   // where the bytes of the member at hand go
	from  int    // where they begin in the piece being written
	began int64  // where they begin in the result
	value []byte // the member at hand, at most maxMeta+1 bytes

	text, structured ends
	block            Block
	fresh            bool // nothing of the text string at hand was seen yet
	last             byte // last byte of text
}

// place is an object or array whose members matter.
type place uint8

const (
	outside place = iota
	inResult
	inContent
	inBlock
	inResource
	ended
)

type key uint8

const (
	otherKey key = iota
	keyContent
	keyStructured
	keyIsError
	keyMeta
	keyResultType
	keyType
	keyMime
	keyText
	keyResource
	keyData
)

// keys names the members that matter, by place.
var keys = map[place]map[string]key{
	inResult: {"content": keyContent, "structuredContent": keyStructured,
		"isError": keyIsError, "_meta": keyMeta, "resultType": keyResultType},
	inBlock:    {"type": keyType, "mimeType": keyMime, "text": keyText, "resource": keyResource, "data": keyData},
	inResource: {"mimeType": keyMime, "text": keyText, "blob": keyData},
}

type grab uint8

const (
	grabNone  grab = iota
	grabValue      // into value
	grabEnds       // into structured
	grabSpan       // nowhere: where they stand is enough
)

// structural marks the bytes outside of strings that matter: 1 everywhere, 2 only
// directly in a place.
var structural = [256]byte{'"': 1, '{': 1, '}': 1, '[': 1, ']': 1, ',': 2, ':': 2}

// Write feeds the next bytes.
func (s *Scanner) Write(p []byte) (int, error) {
	if s.sum == nil {
		s.sum = sha256.New()
	}
	s.sum.Write(p)
	s.Scan(p)
	return len(p), nil
}

// Scan feeds the next bytes of a result that somebody else sums. SHA256 stays empty.
func (s *Scanner) Scan(p []byte) {
	s.scan(p)
	s.f.Bytes += int64(len(p))
}

// Facts says what was seen so far.
func (s *Scanner) Facts() Facts {
	if s.sum == nil && s.f.Bytes == 0 {
		s.sum = sha256.New() // nothing has a sum too
	}
	f := s.f
	if s.sum != nil {
		f.SHA256 = hex.EncodeToString(s.sum.Sum(nil))
	}
	from := &s.text
	switch {
	case !f.Structured:
	case from.n == 0:
		from = &s.structured
	case s.structured.n/2 > from.n: // else the text says the same, as it should
		f.Data, f.Beyond = s.structured.beginning()
	}
	f.Head, f.Tail, f.Between = from.text()
	return f
}

func (s *Scanner) scan(p []byte) {
	s.from = 0
	for i := 0; i < len(p); {
		if s.str != noString {
			i = s.inString(p, i)
			continue
		}
		if s.below > 0 {
			i = s.pass(p, i)
			continue
		}
		for i < len(p) && structural[p[i]] == 0 {
			i++
		}
		if i == len(p) {
			break
		}
		s.token(p, i)
		i++
	}
	if s.grab != grabNone {
		s.take(p[s.from:])
	}
}

// token takes a byte that stands directly in a place.
func (s *Scanner) token(p []byte, i int) {
	switch p[i] {
	case '"':
		s.openString()
	case '{', '[':
		if !s.enter(p[i], i) {
			s.below++
		}
	case '}', ']':
		s.endMember(p, i)
		s.leave(i)
	case ',':
		s.endMember(p, i)
		s.wantKey = s.place != inContent
	case ':':
		if s.wantKey {
			s.wantKey = false
			s.beginMember(i + 1)
		}
	}
}

// enter goes into a place, if one opens here.
func (s *Scanner) enter(c byte, i int) bool {
	object := c == '{'
	switch {
	case s.place == outside && object:
		s.place = inResult
	case s.place == inResult && s.key == keyContent && !object:
		s.place = inContent
		s.f.Blocks, s.f.More, s.f.Lines = nil, 0, 0
		s.text, s.last = ends{}, 0
	case s.place == inContent && object:
		s.place = inBlock
		s.block = Block{At: s.f.Bytes + int64(i)}
	case s.place == inBlock && s.key == keyResource && object:
		s.place = inResource
	default:
		return false
	}
	s.wantKey, s.key = object, otherKey
	return true
}

func (s *Scanner) leave(i int) {
	switch s.place {
	case inResult:
		s.place, s.f.End = ended, s.f.Bytes+int64(i)
	case inContent:
		s.place = inResult
	case inBlock:
		s.place = inContent
		s.endBlock(s.f.Bytes + int64(i) + 1)
	case inResource:
		s.place = inBlock
	}
	s.wantKey, s.key = false, otherKey
}

func (s *Scanner) endBlock(end int64) {
	if len(s.f.Blocks) == maxBlocks {
		s.f.More++
		return
	}
	s.block.Bytes = end - s.block.At
	s.f.Blocks = append(s.f.Blocks, s.block)
}

// beginMember is called where the value of the member with s.key begins.
func (s *Scanner) beginMember(i int) {
	switch s.key {
	case keyIsError, keyMeta, keyResultType, keyType, keyMime:
		s.grab, s.value = grabValue, s.value[:0]
	case keyStructured:
		s.grab, s.structured = grabEnds, ends{}
	case keyData:
		s.grab = grabSpan
	default:
		return
	}
	s.from, s.began = i, s.f.Bytes+int64(i)
}

func (s *Scanner) take(p []byte) {
	switch s.grab {
	case grabValue:
		if len(s.value) == 0 {
			p = bytes.TrimLeft(p, space)
		}
		s.value = append(s.value, p[:min(len(p), maxMeta+1-len(s.value))]...)
	case grabEnds:
		if s.structured.n == 0 {
			p = bytes.TrimLeft(p, space)
		}
		s.structured.put(p)
	}
}

const space = " \t\r\n"

func (s *Scanner) endMember(p []byte, i int) {
	if s.grab == grabNone {
		return
	}
	s.take(p[s.from:i])
	s.grab = grabNone
	at := Span{s.began, s.f.Bytes + int64(i)}
	v := bytes.TrimRight(s.value, space)
	switch s.key {
	case keyIsError:
		s.f.IsError = string(v) == "true"
	case keyResultType:
		s.f.ResultType = label(v)
	case keyMeta:
		s.f.Meta, s.f.MetaAt = nil, at
		if len(v) > 0 && v[0] == '{' && len(v) <= maxMeta {
			s.f.Meta = bytes.Clone(v)
		}
	case keyType:
		s.block.Type = label(v)
	case keyMime:
		s.block.Mime = label(v)
	case keyData:
		s.block.Data = at
	case keyStructured:
		s.structured.trim()
		s.f.Structured = string(s.structured.head) != "null"
	}
}

// label decodes a short JSON string; of anything else it is empty.
func label(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' || len(raw) > maxLabel {
		return ""
	}
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}
