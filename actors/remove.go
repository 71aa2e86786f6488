package actors

import (
	"context"
	"errors"

	"mcphubd/store"
)

// ErrNoResult reports a result that there is not, or no longer.
var ErrNoResult = store.ErrNotFound

// remove is asked by the owner: a stored result ends before its time.
type remove struct{ id store.ID }

func (remove) isSpoolMsg() {}

// Remove ends a stored result before its time, and returns once that is committed:
// nobody reads it any more. The pruner takes its bytes.
func (s Spool) Remove(ctx context.Context, id store.ID) error {
	_, err := ask[struct{}, spoolMsg](ctx, s.ref, remove{id})
	return err
}

func (a *spoolActor) remove(from asker, m remove) {
	err := a.begin()
	if err == nil {
		err = a.w.Remove(m.id)
	}
	switch {
	case errors.Is(err, ErrNoResult):
		from.answer(nil, err)
	case err != nil:
		a.refuse(from, err)
	default:
		a.sys.log.Info().Str("callId", string(m.id)).Msg("the owner removes a stored result")
		a.hurry()
		a.await(waiting{from: from, value: struct{}{}})
	}
}
