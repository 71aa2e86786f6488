package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemas are shapes of outputSchema as servers write them, and instances that
// they accept and refuse.
var schemas = []struct {
	name, schema string
	good, bad    []string
}{
	{"plain", `{"type":"object","properties":{"items":{"type":"array"}},"required":["items"],"additionalProperties":false}`,
		[]string{`{"items":[]}`}, []string{`{}`, `{"items":[],"x":1}`}},
	{"empty", `{"type":"object"}`, []string{`{}`, `{"a":1}`}, nil},
	{"spaced", "{ \"type\" : \"object\" ,\t\"required\" : [ \"a\" ] }", []string{`{"a":1}`}, []string{`{}`}},
	{"defs", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"integer"},"l":{"type":"array","items":{"$ref":"#/$defs/n"}}},"properties":{"a":{"$ref":"#/$defs/l"}}}`,
		[]string{`{"a":[1]}`, `{}`}, []string{`{"a":["x"]}`, `{"a":1}`}},
	{"draft-07 definitions", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}},"required":["a"]}`,
		[]string{`{"a":1}`}, []string{`{"a":"x"}`, `{}`}},
	{"recursive from the root", `{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["v"],"additionalProperties":false}`,
		[]string{`{"v":1,"kids":[{"v":2,"kids":[]}]}`}, []string{`{"v":1,"kids":[{}]}`, `{"v":1,"kids":[{"v":2,"x":3}]}`, `{"v":1,"kids":[{"status":"stored","callId":"x"}]}`}},
	{"recursive in defs", `{"type":"object","$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}},"up":{"$ref":"#/properties/n"}}}},"properties":{"n":{"type":"integer"},"tree":{"$ref":"#/$defs/node"}}}`,
		[]string{`{"tree":{"kids":[{"up":1}]}}`}, []string{`{"tree":{"kids":[{"up":"x"}]}}`, `{"tree":{"kids":[7]}}`}},
	{"path to a property", `{"type":"object","properties":{"a/b":{"type":"integer"},"c":{"$ref":"#/properties/a~1b"}}}`,
		[]string{`{"c":1}`}, []string{`{"c":"x"}`}},
	{"anchor", `{"type":"object","$defs":{"x":{"$anchor":"num","type":"integer"}},"properties":{"a":{"$ref":"#num"}}}`,
		[]string{`{"a":1}`}, []string{`{"a":"x"}`}},
	{"anchor at the root", `{"type":"object","$anchor":"top","properties":{"n":{"type":"integer"},"in":{"$ref":"#top"}}}`,
		[]string{`{"in":{"n":1}}`}, []string{`{"in":{"n":"x"}}`, `{"in":7}`}},
	{"id", `{"$id":"https://example.com/out","type":"object","$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"https://example.com/out#/properties/a"},"c":{"$ref":"out#/$defs/n"},"d":{"$ref":"https://example.com/out"}}}`,
		[]string{`{"a":1,"b":2,"c":3,"d":{"a":4}}`}, []string{`{"a":"x"}`, `{"b":"x"}`, `{"c":"x"}`, `{"d":{"a":"x"}}`}},
	{"ids within", `{"$id":"https://example.com/out","type":"object","properties":{"a":{"$id":"inner","type":"object","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"},"m":{"$ref":"#/properties/n"},"r":{"$ref":"out#/properties/s"}}},"s":{"type":"string"}}}`,
		[]string{`{"a":{"n":1,"m":2,"r":"x"}}`}, []string{`{"a":{"n":"x"}}`, `{"a":{"m":"x"}}`, `{"a":{"r":1}}`}},
	{"id within an unnamed root", `{"type":"object","properties":{"a":{"$id":"https://example.com/in","properties":{"n":{"type":"integer"},"m":{"$ref":"#/properties/n"}}}}}`,
		[]string{`{"a":{"m":2}}`}, []string{`{"a":{"m":"x"}}`}},
	{"names of the receipt's", `{"type":"object","properties":{"status":{"type":"integer"},"callId":{"type":"array"},"sha256":{"type":"null"}},"required":["status"],"additionalProperties":false}`,
		[]string{`{"status":1,"callId":[],"sha256":null}`}, []string{`{"status":"stored"}`, `{"status":1,"x":2}`}},
	{"properties named like keywords", `{"type":"object","properties":{"$ref":{"type":"string"},"$defs":{"type":"integer"},"$id":{"type":"string"},"properties":{"type":"object","properties":{"$ref":{"type":"integer"}}}}}`,
		[]string{`{"$ref":"#","$defs":1,"$id":"x","properties":{"$ref":1}}`}, []string{`{"$ref":1}`, `{"$defs":"x"}`, `{"properties":{"$ref":"x"}}`}},
	{"data that looks like a schema", `{"type":"object","properties":{"a":{"const":{"$ref":"#/x"}},"b":{"enum":[{"$ref":"#"}]},"c":{"default":{"$ref":"#/y"}}}}`,
		[]string{`{"a":{"$ref":"#/x"},"b":{"$ref":"#"}}`}, []string{`{"a":{"$ref":"#/anyOf/0/x"}}`, `{"b":{"$ref":"#/anyOf/0"}}`}},
	{"unions of its own", `{"type":"object","anyOf":[{"required":["a"]},{"required":["b"],"properties":{"b":{"$ref":"#/anyOf/0"}}}]}`,
		[]string{`{"a":1}`, `{"b":{"a":1}}`}, []string{`{}`, `{"b":{}}`}},
	{"dynamic", `{"type":"object","$dynamicAnchor":"node","properties":{"v":{"type":"integer"},"kid":{"$dynamicRef":"#node"}}}`,
		[]string{`{"kid":{"v":1}}`}, []string{`{"kid":{"v":"x"}}`}},
	{"dependent and conditional", `{"type":"object","if":{"required":["a"]},"then":{"$ref":"#/$defs/two"},"$defs":{"two":{"minProperties":2},"int":{"type":"integer"}},"dependentSchemas":{"b":{"$ref":"#/$defs/two"}},"patternProperties":{"^n":{"$ref":"#/$defs/int"}},"unevaluatedProperties":true}`,
		[]string{`{"a":1,"n":2}`, `{"n1":1}`}, []string{`{"a":1}`, `{"b":1}`, `{"n1":"x"}`}},
	{"closed over its branches", `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}}],"unevaluatedProperties":false}`,
		[]string{`{"a":1}`}, []string{`{"b":1}`}},
}

const receipt = `{"status":"stored","callId":"0123","originalBytes":9,"preview":"x"}`

func resolve(schema []byte) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(&jsonschema.ResolveOptions{})
}

// judges reports whether the validator knows the draft that a schema names: of others it
// refuses every instance, which says nothing about the schema.
func judges(r *jsonschema.Resolved) bool {
	empty, err := (&jsonschema.Schema{Schema: r.Schema().Schema}).Resolve(nil)
	return err == nil && empty.Validate(true) == nil
}

func accepts(r *jsonschema.Resolved, instance string) bool {
	var v any
	if err := json.Unmarshal([]byte(instance), &v); err != nil {
		panic(err)
	}
	return r.Validate(v) == nil
}

// TestC24UnionAcceptsWhatTheSchemaAcceptsAndReceipts, and nothing else.
func TestC24UnionAcceptsWhatTheSchemaAcceptsAndReceipts(t *testing.T) {
	for _, c := range schemas {
		t.Run(c.name, func(t *testing.T) {
			itself, err := resolve([]byte(c.schema))
			if err != nil {
				t.Fatal("the example itself:", err)
			}
			out, err := unite([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			u, err := resolve(out)
			if err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			for _, v := range c.good {
				if !accepts(itself, v) || !accepts(u, v) {
					t.Errorf("refuses %s: %s", v, out)
				}
			}
			for _, v := range c.bad {
				if accepts(itself, v) || accepts(u, v) {
					t.Errorf("accepts %s: %s", v, out)
				}
			}
			if !accepts(u, receipt) || accepts(u, `[]`) {
				t.Errorf("refuses a receipt, or accepts what is no object: %s", out)
			}
		})
	}
}

func TestUnionLeavesTheSchemaAsItWasWritten(t *testing.T) {
	in := `{ "type" : "object","x-n":9007199254740993,"x-n2":1.0 , "properties":{"é<&>\u0041":{ "default":-0,"$ref":"#/properties/b" }},"$defs":{ "k" : {"type":"string"} } ,"$schema":"http://json-schema.org/draft-07/schema#"}`
	out, err := unite([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"type":"object","x-n":9007199254740993,"x-n2":1.0,"properties":{"é<&>\u0041":{ "default":-0,"$ref":"#/anyOf/0/properties/b" }}},`
	if !strings.HasPrefix(string(out), want) || !strings.HasSuffix(string(out), `],"$defs":{ "k" : {"type":"string"} }}`) {
		t.Errorf("%s", out)
	}
}

// TestWhatCannotBeUnitedIsLeftOut: a client sees no schema rather than a wrong one.
func TestWhatCannotBeUnitedIsLeftOut(t *testing.T) {
	deep := strings.Repeat(`{"not":`, maxDepth) + `true` + strings.Repeat(`}`, maxDepth)
	for _, schema := range []string{
		`{"type":"object","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`,
		`{"type":"object","properties":{},"properties":{"a":{}}}`,
		`{"type":"object","$id":7}`,
		`{"type":"object","id":"http://x/","$schema":"http://json-schema.org/draft-04/schema#"}`,
		`{"type":"object","not":` + deep + `}`,
	} {
		tools, bad := ParseTools([][]byte{page(entry("t", `,"outputSchema":`+schema))})
		c := Build([]Server{{"s", tools}})
		for how, kept := range map[Output]bool{UniteSchema: false, StripSchema: false, KeepSchema: true} {
			list := c.List(Scope{}, nil, func(Entry) Output { return how })
			if got := strings.Contains(string(list), "outputSchema"); got != kept {
				t.Errorf("%.80s: listed %v with %d", schema, got, how)
			}
		}
		if len(bad) != 1 || !strings.Contains(bad[0].Reason, "outputSchema") {
			t.Errorf("%.80s: debug says %v", schema, bad)
		}
	}
}

func TestListUnitesSchemasWithoutTouchingTheRest(t *testing.T) {
	const schema = `{"type":"object","required":["a"]}`
	head, tail := `{"name":"t","inputSchema":{"type":"object"},"outputSchema":`, `,"_meta":{"outputSchema":{"a":1}},"z":1.0}`
	tools, _ := ParseTools([][]byte{page(head + schema + tail)})
	list := Build([]Server{{"s", tools}}).List(Scope{}, nil, func(e Entry) Output {
		if e.Server != "s" || e.Tool != "t" || e.Exposed != "s__t" {
			t.Errorf("asked about %+v", e)
		}
		return UniteSchema
	})
	union, _ := unite([]byte(schema))
	if want := "[" + strings.Replace(head, `"t"`, `"s__t"`, 1) + string(union) + tail + "]"; string(list) != want {
		t.Errorf("got  %s\nwant %s", list, want)
	}
}

// oddCase reports whether schema has a keyword in other letters, which encoding/json
// takes for the keyword, and JSON Schema does not.
func oddCase(schema string) bool {
	lower := strings.ToLower(schema)
	for _, k := range []string{"$ref", "$id", "$defs", "$schema", "definitions", "const", "enum", "default", "examples",
		"properties", "patternProperties", "dependentSchemas", "dependencies", "anyOf", "type"} {
		if strings.Count(lower, `"`+strings.ToLower(k)+`"`) != strings.Count(schema, `"`+k+`"`) {
			return true
		}
	}
	return false
}

// FuzzUnionAgrees: the union of a schema that can be resolved can be resolved, and
// agrees with it about everything that is no receipt.
func FuzzUnionAgrees(f *testing.F) {
	for _, c := range schemas {
		f.Add([]byte(c.schema), append(append(c.good, c.bad...), `{}`)[0])
	}
	f.Fuzz(func(t *testing.T, schema []byte, instance string) {
		if !json.Valid([]byte(instance)) || checkSchema(schema) != nil {
			return
		}
		out, err := unite(schema)
		if err != nil {
			return
		}
		if !json.Valid(out) || checkSchema(out) != nil {
			t.Fatalf("%s became %s", schema, out)
		}
		s, err := resolve(schema)
		if err != nil || !judges(s) || strings.Contains(string(schema), "ynamic") || oddCase(string(schema)) {
			return
		}
		u, err := resolve(out)
		if err != nil {
			t.Fatalf("%v: %s became %s", err, schema, out)
		}
		if !accepts(u, receipt) {
			t.Fatalf("%s became %s, which refuses a receipt", schema, out)
		}
		if !strings.Contains(instance, "tored") && accepts(s, instance) != accepts(u, instance) {
			t.Fatalf("%s and %s differ about %s", schema, out, instance)
		}
	})
}
