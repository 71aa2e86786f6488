package actors

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// firstWithRounds is the revision in which a server asks by the result of a call.
	firstWithRounds = "2026-07-28"
	// maxRounds bounds how often it may do so in one call, maxBusy how often without
	// asking anything, which says that it is busy.
	maxRounds = 10
	maxBusy   = 3
)

// errStated refuses to make a call from the start that was meant to go on.
var errStated = &RPCError{CodeInvalidParams, "requestState is unknown, was used before or has expired, or it belongs to another tool; make the call again from the start"}

// converse sends req and returns the answer. A server of the newest revision may answer
// with questions in place of a result. An agent of that revision gets those as they are;
// for any other they are put to it one by one, and the call is made again with what it
// said, as the server asked for.
func (w *walk) converse(ctx context.Context, conn Conn, req Request) (Answer, error) {
	if w.call.Rounds && (w.call.Stated || w.call.Ask != nil) && conn.Info().Protocol < firstWithRounds {
		if w.call.Stated {
			return Answer{}, errStated
		}
		return w.viaPages(ctx, conn, req)
	}
	answer, err := conn.Call(ctx, req)
	if w.call.Rounds || err != nil || conn.Info().Protocol < firstWithRounds {
		return answer, err
	}
	busy := 0
	for round := 0; needsInput(answer.Result); round++ {
		q, err := questionsOf(answer.Result)
		switch {
		case err != nil:
			return Answer{}, err
		case round == maxRounds:
			return Answer{}, fmt.Errorf("the server asked for input %d times in one call", maxRounds)
		case len(q.InputRequests) == 0:
			if busy++; busy > maxBusy {
				return Answer{}, errors.New("the server is busy; call again later")
			}
			if !pause(ctx, time.Second<<(busy-1)) {
				return Answer{}, context.Cause(ctx)
			}
		}
		next, err := w.again(ctx, req, q)
		if err != nil {
			return Answer{}, err
		}
		if answer, err = conn.Call(ctx, next); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var inputRequired = []byte(`"input_required"`)

func needsInput(b *Body) bool {
	if b == nil {
		return false
	}
	if held, all := b.Held(); all && !bytes.Contains(held, inputRequired) {
		return false // a cheap look at what nearly every result is
	}
	return b.Facts().ResultType == "input_required"
}

// questions is a result that asks for input.
type questions struct {
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
	RequestState json.RawMessage
}

// questionsOf reads it, and closes the body.
func questionsOf(b *Body) (q questions, err error) {
	defer b.Close()
	held, all := b.Held()
	if !all {
		return q, fmt.Errorf("the server asked for input with a message of %d bytes", b.Size())
	}
	if err := json.Unmarshal(bytes.Clone(held), &q); err != nil {
		return q, fmt.Errorf("the server asked for input in a way that cannot be read: %w", err)
	}
	return q, nil
}

// again is req once more, with what the agent answered.
func (w *walk) again(ctx context.Context, req Request, q questions) (Request, error) {
	w.asked.Store(true)
	more := []byte(`{`)
	if len(q.InputRequests) > 0 {
		more = append(more, `"inputResponses":{`...)
		for i, key := range slices.Sorted(maps.Keys(q.InputRequests)) {
			asked := q.InputRequests[key]
			result, err := w.put(ctx, asked.Method, withPage(asked.Method, asked.Params))
			if err != nil {
				return req, err
			}
			if i > 0 {
				more = append(more, ',')
			}
			name, _ := json.Marshal(key)
			more = append(append(append(more, name...), ':'), result...)
		}
		more = append(more, `},`...)
	}
	if len(q.RequestState) > 0 {
		more = append(append(append(more, `"requestState":`...), q.RequestState...), ',')
	}
	// The params are an object that is not empty.
	req.Params = append([][]byte{more, req.Params[0][1:]}, req.Params[1:]...)
	if req.Token >= 0 {
		req.Token++
	}
	return req, nil
}

// withPage is params with the id of the page that an agent is sent to: the older revisions
// demand one, the newest knows none.
func withPage(method string, params []byte) []byte {
	var p struct {
		Mode          string
		ElicitationID json.RawMessage
	}
	if method != "elicitation/create" || json.Unmarshal(params, &p) != nil || p.Mode != "url" || p.ElicitationID != nil {
		return params
	}
	return append([]byte(`{"elicitationId":"`+rand.Text()+`",`), params[1:]...)
}

// put asks the agent one thing. Where no is an answer, no is what the server hears when
// the agent cannot be asked.
func (w *walk) put(ctx context.Context, method string, params []byte) ([]byte, error) {
	err := ErrCannot
	if w.call.Ask != nil {
		if len(params) == 0 {
			params = []byte("{}")
		}
		var result []byte
		if result, err = w.call.Ask(ctx, method, params); err == nil {
			return result, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case method == "elicitation/create" && errors.Is(err, ErrCannot):
		return []byte(`{"action":"decline"}`), nil
	case method == "elicitation/create":
		return []byte(`{"action":"cancel"}`), nil
	case method == "roots/list":
		return []byte(`{"roots":[]}`), nil
	}
	return nil, fmt.Errorf("the server needs an answer to %s: %w", method, err)
}
