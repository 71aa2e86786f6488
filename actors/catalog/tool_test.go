package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcphubd/actors/budget"
)

func page(entries ...string) []byte {
	return []byte(`{"tools":[` + strings.Join(entries, ",") + `]}`)
}

// entry is a good entry of tools/list with more members after its name.
func entry(name, more string) string {
	q, _ := json.Marshal(name)
	return `{"name":` + string(q) + `,"inputSchema":{"type":"object"}` + more + `}`
}

func names(tools []Tool) (out []string) {
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestC15PagesAreMergedAndEachToolIsThereOnce(t *testing.T) {
	tools, bad := ParseTools([][]byte{page(entry("a", ""), entry("b", "")), page(entry("b", `,"x":1`), entry("c", ""))})
	if !slices.Equal(names(tools), []string{"a", "b", "c"}) || strings.Contains(string(tools[1].Raw), "x") {
		t.Errorf("tools %v", names(tools))
	}
	if len(bad) != 1 || bad[0].Name != "b" || bad[0].Page != 1 || bad[0].Index != 0 {
		t.Errorf("bad %v", bad)
	}
}

func TestC15CursorEndsWhenThereIsNone(t *testing.T) {
	for in, want := range map[string]string{
		`{"tools":[],"nextCursor":"8"}`:                 `"8"`,
		`{"nextCursor": "\u0061\"<" ,"tools":[]}`:       `"\u0061\"<"`,
		`{"tools":[],"nextCursor":8}`:                   `8`,
		`{"tools":[],"nextCursor":""}`:                  ``,
		`{"tools":[],"nextCursor":null}`:                ``,
		`{"tools":[{"nextCursor":"no"}]}`:               ``,
		`{"tools":[],"nextCursor":"8"`:                  ``,
		`{"tools":[],"nextCursor":"a","nextCursor":""}`: ``,
		``: ``,
	} {
		if got, ok := NextCursor([]byte(in)); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", in, got, ok, want)
		}
	}
}

func TestC23BadEntriesAreLeftOutOneByOneWithTheReason(t *testing.T) {
	in := map[string]string{ // entry, and a word of the reason
		`{"name":"s1","inputSchema":{"type":"string"}}`: "type is not object",
		`{"name":"s2"}`: "inputSchema is missing",
		`{"name":"s3","inputSchema":{"anyOf":[{"type":"object"}]}}`:                             "type is not object",
		`{"name":"s4","inputSchema":{"type":"object","properties":{"n":{"type":"int"}}}}`:       "/properties/n/type is int",
		`{"name":"s5","inputSchema":{"type":"object","properties":[]}}`:                         "/properties is not an object",
		`{"name":"s6","inputSchema":{"type":"object","properties":{"n":{"items":{"type":7}}}}}`: "/properties/n/items/type",
		`{"name":"s7","inputSchema":[]}`:                                                        "it is not an object",
		`{"name":"","inputSchema":{"type":"object"}}`:                                           "name is missing or empty",
		`{"inputSchema":{"type":"object"}}`:                                                     "name is missing or empty",
		`{"name":7,"inputSchema":{"type":"object"}}`:                                            "name is not a string",
		`{"name":"s8","n\u0061me":"s9","inputSchema":{"type":"object"}}`:                        "name comes twice",
		`{"name":"s10","description":"\ud800","inputSchema":{"type":"object"}}`:                 "surrogate",
		"{\"name\":\"s11\",\"description\":\"\xff\",\"inputSchema\":{\"type\":\"object\"}}":     "UTF-8",
		`null`: "not an object",
		`"x"`:  "not an object",
	}
	for e, reason := range in {
		tools, bad := ParseTools([][]byte{page(entry("good", ""), e, entry("fine", ""))})
		if !slices.Equal(names(tools), []string{"good", "fine"}) {
			t.Errorf("%s: tools %v", e, names(tools))
		}
		if len(bad) != 1 || bad[0].Index != 1 || !strings.Contains(bad[0].Reason, reason) {
			t.Errorf("%s: %v, want %q", e, bad, reason)
		}
	}
}

func TestC23OutputSchemaThatClientsRefuseIsCutAndTheToolStays(t *testing.T) {
	tools, bad := ParseTools([][]byte{page(entry("t", `,"outputSchema":{"type":["null","array"]},"z":1`))})
	if len(tools) != 1 || len(bad) != 1 || !strings.Contains(bad[0].String(), "outputSchema") {
		t.Fatalf("tools %v, bad %v", names(tools), bad)
	}
	list := Build([]Server{{"s", tools}}).List(Scope{}, nil, nil)
	if want := `[{"name":"s__t","inputSchema":{"type":"object"},"z":1}]`; string(list) != want {
		t.Errorf("got  %s\nwant %s", list, want)
	}
}

func TestGoodSchemasPass(t *testing.T) {
	for _, s := range []string{
		`{"type":"object"}`,
		`{"type":"object","properties":{"type":{"type":["string","null"]},"a":true,"b":{}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/n"}]}},"$defs":{"n":{"type":"string"}},"x-vendor":1}`,
		`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"number"}],"prefixItems":[{"type":"null"}]}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"default":{"type":"int"},"enum":[{"type":"int"}]}}}`,
	} {
		if err := checkSchema([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestPageThatIsNoneIsNamed(t *testing.T) {
	for _, in := range []string{``, `7`, `{}`, `{"tools":{}}`, `{"tools":null}`, `{"tools":[`, `{"tools":[{]}`} {
		tools, bad := ParseTools([][]byte{[]byte(in), page(entry("a", ""))})
		if len(tools) != 1 || len(bad) != 1 || bad[0].Index != -1 {
			t.Errorf("%s: tools %v, bad %v", in, names(tools), bad)
		}
	}
}

func TestHintsAreReadAsBooleansOnly(t *testing.T) {
	for in, want := range map[string][2]bool{
		`{"readOnlyHint":true}`:                          {true, false},
		`{"idempotentHint": true ,"readOnlyHint":false}`: {false, true},
		`{"readOnlyHint":"true","idempotentHint":1}`:     {},
		`[]`: {}, `null`: {}, `{"x":{"readOnlyHint":true}}`: {},
	} {
		tools, _ := ParseTools([][]byte{page(entry("a", `,"annotations":`+in))})
		if len(tools) != 1 || [2]bool{tools[0].ReadOnly, tools[0].Idempotent} != want {
			t.Errorf("%s: %+v", in, tools)
		}
	}
}

func TestC83ALongDescriptionIsCutAndSaysSo(t *testing.T) {
	for _, unit := range []string{"d", "é", "読", "😀", `"`} {
		long := strings.Repeat(unit, 200<<10/len(unit))
		q, _ := json.Marshal(long)
		tools, bad := ParseTools([][]byte{page(entry("a", `,"description":`+string(q)), entry("b", `,"description":"`+strings.Repeat("x", maxDescription)+`"`))})
		var list []struct{ Name, Description string }
		if err := json.Unmarshal(Build([]Server{{"s", tools}}).List(Scope{}, nil, nil), &list); err != nil || len(list) != 2 {
			t.Fatal(err, len(list))
		}
		text, mark, _ := strings.Cut(list[0].Description, "… [cut")
		if n := len(list[0].Description); n > maxDescription || n < maxDescription-4 || !strings.HasPrefix(long, text) {
			t.Errorf("%q: description of %d bytes", unit, n)
		}
		if mark != fmt.Sprintf(": the description has %d bytes]", len(long)) {
			t.Errorf("%q: mark %q", unit, mark)
		}
		if len(list[1].Description) != maxDescription {
			t.Error("one that is as long as allowed was cut")
		}
		if len(bad) != 1 || bad[0].Name != "a" || !strings.Contains(bad[0].Reason, "description") {
			t.Errorf("debug says %v", bad)
		}
	}
}

func TestToolsAskForRoomInTheirMeta(t *testing.T) {
	tools, _ := ParseTools([][]byte{page(entry("a", `,"_meta":{"anthropic/maxResultSizeChars":200000}`), entry("b", `,"_meta":{"anthropic/maxResultSizeChars":"200000"}`), entry("c", ``))})
	for i, e := range Build([]Server{{"s", tools}}).Entries() {
		if want := []int64{200000, 0, 0}[i]; e.Asked != want {
			t.Errorf("%s asks for %d, want %d", e.Tool, e.Asked, want)
		}
	}
}

func TestToolsShareNoMemoryWithThePages(t *testing.T) {
	p := page(entry("a", `,"z":"z"`))
	tools, _ := ParseTools([][]byte{p})
	before := fmt.Sprintf("%s %s", tools[0].Name, tools[0].Raw)
	clear(p)
	if after := fmt.Sprintf("%s %s", tools[0].Name, tools[0].Raw); after != before {
		t.Error("the page was kept")
	}
}

// FuzzListIsValidWhateverServersSend: no page breaks the list, and each entry has
// the name it is found by.
func FuzzListIsValidWhateverServersSend(f *testing.F) {
	f.Add([]byte(`{"tools":[{"outputSchema":{"type":"object"},"name":"a b","inputSchema":{"type":"object"}},null]}`))
	f.Add([]byte("{\"tools\":[{\"inputSchema\":{\"type\":\"object\"}\n,\"name\":\"\\u0061\" ,\"title\":\"T\",\"outputSchema\":[]}]}"))
	f.Add(page(entry("mcphub", `,"outputSchema":{}`), entry("mcphub", "")))
	f.Fuzz(func(t *testing.T, in []byte) {
		tools, _ := ParseTools([][]byte{in})
		c := Build([]Server{{"srv", tools}})
		for _, how := range []Output{KeepSchema, StripSchema, UniteSchema} {
			list := c.List(Scope{}, OwnTools(MaxName), func(Entry) Output { return how })
			var entries []map[string]json.RawMessage
			if err := json.Unmarshal(list, &entries); err != nil || len(entries) != len(tools)+len(OwnTools(MaxName)) {
				t.Fatalf("%d tools give %s: %v", len(tools), list, err)
			}
			if strings.ContainsAny(string(list), "\r\n") {
				t.Fatalf("raw line break in %q", list)
			}
			for _, e := range entries[:len(tools)] {
				var name string
				json.Unmarshal(e["name"], &name)
				if _, ok := c.Lookup(name); !ok {
					t.Fatalf("%q is listed and not found", name)
				}
				if how == StripSchema && e["outputSchema"] != nil {
					t.Fatalf("outputSchema is still in %s", list)
				}
				if out := e["outputSchema"]; how == UniteSchema && out != nil && !bytes.Contains(out, []byte(budget.ReceiptSchema)) {
					t.Fatalf("outputSchema knows no receipt in %s", list)
				}
			}
		}
	})
}
