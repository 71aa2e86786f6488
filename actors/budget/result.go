package budget

import (
	"bytes"
	"sort"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Mark is the member of a result's _meta by which an agent knows a receipt as ours.
const Mark = "mcphub/receipt"

// ErrorResult is the value of a result that tells the model what went wrong. It
// is at most limit bytes (0 = no limit): a longer text is cut, and says so.
func ErrorResult(text string, limit int64) []byte {
	build := func(s string) []byte { return textResult(s, true) }
	whole := build(text)
	if limit <= 0 || int64(len(whole)) <= limit {
		return whole
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := sort.Search(len(text), func(n int) bool {
		return int64(len(build(cut(text, n+1)+cutMark))) > limit
	})
	return build(cut(text, n) + cutMark)
}

const cutMark = " […cut]"

// textResult is a result with one text block.
func textResult[T ~[]byte | ~string](text T, isError bool) []byte {
	b := make([]byte, 0, len(text)+len(text)/8+80)
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = appendQuoted(b, text)
	b = append(b, `}]`...)
	if isError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}')
}

// appendQuoted appends s as a JSON string; bytes that are no UTF-8 become U+FFFD.
func appendQuoted[T ~[]byte | ~string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// appendMarked appends the _meta object of a receipt.
func appendMarked(b, original []byte, callID string) []byte {
	return appendMeta(b, original, Mark, []byte(`{"callId":"`+callID+`"}`))
}

// appendMeta appends a _meta object: the members of the original as they were
// written, and ours in place of any of that name. An original that clients could
// not read is left out.
func appendMeta(b, original []byte, name string, ours []byte) []byte {
	b = append(b, '{')
	v := jsontext.Value(original)
	if len(v) > 0 && v.IsValid(jsontext.AllowDuplicateNames(true)) {
		b = appendMembers(b, v, name)
	}
	b = append(appendQuoted(b, name), ':')
	return append(append(b, ours...), '}')
}

// appendMembers appends the members of a valid object, each with a comma, but for
// those of one name.
func appendMembers(b []byte, obj []byte, but string) []byte {
	d := jsontext.NewDecoder(bytes.NewBuffer(obj), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return b
	}
	for d.PeekKind() == '"' {
		k, err := d.ReadValue()
		if err != nil {
			return b
		}
		name, _ := jsontext.AppendUnquote(nil, k)
		key := bytes.Clone(k)
		v, err := d.ReadValue()
		if err != nil {
			return b
		}
		if string(name) == but {
			continue
		}
		b = append(append(b, key...), ':')
		b = append(appendFlat(b, v), ',')
	}
	return b
}

// appendFlat appends JSON with line breaks, which are white space there, as spaces.
func appendFlat(b, v []byte) []byte {
	at := len(b)
	b = append(b, v...)
	for i := at; i < len(b); i++ {
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return b
}
