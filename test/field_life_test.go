package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

func TestC09CallsOfADeadServerFailWithItsLastWordsAndNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-test-AAAABBBBCCCCDDDD"
	conf, servers := tables(t, "call_timeout = \"30m\"\n", map[string]mcptest.Script{"d": {Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{
		{Gather: 3}, {Stderr: "key " + secret + "\nboom: config missing\n"}, mcptest.Exit(3)}}}}})
	conf = strings.Replace(conf, "env = {", `env = { API_KEY = "`+secret+`",`, 1)
	h := hub{mcptest.StartDaemon(t, conf), servers}
	a := h.Agent("a")
	pid := pidOf(t, a, "d__pid")
	err := all(3, func(int) error {
		r, err := a.Call(background(t), "d__sleep", "{}")
		for _, want := range []string{"d", "exit status 3", "boom: config missing", "not repeated"} {
			if err == nil && (!r.IsError() || !strings.Contains(r.Text(), want)) {
				err = fmt.Errorf("the answer lacks %q: %s", want, r.Body)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	mcptest.Eventually(t, "a new process to answer", func() bool {
		r, err := a.Call(background(t), "d__pid", "{}")
		return err == nil && !r.IsError() && r.Text() != pid
	})
	_, debug, _ := h.Get("/debug/state")
	for where, text := range map[string]string{"the log": h.Log(), "the debug state": string(debug)} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in %s", where)
		}
	}
	if n := len(h.d().Record.Of("tools/call")); n < 4 {
		t.Errorf("the server saw %d calls", n)
	}
}

func TestC09AServerThatDiesBeforeTheHandshakeSaysWhy(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{Start: []mcptest.Step{{Stderr: "no key was given\n"}, mcptest.Exit(4)}})
	r := call(t, h.Agent("a"), "d__echo", "{}")
	for _, want := range []string{"d__echo", "exit status 4", "no key was given", "next try in"} {
		if !r.IsError() || !strings.Contains(r.Text(), want) {
			t.Errorf("the answer lacks %q: %s", want, r.Body)
		}
	}
}

func TestC10AStoppedDaemonLeavesNoWorkerOfAWrapper(t *testing.T) {
	t.Parallel()
	worker := mcptest.NewServer(t, mcptest.Script{IgnoreEOF: true, IgnoreTERM: true,
		Start: []mcptest.Step{{Fork: &mcptest.Helper{Seconds: 600, IgnoreTERM: true}}}})
	exe := worker.Command
	worker.Command, worker.Args = "/bin/sh", []string{"-c", `exec 3<&0; "` + exe + `" <&3 & wait`}
	h := hub{mcptest.StartDaemon(t, worker.TOML("d")), nil}
	for range 3 {
		a := h.Modern("a")
		echo(t, a, "d__echo")
		if pid, _ := strconv.Atoi(pidOf(t, a, "d__pid")); proc.Group(pid) == pid {
			t.Error("the worker is not behind a wrapper")
		}
		kids := h.Children()
		if len(kids) < 3 {
			t.Errorf("wrapper, worker and helper are %v", kids)
		}
		if err := h.Stop(); err != nil {
			t.Fatal(err)
		}
		mcptest.Eventually(t, "all processes to be gone", func() bool { return !slices.ContainsFunc(kids, proc.Alive) })
		h.StartAgain()
	}
}

// TestC10AStopInTheMiddleOfAStartLeavesNobody: the wrapper dies with the daemon, and
// what it had just started must not outlive both.
func TestC10AStopInTheMiddleOfAStartLeavesNobody(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	worker := mcptest.NewServer(t, mcptest.Script{IgnoreEOF: true, IgnoreTERM: true, Start: []mcptest.Step{{Touch: started}},
		Rules: []mcptest.Rule{{Method: "initialize"}}})
	exe := worker.Command
	worker.Command, worker.Args = "/bin/sh", []string{"-c", `exec 3<&0; "` + exe + `" <&3 & wait`}
	h := hub{mcptest.NewDaemon(t, worker.TOML("d")), nil}
	for round := range 12 {
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		if round%3 == 0 { // else the stop comes before, while or after the worker is forked
			mcptest.Eventually(t, "the worker to run", func() bool { return os.Remove(started) == nil })
		}
		if err := h.Stop(); err != nil {
			t.Fatal(err)
		}
		mcptest.Eventually(t, "everybody to be gone", func() bool { return len(inHome(h.Home)) == 0 })
	}
}

func TestC12ServersThatNeverAnswerHoldUpNobody(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, in the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	conf, servers := tables(t, "connect_timeout = \"10m\"\n", map[string]mcptest.Script{"d1": {}, "d2": {}})
	conf += "\n[servers.d3]\nurl = \"http://" + silent.Addr().String() + "/mcp\"\n" +
		"[servers.d4]\ncommand = \"sleep\"\nargs = [\"1000\"]\n" +
		"[servers.d5]\nurl = \"http://192.0.2.1:9/mcp\"\n"
	h := hub{mcptest.StartDaemon(t, conf), servers}
	if r, err := h.Agent("first").RPC(background(t), "tools/list", "{}"); err != nil || r.Result() == nil {
		t.Errorf("a list at once: %v, %s", err, r.Body)
	}
	h.awaitState(t, "d1", "ready")
	h.awaitState(t, "d2", "ready")
	for range 10 {
		// To wait for a server that connects would end in the agent's own timeout.
		a := mcptest.NewAgent(h.URL("a"))
		a.Timeout = mcptest.Patience
		defer a.Close()
		if _, err := a.Init(background(t), mcptest.Legacy); err != nil {
			t.Fatal(err)
		}
		r, err := a.RPC(background(t), "tools/list", "{}")
		if err != nil || !strings.Contains(string(r.Body), `"d1__echo"`) || !strings.Contains(string(r.Body), `"d2__echo"`) {
			t.Fatalf("%v: %.300s", err, r.Body)
		}
		echo(t, a, "d1__echo")
	}
	for _, s := range h.state(t).Servers {
		switch up := s.Name == "d1" || s.Name == "d2"; {
		case up && s.State != "ready", !up && s.State != "connecting" && s.State != "backing-off":
			t.Errorf("%s is %s", s.Name, s.State)
		case s.State == "backing-off" && (s.Cause == "" || s.NextTry.IsZero()):
			t.Errorf("%s is backing off without a reason or a next try: %+v", s.Name, s)
		}
	}
}

func TestC26AgentsThatGoAwayHurtNobodyElse(t *testing.T) {
	t.Parallel()
	end := filepath.Join(t.TempDir(), "end")
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep", Do: []mcptest.Step{{Wait: end}, {Default: true}}}}})
	echo(t, h.Agent("legacy"), "d__echo")
	calm, pid := h.Goroutines(), h.PID()
	a := h.Modern("a")
	body, header := a.Message("1", "tools/call", `{"name":"d__sleep","arguments":{}}`)
	var patient, leaving []*mcptest.Wire
	for i := range 100 {
		w := dial(t, a)
		if err := w.Post(a, body, header); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			leaving = append(leaving, w)
			continue
		}
		patient = append(patient, w)
	}
	h.d().Record.Await(t, "tools/call", 101)
	for i, w := range leaving {
		switch i % 3 {
		case 0:
			_ = w.Reset()
		case 1:
			_ = w.Close()
		case 2:
			_ = w.HalfClose()
		}
	}
	leaveInTheHandshake(t, h)
	leaveTheStream(t, h)
	h.d().Record.Await(t, "notifications/cancelled", len(leaving))
	touch(t, end)
	for i, w := range patient {
		if r, err := w.Response(); err != nil || r.Text() != "slept" {
			t.Errorf("agent %d that stayed: %v, %.200s", i, err, r.Body)
		}
		_ = w.Close()
	}
	if h.PID() != pid || h.Gone() {
		t.Error("the daemon died")
	}
	for _, w := range leaving {
		_ = w.Close()
	}
	mcptest.Eventually(t, "the goroutines to go", func() bool {
		const standing = 20 // of the few sessions, names and connections that are still there
		return h.Goroutines() <= calm+standing
	})
}

func dial(t testing.TB, a *mcptest.Agent) *mcptest.Wire {
	t.Helper()
	w, err := a.Dial(background(t))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// leaveInTheHandshake drops connections in the middle of initialize.
func leaveInTheHandshake(t *testing.T, h hub) {
	t.Helper()
	a := mcptest.NewAgent(h.URL("gone"))
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for i := range 6 {
		w := dial(t, a)
		request := w.Request(a, body, nil)
		_, _ = w.Write(request[:len(request)*(i+1)/6])
		_ = w.Reset()
	}
}

// leaveTheStream closes standing streams while news is sent on them.
func leaveTheStream(t *testing.T, h hub) {
	t.Helper()
	for range 3 {
		a := h.Agent("stream")
		s, err := a.Listen(background(t))
		if err != nil {
			t.Fatal(err)
		}
		call(t, a, "d__changed", `{"n":3}`)
		_ = s.Close()
	}
}

func TestC26AnAgentOfAnOlderRevisionFindsItsResultAfterTheConnectionBroke(t *testing.T) {
	t.Parallel()
	end := filepath.Join(t.TempDir(), "end")
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "blob", Do: []mcptest.Step{{Wait: end}, {Default: true}}}}})
	a := h.Agent("a")
	w := dial(t, a)
	body, header := a.Message("1", "tools/call", `{"name":"d__blob","arguments":{"bytes":100000}}`)
	if err := w.Post(a, body, header); err != nil {
		t.Fatal(err)
	}
	h.d().Record.Await(t, "tools/call", 1)
	_ = w.Reset()
	touch(t, end)
	mcptest.Eventually(t, "the result to be stored", func() bool { return h.state(t).Spool.Results == 1 })
	if n := len(h.d().Record.Of("notifications/cancelled")); n != 0 {
		t.Errorf("a dropped connection of an older revision cancelled %d calls", n)
	}
}

func TestC30AServerInBackoffFailsCallsAtOnceAndASlowStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	conf, servers := tables(t, "connect_timeout = \"10m\"\n", map[string]mcptest.Script{"slow": {Rules: []mcptest.Rule{{Method: "initialize", Do: []mcptest.Step{{Wait: started}, {Default: true}}}}}})
	h := hub{mcptest.StartDaemon(t, conf+"\n[servers.dies]\ncommand = \"sh\"\nargs = [\"-c\", \"exit 1\"]\n"), servers}
	a := h.Agent("a")
	answers := make(chan error, 3)
	for range cap(answers) {
		go func() {
			r, err := a.Call(background(t), "slow__echo", `{"v":"x"}`)
			if err == nil && r.Text() != "x" {
				err = fmt.Errorf("a call that waited for the start got %s", r.Body)
			}
			answers <- err
		}()
	}
	h.awaitState(t, "dies", "backing-off")
	for range 50 { // many calls do not make many tries
		r := call(t, a, "dies__x", "{}")
		if !r.IsError() || !strings.Contains(r.Text(), "exit status 1") && !strings.Contains(r.Text(), "connecting") {
			t.Errorf("a server that dies: %s", r.Body)
		}
	}
	touch(t, started)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	for _, s := range h.state(t).Servers {
		if s.Name == "slow" && s.Starts != 1 || s.Name == "dies" && s.Starts > 15 {
			t.Errorf("%s was started %d times", s.Name, s.Starts)
		}
	}
}

func TestC79HandshakesThatNeverEndLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{IgnoreEOF: true, Rules: []mcptest.Rule{{Method: "initialize"}}}, `connect_timeout = "100ms"`)
	starts := func() int { return h.state(t).Servers[0].Starts }
	mcptest.Eventually(t, "a second try", func() bool { return starts() >= 2 })
	fds, threads := len(proc.FDs(h.PID())), h.Goroutines()
	mcptest.Eventually(t, "a sixth try", func() bool { return starts() >= 6 })
	h.awaitState(t, "d", "backing-off")
	mcptest.Eventually(t, "descriptors, goroutines and children to be as before", func() bool {
		return len(proc.FDs(h.PID())) <= fds && h.Goroutines() <= threads && len(h.Children()) <= 2
	})
}

func TestC79WithoutDescriptorsAttachedAgentsGoOn(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	a := h.Agent("a")
	w := dial(t, a) // one connection, whatever happens
	body, header := a.Message("1", "tools/call", `{"name":"d__echo","arguments":{"v":"still here"}}`)
	answers := func() {
		t.Helper()
		if err := w.Post(a, body, header); err != nil {
			t.Fatal(err)
		}
		if r, err := w.Response(); err != nil || r.Text() != "still here" {
			t.Fatalf("%v: %.300s", err, r.Body)
		}
	}
	answers()
	low := uint64(len(proc.FDs(h.PID())) + 4)
	var was unix.Rlimit
	if err := unix.Prlimit(h.PID(), unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(h.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: low, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	var crowd []net.Conn
	for range 40 {
		c, err := net.Dial("tcp", h.Addr())
		if err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, c)
	}
	mcptest.Eventually(t, "the daemon to have no descriptor left", func() bool { return len(proc.FDs(h.PID())) >= int(low) })
	for range 20 {
		answers()
	}
	for _, c := range crowd {
		_ = c.Close()
	}
	echo(t, h.Agent("b"), "d__echo")
}

func TestC80AResultIsNotHeldBackByTheEndOfItsServer(t *testing.T) {
	t.Parallel()
	helper := filepath.Join(t.TempDir(), "helper")
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "sleep"},
		{Method: "tools/call", Tool: "echo", Do: []mcptest.Step{{Fork: &mcptest.Helper{Seconds: 3600, PIDFile: helper}}, {Default: true}, mcptest.Exit(0)}},
	}})
	a := h.Agent("a")
	waiting := make(chan mcptest.Response, 1)
	go func() {
		r, _ := a.Call(background(t), "d__sleep", "{}")
		waiting <- r
	}()
	h.d().Record.Await(t, "tools/call", 1)
	echo(t, a, "d__echo")
	if r := <-waiting; !r.IsError() || !strings.Contains(r.Text(), "exit status 0") {
		t.Errorf("the call in flight: %s", r.Body)
	}
	b, err := os.ReadFile(helper)
	pid, _ := strconv.Atoi(string(b))
	if err != nil || pid == 0 {
		t.Fatalf("no helper was forked: %v", err)
	}
	mcptest.Eventually(t, "the helper to be gone", func() bool { return !proc.Alive(pid) })
}
