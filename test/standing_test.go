package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// The stream on which a server may speak unasked is optional, so that it is missing is no
// problem; but who wonders why no list ever changes can see it.
func TestC93TheStateShowsTheStandingStream(t *testing.T) {
	t.Parallel()
	remote := mcptest.NewRemote(t, mcptest.Script{})
	behind, err := url.Parse(remote.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	mute := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		mute.CloseClientConnections()
		mute.Close()
	})
	h := hub{Daemon: mcptest.StartDaemon(t, fmt.Sprintf("[servers.d]\nurl = %q\n[servers.mute]\nurl = %q\n", remote.URL+"/mcp", mute.URL+"/mcp"))}
	for server, want := range map[string]string{"d": "up", "mute": "down: HTTP 405"} {
		mcptest.Eventually(t, "the stream of "+server+" to be "+want, func() bool {
			_, body, err := h.Get("/debug/servers/" + server)
			var s struct{ State, Stream string }
			return err == nil && json.Unmarshal(body, &s) == nil && s.State == "ready" && strings.HasPrefix(s.Stream, want)
		})
		echo(t, h.Agent("a"), server+"__echo")
	}
}
