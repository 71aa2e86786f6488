// Package payload makes tool results of an exact size that nobody has to keep:
// every byte is a function of its offset. The server that sends a result and
// the test that checks it compute the same bytes, so a gigabyte can be sent as
// a stream and any page of it verified without either side holding it.
package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Result is the value of a JSON-RPC result: one text block of a given kind.
// It is an io.ReaderAt over Size bytes and safe for concurrent use.
type Result struct {
	Kind string // json: an array of records · text: log lines · random: does not compress
	Size int64

	prefix, suffix string
	width          int64 // bytes of one unit
	count          int64 // units
	unit           func(dst []byte, i int64) []byte
}

const (
	open  = `{"content":[{"type":"text","text":"`
	shut  = `"}]}`
	Small = 256             // the smallest result there is
	cache = int64(64 << 20) // larger results are not kept in memory
)

// New returns the result of that kind and size.
func New(kind string, size int64) (*Result, error) {
	r := &Result{Kind: kind, Size: size, prefix: open, suffix: shut}
	switch kind {
	case "json", "":
		r.Kind, r.width, r.unit = "json", recordWidth, record
		r.prefix, r.suffix = open+"[", closeRecords+shut
	case "text":
		r.width, r.unit = lineWidth, line
	case "random":
		r.width, r.unit = noiseWidth, noise
	default:
		return nil, fmt.Errorf("blob of kind %q: want json, text or random", kind)
	}
	if size < Small {
		return nil, fmt.Errorf("blob of %d bytes: the smallest is %d", size, Small)
	}
	// In JSON the last record takes the filler; elsewhere it ends the text.
	room := size - int64(len(r.prefix)+len(r.suffix))
	if r.Kind == "json" {
		room -= int64(len(openRecord))
	}
	r.count = room / r.width
	return r, nil
}

// ReadAt copies the bytes at off.
func (r *Result) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: offset is negative", off)
	}
	n := 0
	var buf [512]byte
	for n < len(p) && off < r.Size {
		c := copy(p[n:], r.at(buf[:0], off))
		n, off = n+c, off+int64(c)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// at returns some bytes that start at off: what is left of the piece there.
func (r *Result) at(buf []byte, off int64) []byte {
	if off < int64(len(r.prefix)) {
		return append(buf, r.prefix[off:]...)
	}
	units := int64(len(r.prefix)) + r.count*r.width
	if off < units {
		i := (off - int64(len(r.prefix))) / r.width
		return r.unit(buf, i)[off-int64(len(r.prefix))-i*r.width:]
	}
	tail := r.tail()
	return append(buf, tail[off-units:]...)
}

// tail is what follows the last unit: filler up to the size, and the closing.
func (r *Result) tail() string {
	first := ""
	if r.Kind == "json" {
		first = openRecord
	}
	used := int64(len(r.prefix)+len(first)+len(r.suffix)) + r.count*r.width
	return first + strings.Repeat("x", int(r.Size-used)) + r.suffix
}

// WriteTo writes the whole result in blocks.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	block := make([]byte, 0, 256<<10)
	var n int64
	flush := func() error {
		c, err := w.Write(block)
		n, block = n+int64(c), block[:0]
		return err
	}
	block = append(block, r.prefix...)
	for i := range r.count {
		if block = r.unit(block, i); len(block) > cap(block)-512 {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	block = append(block, r.tail()...)
	err := flush()
	return n, err
}

var kept sync.Map // Result without funcs -> []byte

// Bytes returns the whole result. Results up to 64 MiB are made once.
func (r *Result) Bytes() []byte {
	type key struct {
		kind string
		size int64
	}
	k := key{r.Kind, r.Size}
	if b, ok := kept.Load(k); ok {
		return b.([]byte)
	}
	b := make([]byte, r.Size)
	_, _ = r.ReadAt(b, 0)
	if r.Size <= cache {
		kept.Store(k, b)
	}
	return b
}

// SHA256 returns the hex digest of the whole result.
func (r *Result) SHA256() string {
	h := sha256.New()
	_, _ = r.WriteTo(h)
	return hex.EncodeToString(h.Sum(nil))
}
