package actors

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcphubd/store"
)

// receiptOf reads a receipt out of a result, from both of its halves.
func receiptOf(t *testing.T, result string) map[string]any {
	t.Helper()
	var r struct {
		Content    []struct{ Text string }
		Structured map[string]any `json:"structuredContent"`
		IsError    bool
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		t.Fatalf("%v: %.300s", err, result)
	}
	var fromText map[string]any
	if err := json.Unmarshal([]byte(r.Content[0].Text), &fromText); err != nil {
		t.Fatalf("text half: %v: %.300s", err, r.Content[0].Text)
	}
	if r.Structured != nil && fmt.Sprint(r.Structured) != fmt.Sprint(fromText) {
		t.Errorf("halves differ:\n%v\n%v", r.Structured, fromText)
	}
	return fromText
}

// readBack follows a receipt to the end as agent.
func (r *rig) readBack(ctx context.Context, agent, id string) []byte {
	r.t.Helper()
	var all []byte
	for cursor := 0; ; {
		got, err := r.call(ctx, agent, "mcphub_get_result", fmt.Sprintf(`{"callId":%q,"cursor":%d}`, id, cursor))
		if err != nil {
			r.t.Fatal(err)
		}
		p := receiptOf(r.t, got)
		if p["status"] != "ok" {
			r.t.Fatalf("page at %d: %v", cursor, p)
		}
		b, err := base64.StdEncoding.DecodeString(p["data"].(string))
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, b...)
		if p["done"] == true {
			return all
		}
		cursor = int(p["nextCursor"].(float64))
	}
}

// sized is a server whose tool answers with exactly n bytes, n being its argument.
func sized() *fakeServer {
	return &fakeServer{answer: func(_ context.Context, _ string, p []byte) (string, error) {
		var a struct{ Arguments struct{ N int } }
		if err := json.Unmarshal(p, &a); err != nil {
			return "", err
		}
		return text(a.Arguments.N - len(text(0))), nil
	}}
}

func TestC05AReceiptReadsBackWhole(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": sized()})
	for _, n := range []int{4097, 128 << 10, 256<<10 + 1, 1 << 20, 1<<20 + 1, 5_000_000} {
		got, err := r.call(t.Context(), "a", "d__echo", fmt.Sprintf(`{"N":%d}`, n))
		if err != nil {
			t.Fatal(err)
		}
		rc := receiptOf(t, got)
		want := []byte(text(n - len(text(0))))
		sum := sha256.Sum256(want)
		if rc["status"] != "stored" || rc["sha256"] != hex.EncodeToString(sum[:]) || rc["originalBytes"] != float64(n) {
			t.Errorf("receipt for %d bytes: %v", n, rc)
		}
		if len(got) > 4096 {
			t.Errorf("receipt of %d bytes", len(got))
		}
		if back := r.readBack(t.Context(), "a", rc["callId"].(string)); string(back) != string(want) {
			t.Errorf("%d bytes came back as %d, or changed", n, len(back))
		}
	}
}

func TestOnlyMoreThanTheBudgetIsStored(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer+`
[servers.d.tool.other]
response_budget = "8KB"
[agents.small]
response_budget = "1KB"
[agents.big]
[agents.default]
`, map[string]*fakeServer{"d": func() *fakeServer {
		f := sized()
		f.tools = `[{"name":"echo","inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object"}}]`
		return f
	}()})
	for _, c := range []struct {
		agent, tool string
		n           int
		stored      bool
	}{
		{"big", "d__echo", 4096, false}, {"big", "d__echo", 4097, true},
		{"big", "d__other", 8192, false}, {"big", "d__other", 8193, true},
		{"small", "d__other", 1024, false}, {"small", "d__other", 1025, true},
	} {
		r.ready("d")
		got, err := r.call(t.Context(), c.agent, c.tool, fmt.Sprintf(`{"N":%d}`, c.n))
		if err != nil {
			t.Fatal(err)
		}
		if stored := strings.Contains(got, `"mcphub/receipt"`); stored != c.stored {
			t.Errorf("%s calls %s for %d bytes: stored %v", c.agent, c.tool, c.n, stored)
		} else if !stored && len(got) != c.n {
			t.Errorf("%d bytes came as %d", c.n, len(got))
		}
	}
}

func TestNoBudgetAndVerbatimStoreNothing(t *testing.T) {
	for _, conf := range []string{`response_budget = "0"`, `verbatim = true`} {
		r := newRig(t, conf+oneServer, map[string]*fakeServer{"d": sized()})
		for _, n := range []int{100_000, 3_000_000} {
			got, err := r.call(t.Context(), "a", "d__echo", fmt.Sprintf(`{"N":%d}`, n))
			if err != nil || got != text(n-len(text(0))) {
				t.Errorf("%s: %d bytes came as %d, %v", conf, n, len(got), err)
			}
		}
		if err := r.Spool.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if u := r.Spool.Usage(); u.Results != 0 {
			t.Errorf("%s: %d results are stored", conf, u.Results)
		}
		if all, err := r.reader.List(t.Context(), "a", time.Now(), 10); err != nil || len(all) != 0 {
			t.Error(all, err)
		}
	}
}

// TestC82RetentionIsCheckedOnRead: 24 hours to the second, and what an expired id
// is told apart from.
func TestC82RetentionIsCheckedOnRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": sized()})
		got, err := r.call(t.Context(), "a", "d__echo", `{"N":5000}`)
		if err != nil {
			t.Fatal(err)
		}
		id := receiptOf(t, got)["callId"].(string)
		status := func(id string) map[string]any {
			got, err := r.call(t.Context(), "a", "get_result", `{"callId":"`+id+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			return receiptOf(t, got)
		}
		time.Sleep(24*time.Hour - time.Second)
		if s := status(id); s["status"] != "ok" {
			t.Error("a second before the end:", s)
		}
		time.Sleep(2 * time.Second)
		expired := status(id)
		if expired["status"] != "unavailable" || !strings.Contains(expired["reason"].(string), "expired") {
			t.Error("a second after the end:", expired)
		}
		time.Sleep(time.Hour) // the pruner came by
		if s := status(id); fmt.Sprint(s) != fmt.Sprint(expired) {
			t.Error("after the pruner:", s)
		}
		if s := status(string(store.NewID())); s["status"] != "unavailable" || s["reason"] == expired["reason"] {
			t.Error("an id that never was:", s)
		}
		if _, err := r.call(t.Context(), "a", "mcphub__get_result", `{"callId":"`+id+`","cursor":-1}`); err != nil {
			t.Error(err)
		}
	})
}

// TestC50ManyAgentsStoreAndReadAtOnce: no lock error reaches an agent.
func TestC50ManyAgentsStoreAndReadAtOnce(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": sized()})
	r.ready("d")
	got, err := r.call(t.Context(), "a", "d__echo", `{"N":300000}`)
	if err != nil {
		t.Fatal(err)
	}
	id := receiptOf(t, got)["callId"].(string)
	want := text(300000 - len(text(0)))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			got, err := r.call(t.Context(), fmt.Sprint("w", i), "d__echo", `{"N":1048576}`)
			if err != nil || !strings.Contains(got, `"mcphub/receipt"`) {
				t.Errorf("store: %v %.200s", err, got)
			}
		})
		wg.Go(func() {
			if back := r.readBack(t.Context(), fmt.Sprint("r", i), id); string(back) != want {
				t.Error("read back", len(back))
			}
		})
		wg.Go(func() {
			if _, err := r.Spool.Prune(t.Context(), time.Now(), 64); err != nil {
				t.Error(err)
			}
			r.Snapshot()
		})
	}
	wg.Wait()
}

// TestC51AFullStoreFailsOpen: results go to the agent whole while the store is full,
// and are stored again once there is room.
func TestC51AFullStoreFailsOpen(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"
[spool]
max_bytes = "3MB"
`+oneServer, map[string]*fakeServer{"d": sized()})
	r.ready("d")
	random := func(n int) string { return fmt.Sprintf(`{"N":%d}`, n) }
	r.servers["d"].answer = func(_ context.Context, _ string, p []byte) (string, error) {
		var a struct{ Arguments struct{ N int } }
		json.Unmarshal(p, &a)
		b := make([]byte, a.Arguments.N*3/4)
		for i := range b {
			b[i] = byte(i * i >> 3 * 7)
		}
		sum := sha256.Sum256(b)
		for i := range b { // does not compress
			if i%32 == 0 {
				sum = sha256.Sum256(sum[:])
			}
			b[i] = sum[i%32]
		}
		return `{"content":[{"type":"text","text":"` + base64.StdEncoding.EncodeToString(b) + `"}]}`, nil
	}
	var open, stored int
	for range 6 {
		got, err := r.call(t.Context(), "a", "d__echo", random(1<<20))
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.Contains(got, `"mcphub/receipt"`):
			stored++
			if open > 0 {
				t.Error("stored after the store was full")
			}
			rc := receiptOf(t, got)
			back := r.readBack(t.Context(), "a", rc["callId"].(string))
			sum := sha256.Sum256(back)
			if rc["sha256"] != hex.EncodeToString(sum[:]) {
				t.Error("a stored result changed")
			}
		default:
			open++
			if len(got) < 1<<20 {
				t.Errorf("failed open with %d bytes", len(got))
			}
		}
		if got, err := r.call(t.Context(), "a", "d__echo", random(100)); err != nil || len(got) < 100 {
			t.Error("a small call beside it:", err)
		}
	}
	if stored == 0 || open == 0 {
		t.Fatalf("%d stored, %d failed open", stored, open)
	}
	if n := r.Spool.Counts().FailedOpen; int(n) != open {
		t.Errorf("counted %d, want %d", n, open)
	}
	codes := fmt.Sprint(r.Sys.Problems().Read())
	if !strings.Contains(codes, "result-not-stored") || !strings.Contains(codes, "spool.max_bytes") {
		t.Error("problems:", codes)
	}
	// A day later everything has expired, the pruner makes room.
	r.pruneAll(time.Now().Add(25 * time.Hour))
	if got, err := r.call(t.Context(), "a", "d__echo", random(1<<20)); err != nil || !strings.Contains(got, `"mcphub/receipt"`) {
		t.Errorf("with room again: %v %.100s", err, got)
	}
}

func TestFailOpenCanBeSwitchedOff(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"
fail_open = false
[spool]
max_bytes = "16KB"
`+oneServer, map[string]*fakeServer{"d": sized()})
	_, err := r.call(t.Context(), "a", "d__echo", `{"N":2000000}`)
	if err == nil || !strings.Contains(err.Error(), "2000000 bytes exceeds the budget of 4096 bytes and could not be stored") {
		t.Error(err)
	}
}

// TestC62AbsentAndNullArgumentsAreAnEmptyObject, with the rest of params untouched.
func TestC62AbsentAndNullArgumentsAreAnEmptyObject(t *testing.T) {
	at := func(s, sub string) Range { i := strings.Index(s, sub); return Range{i, i + len(sub)} }
	for _, c := range []struct{ in, args, token, want string }{
		{`{"name":"N"}`, "", "", `{"arguments":{},"name":"x\"y"}`},
		{`{"name":"N","arguments":null}`, "null", "", `{"name":"x\"y","arguments":{}}`},
		{`{"arguments":null , "name" : "N"}`, "null", "", `{"arguments":{} , "name" : "x\"y"}`},
		{`{"name":"N","arguments":{"a":null,"b":1.0}}`, `{"a":null,"b":1.0}`, "", `{"name":"x\"y","arguments":{"a":null,"b":1.0}}`},
		{`{"_meta":{"progressToken":0,"k":1},"name":"N","arguments":{}}`, `{}`, "0", `{"_meta":{"progressToken":TOKEN,"k":1},"name":"x\"y","arguments":{}}`},
	} {
		call := Call{Params: []byte(c.in), NameAt: at(c.in, `"N"`)}
		if c.args != "" {
			call.ArgsAt = at(c.in, c.args)
		}
		if c.token != "" {
			call.TokenAt, call.Progress = at(c.in, c.token), func([]byte, Range) {}
		}
		pieces, token := splice(call, `x"y`)
		if token >= 0 {
			pieces[token] = []byte("TOKEN")
		}
		var got strings.Builder
		for _, p := range pieces {
			got.Write(p)
		}
		if got.String() != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got.String(), c.want)
		}
	}
}

func TestEveryCallIsRecordedWithoutItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": sized()})
		r.call(t.Context(), "a", "d__echo", `{"N":5000,"secret":"sk-test-AAAA"}`)
		time.Sleep(time.Millisecond) // so that they have an order
		r.call(t.Context(), "b", "d__echo", `{"N":100}`)
		time.Sleep(time.Millisecond)
		r.call(t.Context(), "b", "d__echo", `{"N":"no number"}`)
		r.call(t.Context(), "b", "d__nope", `{}`)
		time.Sleep(settleEvery)
		synctest.Wait()
		rows, err := r.reader.Calls(t.Context(), time.Time{}, 10)
		if err != nil || len(rows) != 3 {
			t.Fatal(rows, err)
		}
		last, mid, first := rows[0], rows[1], rows[2]
		if first.Agent != "a" || first.Server != "d" || first.Tool != "echo" || first.Outcome != "ok" ||
			first.ResultBytes != 5000 || !first.Stored || first.ArgBytes != int64(len(`{"N":5000,"secret":"sk-test-AAAA"}`)) {
			t.Errorf("%+v", first)
		}
		if mid.Stored || mid.ResultBytes != 100 || mid.Outcome != "ok" {
			t.Errorf("%+v", mid)
		}
		if last.Outcome != "failed" || last.Error == "" {
			t.Errorf("%+v", last)
		}
		if strings.Contains(fmt.Sprint(rows), "sk-test-AAAA") {
			t.Error("an argument was recorded")
		}
	})
}

// A legacy agent whose connection went away while the tool ran finds the result in
// the store, however small it is.
func TestAResultThatCouldNotBeDeliveredIsKept(t *testing.T) {
	r := newRig(t, `response_budget = "4KB"`+oneServer, map[string]*fakeServer{"d": sized()})
	s, err := r.Hub.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	c := callOf("d__echo", `{"N":100}`)
	gone, leave := context.WithCancel(t.Context())
	leave()
	c.Gone = gone
	if _, err := s.Call(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	all, err := r.reader.List(t.Context(), "a", time.Now(), 10)
	if err != nil || len(all) != 1 || all[0].Bytes != 100 {
		t.Error(all, err)
	}
}
