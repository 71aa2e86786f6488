package actors

import (
	"errors"
	"testing"

	"mcphubd/store"
)

func TestAResultThatItsOwnerRemovedIsUnavailable(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": sized()})
	ids := [2]store.ID{}
	for i := range ids {
		got, err := r.call(t.Context(), "a", "d__echo", `{"N":300000}`)
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = store.ID(receiptOf(t, got)["callId"].(string))
	}
	if err := r.Spool.Remove(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	got, err := r.call(t.Context(), "a", "mcphub_get_result", `{"callId":"`+string(ids[0])+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	if s := receiptOf(t, got); s["status"] != "unavailable" {
		t.Errorf("after its removal: %v", s)
	}
	if back := r.readBack(t.Context(), "a", string(ids[1])); len(back) != 300000 {
		t.Errorf("of the other one %d bytes came back", len(back))
	}
	for _, id := range []store.ID{ids[0], store.NewID()} {
		if err := r.Spool.Remove(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("remove %s again: %v", id, err)
		}
	}
	if got, err := r.call(t.Context(), "a", "d__echo", `{"N":5000}`); err != nil || receiptOf(t, got)["status"] != "stored" {
		t.Errorf("storing goes on: %v", err)
	}
}
