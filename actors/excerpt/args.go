package excerpt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound an answer. Zero is no bound, which for text means 128 KiB.
type Limits struct {
	Bytes int64 // of the value of the result, on the wire
	Lines int   // of its text, the header included
}

// A Request is what mcphub_read_result was asked for.
type Request struct {
	CallID string
	Next   string
	JQ     string
	Part   int

	named   bool // a part was named
	lines   string
	grep    string
	around  int64
	records *string
	offset  int64
	limit   int64 // 0 is none
}

// usage shows the ways to call.
const usage = `give {"callId":"…"} and one of lines ("120-180", "120+40", "-40"), grep (RE2), records (JSON Pointer, "" = the largest array), jq; part and next are optional`

// ParseRequest reads the arguments. What is null or "" counts as absent, but for
// records, where "" is a choice; numbers may be quoted. Unknown members are ignored.
func ParseRequest(raw []byte) (q Request, err error) {
	found, err := members(raw)
	if err != nil {
		return q, err
	}
	q.Part = partAuto
	if next, ok := found["next"]; ok { // it decides alone
		if q.Next, err = textOf("next", next); err != nil || q.Next != "" {
			found = map[string]jsontext.Value{"callId": found["callId"]}
		}
	}
	text := func(into *string, name string) {
		if v := found[name]; v != nil && err == nil {
			*into, err = textOf(name, v)
		}
	}
	number := func(into *int64, name string) {
		if v, ok := found[name]; ok && err == nil {
			*into, err = countOf(name, v)
		}
	}
	var part, records string
	text(&q.CallID, "callId")
	text(&q.JQ, "jq")
	text(&part, "part")
	text(&q.lines, "lines")
	text(&q.grep, "grep")
	text(&records, "records")
	number(&q.around, "around")
	number(&q.offset, "offset")
	number(&q.limit, "limit")
	if err != nil {
		return q, err
	}
	_, given := found["records"]
	others := q.lines != "" || q.grep != "" || q.JQ != ""
	if given && (records != "" || !others) || !others && (q.offset > 0 || q.limit > 0) {
		q.records = &records
	}
	return q, errors.Join(q.setPart(part), q.single())
}

// setPart reads the name of a part.
func (q *Request) setPart(s string) error {
	switch strings.ToLower(s) {
	case "", "auto", "text":
		q.named = s != "" && s != "auto"
		return nil
	case "structured", "structuredcontent":
		q.Part, q.named = partStructured, true
		return nil
	case "result", "all":
		q.Part, q.named = partResult, true
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fmt.Errorf(`part %s is none: give the number of a content block, "structured" or "result"`, clip(show(s)))
	}
	q.Part, q.named = n, true
	return nil
}

// single refuses more than one selector.
func (q *Request) single() error {
	var given []string
	for _, s := range []struct {
		name string
		is   bool
	}{{"lines", q.lines != ""}, {"grep", q.grep != ""}, {"records", q.records != nil}, {"jq", q.JQ != ""}} {
		if s.is {
			given = append(given, s.name)
		}
	}
	if len(given) > 1 {
		return fmt.Errorf("%s were given together: give one of them", strings.Join(given, " and "))
	}
	return nil
}

// members collects the members of the arguments; of one that comes twice the last.
func members(raw []byte) (map[string]jsontext.Value, error) {
	found := map[string]jsontext.Value{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return found, nil
	}
	bad := errors.New("arguments are not a JSON object: " + usage)
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, bad
	}
	for d.PeekKind() == '"' {
		k, err := d.ReadToken()
		if err != nil {
			return nil, bad
		}
		name := k.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, bad
		}
		if v.Kind() != 'n' {
			found[name] = v.Clone()
		} else {
			delete(found, name)
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, bad
	}
	return found, nil
}

// textOf reads a string; a whole number will do.
func textOf(name string, v jsontext.Value) (string, error) {
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil && b == nil {
			return "", fmt.Errorf("%s is not a string", name)
		}
		return strings.ToValidUTF8(string(b), "\uFFFD"), nil
	case '0':
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	}
	return "", fmt.Errorf("%s is not a string: %s", name, usage)
}

// countOf reads a whole number that is not negative, in whatever way it is written.
func countOf(name string, v jsontext.Value) (int64, error) {
	s := strings.TrimSpace(strings.Trim(string(v), `"`))
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		switch {
		case ferr != nil && !errors.Is(ferr, strconv.ErrRange) || f != math.Trunc(f):
			return 0, fmt.Errorf("%s %s is not a whole number", name, clip(s))
		case f >= math.MaxInt64:
			n = math.MaxInt64
		default:
			n = int64(max(f, -1))
		}
	}
	if n < 0 {
		return 0, fmt.Errorf("%s %s is negative: it counts from 0", name, clip(s))
	}
	return n, nil
}

var linesGrammar = regexp.MustCompile(`^(\d*)(?:([-+])(\d*))?$`)

// lineRange reads lines: the first and the last of total lines, counted from 1.
func lineRange(s string, total int64) (first, last int64, err error) {
	bad := fmt.Errorf(`lines %s is not understood: give "120-180" (from to), "120+40" (40 from 120 on), "120-" (to the end), "120", or "-40" (the last 40)`, clip(show(s)))
	m := linesGrammar.FindStringSubmatch(strings.ReplaceAll(s, " ", ""))
	if m == nil || m[1] == "" && (m[2] != "-" || m[3] == "") {
		return 0, 0, bad
	}
	// Overlong digits saturate, as they lie past every end.
	a, _ := strconv.ParseInt(m[1], 10, 62)
	b, _ := strconv.ParseInt(m[3], 10, 62)
	switch {
	case m[1] == "":
		return max(total-b+1, 1), total, nil
	case a == 0:
		return 0, 0, fmt.Errorf("lines %s: lines are counted from 1", clip(show(s)))
	case m[2] == "":
		return a, a, nil
	case m[2] == "+" && m[3] != "" && b > 0:
		return a, a + b - 1, nil
	case m[2] == "-" && m[3] == "":
		return a, total, nil
	case m[2] == "-" && b >= a:
		return a, b, nil
	}
	return 0, 0, bad
}
