package front

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"mcphubd/actors"
)

const (
	// maxRepeats is how many heads of a connection are known, and maxMisses how many in a
	// row were learnt in vain when it is left at that.
	maxRepeats = 4
	maxMisses  = 16
	// maxRepeat is how long a head may be that is remembered. It leaves room for a body
	// in what net/http reads at once, 4 KB.
	maxRepeat = 2 << 10
)

// lane is what a connection knows of its requests. It belongs to the goroutine that serves
// the connection, and with that to net/http's watch beside a request.
type lane struct {
	// open says that all bytes so far belonged to requests that were answered: what comes
	// next is the first byte of a request, and net/http waits for it.
	open   bool
	passed int64  // bytes that net/http got of its present request
	head   []byte // of that, as far as it can be told; else nil
	whole  int64  // its length; 0 = it cannot be told

	known  []*repeat
	oldest int // of known, the next to give way
	misses int
}

// repeat is a head that net/http accepted on this connection.
type repeat struct {
	before, after []byte // what stands around the digits of its Content-Length
	r             *http.Request
}

// connKey is where the context of a request holds its connection.
type connKey struct{}

// learning is the handler of net/http: it sees how a head was understood.
type learning struct{ http.Handler }

func (l learning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.lane.learn(r)
	}
	l.Handler.ServeHTTP(w, r)
}

// between follows a request that net/http has answered. When it had exactly the bytes of
// that request, it has none of the next.
func (c *conn) between() {
	a := &c.lane
	a.open = a.whole > 0 && a.passed == a.whole
	a.passed, a.whole, a.head = 0, 0, nil
}

// Read gives net/http what comes. Between two requests it answers itself what it can.
func (c *conn) Read(p []byte) (n int, err error) {
	switch a := &c.lane; {
	case a.open:
		if n, err = c.repeats(p); n > 0 {
			a.hand(p[:n])
		}
		return n, err
	case a.whole > 0 && a.passed == a.whole: // net/http only wants to know whether the client is still there
		return 0, c.gone()
	default:
		n, err = c.Conn.Read(p)
		a.passed += int64(n)
		return n, err
	}
}

// repeats answers requests until there is one for net/http, which is then in p.
func (c *conn) repeats(p []byte) (n int, err error) {
	for {
		if n == 0 {
			if n, err = c.Conn.Read(p); err != nil || n == 0 {
				return n, err
			}
		}
		k, head, size := c.lane.find(p, n)
		if k == nil {
			return n, nil
		}
		if n, err = c.complete(p, n, head+size); err != nil {
			return n, nil // net/http finds out how it ends
		}
		if !c.answer(k, p[head:head+size]) {
			return 0, io.EOF
		}
		n = copy(p, p[head+size:n])
	}
}

// complete reads until n bytes of p are whole: many clients send head and body apart.
func (c *conn) complete(p []byte, n, whole int) (int, error) {
	if n >= whole {
		return n, nil
	}
	_ = c.SetReadDeadline(time.Now().Add(headTime))
	defer c.SetReadDeadline(time.Time{})
	for n < whole {
		m, err := c.Conn.Read(p[n:])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// hand notes what net/http gets of a new request. Only a head that is whole, and in which
// every line ends as it should, ends where net/http sees its end.
func (a *lane) hand(p []byte) {
	a.open, a.passed = false, int64(len(p))
	end := bytes.Index(p, []byte("\r\n\r\n")) + len("\r\n\r\n")
	if end < len("\r\n\r\n") || end > maxRepeat || bytes.Count(p[:end], []byte("\n")) != bytes.Count(p[:end], []byte("\r\n")) {
		return
	}
	a.head = bytes.Clone(p[:end]) // net/http changes the case of names in its buffer
}

// learn takes down how net/http understood the head that it has. Of a request without a
// body it learns nothing, not even the length: net/http watches the client already.
func (a *lane) learn(r *http.Request) {
	head := a.head
	a.head = nil
	if head == nil || r.ContentLength <= 0 || len(r.TransferEncoding) > 0 || r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		return
	}
	a.whole = int64(len(head)) + r.ContentLength
	if r.Method != http.MethodPost || r.Close || r.Header["Expect"] != nil || r.Header["Upgrade"] != nil ||
		a.misses >= maxMisses {
		return
	}
	from, to, ok := digits(head, r.ContentLength)
	if !ok {
		return
	}
	a.misses++
	own := r.WithContext(context.Background())
	own.Header, own.Body = r.Header.Clone(), nil
	k := &repeat{head[:from], head[to:], own}
	if len(a.known) < maxRepeats {
		a.known = append(a.known, k)
		return
	}
	a.known[a.oldest] = k
	a.oldest = (a.oldest + 1) % maxRepeats
}

// digits finds the value of the only Content-Length of a head.
func digits(head []byte, value int64) (from, to int, ok bool) {
	const name = "\r\ncontent-length:"
	low := bytes.ToLower(head)
	at := bytes.Index(low, []byte(name))
	if at < 0 || bytes.Count(low, []byte("content-length")) != 1 || len(low) != len(head) {
		return 0, 0, false
	}
	from = at + len(name)
	for head[from] == ' ' {
		from++
	}
	for to = from; isDigit(head[to]); to++ {
	}
	return from, to, string(head[from:to]) == strconv.FormatInt(value, 10)
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// find returns the known head that the n bytes in p begin with, if there is room for the
// body too.
func (a *lane) find(p []byte, n int) (k *repeat, head, size int) {
	for _, k := range a.known {
		if head, size, ok := k.match(p[:n]); ok && len(p)-head >= size {
			a.misses = 0
			return k, head, size
		}
	}
	return nil, 0, 0
}

// match reports how long the head and its body are, if b begins with this head but for
// the length of the body.
func (k *repeat) match(b []byte) (head, size int, ok bool) {
	if !bytes.HasPrefix(b, k.before) {
		return 0, 0, false
	}
	i := len(k.before)
	for ; i < len(b) && isDigit(b[i]) && size < 1<<20; i++ {
		size = size*10 + int(b[i]-'0')
	}
	if i == len(k.before) || i > len(k.before)+1 && b[len(k.before)] == '0' || !bytes.HasPrefix(b[i:], k.after) {
		return 0, 0, false
	}
	return i + len(k.after), size, true
}

// answer has the handler answer a request, and reports whether another one may follow.
func (c *conn) answer(k *repeat, body []byte) (again bool) {
	if !c.begin() {
		return false
	}
	defer c.end()
	_ = c.SetReadDeadline(time.Time{})
	now := time.Now()
	e := &errand{c: c}
	e.Context, e.cancel = context.WithCancel(c.ctx)
	defer e.cancel()
	r := k.r.WithContext(e)
	w := &reply{c: c, header: http.Header{}, length: unknown, now: now}
	w.body.Reset(body)
	r.Body, r.ContentLength = &w.body, int64(len(body))
	c.l.s.lonely.Join(&e.turn, e, now)
	defer e.done() // also when the handler panics, which net/http takes care of
	c.l.s.h.ServeHTTP(w, r)
	if again = w.finish(); !again {
		return false
	}
	_ = c.SetWriteDeadline(time.Time{})
	_ = c.SetReadDeadline(time.Now().Add(idleTime))
	return true
}

// errand is a request under way in the lane, and its context. When it takes long, its client
// is watched; before, whoever asks for the context's Err has somebody look.
type errand struct {
	context.Context
	c      *conn
	cancel context.CancelFunc
	turn   actors.Turn

	mu    sync.Mutex
	over  bool
	watch chan struct{} // closed when the watch is over; nil = there was none
}

// Err is context.Canceled once the client is gone, also when nobody watches it yet: what an
// answer is sent to must not be lost for a moment's haste (C92).
func (e *errand) Err() error {
	if err := e.Context.Err(); err != nil || e.c.there() {
		return err
	}
	e.cancel()
	return e.Context.Err()
}

// Due begins the watch.
func (e *errand) Due() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	e.watch = make(chan struct{})
	go e.look()
}

func (e *errand) look() {
	defer close(e.watch)
	if !errors.Is(e.c.gone(), os.ErrDeadlineExceeded) {
		e.cancel()
	}
}

// done ends the watch.
func (e *errand) done() {
	if e.c.l.s.lonely.Leave(&e.turn) {
		return // it never began
	}
	e.mu.Lock()
	e.over = true
	watch := e.watch
	e.mu.Unlock()
	if watch == nil {
		return
	}
	_ = e.c.SetReadDeadline(past)
	<-watch
	_ = e.c.SetReadDeadline(time.Time{})
}
