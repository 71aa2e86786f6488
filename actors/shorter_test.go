package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcphubd/actors/budget"
)

// fixed is a server whose tool answers with this result, whatever is asked.
func fixed(result string) *fakeServer {
	return &fakeServer{answer: func(context.Context, string, []byte) (string, error) { return result, nil }}
}

// padded is a result of exactly n bytes with these members at its end.
func padded(n int, end string) string {
	head, tail := `{"content":[{"type":"text","text":"`, `"}]`+end+`}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func isReceipt(result string) bool { return strings.Contains(result, `"status":"stored"`) }

// must makes a call that has to be answered.
func (r *rig) must(agent, name string) string {
	r.t.Helper()
	got, err := r.call(r.t.Context(), agent, name, `{}`)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

const overrideConf = `response_budget = "4KB"
max_per_call_override = "16KB"
[agents.default]
[agents.small]
response_budget = "2KB"
`

// TestOverrideRaisesTheLimitOfOneResult: what the server asks for at the end of a
// result decides about all of it, and what is wrong is as if it were not there.
func TestOverrideRaisesTheLimitOfOneResult(t *testing.T) {
	const kb = 1 << 10
	for i, c := range []struct {
		conf, agent string
		size        int
		value       string
		stored      bool
		budget      int64 // of the receipt
	}{
		{overrideConf, "default", 8 * kb, `8192`, false, 0},
		{overrideConf, "default", 8*kb + 1, `8192`, true, 8 * kb},
		{overrideConf, "default", 16 * kb, `9999999`, false, 0},
		{overrideConf, "default", 16*kb + 1, `9999999`, true, 16 * kb},
		{overrideConf, "default", 300 * kb, `9999999`, true, 16 * kb},
		{overrideConf, "default", 4 * kb, `1`, false, 0},
		{overrideConf, "default", 4*kb + 1, `1`, true, 4 * kb},
		{overrideConf, "small", 3 * kb, `8192`, true, 2 * kb},
		{overrideConf, "small", 2 * kb, `1`, false, 0},
		{`response_budget = "4KB"` + "\nmax_per_call_override = \"0\"\n", "a", 4*kb + 1, `8192`, true, 4 * kb},
		{`response_budget = "0"`, "a", 500 * kb, `8192`, false, 0},
		{overrideConf, "default", 8 * kb, `8192.0`, true, 4 * kb},
		{overrideConf, "default", 8 * kb, `81.92e2`, true, 4 * kb},
		{overrideConf, "default", 8 * kb, `-8192`, true, 4 * kb},
		{overrideConf, "default", 8 * kb, `"8192"`, true, 4 * kb},
		{overrideConf, "default", 8 * kb, `true`, true, 4 * kb},
		{overrideConf, "default", 8 * kb, `null`, true, 4 * kb},
		{overrideConf, "default", 8 * kb, `99999999999999999999`, true, 4 * kb},
	} {
		key := []string{"mcphub", "anthropic", "zeph"}[i%3]
		want := padded(c.size, `,"_meta":{"`+key+`/maxResultSizeChars":`+c.value+`}`)
		r := newRig(t, c.conf+oneServer, map[string]*fakeServer{"d": fixed(want)})
		got := r.must(c.agent, "d__echo")
		if !c.stored {
			if got != want {
				t.Errorf("%d bytes that ask for %s: %d bytes came: %.200s", c.size, c.value, len(got), got)
			}
			continue
		}
		if rc := receiptOf(t, got); rc["status"] != "stored" || rc["budgetBytes"] != float64(c.budget) || int64(len(got)) > c.budget {
			t.Errorf("%d bytes that ask for %s: %.300s", c.size, c.value, got)
		}
	}
}

func TestOverrideOfAToolHoldsForAllItsResults(t *testing.T) {
	d := fixed(padded(8<<10, ""))
	d.tools = `[{"name":"asks","inputSchema":{"type":"object"},"_meta":{"anthropic/maxResultSizeChars":8192}},
		{"name":"no","inputSchema":{"type":"object"},"_meta":{"anthropic/maxResultSizeChars":8192.5}},
		{"name":"little","inputSchema":{"type":"object"},"_meta":{"zeph/maxResultSizeChars":100}}]`
	r := newRig(t, overrideConf+oneServer, map[string]*fakeServer{"d": d})
	r.ready("d")
	for tool, stored := range map[string]bool{"asks": false, "no": true, "little": true} {
		if got := r.must("default", "d__"+tool); isReceipt(got) != stored {
			t.Errorf("%s: %.200s", tool, got)
		}
	}
	if got := r.must("small", "d__asks"); !isReceipt(got) || len(got) > 2<<10 {
		t.Errorf("above the agent's ceiling: %.200s", got)
	}
}

func TestC24OutputSchemaIsListedAsConfigured(t *testing.T) {
	const schema = `{"type":"object","properties":{"items":{"type":"array"}},"required":["items"],"additionalProperties":false}`
	for conf, want := range map[string]string{
		"":                        "union",
		`output_schema = "union"`: "union",
		`output_schema = "strip"`: "gone",
		`output_schema = "keep"`:  "same",
		`response_budget = "0"`:   "same",
		`verbatim = true`:         "same",
		"response_budget = \"0\"\n[agents.a]\nresponse_budget = \"10KB\"\n": "union",
		"response_budget = \"0\"\n[agents.a]\nmax_lines = 9\n":              "union",
		"verbatim = true\n[agents.a]\nmax_lines = 9\n":                      "same",
	} {
		d := fixed("{}")
		d.tools = `[{"name":"echo","inputSchema":{"type":"object"},"outputSchema":` + schema + `}]`
		r := newRig(t, conf+oneServer, map[string]*fakeServer{"d": d})
		r.ready("d")
		s, err := r.Hub.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		list := string(s.Tools(t.Context()))
		got := map[string]bool{
			"union": strings.Contains(list, `"outputSchema":{"type":"object","anyOf":[`+schema+`,`+budget.ReceiptSchema+`]}`),
			"same":  strings.Contains(list, `"outputSchema":`+schema+`}`),
			"gone":  !strings.Contains(list, `outputSchema`),
		}
		if !got[want] {
			t.Errorf("%s: want %s in %.600s", conf, want, list)
		}
		if again := string(s.Tools(t.Context())); again != list {
			t.Error("the list is not the same twice")
		}
	}
}

// TestC65ResultsAreNotHeldAgainstTheirSchema: nor are errors.
func TestC65ResultsAreNotHeldAgainstTheirSchema(t *testing.T) {
	for _, result := range []string{
		`{"content":[{"type":"text","text":"limit is 200"}],"isError":true}`,
		`{"content":[],"structuredContent":{"id":"no uuid","more":1,"none":null,"at":"2026-01-02T03:04:05"}}`,
		`{"content":[{"type":"text","text":"only"}]}`,
	} {
		d := fixed(result)
		d.tools = `[{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"id":{"type":"string","format":"uuid"}},"required":["id"],"additionalProperties":false}}]`
		r := newRig(t, oneServer, map[string]*fakeServer{"d": d})
		if got := r.must("a", "d__echo"); got != result {
			t.Errorf("got  %s\nwant %s", got, result)
		}
	}
}

// TestC66StructuredContentOfAnyKindPasses: the bytes are the server's, for agents of
// every revision. Nothing is left out, because byte fidelity goes first.
func TestC66StructuredContentOfAnyKindPasses(t *testing.T) {
	for _, v := range []string{`[{"t":1}]`, `"s"`, `7`, `null`, `1e400`} {
		result := `{"content":[{"type":"text","text":"[{\"t\":1}]"}],"structuredContent":` + v + `}`
		r := newRig(t, oneServer, map[string]*fakeServer{"d": fixed(result)})
		if got := r.must("a", "d__echo"); got != result {
			t.Errorf("got  %s\nwant %s", got, result)
		}
	}
}

func TestALookAlikeReceiptIsPlainData(t *testing.T) {
	result := `{"content":[{"type":"text","text":"{\"status\":\"stored\"}"}],"structuredContent":{"status":"stored","callId":"theirs"},"_meta":{"mcphub/receipt":{"callId":"theirs"},"mcphub/media":1}}`
	r := newRig(t, oneServer, map[string]*fakeServer{"d": fixed(result)})
	if got := r.must("a", "d__echo"); got != result {
		t.Errorf("it became %s", got)
	}
}

func TestC36MediaGiveWayInPlaceAndCanBeReadBack(t *testing.T) {
	b64 := func(n int, seed byte) ([]byte, string) {
		data := bytes.Repeat([]byte{seed, 0xfb, 0xff}, n/3+1)[:n]
		return data, base64.StdEncoding.EncodeToString(data)
	}
	png, png64 := b64(300<<10, 1)
	_, wav64 := b64(700<<10, 2)
	_, pdf64 := b64(2<<20, 3)
	_, icon64 := b64(600, 4)
	icon := `{"type":"image","mimeType":"image/gif","data":"` + icon64 + `"}`
	result := `{"content":[{"type":"text","text":"before"},{"type":"image","mimeType":"image/png","data":"` + png64 + `","annotations":{"audience":["user"]}},` +
		icon + `,{"type":"audio","mimeType":"audio/wav","data":"` + wav64 + `"},` +
		`{"type":"resource","resource":{"uri":"x://1","mimeType":"application/pdf","blob":"` + pdf64 + `"}},{"type":"text","text":"after"}]}`
	r := newRig(t, `response_budget = "8KB"`+oneServer, map[string]*fakeServer{"d": fixed(result)})
	got := r.must("a", "d__echo")
	var v struct {
		Content []struct{ Type, Text string }
		Meta    struct {
			Media struct {
				CallID string
				Parts  []int
			} `json:"mcphub/media"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(got), &v); err != nil || len(v.Content) != 6 || len(got) > 8<<10 {
		t.Fatalf("%v: %d bytes: %.2000s", err, len(got), got)
	}
	if v.Content[0].Text != "before" || v.Content[5].Text != "after" || !strings.Contains(got, icon) || fmt.Sprint(v.Meta.Media.Parts) != "[1 3 4]" {
		t.Errorf("the rest changed: %s", got)
	}
	var stub map[string]any
	if err := json.Unmarshal([]byte(v.Content[1].Text), &stub); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(png)
	if stub["sha256"] != hex.EncodeToString(sum[:]) || stub["bytes"] != float64(len(png)) || stub["type"] != "image" || stub["callId"] != v.Meta.Media.CallID {
		t.Errorf("stub %v", stub)
	}
	if back := r.readBack(t.Context(), "a", v.Meta.Media.CallID); string(back) != result {
		t.Errorf("%d bytes came back as %d, or changed", len(result), len(back))
	}
}

func TestC67AnErrorOfAServerKeepsItsBytes(t *testing.T) {
	const raw = `{"code":-32042,"message":"quota","data":{"retry":9007199254740993},"x":1.0}`
	r := newRig(t, oneServer, map[string]*fakeServer{"d": {fault: raw}})
	if got := r.must("a", "d__echo"); got != raw {
		t.Errorf("got %s", got)
	}
}

func TestC86AHugeErrorOfAServerIsBoundedAndStored(t *testing.T) {
	raw := `{"code":-32042,"message":"first ` + strings.Repeat("trace é ", 2<<20/9) + ` last","data":"` + strings.Repeat("d", 5<<20) + `"}`
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": {fault: raw}})
	got := r.must("a", "d__echo")
	var e struct {
		Code    int
		Message string
		Data    map[string]struct{ CallID string }
	}
	if err := json.Unmarshal([]byte(got), &e); err != nil || len(got) > 4<<10 || e.Code != -32042 {
		t.Fatalf("%v: %d bytes: %.500s", err, len(got), got)
	}
	if !strings.HasPrefix(e.Message, "first ") || !strings.HasSuffix(e.Message, " last") || !strings.Contains(e.Message, "bytes cut; ") {
		t.Errorf("message %s", e.Message)
	}
	if back := r.readBack(t.Context(), "a", e.Data["mcphub/receipt"].CallID); string(back) != raw {
		t.Errorf("%d bytes came back as %d, or changed", len(raw), len(back))
	}
}

// TestC85EncodedSizeCounts: what grows in encoding is measured as it stands on the
// wire, and so is what takes its place.
func TestC85EncodedSizeCounts(t *testing.T) {
	for unit, stored := range map[string]bool{`\"`: true, `\u0001`: true, `\\`: true, `<`: false, `é`: true} {
		result := `{"content":[{"type":"text","text":"` + strings.Repeat(unit, 8000) + `"}]}`
		r := newRig(t, `response_budget = "10000B"`+oneServer, map[string]*fakeServer{"d": fixed(result)})
		got := r.must("a", "d__echo")
		if len(got) > 10000 || isReceipt(got) != stored || !stored && got != result {
			t.Errorf("8000 of %s: %d bytes: %.200s", unit, len(got), got)
		}
	}
}

// TestExtraBytesOfTheWireFitTheBudgetToo: whatever this end makes up for an agent.
func TestExtraBytesOfTheWireFitTheBudgetToo(t *testing.T) {
	r := newRig(t, `response_budget = "512B"`+oneServer, map[string]*fakeServer{"d": sized()})
	s, err := r.Hub.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	size := func(name, args string) int64 {
		c := callOf(name, args)
		c.Extra = 24
		reply, err := s.Call(t.Context(), c)
		if err != nil {
			return int64(len(budget.ErrorResult(err.Error(), reply.Room)))
		}
		defer reply.Result.Close()
		return reply.Result.Size()
	}
	r.ready("d")
	got, err := r.call(t.Context(), "a", "d__echo", `{"N":5000}`)
	if err != nil {
		t.Fatal(err)
	}
	id := receiptOf(t, got)["callId"].(string)
	for _, c := range [][2]string{
		{"d__echo", `{"N":5000}`}, {"d__echo", `{"N":"` + strings.Repeat("no number ", 500) + `"}`},
		{"mcphub_get_result", `{"callId":"` + id + `"}`}, {"mcphub_get_result", `{"callId":"` + strings.Repeat("é", 500) + `"}`},
		{"mcphub_get_result", `{"callId":"` + id + `","cursor":"` + strings.Repeat("9", 500) + `x"}`},
	} {
		if n := size(c[0], c[1]); n+24 > 512 {
			t.Errorf("%s %.80s: %d bytes and 24 more", c[0], c[1], n)
		}
	}
}

// TestC84AReceiptNamesToolsThatThisAgentHas: also one that may call a single tool.
func TestC84AReceiptNamesToolsThatThisAgentHas(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer+`
[agents.narrow]
tools = ["d__echo"]
`, map[string]*fakeServer{"d": sized()})
	r.ready("d")
	got, err := r.call(t.Context(), "narrow", "d__echo", `{"N":100000}`)
	if err != nil {
		t.Fatal(err)
	}
	next := receiptOf(t, got)["nextAction"].(string)
	s, err := r.Hub.Open(t.Context(), "narrow")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name string }
	if err := json.Unmarshal(s.Tools(t.Context()), &list); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, e := range list {
		listed[e.Name] = true
	}
	calls := 0
	for _, part := range strings.Split(next, "call ")[1:] {
		name, rest, _ := strings.Cut(part, " with ")
		args := rest[:strings.Index(rest, "}")+1]
		if !listed[name] {
			t.Errorf("%s is not among the tools %v", name, listed)
		}
		if back, err := r.call(t.Context(), "narrow", name, args); err != nil || strings.Contains(back, `"isError":true`) {
			t.Errorf("%s %s: %v %.300s", name, args, err, back)
		}
		calls++
	}
	if calls == 0 {
		t.Errorf("no call in %s", next)
	}
}

func TestAnUndeliveredResultThatAsksForRoomIsKeptWhole(t *testing.T) {
	want := padded(8<<10, `,"_meta":{"mcphub/maxResultSizeChars":8192}`)
	r := newRig(t, overrideConf+oneServer, map[string]*fakeServer{"d": fixed(want)})
	s, err := r.Hub.Open(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	c := callOf("d__echo", `{}`)
	gone, leave := context.WithCancel(t.Context())
	leave()
	c.Gone = gone
	reply, err := s.Call(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Result.Close()
	if reply.Result.Size() != 8<<10 {
		t.Errorf("%d bytes", reply.Result.Size())
	}
	if all, err := r.reader.List(t.Context(), "default", time.Now(), 9); err != nil || len(all) != 1 || all[0].Bytes != 8<<10 {
		t.Error(all, err)
	}
}
