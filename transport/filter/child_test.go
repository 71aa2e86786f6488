package filter_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcphubd/test/mcptest"
	"mcphubd/transport/filter"
)

// gate is an output that holds its program at the first bytes until it is opened.
type gate struct {
	reached, open chan struct{}
	once          sync.Once
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.reached) })
	<-g.open
	return len(p), nil
}

// hold starts a program of f that runs until release, and waits until it does.
func hold(t *testing.T, f *filter.Filter) (release func() error) {
	t.Helper()
	g, done := newGate(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- f.Run(ctx, "range(1e12)", strings.NewReader("1"), g) }()
	<-g.reached
	return sync.OnceValue(func() error {
		cancel()
		close(g.open)
		return <-done
	})
}

// children are the processes that this one started and has not reaped.
func children(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatal("the system does not tell our children", err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may be gone by now
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func onlyChild(t *testing.T) int {
	t.Helper()
	pids := children(t)
	if len(pids) != 1 {
		t.Fatalf("children %v, want one", pids)
	}
	return pids[0]
}

func TestAChildHasNothingButItsThreeStreams(t *testing.T) {
	t.Setenv("MCPHUBD_TEST_SECRET", "sk-test-AAAA")
	// A careless descriptor: inheritable, as the standard library never makes one.
	fd, err := syscall.Open(filepath.Join(t.TempDir(), "secret"), syscall.O_CREAT|syscall.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	release := hold(t, patient(filter.Options{}))
	defer release()
	proc := fmt.Sprintf("/proc/%d/", onlyChild(t))

	if env, err := os.ReadFile(proc + "environ"); err != nil || len(env) > 0 {
		t.Errorf("environment %q, %v", env, err)
	}
	if args, err := os.ReadFile(proc + "cmdline"); err != nil || string(args) != "mcphubd\x00"+filter.Command+"\x00" {
		t.Errorf("arguments %q, %v: others could read them", args, err)
	}
	if cwd, err := os.Readlink(proc + "cwd"); err != nil || cwd != "/" {
		t.Errorf("folder %q, %v", cwd, err)
	}
	entries, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink(proc + "fd/" + entry.Name())
		standard := entry.Name() <= "2" && strings.HasPrefix(target, "pipe:")
		// What Go itself waits with, and where it reads how many processors it may use.
		ofRuntime := strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/sys/fs/cgroup/")
		if !standard && !ofRuntime {
			t.Errorf("descriptor %s is %s", entry.Name(), target)
		}
	}
	limits, err := os.ReadFile(proc + "limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Max cpu time 4 4 seconds", "Max open files 3 3 files", "Max file size 0 0 bytes", "Max core file size 0 0 bytes"} {
		if !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), want) {
			t.Errorf("not in its limits: %s\n%s", want, limits)
		}
	}
}

func TestAChildIsInAGroupOfItsOwnAndGivesWay(t *testing.T) {
	release := hold(t, patient(filter.Options{}))
	defer release()
	pid := onlyChild(t)
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("group %d of child %d, %v", group, pid, err)
	}
	mcptest.Eventually(t, "it is nice, which it is told once it runs", func() bool {
		answer, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		return err == nil && 20-answer == 5 // the call answers 20 - nice
	})
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	if err != nil || strings.TrimSpace(string(score)) != "1000" {
		t.Errorf("oom_score_adj %q, %v", score, err)
	}
}

func TestNoChildIsLeftWhenRunReturns(t *testing.T) {
	release := hold(t, patient(filter.Options{}))
	pid := onlyChild(t)
	if err := release(); err == nil {
		t.Error("a cancelled run went well")
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("children %v are left", left)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("child %d: %v", pid, err)
	}
}

func TestTwoRunAtOnceAndTheThirdWaits(t *testing.T) {
	f := patient(filter.Options{})
	first, second := hold(t, f), hold(t, f)
	defer second()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Run(ctx, ".", strings.NewReader("1"), io.Discard); err == nil || !strings.Contains(err.Error(), "wait for other queries") {
		t.Errorf("the third run with a dead context: %v", err)
	}
	if n := len(children(t)); n != 2 {
		t.Errorf("%d children, want 2", n)
	}
	third, out := make(chan error), &bytes.Buffer{}
	go func() { third <- f.Run(t.Context(), ".", strings.NewReader("1"), out) }()
	first()
	if err := <-third; err != nil || out.String() != "1\n" {
		t.Errorf("the third run after the first: %q, %v", out, err)
	}
}

// peak is the most memory this process had at once since the last reset.
func peak(t *testing.T, reset bool) int {
	t.Helper()
	if reset {
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
			t.Fatal(err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// plain is a Filter whose children are not slowed down by the race detector, nor by
// what else the test binary does.
func plain(t *testing.T, o filter.Options) *filter.Filter {
	t.Helper()
	worker := filepath.Join(t.TempDir(), "worker")
	if out, err := exec.Command("go", "build", "-o", worker, "./testdata/worker").CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	o.Executable = worker
	return patient(o)
}

// Issue 3: the daemon does not grow, the agent gets an error, at the latest at the
// limit of time, and a second agent's query runs beside.
func TestHostileProgramsHurtNobody(t *testing.T) {
	f := plain(t, filter.Options{}) // CPU and memory are what is proven
	for _, v := range []struct{ program, want string }{
		{`"a"*1e9`, "stopped at its limit of 512MB of memory"},
		{`[range(1e12)]`, "stopped at its limit"},
		{`reduce range(60) as $i ("x"; .+.)`, "stopped at its limit of 512MB of memory"},
		{`def f: f; f`, "stopped at its limit"},
		{`def f: 1+f; f`, "stopped at its limit"},
		{`def f: [f]; f`, "stopped at its limit"},
		{`[limit(1e12; repeat("x"*1000))]`, "stopped at its limit"},
		{`"x"*1e6 | test("(x*)*y"; "g")`, ""},
		{strings.Repeat("(", 2e5) + "1" + strings.Repeat(")", 2e5), ""},
		{strings.Repeat("[", 2e5) + "1" + strings.Repeat("]", 2e5), ""},
		{`setpath([1e8]; 1)`, ""},
		{`pow(10; 300) | tostring * 1e6 | tonumber`, ""},
	} {
		before := peak(t, true)
		hostile := make(chan error)
		go func() { hostile <- f.Run(t.Context(), v.program, strings.NewReader(issues), io.Discard) }()
		var out strings.Builder
		if err := f.Run(t.Context(), ".total", strings.NewReader(issues), &out); err != nil || out.String() != "2\n" {
			t.Errorf("beside %.40s: %q, %v", v.program, out.String(), err)
		}
		err := <-hostile
		if v.want != "" && (err == nil || !strings.Contains(err.Error(), v.want)) {
			t.Errorf("%.40s: %v, want %q", v.program, err, v.want)
		}
		if grown := peak(t, false) - before; grown > 20<<20 {
			t.Errorf("%.40s: this process grew by %d bytes", v.program, grown)
		}
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("children %v are left", left)
	}
}

// A large document goes by without staying in the daemon.
func TestTheParentDoesNotGrowWithTheDocument(t *testing.T) {
	const record, times, blocks = `{"id":9007199254740993,"name":"some name"},`, 1000, 900
	parts, block := []io.Reader{strings.NewReader("[")}, strings.Repeat(record, times)
	for range blocks {
		parts = append(parts, strings.NewReader(block))
	}
	doc := io.MultiReader(append(parts, strings.NewReader("0]"))...)
	f := plain(t, filter.Options{})
	before := peak(t, true)
	var out strings.Builder
	if err := f.Run(t.Context(), "length", doc, &out); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintln(times*blocks + 1); out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if grown := peak(t, false) - before; grown > 20<<20 {
		t.Errorf("this process grew by %d bytes", grown)
	}
}

const daemonCommand = "daemon-with-a-query"

// beDaemon is a process with a query that runs for as long as it may.
func beDaemon() {
	g := newGate()
	go func() {
		<-g.reached
		fmt.Println("running")
	}()
	err := filter.New(filter.Options{Wall: time.Hour}).Run(context.Background(), "range(1e12)", strings.NewReader("1"), g)
	fmt.Println("ended", err)
	os.Exit(1)
}

func TestAChildDiesWithTheDaemon(t *testing.T) {
	daemon := exec.Command("/proc/self/exe", daemonCommand)
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer daemon.Wait()
	defer daemon.Process.Kill()
	line := make([]byte, len("running\n"))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "running\n" {
		t.Fatalf("%q, %v", line, err)
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", daemon.Process.Pid))
	var pids []string
	for _, file := range files {
		text, _ := os.ReadFile(file)
		pids = append(pids, strings.Fields(string(text))...)
	}
	if len(pids) != 1 {
		t.Fatalf("the daemon's children: %v", pids)
	}
	pid, err := strconv.Atoi(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(ended, int(mcptest.Patience.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("the child outlives the daemon: %d, %v", n, err)
		}
		return
	}
}
