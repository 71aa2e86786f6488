package budget

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	headMax = 8 << 10
	tailMax = 2 << 10
)

// ends keeps the beginning and the end of a text that passes, in bounded memory.
// The end holds only what came after the beginning, so the two never overlap.
type ends struct {
	n          int64
	head, tail []byte
}

func (e *ends) put(p []byte) {
	e.n += int64(len(p))
	if room := headMax - len(e.head); room > 0 {
		k := min(room, len(p))
		e.head = append(e.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > tailMax {
		p = p[len(p)-tailMax:]
	}
	if len(e.tail)+len(p) > 2*tailMax {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-tailMax:]...)
	}
	e.tail = append(e.tail, p...)
}

// trim takes white space from the end of the text, as far as it is still known.
func (e *ends) trim() {
	last := &e.head
	if e.tail = e.tail[max(0, len(e.tail)-tailMax):]; len(e.tail) > 0 {
		last = &e.tail
	}
	whole := len(*last)
	*last = bytes.TrimRight(*last, space)
	e.n -= int64(whole - len(*last))
}

// text returns both ends in whole characters and how many bytes lie between.
// Bytes that are no UTF-8 become U+FFFD.
func (e *ends) text() (head, tail string, between int64) {
	h, t := e.head, e.tail[max(0, len(e.tail)-tailMax):]
	if int64(len(h)+len(t)) == e.n {
		all := string(h) + string(t)
		k := len(cut(all, len(h)))
		return clean(all[:k]), clean(all[k:]), 0
	}
	head, tail = trimEnd(string(h)), trimFront(string(t))
	return clean(head), clean(tail), e.n - int64(len(head)+len(tail))
}

// beginning returns what the text begins with, all of it if that is known, and how
// many bytes follow.
func (e *ends) beginning() (head string, beyond int64) {
	head, tail, between := e.text()
	if between == 0 {
		return head + tail, 0
	}
	return head, between + int64(len(tail))
}

func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// cut returns at most n leading bytes of s, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return trimEnd(s[:max(n, 0)])
}

// cutFront returns at most n trailing bytes of s, whole characters.
func cutFront(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return trimFront(s[len(s)-max(n, 0):])
}

// trimEnd drops a character whose last bytes are missing.
func trimEnd(s string) string {
	for k := 1; k < utf8.UTFMax && k <= len(s); k++ {
		if last := s[len(s)-k:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				return s[:len(s)-k]
			}
			break
		}
	}
	return s
}

// trimFront drops a character whose first bytes are missing.
func trimFront(s string) string {
	k := 0
	for k < len(s) && k < utf8.UTFMax-1 && !utf8.RuneStart(s[k]) {
		k++
	}
	return s[k:]
}
