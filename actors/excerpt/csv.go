package excerpt

import "bytes"

const (
	csvSample = 64 << 10
	csvRows   = 50
)

// sniffCSV returns what separates the fields of a table with a header, 0 when the
// text is none: the first rows must have the same number of fields, two or more,
// and the header must look like names.
func sniffCSV(src Source, d doc) (byte, error) {
	c := cursorAt(d, src, 0)
	head := c.take(nil, csvSample)
	if c.fault() != nil {
		return 0, c.fault()
	}
	for _, comma := range []byte{',', '\t', ';', '|'} {
		if isTable(head, comma, int64(len(head)) < d.size()) {
			return comma, nil
		}
	}
	return 0, nil
}

func isTable(s []byte, comma byte, more bool) bool {
	fields, rows := 0, 0
	for r := (rowScan{comma: comma}); len(s) > 0 && rows < csvRows; rows++ {
		n, done := r.scan(s)
		if !done && more {
			break // cut
		}
		row := bytes.TrimRight(s[:n], "\r\n")
		switch {
		case len(row) == 0:
			rows--
		case rows == 0:
			if fields = r.fields; fields < 2 || !isHeader(row, comma) {
				return false
			}
		case r.fields != fields:
			return false
		}
		s = s[n:]
		r = rowScan{comma: comma}
	}
	return rows >= 3 || rows == 2 && fields > 2
}

// isHeader reports whether the row holds names: none empty, none a number or a date.
func isHeader(row []byte, comma byte) bool {
	for _, f := range bytes.Split(row, []byte{comma}) {
		f = bytes.Trim(f, "\" \t")
		if len(f) == 0 || len(f) > 64 || '0' <= f[0] && f[0] <= '9' || isNumber(f) || bytes.ContainsAny(f, "{}[]<>") {
			return false
		}
	}
	return true
}

// rowScan finds the end of a row. Quotes count only where a field begins with one.
type rowScan struct {
	comma  byte
	fields int
	quoted bool // inside of quotes
	inside bool // inside of a field
	cr     bool // it begins with a carriage return
}

// scan goes on in s and returns how many bytes belong to the row, its line break
// included; done when it ends there.
func (r *rowScan) scan(s []byte) (n int, done bool) {
	if r.fields == 0 {
		r.fields, r.cr = 1, len(s) > 0 && s[0] == '\r'
	}
	for i, c := range s {
		switch {
		case r.quoted:
			// A doubled quote closes here, and opens again with the next byte.
			if c == '"' {
				r.quoted, r.inside = false, false
			}
		case c == '\n':
			return i + 1, true
		case c == r.comma:
			r.fields++
			r.inside = false
		case c == '"' && !r.inside:
			r.quoted = true
		default:
			r.inside = true
		}
	}
	return len(s), false
}
