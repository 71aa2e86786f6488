package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"mcphubd/config"
)

// No daemon is there that could look for another credential.
func TestAProbeTellsOfAServerThatLetsNobodyIn(t *testing.T) {
	for _, status := range []int{401, 403} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer h.Close()
		conf := fmt.Sprintf("[servers.a]\nurl = %q\nheaders = { Authorization = \"Bearer of-nobody\" }\n", h.URL)
		c, err := config.Parse("test.toml", []byte(conf), config.Env{})
		if err != nil {
			t.Fatal(err)
		}
		if p := probe(t.Context(), c, t.TempDir(), c.Servers["a"]); p.OK || p.Code != "server-unauthorized" {
			t.Errorf("HTTP %d: %+v", status, p)
		}
	}
}
