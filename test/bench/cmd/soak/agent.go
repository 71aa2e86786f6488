package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"mcphubd/test/bench/payload"
	"mcphubd/test/mcptest"
)

// caller is one client of the daemon, however it is attached.
type caller interface {
	// call makes one tools/call. An error says that there is no answer.
	call(ctx context.Context, tool, args string) (answer, error)
	close()
}

// answer is what came back under the id that was sent.
type answer struct{ result, fault []byte }

// agent works on all servers, and knows what each of its answers has to be.
type agent struct {
	caller
	name string
	n    int
	rand *rand.Rand
}

func nameOf(i int) string { return fmt.Sprint("agent", i) }

// newAgent attaches the agents in turn in every way there is.
func newAgent(h *house, i int) (*agent, error) {
	a := &agent{name: nameOf(i), rand: rand.New(rand.NewPCG(uint64(i), 1))}
	var err error
	switch i % 4 {
	case 0:
		a.caller = over(mcptest.NewAgent("http://" + h.addr + "/mcp/" + a.name))
	case 1:
		a.caller = over(mcptest.NewModern("http://" + h.addr + "/mcp/" + a.name))
	default:
		a.caller, err = newBridge(h, a.name, i%4 == 3)
	}
	return a, err
}

func (a *agent) work(ctx context.Context, h *house, b *book) {
	for ctx.Err() == nil {
		a.n++
		server := a.pick()
		quiet := h.unrest.Load()
		mustAnswer := quiet%2 == 0 && !slices.Contains(shifting, server)
		var err error
		if a.rand.IntN(5) == 0 {
			err = a.blob(ctx, b, server)
		} else {
			err = a.echo(ctx, b, server)
		}
		switch {
		case err == nil:
			b.right.Add(1)
		case errors.Is(err, errLost):
			b.violate("%s: %v", a.name, err)
		case ctx.Err() != nil: // it was cut off by the end of the run
		case mustAnswer && h.unrest.Load() == quiet:
			b.violate("%s: %s did not answer while all was calm: %v", a.name, server, err)
		default:
			b.refused.Add(1)
			pause(ctx, 50*time.Millisecond)
		}
	}
}

func (a *agent) pick() string {
	all := slices.Concat(calm, calm, shifting, others)
	return all[a.rand.IntN(len(all))]
}

// echo asks for a text that nobody else asks for.
func (a *agent) echo(ctx context.Context, b *book, server string) error {
	want := fmt.Sprintf("%s asks %s for the %dth time <é>", a.name, server, a.n)
	args, _ := json.Marshal(map[string]any{"v": want})
	got, err := a.call(ctx, server+"__echo", string(args))
	if err != nil {
		return err
	}
	if err := refusal(got); err != nil {
		return err
	}
	if text := mcptest.Text(got.result); text != want {
		b.violate("%s got %.200q for %q", a.name, text, want)
	}
	return nil
}

// blob asks for a result that is stored. Its size is its own, and so is its digest.
func (a *agent) blob(ctx context.Context, b *book, server string) error {
	kind, size := []string{"json", "text", "random"}[a.rand.IntN(3)], int64(40_000+a.rand.IntN(400_000))
	got, err := a.call(ctx, server+"__blob", fmt.Sprintf(`{"bytes":%d,"kind":%q}`, size, kind))
	if err != nil {
		return err
	}
	if err := refusal(got); err != nil {
		return err
	}
	receipt, ok := mcptest.ReceiptOf(got.result)
	want, err := payload.New(kind, size)
	if err != nil {
		return err
	}
	if !ok || receipt.OriginalBytes != size || receipt.SHA256 != want.SHA256() {
		b.violate("%s asked %s for %d bytes of %s and got %.300s", a.name, server, size, kind, got.result)
		return nil
	}
	b.keep(receipt)
	if a.rand.IntN(4) == 0 {
		return a.readBack(ctx, b, receipt)
	}
	return nil
}

// refusal is the error that an answer is, in place of a result of the server.
func refusal(a answer) error {
	if a.fault != nil {
		return fmt.Errorf("%.300s", a.fault)
	}
	if string(mcptest.Members(a.result)["isError"]) == "true" {
		return errors.New(mcptest.Text(a.result))
	}
	return nil
}

// readBack reads a stored result in pages and compares it with what its receipt says.
func (a *agent) readBack(ctx context.Context, b *book, r mcptest.Receipt) error {
	data, err := pages(ctx, a, r)
	if err != nil {
		return err
	}
	b.compare(a.name, r, data)
	return nil
}

func pages(ctx context.Context, c caller, r mcptest.Receipt) (data []byte, err error) {
	for {
		got, err := c.call(ctx, mcptest.GetTool, fmt.Sprintf(`{"callId":%q,"cursor":%d}`, r.CallID, len(data)))
		if err == nil {
			err = refusal(got)
		}
		if err != nil {
			return nil, err
		}
		var p mcptest.Page
		if err := json.Unmarshal([]byte(mcptest.Text(got.result)), &p); err != nil {
			return nil, err
		}
		if p.Status != "ok" {
			return nil, fmt.Errorf("%w: %s %s", errLost, p.Status, p.Reason)
		}
		page, err := base64.StdEncoding.DecodeString(p.Data)
		if err != nil || p.Cursor != int64(len(data)) || len(page) == 0 && !p.Done {
			return nil, fmt.Errorf("%w: page at %d is at %d with %d bytes: %v", errLost, len(data), p.Cursor, len(page), err)
		}
		if data = append(data, page...); p.Done {
			return data, nil
		}
	}
}

var errLost = errors.New("a stored result is not there")

// overHTTP attaches by HTTP. Without a Protocol it does the handshake first.
type overHTTP struct{ a *mcptest.Agent }

func over(a *mcptest.Agent) *overHTTP {
	a.Timeout = patience
	return &overHTTP{a}
}

func (o *overHTTP) call(ctx context.Context, tool, args string) (answer, error) {
	for try := 0; ; try++ {
		if o.a.Protocol != mcptest.Modern && o.a.Session == "" {
			if _, err := o.a.Init(ctx, mcptest.Legacy); err != nil {
				return answer{}, err
			}
		}
		r, err := o.a.Call(ctx, tool, args)
		switch {
		case err != nil:
			return answer{}, err
		case r.Status == 404 && o.a.Session != "" && try == 0:
			o.a.Session = "" // the daemon was restarted; the call did not run
			continue
		case r.Status != 200:
			return answer{}, fmt.Errorf("HTTP %d: %.200s", r.Status, r.Body)
		case r.AnswerID() != r.ID:
			return answer{result: []byte(`"an answer to ` + r.AnswerID() + `"`)}, nil
		}
		return answer{r.Result(), r.Error()}, nil
	}
}

func (o *overHTTP) close() {
	if o.a.Session != "" {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		o.a.Delete(ctx)
	}
	o.a.Close()
}
