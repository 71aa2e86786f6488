package actors

import (
	"bytes"
	"strings"
	"testing"
)

// capped calls with what the client takes.
func (r *rig) capped(name, args string, most int64) string {
	r.t.Helper()
	s, err := r.Hub.Open(r.t.Context(), "default")
	if err != nil {
		r.t.Fatal(err)
	}
	c := callOf(name, args)
	c.Ceiling = most
	reply, err := s.Call(r.t.Context(), c)
	if err != nil {
		r.t.Fatal(err)
	}
	defer reply.Result.Close()
	var b bytes.Buffer
	if _, err := reply.Result.WriteTo(&b); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

// TestNoResultIsLargerThanTheClientTakes, whatever the budgets allow: what is larger is
// stored, and can be read within the same bound.
func TestNoResultIsLargerThanTheClientTakes(t *testing.T) {
	const most = 100 << 10
	want := padded(300<<10, `,"_meta":{"mcphub/maxResultSizeChars":9999999}`)
	for what, conf := range map[string]string{
		"a budget":           "",
		"a larger budget":    `response_budget = "200KB"`,
		"no budget":          `response_budget = "0"`,
		"verbatim":           `verbatim = true`,
		"a large override":   `max_per_call_override = "1MB"`,
		"an agent's ceiling": "[agents.default]\nresponse_budget = \"250KB\"",
	} {
		r := newRig(t, conf+"\n"+oneServer, map[string]*fakeServer{"d": fixed(want)})
		r.ready("d")
		got := r.capped("d__echo", `{}`, most)
		if !isReceipt(got) || len(got) > most {
			t.Errorf("%s: %d bytes: %.200s", what, len(got), got)
			continue
		}
		id := receiptOf(t, got)["callId"].(string)
		for _, tool := range []string{"mcphub_get_result", "mcphub_read_result"} {
			page := r.capped(tool, `{"callId":"`+id+`"}`, 2<<10)
			if len(page) > 2<<10 || strings.Contains(page, `"isError":true`) {
				t.Errorf("%s: %s answers %d bytes: %.200s", what, tool, len(page), page)
			}
		}
	}
	r := newRig(t, `response_budget = "0"`+"\n"+oneServer, map[string]*fakeServer{"d": fixed(want)})
	r.ready("d")
	if got := r.capped("d__echo", `{}`, int64(len(want))); got != want {
		t.Errorf("what the client takes was not passed: %.200s", got)
	}
}
