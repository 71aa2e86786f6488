package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// TestC85NothingOnTheWireIsOverTheBudget: the value as the agent gets it, with what
// its revision adds, whatever this daemon makes up; budgets around the least.
func TestC85NothingOnTheWireIsOverTheBudget(t *testing.T) {
	t.Parallel()
	results := map[string]string{
		"quotes":   textResult(strings.Repeat(`"`, 8000)),
		"controls": `{"content":[{"type":"text","text":"` + strings.Repeat(`\u0001`, 8000) + `"}]}`,
		"slashes":  textResult(strings.Repeat(`\`, 8000)),
		"angles":   textResult(strings.Repeat("<", 8000)),
		"accents":  textResult(strings.Repeat("é", 8000)),
		"error":    `{"content":[{"type":"text","text":"` + strings.Repeat(`\u001b[31m`, 9000) + `"}],"isError":true}`,
		"media":    `{"content":[{"type":"text","text":"t"},{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("QUJD", 9000) + `"}]}`,
		"meta":     `{"content":[{"type":"text","text":"` + strings.Repeat("x", 9000) + `"}],"_meta":{"k":"` + strings.Repeat("m", 400) + `"}}`,
	}
	script := mcptest.Script{Tools: toolsNamed("quotes", "controls", "slashes", "angles", "accents", "error", "media", "meta"), Rules: answers(results)}
	for _, budget := range []int{512, 536, 4096, 10000} {
		h := one(t, fmt.Sprintf("response_budget = \"%dB\"\n", budget), script)
		for era, agent := range eras {
			a := agent(h)
			fits := func(what string, r mcptest.Response) {
				if n := len(r.Result()); n > budget {
					t.Errorf("%s %s: %d bytes in a budget of %d: %.300s", era, what, n, budget, r.Result())
				}
			}
			id := ""
			for what := range results {
				r := call(t, a, "d__"+what, "{}")
				if len(results[what]) > budget {
					fits(what, r)
				}
				if receipt, ok := mcptest.ReceiptOf(r.Result()); ok {
					id = receipt.CallID
				}
			}
			for _, args := range []string{`{"callId":"` + id + `"}`, `{"callId":"` + id + `","cursor":7777}`, `{"callId":"` + id + `","cursor":-1}`,
				`{"callId":"` + id + `","cursor":99999999}`, `{"callId":"` + strings.Repeat("é", 900) + `"}`, `{}`, `{"callId":"` + id + `","cursor":"` + strings.Repeat("x", 900) + `"}`} {
				fits("page "+args, call(t, a, mcptest.GetTool, args))
			}
		}
	}
}

// TestC13ASnapshotAndADiffAreUsableWithDefaultSettings: what the client gets shows both
// ends, the size and how to go on, and all of it can be fetched.
func TestC13ASnapshotAndADiffAreUsableWithDefaultSettings(t *testing.T) {
	t.Parallel()
	var snapshot, diff strings.Builder
	for i := 0; snapshot.Len() < 540<<10; i++ {
		fmt.Fprintf(&snapshot, "- button \"b%d\" [ref=e%d]:\n  - text: é %d\n", i, i, i)
	}
	for i := range 36_000 {
		fmt.Fprintf(&diff, "%c line %d\n", "+- "[i%3], i)
	}
	texts := map[string]string{"snapshot": snapshot.String(), "diff": diff.String()}
	h := one(t, "", mcptest.Script{Tools: toolsNamed("snapshot", "diff"),
		Rules: answers(map[string]string{"snapshot": textResult(texts["snapshot"]), "diff": textResult(texts["diff"])})})
	for era, agent := range eras {
		a := agent(h)
		for name, text := range texts {
			r := call(t, a, "d__"+name, "{}")
			receipt := receiptOf(t, r)
			want := textResult(text)
			if r.IsError() || len(r.Result()) > 32<<10 || receipt.OriginalBytes != int64(len(want)) || receipt.Lines != int64(strings.Count(text, "\n")) {
				t.Errorf("%s %s: %d bytes: %.600s", era, name, len(r.Result()), r.Result())
			}
			head, tail, cut := strings.Cut(receipt.Preview, "\n[… ")
			if _, tail, _ = strings.Cut(tail, " …]\n"); !cut || len(head) < 500 || len(tail) < 200 || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
				t.Errorf("%s %s: preview %q", era, name, receipt.Preview)
			}
			if !strings.Contains(receipt.NextAction, receipt.CallID) || !strings.Contains(receipt.NextAction, `"lines":"1-200"`) {
				t.Errorf("%s %s: %s", era, name, receipt.NextAction)
			}
			same(t, era+" "+name, readBack(t, a, receipt), []byte(want))
		}
	}
}

// TestC14NoAnswerIsOverTheAgentsBytesOrLines: neither the first one nor a page, and all
// of it can be read. Who has no such bound gets the lines as they are.
func TestC14NoAnswerIsOverTheAgentsBytesOrLines(t *testing.T) {
	t.Parallel()
	const most = 256
	texts := map[string]string{
		"lines": strings.Repeat("ab\n", 3000), "line": strings.Repeat("x", 1<<20), "many": strings.Repeat("some text\n", 20_000),
		"fits": strings.Repeat("ab\n", most), "over": strings.Repeat("ab\n", most) + "c",
	}
	results := map[string]string{"error": `{"isError":true,` + textResult(texts["lines"])[1:]}
	texts["error"] = texts["lines"]
	for name, text := range texts {
		if name != "error" {
			results[name] = textResult(text)
		}
	}
	h := one(t, "", mcptest.Script{Tools: toolsNamed("lines", "line", "many", "fits", "over", "error"), Rules: answers(results)},
		"[agents.a]\nresponse_budget = \"16000B\"\nmax_lines = 256\n[agents.free]\n")
	for era, agent := range eras {
		a := agent(h)
		take := func(what string, r mcptest.Response) string {
			if n := strings.Count(strings.TrimSuffix(r.Text(), "\n"), "\n") + 1; n > most || len(r.Result()) > 16000 {
				t.Errorf("%s %s: %d lines in %d bytes", era, what, n, len(r.Result()))
			}
			return r.Text()
		}
		for name, text := range texts {
			r := call(t, a, "d__"+name, "{}")
			take(name, r)
			receipt, stored := mcptest.ReceiptOf(r.Result())
			if stored != (name != "fits") || r.IsError() != (name == "error") {
				t.Errorf("%s %s: %.300s", era, name, r.Result())
			}
			if !stored {
				continue
			}
			same(t, era+" "+name, readBack(t, a, receipt), []byte(results[name]))
			var all strings.Builder
			for args := `{"callId":"` + receipt.CallID + `","lines":"1-"}`; args != ""; {
				head, body, _ := strings.Cut(take(name+" page", call(t, a, readTool, args)), "\n")
				all.WriteString(body)
				args = ""
				if _, next, more := strings.Cut(head, "next="); more {
					args = `{"callId":"` + receipt.CallID + `","next":"` + strings.TrimSuffix(next, "]") + `"}`
				}
			}
			same(t, era+" text of "+name, []byte(all.String()), []byte(text))
		}
	}
	if r := call(t, h.Agent("free"), "d__lines", "{}"); r.Text() != texts["lines"] {
		t.Errorf("without max_lines: %.300s", r.Result())
	}
}

// TestC86HugeErrorsStayWithinTheBudget, of either kind, and can be read back.
func TestC86HugeErrorsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	trace := strings.Repeat("at a frame of the stack\\n", 400<<10/24)
	fault := `{"code":-32042,"message":"first ` + strings.Repeat("m", 2<<20) + ` last","data":"` + strings.Repeat("d", 5<<20) + `"}`
	results := map[string]string{
		"first": `{"content":[{"type":"text","text":"the cause\n` + trace + `"}],"isError":true}`,
		"last":  `{"content":[{"type":"text","text":"` + trace + `the cause"}],"isError":true,"structuredContent":{"code":"E7"}}`,
	}
	script := mcptest.Script{Tools: toolsNamed("first", "last", "rpc"), Rules: append(answers(results),
		mcptest.Rule{Method: "tools/call", Tool: "rpc", Do: []mcptest.Step{{Answer: &mcptest.Answer{Error: mcptest.Bytes(fault)}}}})}
	h := one(t, "response_budget = \"10KB\"\n", script)
	for era, agent := range eras {
		a := agent(h)
		for name, want := range results {
			r := call(t, a, "d__"+name, "{}")
			receipt := receiptOf(t, r)
			if !bytes.Contains(r.Result(), []byte(`"isError":true`)) || !strings.Contains(receipt.Preview, "the cause") ||
				!strings.Contains(receipt.Preview, "at a frame") || len(r.Result()) > 10<<10 {
				t.Errorf("%s %s: %.500s", era, name, r.Result())
			}
			same(t, era+" "+name, readBack(t, a, receipt), []byte(want))
		}
		r, err := a.Call(background(t), "d__rpc", "{}")
		if err != nil || r.Status != 200 {
			t.Fatal(r.Status, err)
		}
		var e struct {
			Error struct {
				Code    int
				Message string
				Data    map[string]struct{ CallID, SHA256 string }
			}
		}
		if err := json.Unmarshal(r.Message(), &e); err != nil || e.Error.Code != -32042 || len(r.Message()) > 10<<10+100 ||
			!strings.HasPrefix(e.Error.Message, "first m") || !strings.HasSuffix(e.Error.Message, "m last") {
			t.Errorf("%s: %v: %d bytes, %.300s", era, err, len(r.Message()), r.Message())
		}
		stored := e.Error.Data["mcphub/receipt"]
		same(t, era+" error", readBack(t, a, mcptest.Receipt{CallID: stored.CallID, SHA256: stored.SHA256}), []byte(fault))
	}
}

// TestC36MediaKeepTheirPlaceOnTheWire: with the bytes of the case.
func TestC36MediaKeepTheirPlaceOnTheWire(t *testing.T) {
	t.Parallel()
	b64 := func(n int) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb, 1, 2}, n/3+1)[:n])
	}
	result := `{"content":[{"type":"text","text":"before"},` +
		`{"type":"image","mimeType":"image/png","data":"` + b64(300<<10) + `","annotations":{"audience":["user"]}},` +
		`{"type":"audio","mimeType":"audio/wav","data":"` + b64(768<<10) + `"},` +
		`{"type":"resource","resource":{"uri":"x://1","mimeType":"application/pdf","blob":"` + b64(2304<<10) + `"}},{"type":"text","text":"after"}]}`
	h := one(t, "", mcptest.Script{Tools: toolsNamed("media"), Rules: answers(map[string]string{"media": result})})
	for era, agent := range eras {
		a := agent(h)
		r := call(t, a, "d__media", "{}")
		var v struct {
			Content []struct{ Type, Text string }
			Meta    map[string]struct {
				CallID string
				Parts  []int
			} `json:"_meta"`
		}
		if err := json.Unmarshal(r.Result(), &v); err != nil || len(v.Content) != 5 || len(r.Result()) > 32<<10 {
			t.Fatalf("%s: %v: %.800s", era, err, r.Result())
		}
		if v.Content[0].Text != "before" || v.Content[4].Text != "after" || fmt.Sprint(v.Meta["mcphub/media"].Parts) != "[1 2 3]" {
			t.Errorf("%s: %.2000s", era, r.Result())
		}
		for i, kind := range map[int]string{1: `"type":"image","mimeType":"image/png","bytes":307200,`, 2: `"type":"audio","mimeType":"audio/wav","bytes":786432,`, 3: `"type":"resource","mimeType":"application/pdf","bytes":2359296,`} {
			if v.Content[i].Type != "text" || !strings.Contains(v.Content[i].Text, kind) {
				t.Errorf("%s: block %d is %s", era, i, v.Content[i].Text)
			}
		}
		same(t, era, readBack(t, a, mcptest.Receipt{CallID: v.Meta["mcphub/media"].CallID}), []byte(result))
	}
}
