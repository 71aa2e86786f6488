package budget

import "github.com/go-json-experiment/json/jsontext"

// Notice stands for the answer to another request than a tool call, a resource or a
// prompt, that was stored because it is over the budget. It is a text in an answer
// of the usual form, so that whoever shows it shows what to do.
type Notice struct {
	CallID   string
	Server   string
	Subject  string // the uri or the name that was asked for
	Limit    int64  // bytes of the answer
	ReadTool string // "" = there is none
	GetTool  string
	Facts    Facts
}

// Resource is the result of resources/read.
func (n Notice) Resource() []byte {
	return n.fit(func(text []byte, uri string) []byte {
		b := append([]byte(`{"contents":[{"uri":`), quoted(uri)...)
		b = append(b, `,"mimeType":"text/plain","text":`...)
		return n.marked(append(b, text...), `}]`)
	})
}

// Prompt is the result of prompts/get.
func (n Notice) Prompt() []byte {
	return n.fit(func(text []byte, _ string) []byte {
		b := []byte(`{"messages":[{"role":"user","content":{"type":"text","text":`)
		return n.marked(append(b, text...), `}}]`)
	})
}

func (n Notice) marked(b []byte, end string) []byte {
	b = append(b, end...)
	b = append(b, `,"_meta":{"mcphub/receipt":{"status":"stored","callId":`...)
	return append(append(b, quoted(n.CallID)...), "}}}"...)
}

// fit gives up, in this order: the sum, the subject in the text, the uri as it was
// asked for. What is left fits the least budget there is.
func (n Notice) fit(form func(text []byte, uri string) []byte) (b []byte) {
	for _, o := range []struct {
		sum, subject bool
		uri          string
	}{{true, true, n.Subject}, {false, true, n.Subject}, {false, false, n.Subject}, {false, false, "mcphub://" + n.Server + "/"}} {
		if b = form(quoted(n.text(o.sum, o.subject)), o.uri); n.Limit <= 0 || int64(len(b)) <= n.Limit {
			break
		}
	}
	return b
}

func (n Notice) text(sum, subject bool) string {
	what := "The answer"
	if subject {
		what = n.Subject
	}
	t := what + " is " + itoa(n.Facts.Bytes) + " bytes, too large to be sent whole. All of it is stored for 24 hours as callId " + n.CallID + "."
	if n.ReadTool != "" {
		t += " Read it with " + n.ReadTool + ` {"callId":"` + n.CallID + `"}`
	} else {
		t += " Read it with " + n.GetTool + ` {"callId":"` + n.CallID + `","cursor":0}`
	}
	t += "."
	if sum {
		t += " sha256 " + n.Facts.SHA256 + "."
	}
	return t
}

func quoted(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s)
	return b
}
