package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// A server of an older revision may end a call with an error that names pages to which its
// user has to go first, and say later that all is done there. Agents of the older revisions
// know that and call again by themselves. The newest has no such error: its agents are asked
// to go there as they are asked anything, and the call is made again for them.

const (
	// codePages is the code of that error.
	codePages = -32042
	// doneWithin is how long the call waits to hear that all is done. A server need not say so.
	doneWithin = time.Minute
)

// viaPages sends req for an agent of the newest revision to a server of an older one. When the
// agent does not want to go, or cannot, it gets the error as the server wrote it.
func (w *walk) viaPages(ctx context.Context, conn Conn, req Request) (Answer, error) {
	told := &endings{wake: make(chan struct{}, 1)}
	req.Session = told
	for round := 0; ; round++ {
		answer, err := conn.Call(ctx, req)
		pages := PagesIn(answer.Error)
		if err != nil || len(pages) == 0 || round == maxRounds {
			return answer, err
		}
		w.asked.Store(true)
		for _, page := range pages {
			if !w.goes(ctx, page) {
				return answer, context.Cause(ctx)
			}
		}
		if err := w.allDone(ctx, told, pages); err != nil {
			return Answer{}, err
		}
	}
}

// PagesIn are the pages that the error of a call names, each as params of a question.
func PagesIn(fault []byte) []json.RawMessage {
	var e struct {
		Code int
		Data struct{ Elicitations []json.RawMessage }
	}
	if !bytes.Contains(fault, []byte("-32042")) || json.Unmarshal(fault, &e) != nil || e.Code != codePages {
		return nil
	}
	return e.Data.Elicitations
}

// goes asks the agent to go to a page.
func (w *walk) goes(ctx context.Context, page []byte) bool {
	said, err := w.call.Ask(ctx, "elicitation/create", page)
	var a struct{ Action string }
	return err == nil && json.Unmarshal(said, &a) == nil && a.Action == "accept"
}

// allDone waits until the server has said so of all pages, or long enough. The user is there
// meanwhile, so that is no silence of the server.
func (w *walk) allDone(ctx context.Context, told *endings, pages []json.RawMessage) error {
	w.vigil.asking(1)
	defer w.vigil.asking(-1)
	enough := time.NewTimer(doneWithin)
	defer enough.Stop()
	for !told.has(pages) {
		select {
		case <-told.wake:
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// endings is who hears from a server at which pages all is done.
type endings struct {
	wake chan struct{}

	mu   sync.Mutex
	done map[string]bool
}

// Later takes a notification of the server that such a page is done with.
func (e *endings) Later(_ string, params []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = map[string]bool{}
	}
	e.done[PageOf(params)] = true
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *endings) has(pages []json.RawMessage) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range pages {
		if !e.done[PageOf(p)] {
			return false
		}
	}
	return true
}

// PageOf is the id of the page that a question or a notification is about, "" for none.
func PageOf(params []byte) string {
	var p struct{ ElicitationID string }
	_ = json.Unmarshal(params, &p)
	return p.ElicitationID
}
