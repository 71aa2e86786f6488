package test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"mcphubd/test/mcptest"
)

// A token in a file is replaced while the daemon runs, after the server refused the old one.
func TestC95ANewCredentialInItsFileWorksWithoutARestart(t *testing.T) {
	t.Parallel()
	remote := mcptest.NewRemote(t, mcptest.Script{})
	behind, err := url.Parse(remote.URL)
	if err != nil {
		t.Fatal(err)
	}
	var good atomic.Value
	var foreign atomic.Int64
	good.Store("token-number-one")
	proxy := httputil.NewSingleHostReverseProxy(behind)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer " + good.Load().(string):
			proxy.ServeHTTP(w, r)
		case "Bearer token-number-one", "Bearer token-number-two":
			w.Header().Set("Www-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			foreign.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(func() {
		door.CloseClientConnections()
		door.Close()
	})
	token := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		err := os.WriteFile(token+".new", []byte(text+"\n"), 0o600)
		if err = errors.Join(err, os.Rename(token+".new", token)); err != nil { // at once: the daemon may read it at any moment
			t.Fatal(err)
		}
	}
	write("token-number-one")
	h := hub{Daemon: mcptest.StartDaemon(t, fmt.Sprintf("[servers.d]\nurl = %q\nheaders = { Authorization = \"Bearer ${file:%s}\" }\n",
		door.URL+"/mcp", token))}
	h.awaitState(t, "d", "ready")
	a := h.Agent("a")
	echo(t, a, "d__echo")

	good.Store("token-number-two")
	r, err := a.Call(background(t), "d__echo", "{}")
	if err != nil || r.Status != http.StatusOK || !r.IsError() || !strings.Contains(r.Text(), "sign-in needed") {
		t.Errorf("%v, HTTP %d: %s", err, r.Status, r.Body)
	}
	write("token-number-two")
	mcptest.Eventually(t, "the new token to work", func() bool {
		r, err := a.Call(background(t), "d__echo", "{}")
		if err == nil && r.Status != http.StatusOK {
			t.Errorf("the agent got HTTP %d", r.Status)
		}
		return err == nil && r.Result() != nil && !r.IsError()
	})
	if n := foreign.Load(); n != 0 {
		t.Errorf("%d requests carried what is no credential of the server", n)
	}
	if log := h.Log(); strings.Contains(log, "token-number") {
		t.Error("the log shows a token")
	}
}
