package budget

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func resolved(t testing.TB, schema string) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	return r
}

// TestC24EveryReceiptMatchesItsSchema: at all budgets, with whatever was given up.
func TestC24EveryReceiptMatchesItsSchema(t *testing.T) {
	schema := resolved(t, ReceiptSchema)
	f := scan(textResultOf(strings.Repeat("line é\n", 5000)))
	for limit := int64(MinBudget); limit < 8<<10; limit += 37 {
		r := receiptFor(limit, f)
		r.Shape, r.ReadTool = "[5000×str]", "mcphub_read_result"
		a := read(t, r.Result())
		var v any
		if err := json.Unmarshal(a.StructuredContent, &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		for k := range a.object {
			if !strings.Contains(ReceiptSchema, `"`+k+`":{`) {
				t.Errorf("member %s is not in the schema", k)
			}
		}
	}
	for _, no := range []string{`{}`, `{"status":"ok","callId":"x"}`, `{"status":"stored"}`, `[]`} {
		var v any
		json.Unmarshal([]byte(no), &v)
		if schema.Validate(v) == nil {
			t.Errorf("%s passes for a receipt", no)
		}
	}
}
