package mcptest

import (
	"encoding/json"
	"unicode/utf8"
)

// Script orders what a fake server does. The zero Script is a well-behaved
// server with the built-in tools (see tools.go).
type Script struct {
	Name         string `json:"name,omitempty"`         // serverInfo; "" = fake
	Protocol     string `json:"protocol,omitempty"`     // revision answered; "" = the one asked for
	Capabilities Bytes  `json:"capabilities,omitempty"` // "" = tools with listChanged
	Instructions string `json:"instructions,omitempty"`
	Tools        Bytes  `json:"tools,omitempty"`       // raw JSON array in place of the built-in entries
	PageSize     int    `json:"pageSize,omitempty"`    // entries on a page of tools/list; 0 = all
	Record       string `json:"record,omitempty"`      // file that gets every line received, as it came
	Ledger       string `json:"ledger,omitempty"`      // file that gets an Entry for every result written
	ResultFirst  bool   `json:"resultFirst,omitempty"` // member order of the TypeScript SDK: result, jsonrpc, id
	StringID     bool   `json:"stringID,omitempty"`    // echo numeric ids as strings
	IgnoreEOF    bool   `json:"ignoreEOF,omitempty"`
	IgnoreTERM   bool   `json:"ignoreTERM,omitempty"`
	ReadBytes    int    `json:"readBytes,omitempty"` // a slow reader: at most so many bytes (from 16 up) …
	ReadMS       int    `json:"readMS,omitempty"`    // … in so many milliseconds
	SSE          bool   `json:"sse,omitempty"`       // a Remote answers with event streams
	Stateless    bool   `json:"stateless,omitempty"` // a Remote without sessions
	Start        []Step `json:"start,omitempty"`     // before the first line is read
	Rules        []Rule `json:"rules,omitempty"`     // the first that matches a message is followed
}

// Rule gives steps for some messages, in place of the built-in answer.
type Rule struct {
	Method string `json:"method"`
	Tool   string `json:"tool,omitempty"` // of tools/call; "" = any
	Nth    int    `json:"nth,omitempty"`  // only the nth message of this method and tool; 0 = every
	Do     []Step `json:"do"`             // empty = never answer
}

// Step is one thing to do. The members of a step are done in the order below.
type Step struct {
	Wait        string  `json:"wait,omitempty"`   // until this file exists
	Gather      int     `json:"gather,omitempty"` // until so many messages matched this rule; they go on in reverse order
	Sleep       int     `json:"sleep,omitempty"`  // milliseconds
	Touch       string  `json:"touch,omitempty"`  // create this file
	Append      string  `json:"append,omitempty"` // add a line with the tool's name to this file: the effect of a call
	Stderr      Bytes   `json:"stderr,omitempty"`
	Write       Bytes   `json:"write,omitempty"`  // to stdout as it is, no newline added; $ID and $TOKEN are those of the request
	Repeat      int     `json:"repeat,omitempty"` // how often Stderr and Write are written; 0 = once
	Fork        *Helper `json:"fork,omitempty"`
	Default     bool    `json:"default,omitempty"` // the built-in answer
	Answer      *Answer `json:"answer,omitempty"`
	StopReading bool    `json:"stopReading,omitempty"` // stdin is never read again
	HTTP        *Reply  `json:"http,omitempty"`        // of a Remote only
	Close       string  `json:"close,omitempty"`       // stdin, stdout or stderr
	Signal      int     `json:"signal,omitempty"`      // sent to itself
	Exit        *int    `json:"exit,omitempty"`
}

// Answer is one response with exact bytes. At most one of Result, File, Blob,
// Hostile and Error is set; with none the result is {}.
type Answer struct {
	Result      Bytes  `json:"result,omitempty"`
	File        string `json:"file,omitempty"` // the result is the content of this file
	Blob        *Blob  `json:"blob,omitempty"`
	Hostile     *int   `json:"hostile,omitempty"` // Hostile(n)
	Error       Bytes  `json:"error,omitempty"`   // raw error object
	ID          Bytes  `json:"id,omitempty"`      // raw id in place of the request's, which is $ID
	ResultFirst bool   `json:"resultFirst,omitempty"`
	Times       int    `json:"times,omitempty"` // 0 = once
	Pace        int    `json:"pace,omitempty"`  // bytes in a millisecond; 0 = as fast as it goes
}

// Blob is a generated result of exactly Bytes bytes (see bench/payload).
type Blob struct {
	Bytes int64  `json:"bytes"`
	Kind  string `json:"kind,omitempty"` // json, text or random
}

// Reply is an HTTP answer of a Remote, in place of or around a JSON-RPC one.
type Reply struct {
	Status int               `json:"status,omitempty"` // 0 = 200
	Header map[string]string `json:"header,omitempty"`
	Body   Bytes             `json:"body,omitempty"`
	Then   string            `json:"then,omitempty"` // close, reset or silence: what the connection does after it
}

// Helper is a grandchild that inherits stdout and stderr and keeps them open.
type Helper struct {
	Seconds    int    `json:"seconds"`           // how long it lives
	PIDFile    string `json:"pidFile,omitempty"` // gets its process id
	Escape     bool   `json:"escape,omitempty"`  // into a session of its own
	IgnoreTERM bool   `json:"ignoreTERM,omitempty"`
}

// Exit makes the step that ends the server with this code.
func Exit(code int) Step { return Step{Exit: &code} }

// Result makes the step that answers with exactly these bytes.
func Result(raw string) Step { return Step{Answer: &Answer{Result: Bytes(raw)}} }

// Bytes are raw bytes in a script: a JSON string, or {"base64":…} where they are
// not valid UTF-8.
type Bytes string

type base64Bytes struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON keeps every byte.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return json.Marshal(string(b))
	}
	return json.Marshal(base64Bytes{[]byte(b)})
}

// UnmarshalJSON accepts both forms.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*b = Bytes(s)
		return nil
	}
	var v base64Bytes
	err := json.Unmarshal(data, &v)
	*b = Bytes(v.Base64)
	return err
}
