package test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcphubd/test/mcptest"
	"mcphubd/test/mcptest/proc"
)

// TestC71WhoHasThePortIsSaid, and nothing was touched before it was known.
func TestC71WhoHasThePortIsSaid(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for { // a program that speaks something else
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "220 hello\r\n")
			c.Close()
		}
	}()
	other := mcptest.StartDaemon(t, "")
	for _, c := range []struct{ addr, want string }{
		{l.Addr().String(), fmt.Sprintf("another program (%.15s, pid %d) uses the port", filepath.Base(os.Args[0]), os.Getpid())},
		{other.Addr(), fmt.Sprintf("another mcphubd (pid %d, data directory %s) uses the port", other.PID(), other.Data)},
	} {
		d := mcptest.NewDaemon(t, "listen = \""+c.addr+"\"\n")
		out, err := d.Command("serve").CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: want %q in %s", err, c.want, out)
		}
		if _, err := os.Stat(filepath.Join(d.Data, "mcphubd.db")); err == nil {
			t.Error("the store was opened before the port")
		}
	}
}

// TestC71StaleFilesNeverBlock: everything that a killed daemon leaves is there, and
// names processes that live and are somebody else's.
func TestC71StaleFilesNeverBlock(t *testing.T) {
	t.Parallel()
	d := mcptest.NewDaemon(t, "")
	socket := filepath.Join(d.Home, "s.sock")
	d.SetConfig("socket = \"" + socket + "\"\n")
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stranger.Process.Kill(); stranger.Wait() }()
	if err := os.Mkdir(d.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(stranger.Process.Pid)
	write(t, filepath.Join(d.Data, "lock"), pid)
	write(t, filepath.Join(d.Data, "start.lock"), "")
	write(t, filepath.Join(d.Data, "daemon.json"), `{"pid":`+pid+`,"socket":"`+socket+`"}`)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for range 3 {
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		d.Kill9()
	}
	if !proc.Alive(stranger.Process.Pid) {
		t.Error("a stranger was killed")
	}
	write(t, filepath.Join(d.Home, "letter"), "dear")
	d.SetConfig("socket = \"" + filepath.Join(d.Home, "letter") + "\"\n")
	if out, err := d.Command("serve").CombinedOutput(); err == nil || !strings.Contains(string(out), "is no socket") {
		t.Errorf("%v: %s", err, out)
	}
	if b, _ := os.ReadFile(filepath.Join(d.Home, "letter")); string(b) != "dear" {
		t.Error("a file was removed to make a socket")
	}
}

// stopping is a daemon with everything that can hold up its end: streams that nobody
// ends, a call that is soon over, one that is not, and a server that ignores signals.
type stopping struct {
	hub
	streams     []*mcptest.Stream
	short, long chan mcptest.Response
	end         string // lets the short call finish
	kids        []int
	a           *mcptest.Agent
}

// startStopping makes the calls of those tools: echo is soon over, sleep never is.
func startStopping(t *testing.T, conf string, tools ...string) *stopping {
	t.Helper()
	s := &stopping{short: make(chan mcptest.Response, 1), long: make(chan mcptest.Response, 1), end: filepath.Join(t.TempDir(), "end")}
	s.hub = one(t, conf, mcptest.Script{IgnoreEOF: true, IgnoreTERM: true, Rules: []mcptest.Rule{
		{Method: "tools/call", Tool: "sleep"}, {Method: "tools/call", Tool: "echo", Do: []mcptest.Step{{Wait: s.end}, {Default: true}}}}})
	for i := range 10 {
		a := s.Agent(fmt.Sprint("listener", i))
		stream, err := a.Listen(background(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stream.Close() })
		s.streams = append(s.streams, stream)
	}
	s.a = s.Agent("caller")
	to := map[string]chan mcptest.Response{"echo": s.short, "sleep": s.long}
	for _, tool := range tools {
		go func() {
			r, _ := s.a.Call(background(t), "d__"+tool, `{"v":"in time"}`)
			to[tool] <- r
		}()
	}
	s.d().Record.Await(t, "tools/call", len(tools))
	s.kids = s.Children()
	return s
}

// refusesAtOnce waits until the daemon knows that it ends, and does not accept a call
// from then on. A bridge sees a 503 and sends the same again, later.
func (s *stopping) refusesAtOnce(t *testing.T) {
	t.Helper()
	mcptest.Eventually(t, "new requests to be refused", func() bool {
		r, err := s.a.RPC(background(t), "ping", "{}")
		return err == nil && r.Status == 503 && strings.Contains(string(r.Body), "stopping")
	})
	if r, err := s.a.Call(background(t), "d__pid", "{}"); err != nil || r.Status != 503 {
		t.Errorf("a new call: %v, HTTP %d, %s", err, r.Status, r.Body)
	}
}

func (s *stopping) gone(t *testing.T) {
	t.Helper()
	mcptest.Eventually(t, "the daemon to be gone", s.Gone)
	mcptest.Eventually(t, "its children to be gone", func() bool { return !slices.ContainsFunc(s.kids, proc.Alive) })
}

// endsWell follows the end of the daemon: of its streams, of itself and of its children.
func (s *stopping) endsWell(t *testing.T) {
	t.Helper()
	for _, stream := range s.streams {
		for err := error(nil); err == nil; {
			_, err = stream.Next()
		}
	}
	s.gone(t)
	if err := s.Stop(); err != nil { // it tells how the process ended
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Data, "*-wal")); len(left) > 0 {
		if info, err := os.Stat(left[0]); err == nil && info.Size() > 0 {
			t.Errorf("the store was not checkpointed: %d bytes of WAL", info.Size())
		}
	}
}

func TestC76AStopWaitsForWhatIsSoonOver(t *testing.T) {
	t.Parallel()
	s := startStopping(t, "", "echo")
	syscall.Kill(s.PID(), syscall.SIGTERM)
	s.refusesAtOnce(t)
	touch(t, s.end) // the call has until the end of drain_timeout
	if r := <-s.short; r.Text() != "in time" {
		t.Errorf("the call that was soon over: %s", r.Body)
	}
	s.endsWell(t)
}

// TestC76AStopWaitsForNobodyTooLong: drain_timeout is short, so that a machine which stands
// still for a while ends it in the ten seconds, too.
func TestC76AStopWaitsForNobodyTooLong(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := startStopping(t, "drain_timeout = \"1s\"\n", "sleep")
			syscall.Kill(s.PID(), signal)
			if r := <-s.long; !r.IsError() || !strings.Contains(r.Text(), "stopped") {
				t.Errorf("the call that never is over: %s", r.Body)
			}
			s.endsWell(t)
		})
	}
}

func TestC76ASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	s := startStopping(t, "", "echo", "sleep")
	syscall.Kill(s.PID(), syscall.SIGTERM)
	s.refusesAtOnce(t)
	syscall.Kill(s.PID(), syscall.SIGTERM)
	s.gone(t)
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("it ended by itself before the second signal: %v", err)
	}
	if err := s.Start(); err != nil { // for the end of the test
		t.Error(err)
	}
}

// TestC78KilledHardItLeavesNobody: five servers, two behind a shell, one that ignores
// the end of its stdin, ten times over.
func TestC78KilledHardItLeavesNobody(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stranger.Process.Kill(); stranger.Wait() }()
	conf := ""
	var exe string
	for i := range 5 {
		s := mcptest.NewServer(t, mcptest.Script{IgnoreEOF: i == 4, IgnoreTERM: i == 4})
		exe = s.Command
		if i < 2 {
			s.Command, s.Args = "/bin/sh", []string{"-c", `"` + exe + `"; exit 3`}
		}
		conf += s.TOML(fmt.Sprint("d", i))
	}
	h := hub{Daemon: mcptest.NewDaemon(t, conf)}
	workers := func() (n int) {
		for _, line := range inHome(h.Home) {
			if strings.HasPrefix(line, exe) {
				n++
			}
		}
		return n
	}
	for range 10 {
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		h.awaitServers(t, 5)
		mcptest.Eventually(t, "exactly five servers to run", func() bool { return workers() == 5 })
		write(t, filepath.Join(h.Data, "lock"), strconv.Itoa(stranger.Process.Pid))
		h.Kill9()
	}
	mcptest.Eventually(t, "everybody to be gone", func() bool { return len(inHome(h.Home)) == 0 })
	if !proc.Alive(stranger.Process.Pid) {
		t.Error("a stranger was killed")
	}
}

// TestAServiceManagerIsToldHowFarItIs: sockets that it opened are served, and it hears
// of the start, of a reload, of life and of the end.
func TestAServiceManagerIsToldHowFarItIs(t *testing.T) {
	t.Parallel()
	d := mcptest.NewDaemon(t, "")
	at := filepath.Join(d.Home, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hear := func(want string) {
		t.Helper()
		l.SetReadDeadline(time.Now().Add(mcptest.Patience))
		for b := make([]byte, 4096); ; {
			n, err := l.Read(b)
			if err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			if strings.HasPrefix(string(b[:n]), want) {
				return
			}
		}
	}
	d.Env = append(d.Env, "NOTIFY_SOCKET="+at, "WATCHDOG_USEC=300000")
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	hear("READY=1")
	hear("WATCHDOG=1")
	syscall.Kill(d.PID(), syscall.SIGHUP)
	hear("RELOADING=1\nMONOTONIC_USEC=")
	hear("READY=1")
	stopped := make(chan error, 1)
	go func() { stopped <- d.Stop() }()
	hear("STOPPING=1")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestSocketsOfTheServiceManagerAreServed: they are open before the daemon is.
func TestSocketsOfTheServiceManagerAreServed(t *testing.T) {
	t.Parallel()
	d := mcptest.NewDaemon(t, "")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(d.Home, "given.sock")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	tcpFile, err1 := tcp.(*net.TCPListener).File()
	unixFile, err2 := local.(*net.UnixListener).File()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	// The process id is known only in the process: a shell sets it and becomes the daemon.
	serve := d.Command("serve")
	c := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=2 exec "$0" serve`, serve.Path)
	c.Env, c.Dir, c.ExtraFiles = serve.Env, d.Home, []*os.File{tcpFile, unixFile}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	tcpFile.Close()
	unixFile.Close()
	defer func() {
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the socket is not ours to remove: %v", err)
		}
	}()
	a := mcptest.NewAgent("http://" + tcp.Addr().String() + "/mcp/a")
	defer a.Close()
	if _, err := a.Init(background(t), mcptest.Legacy); err != nil {
		t.Error(err)
	}
	out, err := d.Command("status").CombinedOutput()
	if err != nil || !strings.Contains(string(out), path) {
		t.Errorf("over the socket: %v, %s", err, out)
	}
}

// TestC79AServerThatDiesWhileThereAreNoDescriptorsComesBack, and whoever is attached
// hears why it is away. 200 connections take all that there are.
func TestC79AServerThatDiesWhileThereAreNoDescriptorsComesBack(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	a := h.Agent("a")
	echo(t, a, "d__echo")
	var was unix.Rlimit
	if err := unix.Prlimit(h.PID(), unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	const limit = 128
	if err := unix.Prlimit(h.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	crowd := make([]net.Conn, 200)
	for i := range crowd {
		c, err := net.Dial("tcp", h.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		crowd[i] = c
		if _, err := fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", h.Addr()); err != nil { // who said nothing would not be kept for long
			t.Fatal(err)
		}
	}
	full := func() bool { return len(proc.FDs(h.PID())) >= limit }
	mcptest.Eventually(t, "the daemon to have no descriptor left", full)
	if r, err := a.Call(background(t), "d__crash", `{"code":3}`); err != nil || !r.IsError() {
		t.Errorf("the call that ended the server: %v, %s", err, r.Body)
	}
	mcptest.Eventually(t, "an attached agent to hear why the server is away", func() bool {
		r, err := a.Call(background(t), "d__echo", `{}`)
		return err == nil && strings.Contains(r.Text(), "too many open files")
	})
	for _, c := range crowd {
		c.Close()
	}
	mcptest.Eventually(t, "the server to be back", func() bool {
		r, err := a.Call(background(t), "d__echo", `{"v":"back"}`)
		return err == nil && r.Text() == "back"
	})
	echo(t, h.Agent("b"), "d__echo")
}
