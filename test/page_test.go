package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/jsonschema-go/jsonschema"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/browser"
)

// markup is a name that would do something if it were taken for HTML.
const markup = `<img src=x onerror="document.title='owned'">`

// lively is a daemon with something on every part of its page: servers that are up
// and one that is not, calls that ended in every way, receipts, an agent with a name
// that is markup, and a call that is in flight until the context ends.
func lively(t *testing.T, ctx context.Context) (hub, chan mcptest.Response) {
	t.Helper()
	h := start(t, "", map[string]mcptest.Script{"files": {Name: "filesystem"}, "search": {Name: "search"}, "wobbly": {}})
	for _, name := range []string{"files", "search", "wobbly"} {
		h.awaitState(t, name, "ready")
	}
	a := h.Agent("claude")
	if _, err := a.RPC(ctx, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":`+quoteJSON(markup)+`,"version":"1"}}`); err != nil {
		t.Fatal(err)
	}
	m := h.Modern("codex")
	for i := range 24 {
		for _, c := range [][2]string{{"files__echo", `{"v":"x"}`}, {"files__blob", fmt.Sprintf(`{"bytes":%d,"kind":"json"}`, 40_000<<(i%5))},
			{"search__fail", `{"v":"no"}`}, {"search__echo", `{"v":"y","ms":2}`}} {
			if i%8 > 0 && c[0] == "search__fail" {
				continue
			}
			if _, err := m.Call(ctx, c[0], c[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	slow := make(chan mcptest.Response, 1)
	go func() {
		r, _ := m.Call(ctx, "search__sleep", `{"ms":600000}`)
		slow <- r
	}()
	mcptest.Eventually(t, "the slow call to run, and it alone", func() bool {
		calls := h.state(t).Calls
		return len(calls) == 1 && calls[0].Tool == "search__sleep"
	})
	return h, slow
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// breakIt makes every later start of a server fail, with markup on stderr, and ends
// the one that runs; mend takes that back.
func breakIt(t *testing.T, h hub, name string) (mend func()) {
	t.Helper()
	path := h.servers[name].Env[mcptest.ScriptEnv]
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	bad, _ := json.Marshal(mcptest.Script{Start: []mcptest.Step{{Stderr: mcptest.Bytes(markup + "\n"), Exit: &one}}})
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range h.state(t).Servers {
		if s.Name == name {
			syscall.Kill(s.Info.PID, syscall.SIGKILL)
		}
	}
	return func() {
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	wobbly = `document.querySelector('#servers tr[data-key="wobbly"]')`
	// remember keeps, by the daemon's clock, when the page showed a state first.
	remember = `window.seen = {}; new MutationObserver(() => { seen[` + wobbly + `.dataset.state] ??= document.documentElement.dataset.at })
		.observe(document.getElementById("servers"), {subtree: true, attributes: true, attributeFilter: ["data-state"]}); true`
)

func TestTheDebugPage(t *testing.T) {
	b := browser.New(t)
	ctx := background(t)
	h, slow := lively(t, ctx)
	base := "http://" + h.Addr()
	b.Size(1320, 900, false)
	b.Do(chromedp.Navigate(base + "/debug/"))
	b.Await("the first state", `document.documentElement.dataset.ready === "1"`)
	t.Run("shows what the JSON tells", func(t *testing.T) { sameRows(t, b, h) })

	browser.Eval[bool](b, remember)
	mend := breakIt(t, h, "wobbly")
	t.Run("turns a server that crashes red, and back", func(t *testing.T) {
		b.Await("the server to turn red", wobbly+`.classList.contains("bad")`)
		first := browser.Eval[string](b, `[seen["backing-off"], seen["connecting"]].filter(Boolean).sort()[0]`) // it tries again and again
		shown, err := time.Parse(time.RFC3339Nano, first)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problemsOf(t, h) {
			if late := shown.Sub(p.Since); p.Subject == "wobbly" && late > 2*time.Second {
				t.Errorf("it was shown %s after it was down", late)
			}
		}
		b.Await("the problem", `document.querySelector('.problem[data-key="server-down wobbly"]')`)
	})
	t.Run("shows names as they are", func(t *testing.T) {
		b.Await("the client's name", `document.getElementById("sessions").textContent.includes(`+quoteJSON(markup)+`)`)
		b.Await("the cause", wobbly+`.textContent.includes("<img src=x")`)
		browser.Eval[bool](b, wobbly+`.click() || true`)
		b.Await("its stderr", `document.querySelector("#inside").textContent.includes("<img src=x")`)
		if n := browser.Eval[int](b, `document.images.length`); n > 0 || browser.Eval[string](b, `document.title`) == "owned" {
			t.Errorf("markup was taken for HTML: %d images", n)
		}
		b.Shot("detail")
		browser.Eval[bool](b, `document.getElementById("close").click() || true`)
	})
	t.Run("fits every screen", func(t *testing.T) {
		for _, dark := range []bool{false, true} {
			shade := map[bool]string{true: "dark", false: "light"}[dark]
			for _, width := range []int64{390, 800, 1320} {
				b.Size(width, 900, dark)
				b.Await("a drawing", `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
				if n := browser.Eval[int64](b, `document.documentElement.scrollWidth`); n > width {
					t.Errorf("%d px wide on a screen of %d", n, width)
				}
				b.Shot(fmt.Sprintf("%s-%d", shade, width))
			}
		}
	})
	t.Run("becomes calm when all is well", func(t *testing.T) {
		mend()
		b.Await("the server to be well", wobbly+`.dataset.state === "ready" && !`+wobbly+`.classList.contains("bad")`)
		b.Await("no problem", `document.querySelector("#problems .calm")`)
	})
	t.Run("filters, stands still and copies", func(t *testing.T) {
		browser.Eval[bool](b, `{ const f = document.getElementById("filter"); f.value = "FILES"; f.dispatchEvent(new Event("input")); true }`)
		b.Await("the others to go", wobbly+`.hidden && !document.querySelector('#servers tr[data-key="files"]').hidden`)
		browser.Eval[bool](b, `{ const f = document.getElementById("filter"); f.value = ""; f.dispatchEvent(new Event("input")); document.getElementById("pause").click(); true }`)
		at := browser.Eval[string](b, `document.documentElement.dataset.at`)
		for range 2 { // later states there are, and the page does not ask for them
			h.state(t)
		}
		if now := browser.Eval[string](b, `document.documentElement.dataset.at`); now != at {
			t.Errorf("it went on from %s to %s", at, now)
		}
		browser.Eval[bool](b, `document.getElementById("copy").click() || true`)
		text := browser.Eval[string](b, `document.getElementById("markdown").value`)
		for _, part := range []string{"# mcphubd ", "| files | ready |", "| wobbly | ready |", "search\\_\\_sleep", "| hub/root |"} {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in\n%s", part, text)
			}
		}
		browser.Eval[bool](b, `document.getElementById("close").click() || document.getElementById("pause").click() || true`)
	})
	t.Run("acts with the key of a link, and not without", func(t *testing.T) { actOn(t, b, h, slow) })
	refused := func(e string) bool { // the browser says so of every answer that is a refusal
		return strings.HasPrefix(e, "Failed to load resource: ") && strings.HasSuffix(e, "/debug/reload")
	}
	if errors := slices.DeleteFunc(b.Errors(), refused); len(errors) > 0 {
		t.Errorf("the page complained: %q", errors)
	}
	if foreign := b.Foreign(base); len(foreign) > 0 {
		t.Errorf("the page asked elsewhere: %q", foreign)
	}
}

// rowsOf are the keys of a table's rows.
func rowsOf(b *browser.Tab, table string) []string {
	return browser.Eval[[]string](b, `[...document.querySelectorAll("#`+table+` tbody tr")].map(r => r.dataset.key)`)
}

func sameRows(t *testing.T, b *browser.Tab, h hub) {
	var s struct {
		Servers  []struct{ Name string }
		Sessions []struct{ Agent string }
		Actors   []struct{ ID string }
		Calls    []struct{ Serial int64 }
		Recent   []struct{ Serial int64 }
	}
	_, body, err := h.Get("/debug/state")
	if err != nil || json.Unmarshal(body, &s) != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, v := range s.Servers {
		want["servers"] = append(want["servers"], v.Name)
	}
	for _, v := range s.Sessions {
		want["sessions"] = append(want["sessions"], v.Agent)
	}
	for _, v := range s.Actors {
		want["actors"] = append(want["actors"], v.ID)
	}
	for _, v := range s.Calls {
		want["calls"] = append(want["calls"], fmt.Sprint(v.Serial))
	}
	browser.Eval[bool](b, `document.getElementById("more").click() || true`)
	defer browser.Eval[bool](b, `document.getElementById("more").click() || true`)
	for _, v := range s.Recent {
		want["recent"] = append(want["recent"], fmt.Sprint(v.Serial))
	}
	for table, rows := range want {
		got := rowsOf(b, table)
		if table == "actors" { // a tree there
			slices.Sort(got)
			slices.Sort(rows)
		}
		if !reflect.DeepEqual(got, rows) {
			t.Errorf("%s: %q, the JSON has %q", table, got, rows)
		}
	}
}

func problemsOf(t *testing.T, h hub) (all []struct {
	Subject string
	Since   time.Time
}) {
	t.Helper()
	_, body, err := h.Get("/debug/state")
	var s struct{ Problems any }
	s.Problems = &all
	if err != nil || json.Unmarshal(body, &s) != nil {
		t.Fatal(err)
	}
	return all
}

func actOn(t *testing.T, b *browser.Tab, h hub, slow chan mcptest.Response) {
	pid := func() int {
		for _, s := range h.state(t).Servers {
			if s.Name == "files" && s.State == "ready" {
				return s.Info.PID
			}
		}
		return 0
	}
	press := func(row string) {
		button := `document.querySelector('` + row + ` button')`
		b.Await("a button", button)
		if asked := browser.Eval[string](b, `{ const b = `+button+`; b.click(); const asked = b.textContent; b.click(); asked }`); asked != "Really?" {
			t.Errorf("the button asks %q before it acts", asked)
		}
	}
	was := pid()
	press(`#servers tr[data-key="files"]`)
	b.Await("to be told how to get the key", `document.getElementById("toast").textContent.includes("mcphubd debug open")`)
	if now := pid(); now != was || was == 0 {
		t.Errorf("the server was restarted without a key: pid %d, then %d", was, now)
	}
	choose := func(level string) {
		browser.Eval[bool](b, `{ const l = document.getElementById("level"); l.focus(); l.value = "`+level+`"; l.dispatchEvent(new Event("change")); true }`)
	}
	choose("error")
	b.Await("the level that is", `document.getElementById("level").value === "`+h.state(t).Daemon.LogLevel+`"`)
	out, err := h.Command("debug", "open").Output()
	link := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(link, "http://"+h.Addr()+"/debug/#") {
		t.Fatalf("debug open: %v, %s", err, out)
	}
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.Await("the page", `document.documentElement.dataset.ready === "1"`)
	if at := browser.Eval[string](b, `location.href`); strings.Contains(at, "#") {
		t.Errorf("the code stays in the address: %s", at)
	}
	toast := func(text string) {
		b.Await(text, `document.getElementById("toast").textContent.includes(`+quoteJSON(text)+`)`)
	}
	choose("debug")
	toast("The log level is debug")
	if level := h.state(t).Daemon.LogLevel; level != "debug" {
		t.Errorf("the log level is %s", level)
	}
	browser.Eval[bool](b, `document.getElementById("reload").click() || true`)
	toast("The configuration is in force")
	good, err := os.ReadFile(h.Config)
	if err != nil {
		t.Fatal(err)
	}
	h.SetConfig(string(good) + "\n[log]\nlevel = \"loud\"\n")
	browser.Eval[bool](b, `document.getElementById("reload").click() || true`)
	toast("loud")
	h.SetConfig(string(good))
	press(`#servers tr[data-key="files"]`)
	toast("is started anew")
	mcptest.Eventually(t, "another process", func() bool { now := pid(); return now != 0 && now != was })
	press(`#calls tr`)
	toast("is cancelled")
	if r := <-slow; !strings.Contains(string(r.Body), "owner") {
		t.Errorf("the agent of the cancelled call got HTTP %d %s", r.Status, r.Body)
	}
	status := browser.Eval[int](b, `key = "stale"; fetch("reload", {method: "POST", headers: headers()}).then(r => r.status)`)
	if status != 401 {
		t.Errorf("with a key that is none: HTTP %d", status)
	}
	browser.Eval[bool](b, `document.getElementById("reload").click() || true`)
	toast("mcphubd debug open")
}

// routes are all that the daemon answers besides /mcp.
var routes = []string{"GET /", "GET /healthz", "GET /readyz", "GET /debug/", "GET /debug/state", "GET /debug/actors", "GET /debug/calls",
	"GET /debug/sessions", "GET /debug/servers", "GET /debug/servers/d", "GET /debug/spool", "GET /debug/config", "GET /debug/events",
	"GET /debug/loglevel", "GET /debug/pprof/", "GET /debug/pprof/heap", "GET /metrics", "POST /debug/login", "POST /debug/link",
	"POST /debug/servers/d/restart", "POST /debug/calls/1/cancel", "POST /debug/reload", "PUT /debug/loglevel", "GET /nothing"}

func TestC41NoRouteAnswersAForeignHostOrOrigin(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		for _, head := range []map[string]string{{"Host": "evil.example"}, {"Host": "evil.example:" + portOf(h.Addr())},
			{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "https://" + h.Addr()}} {
			r, err := http.NewRequest(method, "http://"+h.Addr()+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range head {
				r.Header.Set(name, value)
			}
			if head["Host"] != "" {
				r.Host = head["Host"]
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 403 || res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with %v: %d", route, head, res.StatusCode)
			}
		}
	}
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

func TestActingOverThePortNeedsTheKey(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	h.awaitState(t, "d", "ready")
	before := h.state(t).Servers[0].Info.PID
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		if method == "GET" || path == "/debug/login" {
			continue
		}
		r, _ := http.NewRequest(method, "http://"+h.Addr()+path, strings.NewReader(`{"level":"debug"}`))
		r.Header.Set("Authorization", "Bearer guess")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 401 {
			t.Errorf("%s: %d", route, res.StatusCode)
		}
	}
	if now := h.state(t).Servers[0].Info.PID; now != before {
		t.Error("the server was restarted")
	}
	out, err := h.Command("server", "restart", "d").CombinedOutput() // the owner's socket
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mcptest.Eventually(t, "another process", func() bool {
		s := h.state(t).Servers[0]
		return s.State == "ready" && s.Info.PID != before
	})
}

func TestTheStateKeepsToItsSchema(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(background(t))
	defer stop()
	h, _ := lively(t, ctx)
	defer breakIt(t, h, "wobbly")()
	h.awaitState(t, "wobbly", "backing-off")
	b, err := os.ReadFile(filepath.Join("..", "transport", "debug", "state.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, err := h.Get("/debug/state")
	if err != nil {
		t.Fatal(err)
	}
	var state any
	if err := json.Unmarshal(body, &state); err != nil {
		t.Fatal(err)
	}
	var open jsonschema.Schema
	if err := json.Unmarshal(b, &open); err != nil {
		t.Fatal(err)
	}
	check := func(what string, s *jsonschema.Schema) {
		r, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(state); err != nil {
			t.Errorf("%s: %v\n%.2000s", what, err, body)
		}
	}
	check("as it is", &open)
	closeAll(&open)
	check("with nothing that is not described", &open)
}

// closeAll forbids members that a schema does not name.
func closeAll(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 && s.AdditionalProperties == nil {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	for _, p := range s.Properties {
		closeAll(p)
	}
	for _, d := range s.Defs {
		closeAll(d)
	}
	closeAll(s.Items)
}

func TestTheStateTellsHowAnAgentIsAttachedAndByWhichProcess(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	type attached struct {
		Agent, Transport, Protocol, Client, Version string
		PID                                         int
	}
	var s struct {
		Daemon   struct{ Socket string }
		Attached []attached
	}
	read := func() {
		if _, body, err := h.Get("/debug/state"); err != nil || json.Unmarshal(body, &s) != nil {
			t.Fatal(err)
		}
	}
	read()
	near := mcptest.NewAgent(h.URL("near"))
	near.HTTP = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Daemon.Socket)
	}}}
	for _, a := range []*mcptest.Agent{near, mcptest.NewAgent(h.URL("far"))} {
		t.Cleanup(a.Close)
		if _, err := a.Init(background(t), "2025-06-18"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Modern("new").Call(background(t), "d__echo", "{}"); err != nil {
		t.Fatal(err)
	}
	read()
	if want := []attached{{"near", "socket", "2025-06-18", "mcptest", "1", os.Getpid()}, {"far", "http", "2025-06-18", "mcptest", "1", 0},
		{"new", "http", mcptest.Modern, "mcptest", "1", 0}}; !reflect.DeepEqual(s.Attached, want) {
		t.Errorf("attached %+v, want %+v", s.Attached, want)
	}
}

func TestPromtoolFindsNothingInTheMetricsOfABusyDaemon(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no promtool: apt-get install prometheus")
	}
	ctx, stop := context.WithCancel(background(t))
	defer stop()
	h, _ := lively(t, ctx)
	_, body, err := h.Get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`mcphubd_calls_total{outcome="ok",server="files"} 48`, `mcphubd_call_errors_total{server="search"} 3`,
		`mcphubd_receipts_total{server="files"} 24`, `mcphubd_call_duration_seconds_count{server="files"} 48`, `mcphubd_calls_in_flight 1`,
		`mcphubd_servers{state="ready"} 3`, `mcphubd_sessions 2`, `mcphubd_stored_results_total 24`} {
		if !strings.Contains(string(body), "\n"+line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	cmd := exec.Command(tool, "check", "metrics")
	cmd.Stdin = bytes.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func TestEventsCarryTheState(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	res, err := http.Get("http://" + h.Addr() + "/debug/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	head := make([]byte, 60)
	if _, err := io.ReadFull(res.Body, head); err != nil || !strings.HasPrefix(string(head), "event: state\ndata: {\"schema\":\"mcphubd.debug/v1\"") {
		t.Errorf("%v: %q", err, head)
	}
	if err := h.Stop(); err != nil { // an open stream does not hold up the end
		t.Errorf("stop: %v", err)
	}
}
