package main

import (
	"errors"
	"fmt"
	"regexp"

	"mcphubd/test/answers"
	"mcphubd/test/bench/payload"
)

// oneAnswer looks one value up in 184 KB of JSON, as a model would: the call of the
// tool, whose receipt says how the data is built, and one query. Beside it stands
// what all of the result costs in exact pages.
func oneAnswer(g *gateway, _ options, c *cell) error {
	a, err := g.agent()
	if err != nil {
		return err
	}
	defer a.close()
	r, err := a.call(g.params("blob", blob("json", 184*kb)))
	if err != nil {
		return err
	}
	rec, ok := r.receipt()
	if !ok {
		return errors.New("no receipt")
	}
	receipt, err := answers.Tokens(r.text)
	if err != nil {
		return err
	}
	args := fmt.Sprintf(`{"callId":%q,"jq":".[]|select(.id==%d)|.owner.login"}`, rec.CallID, payload.FirstID+2*300)
	if r, err = a.call(`{"name":"mcphub_read_result","arguments":` + args + `}`); err != nil {
		return err
	}
	if !regexp.MustCompile(`\n"user\d{4}"\n?$`).MatchString(r.text) {
		return fmt.Errorf("no login in the answer: %.300s", r.text)
	}
	query, err := answers.Tokens(args + r.text)
	if err != nil {
		return err
	}
	c.M["turns"], c.M["tokens"], c.M["receipt_tokens"] = 2, float64(query), float64(receipt)
	pages, turns := receipt, 1
	for at, done := int64(0), false; !done; turns++ {
		args := fmt.Sprintf(`{"callId":%q,"cursor":%d}`, rec.CallID, at)
		r, err := a.call(`{"name":"mcphub_get_result","arguments":` + args + `}`)
		if err != nil {
			return err
		}
		n, err := answers.Tokens(args + r.text)
		if err != nil {
			return err
		}
		p, err := a.page(rec.CallID, at)
		if err != nil {
			return err
		}
		pages, at, done = pages+n, p.NextCursor, p.Done
	}
	c.M["page_turns"], c.M["page_tokens"] = float64(turns), float64(pages)
	return nil
}
