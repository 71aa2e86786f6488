package excerpt

import (
	"fmt"
	"time"
)

// Entry is one stored result in a list.
type Entry struct {
	CallID, Tool, Parent string
	Bytes, Lines         int64
	IsError              bool
	Stored, Expires      time.Time
}

// List answers a request without a callId: a line for each stored result, in the
// order given, behind the one after which next says to go on.
func List(entries []Entry, next string, l Limits) ([]byte, error) {
	if l.Lines == 1 {
		return nil, fmt.Errorf("max_lines = 1 leaves no room for text under the header: set it to 2 or more for this agent")
	}
	from := 0
	if next != "" {
		p, err := placeOf("", next)
		if err != nil || p.kind != nextList {
			return nil, errToken
		}
		for i, e := range entries {
			if e.CallID == p.text {
				from = i + 1
			}
		}
		if from == 0 && p.text != "" {
			return nil, fmt.Errorf("next: the list has changed, ask for it without next")
		}
	}
	head := func(to int, last string) string {
		s := fmt.Sprintf("[stored results %d-%d of %d, the newest first", from+1, to, len(entries))
		if to < from+1 {
			s = fmt.Sprintf("[no stored results, of %d", len(entries))
		}
		if to < len(entries) {
			s += "; next=" + place{kind: nextList, text: last}.token("")
		}
		return s + "]"
	}
	p, err := l.page(head(0, fmt.Sprintf("%032d", 0))+head(len(entries), ""), nil)
	if err != nil {
		return nil, err
	}
	to, last := from, ""
	for _, e := range entries[from:] {
		line := e.line()
		if !p.whole([]byte(line)) && (to > from || !p.whole([]byte(e.CallID+"\n"))) {
			break
		}
		to, last = to+1, e.CallID
	}
	return textAnswer([]byte(head(to, last)), lineBreak, p.body), nil
}

func (e Entry) line() string {
	s := fmt.Sprintf("%s %s, %d bytes", e.CallID, e.Tool, e.Bytes)
	if e.Lines > 0 {
		s += fmt.Sprintf(", %d lines", e.Lines)
	}
	if e.IsError {
		s += ", an error"
	}
	if e.Parent != "" {
		s += ", derived from " + e.Parent
	}
	return s + fmt.Sprintf(", stored %s, kept until %s\n", e.Stored.UTC().Format(time.RFC3339), e.Expires.UTC().Format(time.RFC3339))
}
