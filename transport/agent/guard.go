package agent

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Guard lets a request pass only if it was meant for this daemon: its Host is a
// loopback name, with this daemon's port or none, and its Origin, when it has one,
// is this daemon's own. That keeps web pages out, also by DNS rebinding. It looks
// at nothing else, trusts no forwarded header and sets no CORS header.
func Guard(port func() int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := port(); {
		case !ownHost(r.Host, p):
			forbid(w, "Host is not a loopback name of this daemon")
		case !ownOrigins(r.Header["Origin"], p):
			forbid(w, "Origin is not this daemon")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func forbid(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	io.WriteString(w, `{"error":"forbidden: `+why+`"}`+"\n")
}

func ownHost(host string, port int) bool {
	name, p := cutPort(host)
	return isLoopback(name) && (p == "" || p == strconv.Itoa(port))
}

// ownOrigins knows that a browser leaves out the port only when it is 80.
func ownOrigins(origins []string, port int) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || !strings.EqualFold(u.Scheme, "http") || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return false
		}
		name, p := cutPort(u.Host)
		if p == "" {
			p = "80"
		}
		if !isLoopback(name) || port == 0 || p != strconv.Itoa(port) {
			return false
		}
	}
	return true
}

// cutPort splits a trailing :port off; brackets of an IPv6 name stay. A port that
// is there but empty is no name at all.
func cutPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") {
		return host, ""
	}
	if i == len(host)-1 {
		return "", ""
	}
	return host[:i], host[i+1:]
}

func isLoopback(name string) bool {
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	return false
}
