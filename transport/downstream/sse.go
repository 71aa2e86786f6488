package downstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// Stream is a server over the older HTTP with SSE: one event stream brings all that the
// server says, and what is said to it is posted to an address that the stream's first
// event names. The end of the stream is the end of the connection.
type Stream struct {
	exchange
	h      *HTTP
	link   *link
	info   actors.ConnInfo
	sdk    *mcp.ClientSession
	ctx    context.Context
	cancel context.CancelCauseFunc

	found    chan struct{} // closed once the address is known
	finding  sync.Once
	endpoint *url.URL
	wrong    error // about the address

	done chan struct{}
	gone chan struct{} // the reader has ended
}

// connectSSE opens the stream and does the handshake over it.
func (h *HTTP) connectSSE(ctx context.Context, l *link, events actors.Events) (actors.Conn, error) {
	c := &Stream{
		exchange: h.exchange(l, &noise{mask: l.mask, tell: events.Noise}, events), h: h, link: l,
		found: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}),
	}
	c.control = newControl(c.send)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if err := c.connect(ctx, events); err != nil {
		c.lose(err.Error())
		c.cancel(err)
		l.close()
		return nil, err
	}
	return c, nil
}

func (c *Stream) connect(ctx context.Context, events actors.Events) error {
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	defer stop()
	res, err := c.link.do(c.ctx, request{method: http.MethodGet, header: http.Header{"Accept": {"text/event-stream"}}})
	if err != nil {
		close(c.gone)
		return fmt.Errorf("open the event stream of %s: %w", c.server, err)
	}
	if !isSuccess(res) || !isStream(res) {
		close(c.gone)
		return fmt.Errorf("open the event stream of %s: %w", c.server, c.refused(res).cause())
	}
	go c.read(res)
	select {
	case <-c.found:
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return fmt.Errorf("%s: its event stream names no address for messages: %w", c.server, context.Cause(ctx))
	}
	if c.wrong != nil {
		return c.wrong
	}
	c.sdk, err = newClient(c.h.Version, events).Connect(ctx, c.control, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	switch {
	case err == nil:
		c.info = infoOf(c.sdk, c.control)
		return nil
	case c.Err() != nil:
		return fmt.Errorf("initialize: %w", c.Err())
	case ctx.Err() != nil:
		err = fmt.Errorf("no answer: %w", context.Cause(ctx))
	default:
		err = errors.New(c.mask.mask(clip(err.Error(), errorChars)))
	}
	return fmt.Errorf("initialize %s: %w", c.server, err)
}

func (c *Stream) refused(res *http.Response) *fault {
	if isSuccess(res) {
		res.Body.Close()
		return &fault{server: c.server, text: fmt.Sprintf("HTTP %d with %q is no event stream; is it a server of streamable HTTP? Then take transport = \"sse\" out of [servers.%s]",
			res.StatusCode, mediaType(res), c.server)}
	}
	return c.fault(readRefusal(res))
}

// read reads the stream until it ends.
func (c *Stream) read(res *http.Response) {
	defer close(c.gone)
	in := &incoming{x: &c.exchange, hold: c.hold}
	ev := in.messages()
	message := ev.done
	ev.done = func(name string, cut bool) {
		if name != "endpoint" {
			message(name, cut)
			return
		}
		if line, _ := in.take(); line != nil && !cut {
			c.find(string(bytes.TrimSpace(line.b)))
			line.free()
		}
	}
	err := c.link.read(res.Body, ev.feed, func() bool { return false })
	ev.end()
	res.Body.Close()
	in.drop()
	why := "its event stream ended"
	if !isEOF(err) {
		why += ": " + c.mask.mask(clip(err.Error(), errorChars))
	}
	c.lose(why)
}

// find takes the address that the server names for messages, by the rules for links.
func (c *Stream) find(address string) {
	c.finding.Do(func() {
		u, err := c.link.url.Parse(address)
		switch {
		case err != nil:
			c.wrong = fmt.Errorf("%s: the address for messages that its event stream names is none", c.server)
		case !sameOrigin(c.link.url, u):
			c.wrong = fmt.Errorf("%s: its event stream wants messages sent to another host, %s, which gets nothing from here", c.server, origin(u))
		}
		c.endpoint = u
		close(c.found)
	})
}

// post sends one message. What the server says at once counts only if it is an answer.
func (c *Stream) post(ctx context.Context, b []byte) error {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if v := c.info.Protocol; v != "" {
		h[protocolHeader] = []string{v}
	}
	res, err := c.link.do(ctx, request{method: http.MethodPost, url: c.endpoint, header: h, body: b})
	var u *unreached
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &u):
		return &fault{server: c.server, text: u.text}
	default:
		return &fault{server: c.server, text: err.Error(), ran: true, broken: true}
	}
	if !isSuccess(res) {
		return c.fault(readRefusal(res))
	}
	defer discard(res)
	if mediaType(res) == "application/json" {
		in := &incoming{x: &c.exchange, hold: c.hold}
		defer in.drop()
		if isEOF(c.link.read(res.Body, in.write, in.tooLong)) && in.line != nil && whole(in.line.b) {
			in.end(false)
		}
	}
	return nil
}

// send takes a message of the SDK to the server.
func (c *Stream) send(msg jsonrpc.Message, b []byte) error {
	m, _ := msg.(*jsonrpc.Request)
	deliver := func() error {
		ctx, cancel := context.WithTimeout(c.ctx, patience)
		defer cancel()
		return c.post(ctx, b)
	}
	switch {
	case m != nil && !m.IsCall() && m.Method == "notifications/initialized":
		return deliver()
	case m != nil && m.IsCall():
		go func() {
			if err := deliver(); err != nil {
				c.answerSDK(m, []byte(`{"code":-32603,"message":`+quote(err.Error())+`}`))
			}
		}()
	default:
		go func() { _ = deliver() }()
	}
	return nil
}

// Call posts req and waits for its answer on the stream.
func (c *Stream) Call(ctx context.Context, req actors.Request) (actors.Answer, error) {
	if ctx.Err() != nil {
		return actors.Answer{}, context.Cause(ctx)
	}
	p := newCall(req)
	id, err := c.open(p)
	if err != nil {
		p.recycle()
		return actors.Answer{}, fmt.Errorf("%w; %w", err, actors.ErrNotSent)
	}
	began := time.Now()
	posted := make(chan error, 1)
	// An answer may come on the stream before its POST is over, which is left to end then.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	body := frameOf(id, req.Method, paramsOf(id, older(id, req)))
	go func() {
		posted <- c.post(inner, body)
		cancel()
	}()
	a, err := c.wait(ctx, p, id, req.Progress, posted)
	p.recycle()
	if err != nil {
		cancel()
	} else {
		timer := time.AfterFunc(patience, cancel)
		context.AfterFunc(inner, func() { timer.Stop() })
	}
	if err != nil && ctx.Err() != nil {
		c.link.suspect(ctx, began)
		go func() {
			ctx, cancel := context.WithTimeout(c.ctx, patience)
			defer cancel()
			_ = c.post(ctx, cancelOf(id))
		}()
	}
	return a, err
}

// wait returns when p has its answer, cannot get one, or nobody waits any more.
func (c *Stream) wait(ctx context.Context, p *call, id uint64, progress func([]byte, actors.Range), posted <-chan error) (actors.Answer, error) {
	for {
		var reason error
		select {
		case n := <-p.progress:
			n.tell(progress)
			continue
		case a := <-p.answer:
			return c.answered(p, a, progress)
		case err := <-posted:
			if posted = nil; err == nil {
				continue
			}
			reason = err
		case <-ctx.Done():
			reason = context.Cause(ctx)
		}
		if !c.giveUp(id) { // its answer is on its way
			return c.answered(p, <-p.answer, progress)
		}
		return actors.Answer{}, reason
	}
}

func (c *Stream) answered(p *call, a answer, progress func([]byte, actors.Range)) (actors.Answer, error) {
	for len(p.progress) > 0 {
		n := <-p.progress
		n.tell(progress)
	}
	if errors.Is(a.err, actors.ErrLost) {
		return actors.Answer{}, fmt.Errorf("%w; the call may have run and was not repeated", a.err)
	}
	return a.Answer, a.err
}

// lose declares the connection dead.
func (c *Stream) lose(reason string) {
	if c.shut(lost(c.server, reason)) {
		c.control.Close()
		close(c.done)
	}
}

// Info says what the handshake found.
func (c *Stream) Info() actors.ConnInfo { return c.info }

// Done is closed when the connection is dead.
func (c *Stream) Done() <-chan struct{} { return c.done }

// Stderr is empty: that of a server elsewhere is not seen.
func (c *Stream) Stderr() string { return "" }

// Close ends the connection. Calls in flight fail at once.
func (c *Stream) Close(ctx context.Context) error {
	c.lose(errStopped.Error())
	c.cancel(errStopped)
	c.link.close()
	go c.sdk.Close()
	select {
	case <-c.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", c.server, context.Cause(ctx))
	}
}
