package budget

import (
	"sort"
	"strconv"
	"strings"
)

// Receipt is what an agent gets in place of a result that was stored.
type Receipt struct {
	CallID     string
	Server     string
	Tool       string // the server's own tool name
	Namespaced string // the name the agent called
	Limit      int64  // budget that triggered it; the receipt fits it
	Extra      int64  // bytes that the receipt will still be given on its way
	Preview    int64  // at most this many bytes of preview
	Shape      string // one line on how the data is built; "" = unknown
	ReadTool   string // what a model reads with, as this agent sees it; "" = there is none
	GetTool    string // the paging tool as this agent sees it: mcphub_get_result
	Facts      Facts
}

// When members are given up: the lower, the sooner. 0 is never. nextAction is
// said in fewer words before it is given up.
const (
	never = iota
	giveUpShape
	giveUpPreview
	giveUpLines
	shortenNext
	giveUpNext
	giveUpNamespaced
	giveUpTool
	giveUpServer
	giveUpSHA256
	giveUpBudget
	giveUpBytes
)

const (
	// minTail is the least room worth showing both ends of a text in.
	minTail = 256
	// minBeside is how much preview a shape may not push out.
	minBeside = 512
)

// Result returns the receipt as the value of a JSON-RPC result: text content and
// structuredContent, isError and _meta kept. For every input it is at most
// Limit bytes with Extra, as long as Limit is at least MinBudget (0 is no limit),
// Extra at most 64 and CallID is one of ours.
//
// Both halves hold the same object, because clients show the model only one of
// them. An error has the text only: clients match structuredContent with the
// tool's outputSchema, or drop it. The shape yields to the preview, the preview to
// _meta, _meta to everything else.
func (r Receipt) Result() []byte {
	for up := giveUpPreview; up < giveUpBytes; up++ {
		bare := r.encode(up, "", nil)
		if !r.fits(bare) {
			continue
		}
		if up > giveUpPreview {
			return bare
		}
		meta := r.Facts.Meta
		if meta != nil && !r.fits(r.encode(up, "", meta)) {
			meta = nil
		}
		return r.shown(meta)
	}
	return r.encode(giveUpBytes, "", nil)
}

func (r Receipt) fits(b []byte) bool { return r.Limit <= 0 || int64(len(b))+r.Extra <= r.Limit }

// shown builds the receipt with as much of shape and preview as fits.
func (r Receipt) shown(meta []byte) []byte {
	beside := ""
	if r.Shape != "" && r.fits(r.encode(never, "", meta)) {
		if beside = r.bestPreview(never, meta); len(beside) >= minBeside {
			return r.encode(never, beside, meta)
		}
	}
	alone := r.bestPreview(giveUpShape, meta)
	if r.Shape != "" && len(beside) >= len(alone) && r.fits(r.encode(never, beside, meta)) {
		return r.encode(never, beside, meta)
	}
	return r.encode(giveUpShape, alone, meta)
}

// bestPreview returns the longest preview that fits. When room is short, the tail
// goes first; an error keeps it, since its cause may stand at either end.
func (r Receipt) bestPreview(by int, meta []byte) string {
	most := int(min(max(r.Preview, 0), headMax+tailMax+64))
	fits := func(p string) bool { return r.fits(r.encode(by, p, meta)) }
	longest := func(preview func(int) string) string {
		n := sort.Search(most, func(n int) bool { return !fits(preview(n + 1)) })
		if n == 0 {
			return ""
		}
		return preview(n)
	}
	if p := r.bothEnds(most); most >= minTail && fits(p) {
		return p
	}
	if r.Facts.IsError {
		if p := longest(r.bothEnds); len(p) >= minTail {
			return p
		}
	}
	return longest(r.leading)
}

// leading returns the first n bytes of the text.
func (r Receipt) leading(n int) string {
	if r.Facts.Between == 0 {
		return cut(r.Facts.Head+r.Facts.Tail, n)
	}
	return cut(r.Facts.Head, n)
}

// bothEnds returns n bytes of text that show where it begins and where it ends.
func (r Receipt) bothEnds(n int) string {
	f := r.Facts
	head, tail, size := f.Head, f.Tail, int64(len(f.Head)+len(f.Tail))+f.Between
	if f.Between == 0 {
		head += tail
		tail = head
		if len(head) <= n {
			return head
		}
	}
	n -= len(gap(size))
	share := n / 4
	if f.IsError {
		share = n / 2
	}
	tail = cutFront(tail, share)
	head = cut(head, n-len(tail))
	return head + gap(size-int64(len(head)+len(tail))) + tail
}

// gap stands in a preview for n bytes of text.
func gap(n int64) string { return "\n[… " + itoa(n) + " bytes …]\n" }

// encode builds the result without the members that are given up by then.
func (r Receipt) encode(by int, preview string, meta []byte) []byte {
	obj := r.object(by, preview)
	b := make([]byte, 0, 3*len(obj)+len(meta)+256)
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = appendQuoted(b, obj)
	b = append(b, `}]`...)
	if r.Facts.IsError {
		b = append(b, `,"isError":true`...)
	} else {
		b = append(b, `,"structuredContent":`...)
		b = append(b, obj...)
	}
	b = append(b, `,"_meta":`...)
	b = appendMarked(b, meta, r.CallID)
	return append(b, '}')
}

func (r Receipt) object(by int, preview string) []byte {
	o := object{by: by}
	o.text(never, "status", "stored")
	o.text(never, "callId", r.CallID)
	o.text(giveUpServer, "server", r.Server)
	o.text(giveUpTool, "tool", r.Tool)
	o.text(giveUpNamespaced, "namespaced", r.Namespaced)
	o.number(giveUpBytes, "originalBytes", r.Facts.Bytes)
	o.number(giveUpBudget, "budgetBytes", r.Limit)
	o.text(giveUpSHA256, "sha256", r.Facts.SHA256)
	if r.Facts.Lines > 0 {
		o.number(giveUpLines, "lines", r.Facts.Lines)
	}
	if r.Shape != "" {
		o.text(giveUpShape, "shape", r.Shape)
	}
	if preview != "" {
		o.text(giveUpPreview, "preview", preview)
	}
	o.text(giveUpNext, "nextAction", r.next(by < shortenNext))
	return o.end()
}

// next is the call that reads the result, word for word, and in the long form
// what else there is.
func (r Receipt) next(long bool) string {
	if r.ReadTool == "" || !long {
		return readCall(r.ReadTool, r.GetTool, r.CallID, "", 0)
	}
	const grep = `"grep":"WORD","limit":20`
	more := `add "lines":"1-200" or ` + grep
	text, _ := r.Facts.data()
	switch {
	case r.Facts.Data != "":
		more = `most of it is structuredContent: add "records":"auto","limit":20 or "part":"structured",` + grep
	case looksLikeJSON(text):
		more = `add "records":"auto","limit":20 or ` + grep
	}
	return readCall(r.ReadTool, r.GetTool, r.CallID, "", 0) + " for an outline; " + more +
		" to read a part. For the exact bytes " + getCall(r.GetTool, r.CallID, 0)
}

// readCall is a call of the tool that a model reads with, more being further
// arguments; where there is none, of the one that gives the bytes from at on.
func readCall(read, get, callID, more string, at int64) string {
	if read == "" {
		return getCall(get, callID, at)
	}
	return "call " + read + ` with {"callId":"` + callID + `"` + more + `}`
}

func getCall(get, callID string, at int64) string {
	if get == "" {
		get = "mcphub_get_result"
	}
	return "call " + get + ` with {"callId":"` + callID + `","cursor":` + itoa(at) + `}`
}

// data is what the large part of the result begins with, as a reader gets to see it;
// with whether more follows.
func (f Facts) data() (text string, more bool) {
	switch {
	case f.Data != "":
		return f.Data, f.Beyond > 0
	case f.Between == 0:
		return f.Head + f.Tail, false
	}
	return f.Head, true
}

// looksLikeJSON reports whether a text begins as an object or an array does.
func looksLikeJSON(s string) bool {
	s = strings.TrimLeft(s, space)
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// object writes a JSON object, leaving out what is given up by then.
type object struct {
	b  []byte
	by int
}

func (o *object) key(up int, key string) bool {
	if up != never && up <= o.by {
		return false
	}
	sep := byte(',')
	if o.b == nil {
		sep = '{'
	}
	o.b = append(o.b, sep)
	o.b = append(appendQuoted(o.b, key), ':')
	return true
}

func (o *object) text(up int, key, v string) {
	if o.key(up, key) {
		o.b = appendQuoted(o.b, v)
	}
}

func (o *object) number(up int, key string, v int64) {
	if o.key(up, key) {
		o.b = appendInt(o.b, v)
	}
}

func (o *object) end() []byte { return append(o.b, '}') }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
