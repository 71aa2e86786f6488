package test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcphubd/test/mcptest"
)

// TestC70WithoutADaemonCallsEndInBoundedTimeAndALaterOneIsUsed: nobody starts one for a
// bridge with --url. The daemon comes back after the bridge lost its patience, as it
// would 90 seconds later with the usual one.
func TestC70WithoutADaemonCallsEndInBoundedTimeAndALaterOneIsUsed(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	b := connectWith(t, h.Daemon, nil, "--agent", "a", "--url", "http://"+h.Addr(), "--patience", "3s") // in which a busy machine shakes hands, too
	b.hello()
	b.call(1, "d__echo", `{"v":"one"}`)
	b.next(`"id":1`, "one")
	h.Kill9()
	b.send(`{"jsonrpc":"2.0","id":"gone","method":"ping"}`) // once it is given up, the bridge has seen that its connections are dead
	b.next(`"id":"gone"`, `"error"`)
	b.call(2, "d__echo", `{"v":"two"}`)
	b.next(`"id":2`, `"error"`, "cannot be reached")
	h.StartAgain()
	b.call(3, "d__echo", `{"v":"three"}`)
	for _, line := range b.collect(`"id":3`, "notifications/tools/list_changed") {
		if strings.Contains(line, `"id":3`) && !strings.Contains(line, "three") {
			t.Errorf("the call after the restart: %s", line)
		}
	}
}

// TestC70ADaemonThatAnswersLateIsNotTakenForDead: it is stopped for longer than any
// look at it waits, and goes on.
func TestC70ADaemonThatAnswersLateIsNotTakenForDead(t *testing.T) {
	t.Parallel()
	conf, _ := tables(t, "", map[string]mcptest.Script{"d": {}})
	d := mcptest.NewDaemon(t, conf)
	endStarted(t, d)
	b := connect(t, d, "a")
	b.hello()
	b.call(1, "d__pid", `{}`)
	server := strings.Replace(b.next(`"id":1`), `"id":1`, "", 1)
	pid := running(d)
	syscall.Kill(pid, syscall.SIGSTOP)
	b.call(2, "d__pid", `{}`)
	second := connect(t, d, "b") // looks for a daemon while there is none that answers
	second.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"harness","version":"1"}}}`)
	<-time.After(2500 * time.Millisecond) // not a wait for something: this is how long it is slow
	syscall.Kill(pid, syscall.SIGCONT)
	if line := b.next(`"id":2`); strings.Replace(line, `"id":2`, "", 1) != server {
		t.Errorf("another server answered, or none: %s", line)
	}
	second.next(`"id":"hello"`, `"result"`)
	if now := running(d); now != pid {
		t.Errorf("daemon %d was replaced by %d", pid, now)
	}
}

// TestC70WhatIsSentToAStoppingDaemonRunsOnTheNext: it was refused, so it may be sent
// again, and the client sees nothing of it.
func TestC70WhatIsSentToAStoppingDaemonRunsOnTheNext(t *testing.T) {
	t.Parallel()
	conf, servers := tables(t, "drain_timeout = \"5s\"\n", map[string]mcptest.Script{"d": {Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep"}}}})
	d := mcptest.NewDaemon(t, conf)
	endStarted(t, d)
	b := connect(t, d, "a")
	b.hello()
	b.call(1, "d__sleep", `{}`)
	servers["d"].Record.Await(t, "tools/call", 1)
	old := running(d)
	syscall.Kill(old, syscall.SIGTERM)
	mcptest.Eventually(t, "the daemon to know that it ends", func() bool {
		var a struct{ URL string }
		file, _ := os.ReadFile(filepath.Join(d.Data, "daemon.json"))
		json.Unmarshal(file, &a)
		res, err := http.Get(a.URL + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusServiceUnavailable
	})
	b.call(2, "d__echo", `{"v":"queued"}`)
	for _, line := range b.collect(`"id":1`, `"id":2`) {
		switch {
		case strings.Contains(line, `"id":1`) && !strings.Contains(line, "stopped"):
			t.Errorf("the call in flight: %s", line)
		case strings.Contains(line, `"id":2`) && !strings.Contains(line, "queued"):
			t.Errorf("the call that was refused: %s", line)
		}
	}
	if now := running(d); now == old || now == 0 {
		t.Errorf("daemon %d after %d", now, old)
	}
}

// TestABridgeEndsWithItsInputOrASignal, whatever its calls do.
func TestABridgeEndsWithItsInputOrASignal(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{Rules: []mcptest.Rule{{Method: "tools/call", Tool: "sleep"}}})
	for i, end := range []func(*bridge){
		func(b *bridge) { b.in.Close() },
		func(b *bridge) { b.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		b := connect(t, h.Daemon, "a")
		b.hello()
		b.call(1, "d__sleep", `{}`)
		h.d().Record.Await(t, "tools/call", i+1)
		end(b)
		if err := b.cmd.Wait(); err != nil {
			t.Error("exit:", err)
		}
	}
	mcptest.Eventually(t, "the sessions of the bridges to be gone", func() bool {
		_, body, _ := h.Get("/debug/state")
		return !strings.Contains(string(body), `"harness"`)
	})
}

// TestABridgeAttachesWhileTheConfigurationIsBroken, because the daemon runs with the
// one before.
func TestABridgeAttachesWhileTheConfigurationIsBroken(t *testing.T) {
	t.Parallel()
	h := one(t, "", mcptest.Script{})
	h.SetConfig("unknown_key = 1\n")
	b := connect(t, h.Daemon, "a")
	b.hello()
	b.call(1, "d__echo", `{"v":"one"}`)
	b.next(`"id":1`, "one")
}
