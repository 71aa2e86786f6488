package front

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxHeld is how much of an answer waits for more. What ends before it is full goes
	// out in one write, and needs no Content-Length from the handler.
	maxHeld = 2 << 10
	// unknown is the length of an answer of which the handler did not say it.
	unknown = -1
)

// body is the body of a request, which was read before.
type body struct{ bytes.Reader }

func (*body) Close() error { return nil }

// reply is the answer to a request in the lane, framed as net/http frames its answers.
type reply struct {
	c      *conn
	now    time.Time
	body   body // of the request
	header http.Header

	status  int // 0 = not said
	length  int64
	written int64
	chunked bool
	begun   bool // the head is out
	last    bool // the connection ends with it
	over    bool
	err     error

	out *scratch
}

// scratch is the memory of a reply until it is out.
type scratch struct{ head, held []byte }

var scratches = sync.Pool{New: func() any { return &scratch{make([]byte, 0, 512), make([]byte, 0, maxHeld)} }}

func (w *reply) Header() http.Header { return w.header }

// WriteHeader fixes status and header. Informational ones are left out.
func (w *reply) WriteHeader(status int) {
	if w.status != 0 || w.over || status < 200 {
		return
	}
	w.status, w.out = status, scratches.Get().(*scratch)
	if l := w.header["Content-Length"]; len(l) == 1 {
		if n, err := strconv.ParseInt(l[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
	if l := w.header["Connection"]; len(l) == 1 && strings.EqualFold(l[0], "close") {
		w.last = true
	}
	b := append(w.out.head[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(append(b, ' '), http.StatusText(status)...)
	b = append(append(b, "\r\nDate: "...), dateOf(w.now)...)
	b = append(b, "\r\n"...)
	w.out.head = appendHeader(b, w.header)
}

// framing are the headers that say where an answer ends, which is said by begin.
func framing(name string) bool {
	return name == "Content-Length" || name == "Connection" || name == "Transfer-Encoding" || name == "Date"
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func appendHeader(b []byte, h http.Header) []byte {
	names := make([]string, 0, 8)
	for name := range h {
		if !framing(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			b = append(append(b, name...), ": "...)
			if strings.ContainsAny(v, "\r\n") {
				v = oneLine.Replace(v)
			}
			b = append(append(b, v...), "\r\n"...)
		}
	}
	return b
}

// date is the text of a second, which many answers share.
type date struct {
	second int64
	text   string
}

var today atomic.Pointer[date]

func dateOf(now time.Time) string {
	d := today.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
		today.Store(d)
	}
	return d.text
}

// bodiless reports whether an answer of this status has no body.
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

func (w *reply) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.over:
		return 0, net.ErrClosed
	case bodiless(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	if w.written += int64(len(p)); w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if len(w.out.held)+len(p) <= maxHeld {
		w.out.held = append(w.out.held, p...)
		return len(p), w.err
	}
	w.push(p)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// push writes the head, if it is not out, what was held, and p.
func (w *reply) push(p []byte) {
	if !w.begun {
		w.begin(w.length, p)
	}
	all, n := w.out.head, len(w.out.held)+len(p)
	if w.chunked && n > 0 {
		all = append(strconv.AppendInt(all, int64(n), 16), "\r\n"...)
	}
	all = append(all, w.out.held...)
	if w.chunked && n > 0 {
		w.send(all, p, []byte("\r\n"))
	} else {
		w.send(all, p)
	}
	w.out.head, w.out.held = all[:0], w.out.held[:0]
}

// begin completes the head of an answer whose body begins with what is held and p.
func (w *reply) begin(length int64, p []byte) {
	w.begun = true
	b := w.out.head
	if first := append(w.out.held, p[:min(len(p), 512)]...); w.header["Content-Type"] == nil && len(first) > 0 {
		b = append(append(append(b, "Content-Type: "...), http.DetectContentType(first)...), "\r\n"...)
	}
	switch {
	case bodiless(w.status):
	case length >= 0:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), length, 10), "\r\n"...)
	default:
		w.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.last = w.last || w.c.ending(); w.last {
		b = append(b, "Connection: close\r\n"...)
	}
	w.out.head = append(b, "\r\n"...)
}

// send writes pieces in one go. After an error nothing is written any more.
func (w *reply) send(pieces ...[]byte) {
	if w.err != nil {
		return
	}
	if len(pieces) == 2 && len(pieces[1]) == 0 {
		_, w.err = w.c.Conn.Write(pieces[0])
		return
	}
	b := net.Buffers(pieces)
	_, w.err = b.WriteTo(w.c.Conn)
}

// FlushError writes what is there.
func (w *reply) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if !w.over && (!w.begun || len(w.out.held) > 0) {
		w.push(nil)
	}
	return w.err
}

func (w *reply) Flush() { _ = w.FlushError() }

func (w *reply) SetReadDeadline(t time.Time) error { return w.c.SetReadDeadline(t) }

func (w *reply) SetWriteDeadline(t time.Time) error { return w.c.SetWriteDeadline(t) }

// finish ends the answer, and reports whether another one can follow.
func (w *reply) finish() bool {
	w.WriteHeader(http.StatusOK)
	if !w.begun {
		if w.length == unknown {
			w.length = w.written
		}
		w.begin(w.length, nil)
	}
	if len(w.out.head) > 0 || len(w.out.held) > 0 {
		w.push(nil)
	}
	if w.chunked {
		w.send([]byte("0\r\n\r\n"), nil)
	}
	w.over = true
	whole := w.length == unknown || w.length == w.written || bodiless(w.status)
	if cap(w.out.head) <= 8<<10 {
		scratches.Put(w.out)
	}
	w.out = nil
	return w.err == nil && !w.last && whole
}
