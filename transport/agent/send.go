package agent

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

const eventHead = "event: message\ndata: "

// envelope says how a value is sent.
type envelope struct {
	key    string // `,"result":` or `,"error":`
	status int
	put    string // members that the value lacks
}

// ownLength is up to where net/http finds the Content-Length of an answer by itself.
const ownLength = 2 << 10

// answers keeps the buffers of small answers.
var answers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// send ends the exchange with one value: as a body of its own, in one write when it is
// small, or as the last event of a stream. The value is closed in any case. If it
// cannot be read to its end, the connection is broken off: what the agent has is then
// no valid answer, and never a shortened one.
func (x *exchange) send(e envelope, value *actors.Body) {
	defer value.Close()
	x.settle()
	buf := answers.Get().(*[]byte)
	defer giveBack(&answers, buf)
	b := (*buf)[:0]
	streaming := x.feed.running
	if streaming {
		b = append(b, eventHead...)
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, x.id...)
	b = append(b, e.key...)
	held, small := value.Held()
	if small = small && len(held) <= keepBuffer; small {
		b = appendValue(b, held, e.put)
		b = append(b, '}')
	}
	*buf = b
	switch {
	case streaming && small:
		event := wire.Flatten([]byte(eventHead), b[len(eventHead):])
		x.write(append(event, "\n\n"...))
	case streaming:
		x.finish(b, value, flat{bounded{x}}, e.put, "}\n\n")
	case small:
		h := x.w.Header()
		h["Content-Type"] = typeJSON
		if len(b) > ownLength {
			h["Content-Length"] = itoa(int64(len(b)))
		}
		x.w.WriteHeader(e.status)
		bounded{x}.Write(b)
	default:
		h := x.w.Header()
		h["Content-Type"] = typeJSON
		if e.put == "" {
			h["Content-Length"] = itoa(int64(len(b)) + value.Size() + 1)
		}
		x.w.WriteHeader(e.status)
		x.finish(b, value, bounded{x}, e.put, "}")
	}
}

// finish writes a value of any size. If that fails in its midst, the value is kept for
// an agent that comes back.
func (x *exchange) finish(head []byte, value *actors.Body, to io.Writer, put, tail string) {
	if put != "" {
		to = &typing{to: to, put: put}
	}
	out, cut := bounded{x}, false
	_, err := out.Write(head)
	if err == nil {
		_, err = value.WriteTo(to)
		cut = err != nil
	}
	if err == nil {
		_, err = out.Write([]byte(tail))
	}
	if err != nil && x.keep != nil {
		x.keep()
	}
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// What 2026-07-28 demands in every result, and in that of a reading.
const (
	resultType = `"resultType":"complete"`
	readType   = resultType + `,"ttlMs":0,"cacheScope":"private"`
)

// appendValue appends v, with the members put as its first.
func appendValue(b, v []byte, put string) []byte {
	if put == "" {
		return append(b, v...)
	}
	w := typing{to: appender{&b}, put: put}
	w.Write(v)
	return b
}

type appender struct{ b *[]byte }

func (a appender) Write(p []byte) (int, error) {
	*a.b = append(*a.b, p...)
	return len(p), nil
}

// typing writes an object and puts members behind its first brace. All other bytes
// stay as they are; a value that is no object stays so altogether.
type typing struct {
	to    io.Writer
	put   string
	stage int // 0 before the brace, 1 before the first member, 2 done
}

func (t *typing) Write(p []byte) (int, error) {
	rest := p
	for t.stage < 2 && len(rest) > 0 {
		n := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
		put := ""
		switch {
		case n == len(rest):
		case t.stage == 0 && rest[n] == '{':
			n++
			t.stage, put = 1, t.put
		case t.stage == 0 || rest[n] == '}':
			t.stage = 2
		default:
			t.stage, put = 2, ","
		}
		if _, err := t.to.Write(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
		if put != "" {
			if _, err := io.WriteString(t.to, put); err != nil {
				return 0, err
			}
		}
	}
	if len(rest) > 0 {
		if _, err := t.to.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// writePiece is how much of an answer must be taken in pace.write.
const writePiece = 64 << 10

// bounded writes to the agent in pieces, each of which must be taken in time. So a
// slow reader gets all of it and an absent one does not keep us.
type bounded struct{ x *exchange }

func (o bounded) Write(p []byte) (int, error) {
	n := 0
	for {
		o.x.rc.SetWriteDeadline(time.Now().Add(o.x.pace.write))
		k, err := o.x.w.Write(p[n:min(len(p), n+writePiece)])
		if n += k; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// flat writes without raw line breaks, which an event cannot carry.
type flat struct{ to io.Writer }

func (f flat) Write(p []byte) (int, error) {
	if bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(p, '\r') < 0 {
		return f.to.Write(p)
	}
	return f.to.Write(wire.Flatten(nil, p))
}
