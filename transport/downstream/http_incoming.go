package downstream

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// incoming is one message on its way in: short ones stay in a buffer, long ones flow
// through a sieve, in the goroutine that reads them.
type incoming struct {
	x     *exchange
	owner uint64       // the call on whose stream it comes; 0 = none
	hold  func() int64 // how much of a long result stays in memory
	size  int64
	line  *buffer
	sieve *sieve
}

func (m *incoming) write(p []byte) {
	m.size += int64(len(p))
	if m.sieve == nil {
		if m.size <= min(maxLine, m.x.maxFrame) {
			if m.line == nil {
				m.line = take(len(p))
			}
			m.line = m.line.grow(len(p))
			m.line.b = append(m.line.b, p...)
			return
		}
		m.sieve = newSieve(m.x, m.hold())
		if m.line != nil {
			m.sieve.take(m.line.b, false)
			m.line.free()
			m.line = nil
		}
	}
	m.sieve.take(p, m.size > m.x.maxFrame)
}

// expect says how long the message will be.
func (m *incoming) expect(n int64) {
	if n > 0 && n <= min(maxLine, m.x.maxFrame) {
		m.line = take(int(n))
	}
}

// tooLong reports a message over max_frame.
func (m *incoming) tooLong() bool { return m.size > m.x.maxFrame }

// end gives the message to whom it belongs, and is ready for the next. cut says that the
// stream broke off: a whole message is still one.
func (m *incoming) end(cut bool) {
	line, s := m.take()
	switch {
	case s != nil:
		s.end(cut)
	case line == nil:
	case cut && !whole(line.b) || !m.x.routeOf(line, m.owner):
		line.free()
	}
}

// drop forgets the message.
func (m *incoming) drop() {
	line, s := m.take()
	if s != nil {
		s.abandon()
	}
	if line != nil {
		line.free()
	}
}

func (m *incoming) take() (*buffer, *sieve) {
	line, s := m.line, m.sieve
	m.line, m.sieve, m.size = nil, nil, 0
	return line, s
}

func whole(b []byte) bool {
	_, err := wire.ScanEnvelope(bytes.TrimPrefix(b, byteOrderMark))
	return err == nil
}

// messages reads an event stream whose events are messages.
func (m *incoming) messages() *events {
	return &events{data: m.write, done: func(name string, cut bool) {
		if name == "" || name == "message" {
			m.end(cut)
		} else {
			m.drop()
		}
	}}
}

// read hands what comes over body to each, until enough says so or there is no more. It
// returns nil for enough.
func (l *link) read(body io.Reader, each func(p []byte), enough func() bool) error {
	block := blocks.Get().(*[blockBytes]byte)
	defer blocks.Put(block)
	for {
		n, err := body.Read(block[:])
		if n > 0 {
			l.life.Store(time.Now().UnixNano())
			each(block[:n])
			if enough() {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// mediaType is the content type of an answer without its parameters.
func mediaType(res *http.Response) string {
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func isStream(res *http.Response) bool { return mediaType(res) == "text/event-stream" }

func isSuccess(res *http.Response) bool { return res.StatusCode >= 200 && res.StatusCode < 300 }

// paramsOf joins the params of req. The bytes are its own: HTTP may read them longer than
// the call lasts.
func paramsOf(id uint64, req actors.Request) []byte {
	if len(req.Params) == 0 {
		return nil
	}
	size := 20 // of a number in place of the token
	for _, piece := range req.Params {
		size += len(piece)
	}
	params := make([]byte, 0, size)
	for i, piece := range req.Params {
		if i == req.Token && req.Progress != nil {
			params = strconv.AppendUint(params, id, 10)
			continue
		}
		params = append(params, piece...)
	}
	return params
}

// frameOf is a whole request.
func frameOf(id uint64, method string, params []byte) []byte {
	b := make([]byte, 0, len(params)+len(method)+80)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, method...)
	b = append(b, '"')
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// cancelOf tells a server that nobody waits for id any more.
func cancelOf(id uint64) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.FormatUint(id, 10) + `}}`)
}

// answerSDK makes an error object the answer to a request of the SDK.
func (x *exchange) answerSDK(m *jsonrpc.Request, object []byte) {
	id, _ := json.Marshal(m.ID.Raw())
	line := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	line = append(append(append(line, `,"error":`...), object...), '}')
	x.toControl(line)
}
