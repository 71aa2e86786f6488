package npm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// hostile are output schemas that are hard to unite with a receipt's, each with a
// value that it accepts, one that it refuses, and LARGE where the value can grow.
var hostile = []struct{ name, schema, good, bad string }{
	{"plain", `{"type":"object","properties":{"items":{"type":"array"}},"required":["items"],"additionalProperties":false}`,
		`{"items":["LARGE"]}`, `{"items":["LARGE"],"more":1}`},
	{"defs", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"integer"},"l":{"type":"array","items":{"$ref":"#/$defs/n"}}},"properties":{"a":{"$ref":"#/$defs/l"},"s":{"type":"string"}},"required":["a"]}`,
		`{"a":[1,2],"s":"LARGE"}`, `{"a":["x"],"s":"LARGE"}`},
	{"draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}},"required":["a"]}`,
		`{"a":1,"s":"LARGE"}`, `{"a":"LARGE"}`},
	{"recursive", `{"type":"object","properties":{"v":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["v"],"additionalProperties":false}`,
		`{"v":"LARGE","kids":[{"v":"x","kids":[]}]}`, `{"v":"LARGE","kids":[{"status":"stored","callId":"x"}]}`},
	{"recursive-in-defs", `{"type":"object","$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}},"up":{"$ref":"#/properties/n"}}}},"properties":{"n":{"type":"integer"},"tree":{"$ref":"#/$defs/node"}},"required":["tree"]}`,
		`{"tree":{"kids":[{"up":1}]},"s":"LARGE"}`, `{"tree":{"kids":[{"up":"LARGE"}]}}`},
	{"path", `{"type":"object","properties":{"a/b":{"type":"integer"},"c":{"$ref":"#/properties/a~1b"}},"required":["c"]}`,
		`{"c":1,"s":"LARGE"}`, `{"c":"LARGE"}`},
	{"anchor", `{"type":"object","$defs":{"x":{"$anchor":"num","type":"integer"}},"properties":{"a":{"$ref":"#num"}},"required":["a"]}`,
		`{"a":1,"s":"LARGE"}`, `{"a":"LARGE"}`},
	{"id", `{"$id":"https://example.com/out","type":"object","$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"https://example.com/out#/properties/a"},"d":{"$ref":"https://example.com/out"}},"required":["a"]}`,
		`{"a":1,"b":2,"d":{"a":4},"s":"LARGE"}`, `{"a":1,"d":{"a":"LARGE"}}`},
	{"inner-id", `{"$id":"https://example.com/outer","type":"object","properties":{"a":{"$id":"inner","type":"object","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"},"m":{"$ref":"#/properties/n"}}}},"required":["a"]}`,
		`{"a":{"n":1,"m":2},"s":"LARGE"}`, `{"a":{"m":"LARGE"}}`},
	{"names-of-the-receipt", `{"type":"object","properties":{"status":{"type":"integer"},"callId":{"type":"array"},"preview":{"type":"string"}},"required":["status"],"additionalProperties":false}`,
		`{"status":1,"callId":[],"preview":"LARGE"}`, `{"status":"LARGE"}`},
	{"names-of-keywords", `{"type":"object","properties":{"$ref":{"type":"string"},"$defs":{"type":"integer"},"properties":{"type":"object","properties":{"$ref":{"type":"integer"}}}},"required":["$ref"]}`,
		`{"$ref":"LARGE","$defs":1,"properties":{"$ref":1}}`, `{"$ref":"LARGE","properties":{"$ref":"x"}}`},
	{"data-like-a-schema", `{"type":"object","properties":{"a":{"const":{"$ref":"#/x"}},"s":{"type":"string"}},"required":["a"]}`,
		`{"a":{"$ref":"#/x"},"s":"LARGE"}`, `{"a":{"$ref":"#/anyOf/0/x"},"s":"LARGE"}`},
	{"own-union", `{"type":"object","anyOf":[{"required":["a"]},{"required":["b"],"properties":{"b":{"$ref":"#/anyOf/0"}}}]}`,
		`{"b":{"a":1},"s":"LARGE"}`, `{"s":"LARGE"}`},
}

// hostileServer has three tools for each schema: one with a small result, one with
// a large one and one whose small result does not match.
func hostileServer(t *testing.T) mcptest.Server {
	var tools []string
	var rules []mcptest.Rule
	add := func(name, schema, value, fill string) {
		value = strings.Replace(value, "LARGE", fill, 1)
		q, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"outputSchema":%s}`, name, schema))
		rules = append(rules, mcptest.Rule{Method: "tools/call", Tool: name, Do: []mcptest.Step{
			mcptest.Result(`{"content":[{"type":"text","text":` + string(q) + `}],"structuredContent":` + value + `}`)}})
	}
	for _, h := range hostile {
		add("small-"+h.name, h.schema, h.good, "little")
		add("large-"+h.name, h.schema, h.good, strings.Repeat("a lot ", 400_000))
		add("wrong-"+h.name, h.schema, h.bad, "little")
	}
	return mcptest.NewServer(t, mcptest.Script{Tools: mcptest.Bytes("[" + strings.Join(tools, ",") + "]"), Rules: rules})
}

type taken map[string]struct {
	Threw, CallID string
	Structured    json.RawMessage
}

// behind starts a daemon over the server, and waits until its tools are known.
func behind(t *testing.T, conf string, server mcptest.Server) map[string]any {
	t.Helper()
	d := mcptest.StartReady(t, conf+server.TOML("d"))
	if r, err := d.Agent("first").Call(t.Context(), "d__small-plain", "{}"); err != nil || r.Result() == nil {
		t.Fatalf("HTTP %d, %v: %.300s", r.Status, err, r.Body)
	}
	return map[string]any{"url": d.URL("sdk")}
}

// take lets the client call every tool.
func take(t *testing.T, npm string, at map[string]any) (s taken) {
	t.Helper()
	at["npm"] = npm
	cmd := exec.CommandContext(t.Context(), node(npm), "schema.mjs")
	cmd.Stdin = strings.NewReader(raw(at))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the agent of the TypeScript SDK: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &s); err != nil || len(s) != 3*len(hostile) {
		t.Fatalf("the agent called %d tools: %v", len(s), err)
	}
	return s
}

// TestC24TheTypeScriptClientTakesReceiptsBesideHostileSchemas: what it takes and
// refuses of the server itself it takes and refuses through the gateway, and
// receipts besides.
func TestC24TheTypeScriptClientTakesReceiptsBesideHostileSchemas(t *testing.T) {
	npm := need(t)
	server := hostileServer(t)
	direct := take(t, npm, map[string]any{"server": server})
	hub := take(t, npm, behind(t, "", server))
	for _, h := range hostile {
		for _, kind := range []string{"small-", "large-", "wrong-"} {
			want, got := direct[kind+h.name], hub["d__"+kind+h.name]
			if (want.Threw != "") != (kind == "wrong-") {
				t.Fatalf("the example %s%s is none: %s", kind, h.name, want.Threw)
			}
			if (got.Threw != "") != (want.Threw != "") || (got.CallID != "") != (kind == "large-") {
				t.Errorf("%s%s: threw %q, directly %q; receipt %q", kind, h.name, got.Threw, want.Threw, got.CallID)
			}
			if kind == "small-" && string(got.Structured) != string(want.Structured) {
				t.Errorf("%s%s: %s, directly %s", kind, h.name, got.Structured, want.Structured)
			}
		}
	}
}

// TestTheTypeScriptClientThrowsOnAReceiptWhenSchemasAreKept: this is why "keep" is
// for those who store nothing. With "strip" nothing is held against anything.
func TestTheTypeScriptClientThrowsOnAReceiptWhenSchemasAreKept(t *testing.T) {
	npm := need(t)
	server := hostileServer(t)
	for mode, throws := range map[string]bool{"keep": true, "strip": false} {
		s := take(t, npm, behind(t, `output_schema = "`+mode+"\"\n", server))
		for _, h := range hostile {
			large, small := s["d__large-"+h.name], s["d__small-"+h.name]
			// Only a schema that demands what a receipt lacks makes it throw.
			if mode == "strip" && large.CallID == "" || small.Threw != "" || !throws && large.Threw != "" {
				t.Errorf("%s %s: %+v %+v", mode, h.name, large, small)
			}
			if throws && large.Threw == "" {
				t.Errorf("keep %s: a receipt was taken: %+v", h.name, large)
			}
		}
	}
}
