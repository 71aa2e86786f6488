package agent

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestC41OnlyLoopbackNamesAndThisOriginPass(t *testing.T) {
	served := 0
	h := Guard(func() int { return 9820 }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { served++ }))
	tests := []struct {
		host   string
		origin []string
		ok     bool
	}{
		{"127.0.0.1:9820", nil, true},
		{"localhost:9820", nil, true},
		{"LocalHost", nil, true},
		{"127.0.0.1", nil, true},
		{"[::1]:9820", nil, true},
		{"[::1]", nil, true},
		{"127.0.0.1:9820", []string{"http://localhost:9820"}, true},
		{"127.0.0.1:9820", []string{"HTTP://LOCALHOST:9820"}, true},
		{"127.0.0.1:9820", []string{"http://[::1]:9820"}, true},
		{"evil.example:9820", nil, false},
		{"evil.example", nil, false},
		{"localhost.evil.example", nil, false},
		{"localhost.", nil, false},
		{"127.0.0.1.nip.io", nil, false},
		{"127.0.0.2", nil, false},
		{"0.0.0.0:9820", nil, false},
		{"::1", nil, false},
		{"127.0.0.1:9821", nil, false},
		{"127.0.0.1:", nil, false},
		{"127.0.0.1:9820:9820", nil, false},
		{"", nil, false},
		{"127.0.0.1:9820", []string{"https://evil.example"}, false},
		{"127.0.0.1:9820", []string{"http://evil.example:9820"}, false},
		{"127.0.0.1:9820", []string{"https://localhost:9820"}, false},
		{"127.0.0.1:9820", []string{"http://localhost:3000"}, false},
		{"127.0.0.1:9820", []string{"http://localhost"}, false},
		{"127.0.0.1:9820", []string{"http://localhost:9820/"}, false},
		{"127.0.0.1:9820", []string{"http://user@localhost:9820"}, false},
		{"127.0.0.1:9820", []string{"null"}, false},
		{"127.0.0.1:9820", []string{""}, false},
		{"127.0.0.1:9820", []string{"http://localhost:9820", "https://evil.example"}, false},
	}
	for _, tt := range tests {
		served = 0
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.Header["Origin"] = tt.host, tt.origin
		r.Header.Set("X-Forwarded-Host", "127.0.0.1:9820")
		r.Header.Set("Forwarded", "host=localhost")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if (served == 1) != tt.ok || (w.Code != 403) != tt.ok {
			t.Errorf("Host %q Origin %q: served %d, HTTP %d", tt.host, tt.origin, served, w.Code)
		}
	}
}

func TestC41EveryRouteAndMethodIsGuarded(t *testing.T) {
	f := start(t, func(s *Server) {
		s.o.Rest = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("debug")) })
	})
	sid := f.login("/mcp")
	for _, path := range []string{"/mcp", "/mcp/a", "/debug/state", "/sse", "/"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "HEAD"} {
			for _, bad := range [][]string{
				{"Host", "evil.example:" + strconv.Itoa(f.port)},
				{"Origin", "https://evil.example"},
			} {
				a := f.do(method, path, "{", append(bad, sessionHeader, sid)...)
				if a.status != 403 {
					t.Errorf("%s %s with %v: HTTP %d %s", method, path, bad, a.status, a.body)
				}
				if strings.Contains(strings.ToLower(strings.Join(keys(a.header), " ")), "access-control") {
					t.Errorf("%s %s: CORS headers %v", method, path, a.header)
				}
			}
		}
	}
	if a := f.do("OPTIONS", "/mcp", ""); a.status != 405 || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("OPTIONS of a plain client: %d %v", a.status, a.header)
	}
	if a := f.do("GET", "/debug/state", ""); a.body != "debug" {
		t.Errorf("other paths: %d %s", a.status, a.body)
	}
	if got := len(f.s.Sessions()); got != 1 {
		t.Errorf("%d sessions after refusals, want the one", got)
	}
}

func keys(h http.Header) (out []string) {
	for k := range h {
		out = append(out, k)
	}
	return out
}

// FuzzGuardLetsNobodyElseIn: what passes is one of the few names in any case, and what
// an origin may be, spelled out.
func FuzzGuardLetsNobodyElseIn(f *testing.F) {
	for _, host := range []string{"127.0.0.1:9820", "LocalHost", "[::1]:9820", "localhost.evil.example", "127.0.0.1:9820:9820", "[::1", "127.0.0.1:", "localhost:09820", "[::1]:]"} {
		for _, origin := range []string{"", "http://localhost:9820", "HTTP://[::1]:9820", "http://localhost:9820/", "http://localhost:9820#", "http://localhost:9820?", "http://user@localhost:9820", "null"} {
			f.Add(host, origin)
		}
	}
	hosts, origins := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
		hosts[name], hosts[name+":9820"], origins["http://"+name+":9820"] = true, true, true
	}
	f.Fuzz(func(t *testing.T, host, origin string) {
		if got, want := ownHost(host, 9820), hosts[strings.ToLower(host)]; got != want {
			t.Errorf("Host %q: %v", host, got)
		}
		if ownOrigins([]string{origin}, 9820) && !origins[strings.TrimRight(strings.ToLower(origin), "#?")] {
			t.Errorf("Origin %q passes", origin)
		}
	})
}
