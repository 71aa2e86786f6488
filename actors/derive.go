package actors

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"mcphubd/actors/budget"
	"mcphubd/actors/catalog"
	"mcphubd/actors/excerpt"
	"mcphubd/store"
)

// What does not fit an answer of mcphub_read_result is stored as a result derived
// from the one that was read, and answered by a receipt. Its callId is a function of
// the source and the question, so asking again gives the same; since a callId is 128
// random bits, nobody without the one can guess the other. It belongs to whom the
// source belongs, and to the same tool: whoever may read the source may read it.

// shapeMax is the largest result whose shape is worth a reading of all of it.
const shapeMax = 16 << 20

func derivedID(source store.ID, query string) store.ID {
	sum := sha256.Sum256([]byte(string(source) + "\x00" + query))
	return store.ID(hex.EncodeToString(sum[:16]))
}

// selection stores records that do not fit. When that fails, the agent gets the
// first page of them and a way to go on.
func (v visitor) selection(a excerpt.Answer) ([]byte, error) {
	b, err := v.derive(a.Derived.Query, func(in *Intake) error {
		_, err := a.Derived.WriteTo(in)
		return err
	}, nil)
	if err == nil || v.ctx.Err() != nil {
		return b, err
	}
	return a.Result, nil
}

// jq answers with the output of a program, or with a receipt for it.
func (v visitor) jq(q excerpt.Request) ([]byte, error) {
	filter := v.hub.library.filter
	if filter == nil {
		return nil, errors.New("jq is not available in this daemon: use records, grep or lines")
	}
	doc, label, err := v.reading.Document(q)
	if err != nil {
		return nil, err
	}
	query, err := json.Marshal(map[string]string{"jq": q.JQ, "part": label})
	if err != nil {
		return nil, err
	}
	var out *excerpt.Output
	return v.derive(string(query), func(in *Intake) error {
		out = excerpt.NewOutput(in)
		return errors.Join(filter.Run(v.ctx, q.JQ, doc, out), out.Close())
	}, func(b *Body) []byte {
		held, all := b.Held()
		if !all {
			return nil
		}
		return out.Answer(held, label, v.reading.Limits)
	})
}

// derive answers a question whose answer write makes: with what inline returns, if it
// fits, else with a receipt once it is stored.
func (v visitor) derive(query string, write func(*Intake) error, inline func(*Body) []byte) ([]byte, error) {
	id := derivedID(v.of.ID, query)
	done, err := v.hub.library.turns.wait(v.ctx, id)
	if err != nil {
		return nil, err
	}
	defer done()
	if r, err := v.spool.reader.Get(v.ctx, id, v.spool.now()); err == nil {
		return v.again(r)
	}
	hold := v.limit
	if hold == 0 {
		hold = unlimitedHold
	}
	in := v.spool.Intake(hold)
	if err := write(in); err != nil {
		in.Abandon()
		return nil, err
	}
	body := in.Body()
	defer body.Close()
	if inline != nil {
		if b := inline(body); b != nil {
			return b, nil
		}
	}
	facts, now := body.Facts(), v.spool.now()
	r := store.Result{ID: id, Agent: v.of.Agent, Server: v.of.Server, Tool: v.of.Tool, Exposed: v.of.Exposed,
		Bytes: facts.Bytes, Lines: facts.Lines, SHA256: facts.SHA256, Stored: now, Expires: now.Add(store.Retention),
		Parent: v.of.ID, Query: query}
	if err := body.seal(v.spool, r)(); err != nil {
		return nil, fmt.Errorf("this selection takes %d bytes, more than an answer holds, and cannot be stored: %w; select less at a time", facts.Bytes, err)
	}
	r.Key = body.key
	return v.receiptFor(r, facts), nil
}

// again is the receipt of a result that was derived before.
func (v visitor) again(r store.Result) ([]byte, error) {
	var scan budget.Scanner
	if _, err := v.spool.reader.Copy(v.ctx, writer(scan.Write), r.Key, 0, r.Bytes); err != nil {
		return nil, err
	}
	return v.receiptFor(r, scan.Facts()), nil
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

var _ io.Writer = writer(nil)

func (v visitor) receiptFor(r store.Result, f budget.Facts) []byte {
	read, get := catalog.OwnNames(v.longest)
	rc := budget.Receipt{CallID: string(r.ID), Server: r.Server, Tool: r.Tool, Namespaced: v.shown,
		Limit: v.limit, Extra: v.extra, Preview: v.preview, ReadTool: read, GetTool: get, Facts: f}
	if r.Bytes <= shapeMax {
		lib := v.hub.library
		x := lib.shelf.take(r.ID, r.Bytes)
		src := storedBytes{v.ctx, v.spool.reader, r.Key, r.Bytes}
		rc.Shape = excerpt.Reading{Index: x, Src: src}.Shape(maxShape)
		lib.shelf.put(r.ID, x)
	}
	return rc.Result()
}

const maxShape = 300 // bytes
