package budget

import (
	"encoding/base64"
	"math"
	"strings"
)

// pageMax is how many raw bytes a page holds at most.
const pageMax = 8 << 10

// PageReq is one piece of a stored result, as mcphub_get_result answers it.
type PageReq struct {
	CallID string
	Cursor int64  // offset of Data in the result
	Data   []byte // the exact bytes
	Total  int64  // bytes of the whole result
}

// Page returns the answer as the value of a result: one text block that holds a
// JSON object and nothing else. nextCursor is null on the last page.
func Page(p PageReq) []byte {
	next := p.Cursor + int64(len(p.Data))
	done := next >= p.Total
	var o object
	o.text(never, "status", "ok")
	o.text(never, "callId", p.CallID)
	o.text(never, "mediaType", "application/json")
	o.key(never, "data")
	o.b = append(o.b, '"')
	o.b = base64.StdEncoding.AppendEncode(o.b, p.Data)
	o.b = append(o.b, '"')
	o.number(never, "cursor", p.Cursor)
	if done {
		o.null("nextCursor")
	} else {
		o.number(never, "nextCursor", next)
	}
	o.flag("done", done)
	o.number(never, "totalBytes", p.Total)
	return textResult(o.end(), false)
}

// frame is the most that a page takes besides its data.
var frame = int64(len(Page(PageReq{
	CallID: strings.Repeat("0", 32), Cursor: math.MaxInt64 - 1, Total: math.MaxInt64,
})))

// PageSize returns how many raw bytes a page may hold so that the whole answer is
// at most limit bytes: at least 1, at most 8 KiB, which is also what no limit gives.
func PageSize(limit int64) int {
	if limit <= 0 {
		return pageMax
	}
	return int(min(max((limit-frame)/4*3, 1), pageMax))
}

// Unknown answers a callId that is not there, or that this agent may not know of:
// one text for all of them.
func Unknown(callID string) []byte {
	return unavailable(callID, "no stored result has this callId; use the callId of a receipt exactly as it was given")
}

// Expired answers a callId whose 24 hours are over.
func Expired(callID string) []byte {
	return unavailable(callID, "this result was kept for 24 hours and has expired; run the tool again to get a new one")
}

func unavailable(callID, reason string) []byte {
	var o object
	o.text(never, "status", "unavailable")
	o.callID(callID)
	o.text(never, "reason", reason)
	return textResult(o.end(), false)
}

// OutOfRange answers a cursor past the end of the result.
func OutOfRange(callID string, cursor, total int64) []byte {
	var o object
	o.text(never, "status", "cursor_out_of_range")
	o.callID(callID)
	o.number(never, "cursor", cursor)
	o.number(never, "totalBytes", total)
	return textResult(o.end(), false)
}

// callID repeats what an agent sent, unless it is too long to be an id.
func (o *object) callID(id string) {
	if len(id) <= 64 {
		o.text(never, "callId", strings.ToValidUTF8(id, "\uFFFD"))
	}
}

func (o *object) null(key string) {
	o.key(never, key)
	o.b = append(o.b, "null"...)
}

func (o *object) flag(key string, v bool) {
	o.key(never, key)
	if v {
		o.b = append(o.b, "true"...)
	} else {
		o.b = append(o.b, "false"...)
	}
}
