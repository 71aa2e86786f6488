package budget

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ParsePageArgs reads the arguments of mcphub_get_result. The cursor is 0 when it
// is absent or null. It may be written in any way whose value is a whole number:
// 4096, 4096.0, 4.096e3, or "4096" as models like to quote; one that exceeds
// int64 counts as past every end. Other members are ignored.
func ParsePageArgs(raw []byte) (callID string, cursor int64, err error) {
	found := map[string]jsontext.Value{}
	if err := members(raw, found); err != nil {
		return "", 0, err
	}
	id := found["callId"]
	if id.Kind() != '"' {
		return "", 0, errors.New(`callId is missing: give the callId of a receipt, as a string`)
	}
	cursor, err = parseCursor(found["cursor"])
	return unquote(id), cursor, err
}

// members collects the members of an object; of one that comes twice the last.
func members(raw []byte, into map[string]jsontext.Value) error {
	bad := errors.New(`arguments are not a JSON object: give {"callId":"…","cursor":0}`)
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return bad
	}
	for d.PeekKind() == '"' {
		k, err := d.ReadToken()
		if err != nil {
			return bad
		}
		name := k.String()
		v, err := d.ReadValue()
		if err != nil {
			return bad
		}
		into[name] = v.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return bad
	}
	return nil
}

func parseCursor(v jsontext.Value) (int64, error) {
	s := string(v)
	switch v.Kind() {
	case 0, 'n':
		return 0, nil
	case '"':
		s = strings.TrimSpace(unquote(v))
		if n := jsontext.Value(s); n.Kind() != '0' || !n.IsValid() {
			return 0, badCursor(v)
		}
	case '0':
	default:
		return 0, badCursor(v)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil && !errors.Is(ferr, strconv.ErrRange) || f != math.Trunc(f) {
			return 0, badCursor(v)
		}
		n = wholeNumber(f)
	}
	if n < 0 {
		return 0, fmt.Errorf("cursor %s is negative: it is a byte offset, 0 or a nextCursor", show(v))
	}
	return n, nil
}

func wholeNumber(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f < 0:
		return -1
	default:
		return int64(f)
	}
}

func badCursor(v jsontext.Value) error {
	return fmt.Errorf("cursor %s is not an integer: it is a byte offset, 0 or a nextCursor", show(v))
}

// show quotes what was sent, as far as it is worth repeating.
func show(v jsontext.Value) string {
	s := strings.ToValidUTF8(string(v), "\uFFFD")
	if len(s) > 40 {
		return cut(s, 40) + "…"
	}
	return s
}

func unquote(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, []byte(v))
	return string(b)
}
