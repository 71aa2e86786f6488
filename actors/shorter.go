package actors

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/store"
)

// What an agent gets in place of an answer that is stored and too large for it:
// the rest without its media, a receipt, or a shorter error. budget says how each
// is built; here is where the bytes come from.

// room is what a limit leaves for a value that the wire adds extra bytes to.
func room(limit, extra int64) int64 {
	if limit == 0 {
		return 0
	}
	return limit - extra
}

// ownNames are the tools to read with, as this agent sees them.
func (w *walk) ownNames() (read, get string) { return catalog.OwnNames(longest(w.ticket.agent)) }

// shapeRoom is how many bytes of a receipt say how the data is built.
const shapeRoom = 300

func (w *walk) receipt(f budget.Facts, id store.ID) []byte {
	read, get := w.ownNames()
	return budget.Receipt{CallID: string(id), Server: w.row.Server, Tool: w.row.Tool, Namespaced: w.call.Name,
		Limit: w.ticket.limit, Extra: w.call.Extra, Preview: w.ticket.preview,
		Shape: f.Shape(shapeRoom), ReadTool: read, GetTool: get, Facts: f}.Result()
}

// withoutMedia returns the result of a sealed body with stubs in place of its
// largest media; nil when it does not fit even so, or has none.
func (w *walk) withoutMedia(body *Body, f budget.Facts, id store.ID) []byte {
	limit := room(w.ticket.limit, w.call.Extra)
	read, get := w.ownNames()
	stub := budget.Stub{CallID: string(id), ReadTool: read, GetTool: get,
		Limit: room(ownLimit(w.hub.View().Config, w.ticket.agent), w.call.Extra)}
	parts := stub.Spare(f, limit)
	if parts == nil {
		return nil
	}
	swaps := []budget.Swap{budget.MarkParts(f, parts, string(id))}
	for _, p := range parts {
		var d budget.Digest
		stub.Part, stub.Block = p, f.Blocks[p]
		if err := body.copyRange(&d, stub.Block.Data); err != nil {
			return w.unread(err)
		}
		stub.Bytes, stub.SHA256 = d.Sum()
		swaps = append(swaps, stub.Swap())
	}
	slices.SortFunc(swaps, func(a, b budget.Swap) int { return cmp.Compare(a.At.A, b.At.A) })
	var b bytes.Buffer
	at := int64(0)
	for _, s := range append(swaps, budget.Swap{At: budget.Span{A: f.Bytes}}) {
		if err := body.copyRange(&b, budget.Span{A: at, B: s.At.A}); err != nil {
			return w.unread(err)
		}
		b.Write(s.By)
		at = s.At.B
	}
	if int64(b.Len()) > limit {
		return nil
	}
	return b.Bytes()
}

// unread notes that a result could not be read right after it was stored. The
// agent gets a receipt; whether that leads to the bytes is found out then.
func (w *walk) unread(err error) []byte {
	w.hub.sys.log.Warn().Str("tool", w.call.Name).Err(err).Msg("a stored result could not be read to show it without its media")
	return nil
}

// copyRange writes a range of a sealed body.
func (b *Body) copyRange(w io.Writer, at budget.Span) error {
	if held, all := b.Held(); all {
		_, err := w.Write(held[at.A:at.B])
		return err
	}
	n, err := b.spool.reader.Copy(context.Background(), w, b.key, at.A, at.B-at.A)
	if err == nil && n < at.B-at.A {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// fault answers with the error object of a server. One that is too large for the
// agent is stored like a result, and shortened.
func (w *walk) fault(raw []byte) (Reply, error) {
	size := int64(len(raw))
	w.row.Outcome, w.row.ResultBytes, w.row.Error = "rpc_error", size, clip(string(raw[:min(size, 600)]), 500)
	if !budget.Exceeds(size, w.ticket.limit) {
		return Reply{Error: raw}, nil
	}
	body := HeldBody(raw, nil)
	defer body.Close()
	facts := body.Facts()
	facts.IsError = true
	read, get := w.ownNames()
	short := budget.Fault{Raw: raw, Limit: w.ticket.limit, SHA256: facts.SHA256, ReadTool: read, GetTool: get}
	id, err := w.keep(body, facts)
	switch {
	case err == nil:
		w.row.Stored = true
		short.CallID = string(id)
	case w.ticket.failOpen:
		w.unstored(size, err)
		return Reply{Error: raw}, nil
	default:
		w.unstored(size, fmt.Errorf("an error object: %w", err))
	}
	return Reply{Error: short.Error()}, nil
}
