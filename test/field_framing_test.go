package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcphubd/test/bench/payload"
	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// pidOf is the process of the server that answers.
func pidOf(t testing.TB, a *mcptest.Agent, tool string) string {
	t.Helper()
	return call(t, a, tool, "{}").Text()
}

func TestC02LinesOfAnyLengthReachTheAgent(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	a := h.Agent("a")
	pid := pidOf(t, a, "d__pid")
	for _, size := range []int64{70_000, 3 << 19, int64(full(64 << 20))} {
		receipt := receiptOf(t, call(t, a, "d__blob", fmt.Sprintf(`{"bytes":%d,"kind":"text"}`, size)))
		if wrote := h.d().Ledger.Last(t, "blob"); receipt.SHA256 != wrote.SHA256 || receipt.OriginalBytes != size {
			t.Errorf("%d bytes: receipt %+v, the server wrote %+v", size, receipt, wrote)
		}
		echo(t, a, "d__echo")
		blob, err := payload.New("text", size)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int64{0, size / 3, size - 100} { // the digest covers what lies between
			page, err := a.Page(background(t), receipt.CallID, at)
			want := make([]byte, len(page.Bytes))
			if _, e := blob.ReadAt(want, at); err != nil || e != nil || len(want) == 0 {
				t.Fatalf("page at %d of %d: %v, %v", at, size, err, e)
			}
			same(t, fmt.Sprintf("page at %d of %d", at, size), page.Bytes, want)
		}
	}
	if now := pidOf(t, a, "d__pid"); now != pid {
		t.Errorf("the server was process %s and is %s", pid, now)
	}
}

func TestC02OverTheFrameLimitOnlyThatCallFails(t *testing.T) {
	t.Parallel()
	h := one(t, "max_frame = \"2MB\"\n", mcptest.Script{})
	a := h.Agent("a")
	pid := pidOf(t, a, "d__pid")
	for range 2 {
		r := call(t, a, "d__blob", `{"bytes":3000000}`)
		if !r.IsError() || !strings.Contains(r.Text(), "max_frame") || !strings.Contains(r.Text(), "2MB") {
			t.Errorf("over the limit: %.500s", r.Body)
		}
		echo(t, a, "d__echo")
	}
	if now := pidOf(t, a, "d__pid"); now != pid {
		t.Errorf("the server was process %s and is %s", pid, now)
	}
}

func TestC02AHugeToolListInOneLineIsListedWhole(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 800 {
		list = append(list, fmt.Sprintf(`{"name":"t%03d","description":"%s","inputSchema":{"type":"object"}}`, i, strings.Repeat("x", 3900)))
	}
	h := one(t, "", mcptest.Script{Tools: mcptest.Bytes("[" + strings.Join(list, ",") + "]")})
	h.awaitState(t, "d", "ready")
	r, err := h.Agent("a").RPC(background(t), "tools/list", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range list {
		if want := strings.Replace(entry, `"t`, `"d__t`, 1); !bytes.Contains(r.Body, []byte(want)) {
			t.Fatalf("entry %d is not listed as it was written", i)
		}
	}
}

func TestC20AServerThatLogsWithoutEndIsNeverBlocked(t *testing.T) {
	t.Parallel()
	line := mcptest.Bytes(strings.Repeat("x", 1023) + "\n")
	h := one(t, "", mcptest.Script{
		Start: []mcptest.Step{{Stderr: line, Repeat: 1 << 10}},
		Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{
			{Stderr: line, Repeat: 10 << 10},
			{Stderr: mcptest.Bytes(strings.Repeat("y", 64<<10)), Repeat: 80},
			{Stderr: "\xff\xfe not UTF-8 \xc3("}, {Default: true}}}},
	})
	a := h.Agent("a")
	for range 3 {
		call(t, a, "d__sleep", "{}")
		echo(t, a, "d__echo")
	}
	if n := len(h.Log()); n > 256<<10 {
		t.Errorf("the log has %d bytes", n)
	}
	if peak := proc.PeakRSS(h.PID()); !raced && peak > 64<<20 {
		t.Errorf("the daemon took %d MiB of memory", peak>>20)
	}
	call(t, a, "d__echo", `{"v":"a state that is valid JSON in UTF-8"}`)
	if _, body, err := h.Get("/debug/state"); err != nil || !json.Valid(body) || len(body) > 512<<10 {
		t.Errorf("the state has %d bytes: %v", len(body), err)
	}
}

func TestC21NoiseOnStdoutReachesNoAgent(t *testing.T) {
	t.Parallel()
	const banner = "Loading tools...\n\n{\"level\":\"info\",\"msg\":\"ready\"}\n[1,2]\n\x1b[32mgreen\x1b[0m\n" +
		`{"jsonrpc":"2.0","id":12345678901,"result":{"content":[{"type":"text","text":"noise"}]}}` + "\n"
	h := one(t, "", mcptest.Script{
		Start: []mcptest.Step{{Write: banner}},
		Rules: []mcptest.Rule{{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{
			{Write: "debug: noise\n", Repeat: 40}, {Write: `{"jsonrpc":"2.0","id":$ID,"resu` + "\n"}, {Default: true}}}},
	})
	a := h.Agent("a")
	r, err := a.Call(background(t), "d__echo", `{"v":"x"}`)
	// The cut line carries the id of the call: it may be taken for its answer, or for noise.
	if err != nil || bytes.Contains(r.Body, []byte("debug: noise")) {
		t.Errorf("%v: %s", err, r.Body)
	}
	if got := call(t, a, "d__raw", "{}"); bytes.Contains(got.Body, []byte("noise")) {
		t.Errorf("noise in %s", got.Body)
	}
	var shown struct {
		Noise      int64
		FirstNoise string
	}
	mcptest.Eventually(t, "the noise to be counted", func() bool {
		_, body, err := h.Get("/debug/servers/d")
		return err == nil && json.Unmarshal(body, &shown) == nil && shown.Noise >= 40
	})
	if shown.FirstNoise != "Loading tools..." {
		t.Errorf("the debug endpoint shows %+v", shown)
	}
	if list, err := a.RPC(background(t), "tools/list", "{}"); err != nil || !bytes.Contains(list.Body, []byte("d__echo")) {
		t.Errorf("%v: %.300s", err, list.Body)
	}
}

func TestC28ALongCallHoldsUpNobody(t *testing.T) {
	t.Parallel()
	end := filepath.Join(t.TempDir(), "end")
	h := one(t, "response_budget = \"0\"\n", mcptest.Script{Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{{Wait: end}, {Default: true}}}}})
	a := h.Agent("a")
	a.Timeout = 5 * time.Minute // one call lasts as long as all others together
	long := make(chan mcptest.Response, 1)
	go func() {
		r, _ := a.Call(background(t), "d__sleep", "{}")
		long <- r
	}()
	h.d().Record.Await(t, "tools/call", 1)
	for _, other := range []*mcptest.Agent{a, h.Agent("b"), h.Modern("c")} {
		for range 30 {
			echo(t, other, "d__echo")
		}
		if _, err := other.RPC(background(t), "tools/list", "{}"); err != nil {
			t.Error(err)
		}
	}
	if r, err := a.RPC(background(t), "ping", "{}"); err != nil || r.Result() == nil {
		t.Errorf("ping: %v, %s", err, r.Body)
	}
	err := all(64, func(i int) error {
		v := fmt.Sprintf("%04d%s", i, strings.Repeat("a", 200<<10))
		r, err := a.Call(background(t), "d__echo", `{"v":"`+v+`"}`)
		if err == nil && r.Text() != v {
			err = fmt.Errorf("call %d got %.100s", i, r.Body)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	select {
	case r := <-long:
		t.Errorf("the long call ended before it was let: %s", r.Body)
	default:
	}
	touch(t, end)
	if r := <-long; r.Text() != "slept" {
		t.Errorf("the long call got %s", r.Body)
	}
	for _, line := range h.d().Record.All() {
		if !json.Valid(line) {
			t.Fatalf("a line that is not JSON: %.200q", line)
		}
	}
}

func TestC33AServerThatStopsReadingHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	conf, _ := tables(t, "response_budget = \"0\"\n", map[string]mcptest.Script{"slow": {ReadBytes: 64 << 10, ReadMS: 1}, "e": {}})
	stopped := filepath.Join(t.TempDir(), "stopped")
	stops := mcptest.NewServer(t, mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{{StopReading: true}, {Touch: stopped}, {Default: true}}}}})
	h := hub{Daemon: mcptest.StartDaemon(t, conf+stops.TOML("d", `call_timeout = "5s"`))}
	a := h.Agent("a")
	five := strings.Repeat("5", 5<<20)
	if r := call(t, a, "slow__echo", `{"v":"`+five+`"}`); r.Text() != five {
		t.Errorf("5 MiB of arguments came back as %d bytes: %.200s", len(r.Body), r.Body)
	}
	call(t, a, "d__sleep", "{}")
	mcptest.Eventually(t, "the server to read no more", func() bool { _, err := os.Stat(stopped); return err == nil })
	call(t, a, "d__echo", "{}") // may be the last line that is read, or the first that is not
	stuck := make(chan mcptest.Response, 4)
	for range cap(stuck) {
		go func() {
			r, _ := a.Call(background(t), "d__echo", `{"v":"`+five[:1<<20]+`"}`)
			stuck <- r
		}()
	}
	for range 20 {
		echo(t, h.Agent("b"), "e__echo")
	}
	for range cap(stuck) {
		if r := <-stuck; !r.IsError() || !strings.Contains(r.Text(), "call_timeout") {
			t.Errorf("a call to a server that does not read: %.300s", r.Body)
		}
	}
	echo(t, a, "e__echo")
}
