package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcphubd/store"
	"mcphubd/test/mcptest"
)

// eras gives an agent of each revision that agents differ by.
var eras = map[string]func(hub) *mcptest.Agent{
	"legacy": func(h hub) *mcptest.Agent { return h.Agent("a") },
	"modern": func(h hub) *mcptest.Agent { return h.Modern("a") },
}

// orders are the two orders of members that servers use.
var orders = map[string]bool{"id first": false, "result first": true}

// without takes away what a gateway must add for an agent of 2026-07-28: the first
// member, and the comma behind it. Every other byte stays.
func without(result []byte) []byte {
	rest, ok := bytes.CutPrefix(result, []byte(`{"resultType":"complete"`))
	if !ok {
		return append([]byte("no resultType: "), result...)
	}
	space := len(rest) - len(bytes.TrimLeft(rest, " \t"))
	after := bytes.TrimPrefix(rest[space:], []byte(","))
	return bytes.Join([][]byte{[]byte("{"), rest[:space], after}, nil)
}

func TestTheHostileResultArrivesAsTheServerWroteIt(t *testing.T) {
	t.Parallel()
	for order, resultFirst := range orders {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			hostileWay(t, resultFirst)
		})
	}
}

// hostileWay sends hostile results of many sizes the whole way: inline, through
// the store, back in pages, and finds them in the store's file afterwards.
func hostileWay(t *testing.T, resultFirst bool) {
	script := mcptest.Script{ResultFirst: resultFirst, Rules: []mcptest.Rule{{Method: "tools/call", Tool: "progress", Do: []mcptest.Step{
		{Write: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}` + "\n"},
		{Answer: &mcptest.Answer{Hostile: new(int)}},
	}}}}
	conf, servers := tables(t, "response_budget = \"4KB\"\n", map[string]mcptest.Script{"d": script})
	more, whole := tables(t, "", map[string]mcptest.Script{"whole": script}, `response_budget = "0"`)
	h := hub{mcptest.StartDaemon(t, conf+more), servers}
	stored := map[store.ID]int{}
	for era, agent := range eras {
		a := agent(h)
		inline := func(name string, r mcptest.Response, pad int) {
			got := r.Result()
			if era == "modern" {
				got = without(got)
			}
			same(t, era+" "+name+" of pad "+strconv.Itoa(pad), got, mcptest.Hostile(pad))
		}
		for _, pad := range []int{0, 40_000, 100_000, 700_000, full(2 << 20)} {
			args := fmt.Sprintf(`{"pad":%d}`, pad)
			inline("inline", call(t, a, "whole__hostile", args), pad)
			if wrote := whole["whole"].Ledger.Last(t, "hostile"); wrote.SHA256 != digest(mcptest.Hostile(pad)) {
				t.Fatalf("the server wrote something else: %+v", wrote)
			}
			r := call(t, a, "d__hostile", args)
			if pad == 0 {
				inline("under the budget", r, pad)
				continue
			}
			receipt := receiptOf(t, r)
			if n := len(r.Result()); n > 4096 {
				t.Errorf("%s: a receipt of %d bytes on the wire", era, n)
			}
			if wrote := h.d().Ledger.Last(t, "hostile"); receipt.SHA256 != wrote.SHA256 || receipt.OriginalBytes != wrote.Bytes {
				t.Errorf("%s: receipt %+v for %+v", era, receipt, wrote)
			}
			same(t, era+" paged", readBack(t, a, receipt), mcptest.Hostile(pad))
			stored[store.ID(receipt.CallID)] = pad
		}
		params := `{"name":"d__progress","arguments":{},"_meta":{"progressToken":"t"}}`
		r, err := a.RPC(background(t), "tools/call", params)
		if err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
			t.Errorf("%s: progress without a stream: %v, %.200s", era, err, r.Body)
		}
		inline("as an event", r, 0)
	}
	if err := h.Stop(); err != nil {
		t.Fatal(err)
	}
	for id, pad := range stored {
		same(t, fmt.Sprintf("in the store, pad %d", pad), fromCopy(t, h.Data, id), mcptest.Hostile(pad))
	}
}

// fromCopy reads a result out of a copy of the database, as it lies on the disk.
func fromCopy(t testing.TB, data string, id store.ID) []byte {
	t.Helper()
	copied := t.TempDir()
	files, _ := filepath.Glob(filepath.Join(data, "mcphubd.db*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, filepath.Base(f)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := store.OpenReader(filepath.Join(copied, "mcphubd.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := r.Get(context.Background(), id, time.Now())
	if err != nil {
		t.Fatalf("%s in the store: %v", id, err)
	}
	var b bytes.Buffer
	if _, err := r.Copy(context.Background(), &b, res.Key, 0, res.Bytes); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// answers makes a rule for each tool: this call gets exactly that result.
func answers(results map[string]string) (rules []mcptest.Rule) {
	for tool, result := range results {
		rules = append(rules, mcptest.Rule{Method: "tools/call", Tool: tool, Do: []mcptest.Step{mcptest.Result(result)}})
	}
	return rules
}

// toolsNamed is a list of plain tools.
func toolsNamed(names ...string) mcptest.Bytes {
	var list []string
	for _, n := range names {
		list = append(list, `{"name":"`+n+`","inputSchema":{"type":"object"}}`)
	}
	return mcptest.Bytes("[" + strings.Join(list, ",") + "]")
}

// passes makes each of the results the answer of a tool and compares what agents of
// both eras get, in pages where it was stored.
func passes(t *testing.T, results map[string]string) {
	t.Helper()
	var names []string
	for n := range results {
		names = append(names, n)
	}
	h := one(t, "", mcptest.Script{Tools: toolsNamed(names...), Rules: answers(results)})
	for era, agent := range eras {
		a := agent(h)
		for tool, want := range results {
			r := call(t, a, "d__"+tool, "")
			got := r.Result()
			if era == "modern" {
				got = without(got)
			}
			if len(want) > 32<<10 {
				got = readBack(t, a, receiptOf(t, r))
			}
			same(t, era+" "+tool, got, []byte(want))
		}
		if _, err := a.RPC(background(t), "tools/list", `{}`); err != nil {
			t.Errorf("%s: the session did not live on: %v", era, err)
		}
	}
}

func TestC06LargeIntegersKeepEveryDigit(t *testing.T) {
	t.Parallel()
	const numbers = `"id":9007199254740993,"big":1234567890123456787`
	passes(t, map[string]string{
		"small": `{"content":[{"type":"text","text":"ok"}],"structuredContent":{` + numbers + `}}`,
		"large": `{"content":[{"type":"text","text":"ok"}],"structuredContent":{"pad":"` + strings.Repeat("x", 300<<10) + `",` + numbers + `}}`,
	})
}

func TestC37StructuredContentIsKeptWhateverStandsBesideIt(t *testing.T) {
	t.Parallel()
	large := `{"rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":1,"v":"abc"},`, 60_000), ",") + `]}`
	passes(t, map[string]string{
		"only":    `{"content":[],"structuredContent":{"projects":[{"id":1},{"id":2}]}}`,
		"summary": `{"content":[{"type":"text","text":"returned 2 items"}],"structuredContent":{"projects":[{"id":1},{"id":2}]}}`,
		"big":     `{"content":[{"type":"text","text":"returned 60000 items"}],"structuredContent":` + large + `}`,
		"bigonly": `{"structuredContent":` + large + `,"content":[]}`,
	})
}

func TestC64UnknownBlocksPassInOrder(t *testing.T) {
	t.Parallel()
	passes(t, map[string]string{
		"blocks":  `{"content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"file:///r.pdf","name":"r","mimeType":"application/pdf","size":123},{"type":"x_future","payload":{"n":1}},{"type":"text","text":"b"}]}`,
		"untyped": `{"content":[{"text":"a"},{"type":"text","text":"b"}]}`,
		"null":    `{"content":null}`,
		"none":    `{}`,
		"future":  `{"content":[{"type":"text","text":"a","annotations":{"x":1},"_meta":{"n":9007199254740993},"future":[1.0]}],"_meta":{"k":-0},"futureTop":1e400}`,
	})
}

func TestC103ControlsAndBrokenTextPassAsTheyAre(t *testing.T) {
	t.Parallel()
	const text = `nul \u0000 middle, alone \ud83d, turned \udc00\ud800, \u2028` + "\u2028\ufeff\x7f" + ` \u001b[31m`
	const raw = "raw \xff\xfe\xc3( bytes"
	block := func(text string, times int) string {
		return `{"content":[{"type":"text","text":"` + strings.Repeat(text, times) + `"}]}`
	}
	passes(t, map[string]string{
		"small": block(text, 1), "large": block(text, 1<<20/len(text)),
		"rawsmall": block(raw, 1), "rawlarge": block(raw, 1<<20/len(raw)),
	})
}

func TestC107ListAndResultsAreNotEncodedAnew(t *testing.T) {
	t.Parallel()
	const entry = `{"name":"t","description":"a <tag> & more ` + "\u2028" + `","inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number"},"m":{}},"required":["z","a"]}}`
	const result = `{"content":[{"type":"text","text":"a<b>&c` + "\u2028" + `"}],"structuredContent":{"z":1,"a":2,"m":3}}`
	listed(t, entry, result)
}

func TestC63EverythingOfAnEntryReachesTheAgent(t *testing.T) {
	t.Parallel()
	const entry = `{"name":"t","title":"T","description":"x","inputSchema":{"type":"object","$defs":{"n":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/n"}},"x-vendor":1},` +
		`"annotations":{"destructiveHint":true,"x":2},"icons":[{"src":"data:,"}],"_meta":{"anthropic/maxResultSizeChars":200000,"k":{"n":9007199254740993}},"futureField":[1]}`
	listed(t, entry, `{"content":[],"_meta":{"n":9007199254740993}}`)
}

// listed serves one entry and compares it with what stands in tools/list.
func listed(t *testing.T, entry, result string) {
	t.Helper()
	h := one(t, "", mcptest.Script{Tools: mcptest.Bytes("[" + entry + "]"), Rules: answers(map[string]string{"t": result})})
	h.awaitState(t, "d", "ready")
	want := strings.Replace(entry, `"name":"t"`, `"name":"d__t"`, 1)
	for era, agent := range eras {
		a := agent(h)
		r, err := a.RPC(background(t), "tools/list", `{}`)
		if err != nil || !bytes.Contains(r.Body, []byte(want)) {
			t.Errorf("%s: %v: the entry is not in\n%s", era, err, r.Body)
		}
		got := call(t, a, "d__t", "{}").Result()
		if era == "modern" {
			got = without(got)
		}
		same(t, era, got, []byte(result))
	}
}

// arguments that a decoder spoils.
const hostileArguments = `{ "order_id":1234567890123456789,"nested":[{"n":-9007199254740995}],"one":1.0,"zero":-0,"e":1e400, "dup":1,"dup":2,` +
	`"z":"<>&` + "\u2028" + ` \u2028 \u0000 \ud83d \/ \u0041","` + `\u0061rg":null,"b":{"c":null},"deep":[[[[[ ]]]]]	}`

func TestC07ArgumentsReachTheServerAsTheAgentWroteThem(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	n := 0
	for era, agent := range eras {
		a := agent(h)
		for _, params := range []string{
			`{"name":"d__raw","arguments":` + hostileArguments + `}`,
			`{"arguments" : ` + hostileArguments + `, "name" : "d__raw", "future":[1.0,-0] }`,
			`{"name":"d__raw","_meta":{"traceparent":"00-1","k":{"n":9007199254740993},"x":1.0},"arguments":{"big":"` + strings.Repeat("<&>", 100_000) + `","n":9007199254740993}}`,
			`{"name":"d__raw","arguments":` + "{\n\t\"order_id\":\r\n 1234567890123456789,\n\"s\":\"a\\nb\"}" + `}`,
		} {
			body, header := a.Message("7", "tools/call", params)
			if r, err := a.Post(background(t), body, header); err != nil || r.Result() == nil {
				t.Fatalf("%s: HTTP %d, %v: %.300s", era, r.Status, err, r.Body)
			}
			n++
			line := h.d().Record.Await(t, "tools/call", n)[n-1]
			got := mcptest.Members(line)["params"]
			want := bytes.Replace(mcptest.Members([]byte(body))["params"], []byte("d__raw"), []byte("raw"), 1)
			// The revision is what agent and daemon speak; this server was asked in an older one.
			want = bytes.Replace(want, []byte(`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`), nil, 1)
			if bytes.ContainsAny(want, "\r\n") { // a line cannot carry them
				if !mcptest.SameButWhiteSpace(got, want) {
					t.Errorf("%s: more than white space changed: %q", era, got)
				}
				continue
			}
			same(t, era+" params", got, want)
		}
	}
}

func TestC07AProgressTokenIsAllThatIsRewrittenInMeta(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	a := h.Agent("a")
	const params = `{"name":"d__raw","_meta":{"before":1.0,"progressToken":"mine","after":9007199254740993},"arguments":{"n":1e400}}`
	if r, err := a.RPC(background(t), "tools/call", params); err != nil || r.Result() == nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	got := mcptest.Members(h.d().Record.Await(t, "tools/call", 1)[0])["params"]
	token := mcptest.Members(mcptest.Members(got)["_meta"])["progressToken"]
	if n, err := strconv.ParseInt(string(token), 10, 64); err != nil || n < 0 || n > 1<<53 {
		t.Errorf("the server's token is %s", token)
	}
	want := strings.NewReplacer("d__raw", "raw", `"mine"`, string(token)).Replace(params)
	same(t, "params", got, []byte(want))
}
