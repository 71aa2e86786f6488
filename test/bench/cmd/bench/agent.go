package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// agent is the load client: one kept connection, no goroutines and no parsing
// of what it measures, so that it adds as little as it can to the result.
type agent struct {
	url      *url.URL
	conn     net.Conn
	r        *bufio.Reader
	session  string
	protocol string
	last     int
	out      []byte
	in       bytes.Buffer
	timeout  time.Duration
}

func newAgent(endpoint string) (*agent, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	a := &agent{url: u, timeout: 2 * time.Minute}
	return a, a.hello()
}

func (a *agent) close() {
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn = nil
	}
}

func (a *agent) hello() error {
	a.session, a.protocol = "", ""
	m, _, err := a.rpc("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	if err != nil {
		return err
	}
	if !bytes.Contains(m, []byte(`"protocolVersion":"2025-06-18"`)) {
		return fmt.Errorf("initialize: %.200s", m)
	}
	a.protocol = "2025-06-18"
	status, _, b, err := a.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("initialized: HTTP %d %.200s", status, b)
	}
	return err
}

// post sends one body. What it returns is valid until the next post.
func (a *agent) post(body []byte) (status int, contentType string, answer []byte, err error) {
	if a.conn == nil {
		if a.conn, err = net.DialTimeout("tcp", a.url.Host, 5*time.Second); err != nil {
			a.conn = nil
			return 0, "", nil, err
		}
		a.r = bufio.NewReaderSize(a.conn, 64<<10)
	}
	_ = a.conn.SetDeadline(time.Now().Add(a.timeout))
	o := append(a.out[:0], "POST "+a.url.RequestURI()+" HTTP/1.1\r\nHost: "+a.url.Host+"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	if a.session != "" {
		o = append(o, "Mcp-Session-Id: "+a.session+"\r\n"...)
	}
	if a.protocol != "" {
		o = append(o, "MCP-Protocol-Version: "+a.protocol+"\r\n"...)
	}
	o = append(strconv.AppendInt(append(o, "Content-Length: "...), int64(len(body)), 10), "\r\n\r\n"...)
	a.out = append(o, body...)
	if _, err := a.conn.Write(a.out); err != nil {
		a.close()
		return 0, "", nil, err
	}
	res, err := http.ReadResponse(a.r, nil)
	if err != nil {
		a.close()
		return 0, "", nil, err
	}
	if s := res.Header.Get("Mcp-Session-Id"); s != "" {
		a.session = s
	}
	a.in.Reset()
	_, err = io.Copy(&a.in, res.Body)
	_ = res.Body.Close()
	if err != nil || res.Close {
		a.close()
	}
	return res.StatusCode, res.Header.Get("Content-Type"), a.in.Bytes(), err
}

// rpc returns the raw response message and the size of the whole body.
func (a *agent) rpc(method, params string) (message []byte, wire int, err error) {
	a.last++
	id := strconv.Itoa(a.last)
	status, kind, b, err := a.post([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`))
	if err != nil {
		return nil, 0, err
	}
	if status != http.StatusOK {
		return nil, len(b), fmt.Errorf("HTTP %d: %.200s", status, b)
	}
	if !strings.HasPrefix(kind, "text/event-stream") {
		return b, len(b), nil
	}
	for line := range bytes.Lines(b) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if head, tail := edges(data); ok && (bytes.Contains(head, []byte(`"id":`+id)) || bytes.Contains(tail, []byte(`"id":`+id))) {
			return bytes.TrimSpace(data), len(b), nil
		}
	}
	return nil, len(b), errors.New("no answer to our id in the event stream")
}

func edges(b []byte) (head, tail []byte) { return b[:min(len(b), 400)], b[max(0, len(b)-400):] }

// fast is the measured call: read in full, looked at only at its edges.
func (a *agent) fast(params string) error {
	m, _, err := a.rpc("tools/call", params)
	if err != nil {
		return err
	}
	head, tail := edges(m)
	if bytes.Contains(head, []byte(`"error":{`)) || bytes.Contains(head, []byte(`"isError":true`)) || bytes.Contains(tail, []byte(`"isError":true`)) {
		return fmt.Errorf("%.300s", head)
	}
	return nil
}

// result is a call looked at with care, outside the measured loops.
type result struct {
	raw        json.RawMessage
	text       string
	structured json.RawMessage
	wire       int
}

func (a *agent) call(params string) (r result, err error) {
	m, wire, err := a.rpc("tools/call", params)
	if err != nil {
		return r, err
	}
	var v struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(m, &v); err != nil {
		return r, fmt.Errorf("%w: %.120s", err, m)
	}
	if len(v.Error) > 0 {
		return r, fmt.Errorf("error %.300s", v.Error)
	}
	var c struct {
		Content    []struct{ Text string } `json:"content"`
		Structured json.RawMessage         `json:"structuredContent"`
		IsError    bool                    `json:"isError"`
	}
	if err := json.Unmarshal(v.Result, &c); err != nil {
		return r, err
	}
	r = result{raw: v.Result, structured: c.Structured, wire: wire}
	if len(c.Content) > 0 {
		r.text = c.Content[0].Text
	}
	if c.IsError {
		return r, fmt.Errorf("tool error: %.300s", r.text)
	}
	return r, nil
}

// receipt is what stands in place of a stored result.
type receipt struct {
	CallID        string `json:"callId"`
	OriginalBytes int64  `json:"originalBytes"`
	SHA256        string `json:"sha256"`
}

func (r result) receipt() (rec receipt, ok bool) {
	for _, b := range [][]byte{r.structured, []byte(r.text)} {
		if json.Unmarshal(b, &rec) == nil && rec.CallID != "" {
			return rec, true
		}
	}
	return rec, false
}

// page is one answer of the paging tool.
type page struct {
	Status     string `json:"status"`
	Data       string `json:"data"`
	NextCursor int64  `json:"nextCursor"`
	Done       bool   `json:"done"`
	TotalBytes int64  `json:"totalBytes"`
	bytes      []byte
	wire       int
}

func (a *agent) page(callID string, cursor int64) (p page, err error) {
	r, err := a.call(fmt.Sprintf(`{"name":"mcphub_get_result","arguments":{"callId":%q,"cursor":%d}}`, callID, cursor))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal([]byte(r.text), &p); err != nil {
		return p, fmt.Errorf("page at %d: %w", cursor, err)
	}
	if p.Status != "ok" {
		return p, fmt.Errorf("page at %d: status %s", cursor, p.Status)
	}
	p.wire = r.wire
	p.bytes, err = base64.StdEncoding.DecodeString(p.Data)
	return p, err
}
