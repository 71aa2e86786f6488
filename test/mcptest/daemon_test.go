package mcptest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"

	"mcphubd/test/mcptest/proc"
)

// stubEnv makes the test binary a stand-in for mcphubd that keeps the promises
// of serve which Daemon relies on. What the real one does is tested elsewhere.
const stubEnv = "MCPTEST_STUB"

func TestMain(m *testing.M) {
	if os.Getenv(stubEnv) != "" {
		stub()
	}
	Run(m)
}

func stub() {
	config, _ := os.ReadFile(os.Getenv("MCPHUBD_CONFIG"))
	m := regexp.MustCompile(`listen = "(.*)"`).FindSubmatch(config)
	l, err := net.Listen("tcp", string(m[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s\nready\n", l.Addr())
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		os.Exit(0)
	}()
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"goroutines": 42, "home": %q}`, os.Getenv("HOME"))
	}))
}

func TestTheDaemonKeepsItsAddressOverStopAndCrashAndLeavesNothing(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(DaemonEnv, exe)
	var d *Daemon
	t.Run("life", func(t *testing.T) {
		d = NewDaemon(t, "")
		d.Env = []string{stubEnv + "=1"}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		addr, pid := d.Addr(), d.PID()
		if d.Goroutines() != 42 {
			t.Error("the debug state was not read")
		}
		d.Restart()
		if d.Addr() != addr || d.PID() == pid || proc.Alive(pid) {
			t.Errorf("was process %d at %s, is %d at %s", pid, addr, d.PID(), d.Addr())
		}
		d.Kill9()
		d.StartAgain()
		if status, _, err := d.Get("/healthz"); err != nil || status != 200 || d.Addr() != addr {
			t.Errorf("after a crash: %d, %v, at %s", status, err, d.Addr())
		}
	})
	if !d.Gone() || proc.Alive(d.PID()) {
		t.Error("the daemon outlived its test")
	}
	if _, err := os.Stat(d.Home); err == nil {
		t.Error("its home is still there")
	}
}
