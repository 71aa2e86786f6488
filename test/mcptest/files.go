package mcptest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"
)

// Patience bounds every wait for something that another process does. Nothing is slower
// for it: it only says when to give up, on a machine that has much else to do.
const Patience = time.Minute

// Eventually waits until ok, and fails the test with what it waited for when
// Patience ends. It looks often rather than sleeping long.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %s", Patience, what)
		}
	}
}

// Lines is a file to which a fake server appends the lines it receives.
type Lines string

// All returns the complete lines so far, without their ends.
func (l Lines) All() [][]byte {
	b, _ := os.ReadFile(string(l))
	lines := bytes.Split(b, []byte("\n"))
	return lines[:len(lines)-1]
}

// Of returns the lines that are messages of that method.
func (l Lines) Of(method string) (found [][]byte) {
	for _, line := range l.All() {
		var m struct{ Method string }
		if json.Unmarshal(line, &m) == nil && m.Method == method {
			found = append(found, line)
		}
	}
	return found
}

// Await returns the messages of that method once there are n of them.
func (l Lines) Await(t testing.TB, method string, n int) (found [][]byte) {
	t.Helper()
	Eventually(t, method+" at the server", func() bool {
		found = l.Of(method)
		return len(found) >= n
	})
	return found
}

// Entry says which result a fake server wrote. It is on disk before the last
// byte of the result has left.
type Entry struct {
	Tool   string `json:"tool"`
	ID     string `json:"id"`   // as the server saw it
	Args   Bytes  `json:"args"` // raw
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Ledger is the file of entries of a fake server.
type Ledger string

// All returns the entries so far.
func (l Ledger) All() (entries []Entry) {
	for _, line := range Lines(l).All() {
		var e Entry
		if json.Unmarshal(line, &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// Has reports whether a result of these bytes was written.
func (l Ledger) Has(result []byte) bool {
	sum := digestOf(result)
	for _, e := range l.All() {
		if e.SHA256 == sum && e.Bytes == int64(len(result)) {
			return true
		}
	}
	return false
}

// Last returns the newest entry of a tool.
func (l Ledger) Last(t testing.TB, tool string) (last Entry) {
	t.Helper()
	for _, e := range l.All() {
		if e.Tool == tool {
			last = e
		}
	}
	if last.SHA256 == "" {
		t.Fatalf("the server wrote no result of %s", tool)
	}
	return last
}
