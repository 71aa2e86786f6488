package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/config"
	"mcphubd/store"
)

// house is a real daemon's actors over servers that are not there, behind the handler.
type house struct {
	*actors.Daemon
	conf  *config.Config
	ready error
	url   string
	level string
	asked atomic.Int64 // how often for the state
}

// absent is a server that cannot be started.
type absent struct{ starts *atomic.Int64 }

func (a absent) Connect(context.Context, actors.Events) (actors.Conn, error) {
	a.starts.Add(1)
	return nil, errors.New("exit status 1")
}

func (h *house) State() any {
	h.asked.Add(1)
	return struct {
		Head
		actors.Snapshot
	}{NewHead(), h.Snapshot()}
}
func (h *house) Attached() any                               { return []string{} }
func (h *house) Config() *config.Config                      { return h.conf }
func (h *house) Ready() error                                { return h.ready }
func (h *house) URL() string                                 { return h.url }
func (h *house) Version() string                             { return "test" }
func (h *house) Restart(ctx context.Context, s string) error { return h.Hub.Restart(ctx, s) }
func (h *house) Cancel(serial int64) bool                    { return h.Hub.Cancel(serial) }
func (h *house) RemoveResult(_ context.Context, id string) error {
	if id == "x" {
		return nil
	}
	return actors.ErrNoResult
}
func (h *house) Reload(ctx context.Context) error {
	_, err := h.Hub.Reload(ctx, h.conf)
	return err
}
func (h *house) LogLevel() string { return h.level }
func (h *house) SetLogLevel(level string) error {
	if level == "loud" {
		return errors.New("no such level")
	}
	h.level = level
	return nil
}

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.toml", []byte(text), config.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// build starts actors on that configuration, with dial making their connectors.
func build(t testing.TB, conf string, dial func(config.Server) actors.Connector) *house {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcphubd.db")
	w, err := store.OpenWriter(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	r, err := store.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	h := &house{conf: parse(t, conf), level: "info"}
	h.Daemon, err = actors.Start(actors.Options{Config: h.conf, Writer: w, Reader: r, Log: zerolog.Nop(),
		Dial: func(s config.Server, _ actors.Spool) actors.Connector { return dial(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		h.Stop(ctx)
	})
	return h
}

func plainHouse(t testing.TB, conf string) *house {
	return build(t, conf, func(config.Server) actors.Connector { return absent{new(atomic.Int64)} })
}

// port serves a handler on loopback, socket on a Unix socket.
func port(t testing.TB, h http.Handler) (base string, c *http.Client) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, s.Client()
}

func socket(t testing.TB, h http.Handler) (base string, c *http.Client) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dbg")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close(); os.RemoveAll(dir) })
	return "http://localhost", &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

func send(t testing.TB, c *http.Client, method, url, key, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// eventually polls until ok, for at most a minute.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

const oneServer = "[servers.d]\ncommand = \"x\"\n"

// readPaths and actions are all there is to read and to do.
var readPaths = []string{"/debug/state", "/debug/actors", "/debug/calls", "/debug/sessions", "/debug/servers", "/debug/servers/d",
	"/debug/spool", "/debug/config", "/debug/loglevel", "/debug/pprof/", "/metrics"}

var actions = []struct{ method, path, body string }{
	{"POST", "/debug/servers/d/restart", ""}, {"POST", "/debug/calls/1/cancel", ""}, {"POST", "/debug/reload", ""}, {"DELETE", "/debug/results/x", ""},
	{"PUT", "/debug/loglevel", `{"level":"debug"}`},
}

func TestEveryPartIsReadWithoutAKey(t *testing.T) {
	base, c := port(t, New(plainHouse(t, oneServer)))
	for _, path := range readPaths {
		status, body := send(t, c, "GET", base+path, "", "")
		if status != 200 || !strings.HasPrefix(path, "/debug/pprof") && path != "/metrics" && !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	if _, body := send(t, c, "GET", base+"/debug/state", "", ""); !strings.Contains(body, `"schema": "mcphubd.debug/v1"`) {
		t.Errorf("%.200s", body)
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	src := plainHouse(t, "")
	base, c := port(t, New(src))
	if status, _ := send(t, c, "GET", base+"/readyz", "", ""); status != 200 {
		t.Errorf("ready: %d", status)
	}
	src.ready = errors.New("the store is not open")
	if status, body := send(t, c, "GET", base+"/readyz", "", ""); status != 503 || !strings.Contains(body, "the store is not open") {
		t.Errorf("not ready: %d %s", status, body)
	}
	if status, _ := send(t, c, "GET", base+"/healthz", "", ""); status != 200 {
		t.Errorf("alive but not ready: %d", status)
	}
}

func TestIndexNamesThePlacesAndOthersAreNotFound(t *testing.T) {
	base, c := port(t, New(plainHouse(t, "")))
	if status, body := send(t, c, "GET", base+"/", "", ""); status != 200 || !strings.Contains(body, "/debug/state") {
		t.Errorf("/: %d %s", status, body)
	}
	if status, _ := send(t, c, "GET", base+"/nothing", "", ""); status != 404 {
		t.Errorf("/nothing: %d", status)
	}
	if status, _ := send(t, c, "POST", base+"/debug/state", "", ""); status != 405 {
		t.Errorf("POST: %d", status)
	}
}

func TestActingNeedsTheKeyOfALinkThatWorksOnce(t *testing.T) {
	starts := new(atomic.Int64)
	src := build(t, oneServer, func(config.Server) actors.Connector { return absent{starts} })
	h := New(src)
	base, c := port(t, h)
	own, owner := socket(t, h)
	src.url = base
	for _, a := range actions {
		for _, key := range []string{"", "guess"} {
			if status, _ := send(t, c, a.method, base+a.path, key, a.body); status != 401 {
				t.Errorf("%s %s with key %q: %d", a.method, a.path, key, status)
			}
		}
	}
	if src.level != "info" {
		t.Error("the log level changed")
	}
	if status, _ := send(t, c, "POST", base+"/debug/link", "", ""); status != 401 {
		t.Errorf("a link over the port: %d", status)
	}
	_, body := send(t, owner, "POST", own+"/debug/link", "", "")
	var link struct{ URL string }
	json.Unmarshal([]byte(body), &link)
	page, code, ok := strings.Cut(link.URL, "#")
	if !ok || page != base+"/debug/" {
		t.Fatalf("the link is %s", body)
	}
	status, body := send(t, c, "POST", base+"/debug/login", "", `{"code":"`+code+`"}`)
	var got struct{ Key string }
	json.Unmarshal([]byte(body), &got)
	if status != 200 || got.Key == "" {
		t.Fatalf("login: %d %s", status, body)
	}
	if status, _ := send(t, c, "POST", base+"/debug/login", "", `{"code":"`+code+`"}`); status != 401 {
		t.Errorf("the link worked twice: %d", status)
	}
	if status, _ := send(t, c, "PUT", base+"/debug/loglevel", code, `{"level":"debug"}`); status != 401 {
		t.Errorf("the code of the link itself acts: %d", status)
	}
	for _, a := range actions {
		want := 200
		if strings.Contains(a.path, "calls") {
			want = 404 // there is none
		}
		if status, body := send(t, c, a.method, base+a.path, got.Key, a.body); status != want {
			t.Errorf("%s %s with the key: %d %s", a.method, a.path, status, body)
		}
		if status, body := send(t, owner, a.method, own+a.path, "", a.body); status != want {
			t.Errorf("%s %s by the socket: %d %s", a.method, a.path, status, body)
		}
	}
	if src.level != "debug" {
		t.Errorf("the log level is %s", src.level)
	}
	if status, body := send(t, owner, "POST", own+"/debug/servers/nobody/restart", "", ""); status != 404 {
		t.Errorf("a server that is not there: %d %s", status, body)
	}
}

func TestKeysEndWithTheirTime(t *testing.T) {
	var k keys
	now := time.Now()
	first := k.add(now, linkLife)
	if !k.has(first, now.Add(linkLife-time.Second)) || k.has(first, now.Add(linkLife)) {
		t.Error("a key lives longer or shorter than it may")
	}
	for range 200 {
		k.add(now, keyLife)
	}
	if len(k) > maxKeys || k.has(first, now) {
		t.Errorf("%d keys, and the first is still there", len(k))
	}
}

func TestATokenClosesReadingAndGivesNoRightToAct(t *testing.T) {
	h := New(plainHouse(t, "[debug]\ntoken = \"s3cret\"\n"+oneServer))
	base, c := port(t, h)
	own, owner := socket(t, h)
	for _, path := range append(readPaths, "/debug/events") {
		if status, body := send(t, c, "GET", base+path, "", ""); status != 401 || strings.Contains(body, "s3cret") {
			t.Errorf("%s without the token: %d", path, status)
		}
	}
	for _, path := range readPaths {
		if status, body := send(t, c, "GET", base+path, "s3cret", ""); status != 200 || strings.Contains(body, "s3cret") {
			t.Errorf("%s with the token: %d, or it tells the token", path, status)
		}
		if status, _ := send(t, owner, "GET", own+path, "", ""); status != 200 {
			t.Errorf("%s by the socket: %d", path, status)
		}
	}
	for _, a := range actions {
		if status, _ := send(t, c, a.method, base+a.path, "s3cret", a.body); status != 401 {
			t.Errorf("%s %s with the token: %d", a.method, a.path, status)
		}
	}
	if status, _ := send(t, c, "GET", base+"/readyz", "", ""); status != 200 {
		t.Errorf("/readyz: %d", status)
	}
}

func TestDisabledThereIsNothingOnThePort(t *testing.T) {
	h := New(plainHouse(t, "[debug]\nenabled = false\n"+oneServer))
	base, c := port(t, h)
	own, owner := socket(t, h)
	for _, path := range append(readPaths, "/debug/", "/debug/events") {
		if status, _ := send(t, c, "GET", base+path, "", ""); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, a := range actions {
		if status, _ := send(t, c, a.method, base+a.path, "", a.body); status != 404 {
			t.Errorf("%s %s: %d", a.method, a.path, status)
		}
	}
	if status, _ := send(t, owner, "GET", own+"/debug/state", "", ""); status != 200 {
		t.Errorf("the owner's commands: %d", status)
	}
}

// The hub makes connectors in its mailbox, so one whose making never ends wedges it.
func wedged(t testing.TB) *house {
	t.Helper()
	free := make(chan struct{})
	src := build(t, "", func(config.Server) actors.Connector {
		<-free
		return absent{new(atomic.Int64)}
	})
	t.Cleanup(func() { close(free) })
	src.conf = parse(t, oneServer)
	go src.Reload(context.Background())
	return src
}

func TestAWedgedActorIsShownWithAnAgeThatGrows(t *testing.T) {
	base, c := port(t, New(wedged(t)))
	var age float64
	hub := func() (doing string, age float64) {
		status, body := send(t, c, "GET", base+"/debug/state", "", "")
		var s struct {
			Actors []struct {
				ID, Doing string
				DoingNs   float64
			}
		}
		if err := json.Unmarshal([]byte(body), &s); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		for _, a := range s.Actors {
			if a.ID == "hub/root" {
				return a.Doing, a.DoingNs
			}
		}
		t.Fatal("there is no hub")
		return "", 0
	}
	eventually(t, "the hub to be stuck", func() bool {
		doing, n := hub()
		age = n
		return doing == "reload"
	})
	eventually(t, "its age to grow", func() bool { _, n := hub(); return n > age+50e6 })
	if _, body := send(t, c, "GET", base+"/debug/pprof/goroutine?debug=1", "", ""); !strings.Contains(body, `"actor":"hub/root"`) {
		t.Error("no goroutine is marked as the hub's")
	}
	for _, path := range readPaths {
		if path == "/debug/servers/d" {
			continue // the hub did not come to publish it
		}
		if status, _ := send(t, c, "GET", base+path, "", ""); status != 200 {
			t.Errorf("%s beside a stuck hub: %d", path, status)
		}
	}
}

func TestEventsComeTwiceASecondAtMostAndOnlyWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Int64
		f := feed{closed: make(chan struct{}), state: func() any { return taken.Add(1) }}
		ctx, leave := context.WithCancel(context.Background())
		var out [2]*httptest.ResponseRecorder
		done := make(chan struct{}, 2)
		for i := range out {
			out[i] = httptest.NewRecorder()
			go func() {
				f.serve(out[i], httptest.NewRequestWithContext(ctx, "GET", "/debug/events", nil))
				done <- struct{}{}
			}()
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		leave()
		<-done
		<-done
		for _, w := range out {
			n := strings.Count(w.Body.String(), "event: state\ndata: ")
			if n < 19 || n > 21 || w.Header().Get("Content-Type") != "text/event-stream" {
				t.Errorf("%d events in ten seconds", n)
			}
		}
		was := taken.Load()
		if was > 21 {
			t.Errorf("two watchers cost %d states", was)
		}
		time.Sleep(time.Hour)
		if now := taken.Load(); now != was {
			t.Errorf("%d states were taken for nobody", now-was)
		}
	})
}

func TestStreamsEndWithTheHandler(t *testing.T) {
	h := New(plainHouse(t, ""))
	base, c := port(t, h)
	res, err := c.Get(base + "/debug/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	h.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream did not end well: %v", err)
	}
}

func TestPromtoolFindsNothingInTheMetrics(t *testing.T) {
	base, c := port(t, New(plainHouse(t, oneServer)))
	status, body := send(t, c, "GET", base+"/metrics", "", "")
	for _, name := range []string{"mcphubd_servers{state=\"ready\"} 0", "mcphubd_inbox_depth{kind=\"hub\"}", "mcphubd_spool_bytes{part=\"file\"}",
		"mcphubd_fail_opens_total 0", "mcphubd_sessions 0"} {
		if !strings.Contains(body, name) {
			t.Errorf("no %s in %d bytes of HTTP %d", name, len(body), status)
		}
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed")
	}
	cmd := exec.Command(tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func TestThePageIsSmallAndHoldsToItself(t *testing.T) {
	base, c := port(t, New(plainHouse(t, "")))
	res, err := c.Get(base + "/debug/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || len(b) > 60<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	rules := res.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(rules, "default-src 'none'") || strings.Contains(rules, "unsafe") || strings.Count(rules, "'sha256-") != 2 {
		t.Errorf("the policy is %s", rules)
	}
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", " onclick=", "src=\"http", "https://"} {
		if bytes.Contains(b, []byte(bad)) {
			t.Errorf("the page holds %q", bad)
		}
	}
}
