package budget

import (
	"bytes"
	"sort"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxCode is how long a JSON-RPC error code may be that is one.
	maxCode = 20
	// codeInternal stands for a code that is none.
	codeInternal = "-32603"
)

// Fault stands for the error object of a server that is too large for an agent.
type Fault struct {
	Raw               []byte // the error object as the server sent it
	Limit             int64  // the answer is at most this, which is at least MinBudget
	CallID            string // under which Raw is stored; "" when it is not
	SHA256            string // of Raw
	ReadTool, GetTool string
}

// Error returns the bounded error object: the code stays; data stays byte for byte
// when it is small, else an object stands for it that says how much is missing;
// of a message that does not fit both ends are shown, on whole characters, with a
// mark between them.
func (f Fault) Error() []byte {
	m := map[string]jsontext.Value{}
	_ = members(f.Raw, m) // of what is no object all is message
	code := bytes.TrimSpace(m["code"])
	if jsontext.Value(code).Kind() != '0' || len(code) > maxCode {
		code = []byte(codeInternal)
	}
	text := strings.ToValidUTF8(string(f.Raw), "\uFFFD")
	if m["message"].Kind() == '"' {
		text = strings.ToValidUTF8(unquote(m["message"]), "\uFFFD")
	}
	data := m["data"]
	if int64(len(data)) > f.Limit/4 || !data.IsValid(jsontext.AllowDuplicateNames(true)) && data != nil {
		data = f.stub(len(data))
	}
	build := func(message string) []byte {
		b := append([]byte(`{"code":`), code...)
		b = appendQuoted(append(b, `,"message":`...), message)
		if data != nil {
			b = append(appendFlat(append(b, `,"data":`...), data), '}')
			return b
		}
		return append(b, '}')
	}
	fits := func(message string) bool { return int64(len(build(message))) <= f.Limit }
	if fits(text) {
		return build(text)
	}
	n := sort.Search(len(text), func(n int) bool { return !fits(f.ends(text, n+1)) })
	return build(f.ends(text, n))
}

// ends shows both ends of a message in n bytes of it.
func (f Fault) ends(text string, n int) string {
	head := cut(text, (n+1)/2)
	tail := cutFront(text, n/2)
	return head + "\n[… " + itoa(int64(len(text)-len(head)-len(tail))) + " bytes cut" + f.where() + " …]\n" + tail
}

// where says how to get the whole error.
func (f Fault) where() string {
	if f.CallID == "" {
		return ""
	}
	return "; the whole error is stored: " + f.next()
}

func (f Fault) next() string { return readCall(f.ReadTool, f.GetTool, f.CallID, "", 0) }

// stub stands for data of n bytes.
func (f Fault) stub(n int) []byte {
	var o object
	if f.CallID == "" {
		o.text(never, "status", "cut")
	} else {
		o.text(never, "status", "stored")
		o.text(never, "callId", f.CallID)
	}
	o.number(never, "dataBytes", int64(n))
	if f.CallID != "" && f.Limit >= 2*MinBudget {
		o.text(never, "sha256", f.SHA256)
		o.number(never, "originalBytes", int64(len(f.Raw)))
		o.text(never, "nextAction", f.next())
	}
	var b []byte
	b = append(appendQuoted(append(b, '{'), Mark), ':')
	return append(append(b, o.end()...), '}')
}
