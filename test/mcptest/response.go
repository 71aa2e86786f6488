package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Response is an HTTP answer with its body read to the end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	ID     string // raw id of the request it answers; "" when sent by Post
}

// Message returns the raw JSON-RPC response: the body, or in an event stream
// the event that answers our id (the last response when there is none).
func (r Response) Message() []byte {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return r.Body
	}
	var found []byte
	for _, e := range Events(r.Body) {
		m := Members([]byte(e.Data))
		if m["result"] == nil && m["error"] == nil {
			continue
		}
		if found = []byte(e.Data); r.ID != "" && string(m["id"]) == r.ID {
			break
		}
	}
	return found
}

// Result returns the exact bytes of the result value, nil when there is none.
func (r Response) Result() []byte { return ResultBytes(r.Message()) }

// Error returns the raw JSON-RPC error object, nil when there is none.
func (r Response) Error() []byte { return Members(r.Message())["error"] }

// AnswerID returns the raw id of the JSON-RPC response.
func (r Response) AnswerID() string { return string(Members(r.Message())["id"]) }

// Text returns the text blocks of a tool result, joined by line breaks.
func (r Response) Text() string { return Text(r.Result()) }

// IsError reports whether the tool result says so.
func (r Response) IsError() bool { return string(Members(r.Result())["isError"]) == "true" }

// Members cuts a JSON object into the exact bytes of its member values, white
// space around them left out. It is nil for anything else.
func Members(object []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return nil
	}
	return m
}

// ResultBytes cuts the exact bytes of the result value out of a response.
func ResultBytes(message []byte) []byte { return Members(message)["result"] }

// Text returns the text blocks of a tool result, joined by line breaks.
func Text(result []byte) string {
	var v struct {
		Content []struct{ Text *string }
	}
	_ = json.Unmarshal(result, &v)
	var texts []string
	for _, b := range v.Content {
		if b.Text != nil {
			texts = append(texts, *b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// SameButWhiteSpace reports whether two JSON texts differ in nothing but
// insignificant white space. That is the only change a framing may force.
func SameButWhiteSpace(a, b []byte) bool { return bytes.Equal(squeeze(a), squeeze(b)) }

// squeeze drops white space outside strings and touches nothing else.
func squeeze(b []byte) []byte {
	out := make([]byte, 0, len(b))
	inside, escaped := false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		out = append(out, c)
	}
	return out
}

// Event is one server-sent event.
type Event struct{ Name, ID, Data string }

// Events parses a whole event stream.
func Events(body []byte) (events []Event) {
	s := &Stream{r: bufio.NewReader(bytes.NewReader(body))}
	for {
		e, err := s.Next()
		if err != nil {
			return events
		}
		events = append(events, e)
	}
}

// Stream is an event stream that is still open.
type Stream struct {
	Header http.Header
	body   io.ReadCloser
	r      *bufio.Reader
}

func newStream(res *http.Response) *Stream {
	return &Stream{Header: res.Header, body: res.Body, r: bufio.NewReader(res.Body)}
}

// Close drops the stream.
func (s *Stream) Close() error { return s.body.Close() }

// Raw reads bytes of the stream as they come, for readers that are slow.
func (s *Stream) Raw(p []byte) (int, error) { return s.r.Read(p) }

// Next waits for the next event. Comments are skipped.
func (s *Stream) Next() (e Event, err error) {
	var data []string
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.Name = value
		case "id":
			e.ID = value
		case "data":
			data = append(data, value)
		case "":
			if data != nil && strings.TrimRight(line, "\r\n") == "" {
				e.Data = strings.Join(data, "\n")
				return e, nil
			}
		}
	}
}

// NextOf waits for the next event whose data is a message of that method.
func (s *Stream) NextOf(method string) (json.RawMessage, error) {
	for {
		e, err := s.Next()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("no %s on the stream", method), err)
		}
		m := Members([]byte(e.Data))
		if string(m["method"]) == quote(method) {
			return json.RawMessage(e.Data), nil
		}
	}
}
