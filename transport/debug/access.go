package debug

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// linkLife is how long a one-time link can be followed.
	linkLife = 2 * time.Minute
	// keyLife is how long the page can act with the key that it got.
	keyLife = 12 * time.Hour
	// maxKeys bounds links and keys; the oldest go.
	maxKeys = 64
)

// access decides who may read and who may act.
//
//	                     reading                      acting
//	owner's socket       always                       always
//	key of the page      when the page is enabled     when the page is enabled
//	[debug] token        when the page is enabled     never
//	nobody's             unless there is a token      never
type access struct {
	src   Source
	mu    sync.Mutex
	links keys
	pages keys
}

// keys are secrets that were handed out, by their digests.
type keys map[[32]byte]time.Time

// add makes a new key.
func (k *keys) add(now time.Time, life time.Duration) string {
	if *k == nil {
		*k = keys{}
	}
	for len(*k) >= maxKeys {
		first, ends := [32]byte{}, now.Add(2*keyLife)
		for sum, end := range *k {
			if end.Before(ends) {
				first, ends = sum, end
			}
		}
		delete(*k, first)
	}
	key := rand.Text()
	(*k)[sha256.Sum256([]byte(key))] = now.Add(life)
	return key
}

func (k keys) has(key string, now time.Time) bool {
	end, ok := k[sha256.Sum256([]byte(key))]
	return ok && now.Before(end)
}

// isOwner reports whether a request came by the socket, which only its owner can open.
func isOwner(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (a *access) mayAct(r *http.Request) bool {
	if isOwner(r) {
		return true
	}
	key := bearer(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	return key != "" && a.pages.has(key, time.Now())
}

func (a *access) mayRead(r *http.Request) bool {
	token := a.src.Config().Debug.Token
	return token == "" || sameText(token, bearer(r)) || a.mayAct(r)
}

func sameText(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// open serves everybody.
func (h *Handler) open(pattern string, f http.HandlerFunc) { h.mux.HandleFunc(pattern, f) }

// shown serves everybody while the page is enabled.
func (h *Handler) shown(pattern string, f http.HandlerFunc) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !h.src.Config().Debug.Enabled && !isOwner(r) {
			http.NotFound(w, r)
			return
		}
		f(w, r)
	})
}

// read serves whoever may read.
func (h *Handler) read(pattern string, f http.HandlerFunc) {
	h.guarded(pattern, f, h.access.mayRead,
		"reading needs the token of [debug] in the configuration, as Authorization: Bearer; or run: mcphubd debug open")
}

// act serves whoever may act.
func (h *Handler) act(pattern string, f http.HandlerFunc) {
	h.guarded(pattern, f, h.access.mayAct, "acting needs the page's key; get it with: mcphubd debug open")
}

// owner serves the socket alone.
func (h *Handler) owner(pattern string, f http.HandlerFunc) {
	h.guarded(pattern, f, isOwner, "only the owner's socket hands out links; run: mcphubd debug open")
}

// guarded serves those who may, while the page is enabled, and tells the others how.
func (h *Handler) guarded(pattern string, f http.HandlerFunc, may func(*http.Request) bool, how string) {
	h.shown(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !may(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="mcphubd debug"`)
			refuse(w, http.StatusUnauthorized, how)
			return
		}
		f(w, r)
	})
}

// link makes a link that can be followed once. What makes it work stands behind the
// #, so that no log has it.
func (h *Handler) link(w http.ResponseWriter, _ *http.Request) {
	base := h.src.URL()
	switch {
	case base == "":
		refuse(w, http.StatusConflict, `the daemon listens on its socket only: set listen to see the page with a browser`)
		return
	case !h.src.Config().Debug.Enabled:
		refuse(w, http.StatusConflict, `the page is off: enabled = false under [debug]`)
		return
	}
	h.access.mu.Lock()
	code := h.access.links.add(time.Now(), linkLife)
	h.access.mu.Unlock()
	answer(w, http.StatusOK, map[string]string{"url": base + "/debug/#" + code})
}

// login takes the code of a link, once, for a key that may act.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ Code string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAct)).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, `send {"code":"…"}`)
		return
	}
	h.access.mu.Lock()
	defer h.access.mu.Unlock()
	now := time.Now()
	known := h.access.links.has(in.Code, now)
	delete(h.access.links, sha256.Sum256([]byte(in.Code)))
	if !known {
		refuse(w, http.StatusUnauthorized, "this link was followed before, or is older than two minutes; get another with: mcphubd debug open")
		return
	}
	answer(w, http.StatusOK, map[string]string{"key": h.access.pages.add(now, keyLife)})
}
