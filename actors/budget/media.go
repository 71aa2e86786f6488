package budget

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
)

// MediaMark is the member of a result's _meta by which an agent knows that media
// in it gave way to stubs.
const MediaMark = "mcphub/media"

// A Swap puts other bytes in place of a range of the result.
type Swap struct {
	At Span
	By []byte
}

// Stub stands in a result for a block of media that is too large to be shown.
type Stub struct {
	CallID            string
	Part              int // index of the block among the content
	Block             Block
	Bytes             int64  // of what the block holds, decoded
	SHA256            string // of the same; "" = unknown
	Limit             int64  // of what ReadTool answers; 0 = no limit
	ReadTool, GetTool string
}

// isMedia reports whether b is made of base64: an image, audio, or a resource that
// holds a blob. Blocks of types unknown to us are data.
func (b Block) isMedia() bool {
	return b.Data.B > b.Data.A && (b.Type == "image" || b.Type == "audio" || b.Type == "resource")
}

// Spare says which blocks of media have to give way so that the others and all that
// is no media fit limit, as indexes in order: the largest first, and no more than
// needed, so every block that fits passes. nil means that there is none whose
// absence would do; then the whole result is answered by a receipt. s needs all
// that does not differ from block to block.
func (s Stub) Spare(f Facts, limit int64) []int {
	// The mark may say what the original's _meta says, but not what it does not.
	if f.End == 0 || f.MetaAt.B > f.MetaAt.A && f.Meta == nil {
		return nil
	}
	var media []int
	for i, b := range f.Blocks {
		if b.isMedia() {
			media = append(media, i)
		}
	}
	slices.SortStableFunc(media, func(x, y int) int { return cmp.Compare(f.Blocks[y].Bytes, f.Blocks[x].Bytes) })
	size := f.Bytes
	for n, i := range media {
		s.Part, s.Block = i, f.Blocks[i]
		s.Bytes, s.SHA256 = s.Block.Bytes, noSum // no shorter than what they will be
		size -= s.Block.Bytes - int64(len(s.JSON()))
		spared := media[:n+1]
		if size+metaRoom(f, spared, s.CallID) <= limit {
			slices.Sort(spared)
			return spared
		}
	}
	return nil
}

var noSum = strings.Repeat("0", 2*sha256.Size)

// metaRoom is what marking the result adds to it.
func metaRoom(f Facts, parts []int, callID string) int64 {
	m := MarkParts(f, parts, callID)
	return int64(len(m.By)) - (m.At.B - m.At.A)
}

// MarkParts puts the mark into the result's _meta: which blocks gave way.
func MarkParts(f Facts, parts []int, callID string) Swap {
	var o object
	o.text(never, "callId", callID)
	o.key(never, "parts")
	for i, p := range parts {
		o.b = append(o.b, "[,"[min(i, 1)])
		o.b = appendInt(o.b, int64(p))
	}
	o.b = append(o.b, ']')
	ours := o.end()
	if f.MetaAt.B > f.MetaAt.A {
		return Swap{f.MetaAt, appendMeta(nil, f.Meta, MediaMark, ours)}
	}
	// The result has content, so there is a member before this one.
	return Swap{Span{f.End, f.End}, appendMeta([]byte(`,"_meta":`), nil, MediaMark, ours)}
}

// Swap returns s in place of its block.
func (s Stub) Swap() Swap {
	return Swap{Span{s.Block.At, s.Block.At + s.Block.Bytes}, s.JSON()}
}

// JSON is the text block that stands for the media: a JSON object that says what
// it was, where it is and how to get it.
func (s Stub) JSON() []byte {
	var o object
	o.text(never, "status", "stored")
	o.text(never, "callId", s.CallID)
	o.number(never, "part", int64(s.Part))
	o.text(never, "type", s.Block.Type)
	if s.Block.Mime != "" {
		o.text(never, "mimeType", s.Block.Mime)
	}
	o.number(never, "bytes", s.Bytes)
	if s.SHA256 != "" {
		o.text(never, "sha256", s.SHA256)
	}
	o.text(never, "nextAction", s.next())
	b := append([]byte(nil), `{"type":"text","text":`...)
	return append(appendQuoted(b, o.end()), '}')
}

// next is the call that gives the block: in its own type when it fits an answer, else
// its bytes from the first one on.
func (s Stub) next() string {
	if s.Limit > 0 && s.Block.Bytes+int64(len(`{"content":[]}`)) > s.Limit {
		return getCall(s.GetTool, s.CallID, s.Block.At) + " for its JSON, which ends before " + itoa(s.Block.At+s.Block.Bytes)
	}
	return readCall(s.ReadTool, s.GetTool, s.CallID, `,"part":`+itoa(int64(s.Part)), s.Block.At)
}

// Digest is the size and the hash of what a JSON string of base64 holds. It is
// written the bytes of the string, quotes included. Of what is no base64 it tells
// the number of characters and no hash.
type Digest struct {
	n     int64 // decoded
	chars int64 // as they stand
	sum   hash.Hash
	rest  []byte // less than four characters that wait for more
	bad   bool
	out   []byte
}

// Write feeds the next bytes. It never fails.
func (d *Digest) Write(p []byte) (int, error) {
	for _, c := range p {
		switch c {
		case '"', '\\', ' ', '\t', '\r', '\n': // the string's quotes, and \/ for /
			continue
		}
		d.chars++
		if d.rest = append(d.rest, c); len(d.rest) == digestStep {
			d.decode()
		}
	}
	return len(p), nil
}

// digestStep is how many characters are decoded at once: whole groups of four.
const digestStep = 32 << 10

func (d *Digest) decode() {
	if !d.bad && len(d.rest) > 0 {
		if d.out == nil {
			d.sum, d.out = sha256.New(), make([]byte, digestStep)
		}
		n, err := base64.StdEncoding.Decode(d.out, d.rest)
		d.bad = err != nil
		d.n += int64(n)
		d.sum.Write(d.out[:n])
	}
	d.rest = d.rest[:0]
}

// Sum says how many bytes were held and their hash in hex. Nothing is written
// afterwards.
func (d *Digest) Sum() (n int64, sha string) {
	if k := len(d.rest) % 4; k > 0 { // written without its padding
		d.rest = append(d.rest, "===="[k:]...)
	}
	d.decode()
	switch {
	case d.bad:
		return d.chars, ""
	case d.sum == nil:
		d.sum = sha256.New()
	}
	return d.n, hex.EncodeToString(d.sum.Sum(nil))
}
