package mcptest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"mcphubd/test/bench/payload"
)

// body is the exact bytes of a result, held or generated.
type body interface {
	size() int64
	writeTo(w io.Writer) error
}

type held []byte

func (b held) size() int64 { return int64(len(b)) }
func (b held) writeTo(w io.Writer) error {
	_, err := w.Write(b)
	return err
}

type generated struct{ *payload.Result }

func (b generated) size() int64 { return b.Size }
func (b generated) writeTo(w io.Writer) error {
	_, err := b.WriteTo(w)
	return err
}

const keepBlob = 64 << 20 // larger ones are generated while they are sent

func (b Blob) body() (body, error) {
	r, err := payload.New(b.Kind, b.Bytes)
	if err != nil {
		return nil, err
	}
	if b.Bytes <= keepBlob {
		return held(r.Bytes()), nil
	}
	return generated{r}, nil
}

func (a Answer) body() (body, error) {
	switch {
	case a.File != "":
		b, err := os.ReadFile(a.File)
		return held(b), err
	case a.Blob != nil:
		return a.Blob.body()
	case a.Hostile != nil:
		return held(Hostile(*a.Hostile)), nil
	case a.Result != "":
		return held(a.Result), nil
	}
	return held("{}"), nil
}

// writer keeps messages whole: one at a time, whatever it takes.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) text(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(w.w, s)
}

// message writes head, body and end. Before the last byte leaves, note is called
// with the digest of the body, so whoever has the answer finds it noted; note may
// be nil. A small message is one write.
func (w *writer) message(head string, b body, end string, pace int, note func(digest string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.w
	if pace > 0 {
		out = paced{out, pace}
	}
	if h, ok := b.(held); ok && len(h) < 64<<10 {
		if note != nil {
			note(digestOf(h))
		}
		m := make([]byte, 0, len(head)+len(h)+len(end))
		_, _ = out.Write(append(append(append(m, head...), h...), end...))
		return
	}
	_, _ = io.WriteString(out, head)
	if note == nil {
		_ = b.writeTo(out)
	} else {
		sum := sha256.New()
		_ = b.writeTo(io.MultiWriter(out, sum))
		note(hex.EncodeToString(sum.Sum(nil)))
	}
	_, _ = io.WriteString(out, end)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// paced writes so many bytes in a millisecond, in slices of ten.
type paced struct {
	w    io.Writer
	rate int
}

func (p paced) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var c int
		c, err = p.w.Write(b[n:min(len(b), n+10*p.rate)])
		n += c
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

// slow pauses before every read.
type slow struct {
	r     io.Reader
	pause time.Duration
}

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(s.pause)
	return s.r.Read(b)
}

// log appends to a file shared with the test. A nil log drops everything.
type log struct {
	mu sync.Mutex
	f  *os.File
}

func openLog(path string) (*log, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &log{f: f}, err
}

func (l *log) write(line []byte) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.f.Write(line)
}

func (l *log) entry(e Entry) {
	b, _ := json.Marshal(e)
	l.write(append(b, '\n'))
}
