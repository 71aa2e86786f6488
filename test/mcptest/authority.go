package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Authority is an OAuth authorization server with a user who always says yes: dynamic
// registration, codes with PKCE, and refresh tokens that are good for one use.
type Authority struct {
	*httptest.Server
	Lifetime int // of access tokens in seconds, as it tells it

	mu      sync.Mutex
	clients map[string]string // the redirect address by id
	codes   map[string]string // the challenge of each code
	access  map[string]bool   // the tokens that are good
	refresh map[string]bool
	fails   int // the status of the token endpoint, 0 = it works
	to      string
	asked   []url.Values // of the token endpoint
}

// NewAuthority starts one; it ends with the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Lifetime: 3600, clients: map[string]string{}, codes: map[string]string{}, access: map[string]bool{}, refresh: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", a.describe)
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *Authority) describe(w http.ResponseWriter, _ *http.Request) {
	say(w, http.StatusOK, map[string]any{"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
		"registration_endpoint": a.URL + "/register", "response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}})
}

func (a *Authority) register(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		say(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	id := "client-" + rand.Text()
	a.mu.Lock()
	a.clients[id] = m["redirect_uris"].([]any)[0].(string)
	a.mu.Unlock()
	m["client_id"] = id
	say(w, http.StatusCreated, m)
}

// authorize is where the user says yes.
func (a *Authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	back := a.clients[q.Get("client_id")]
	if back == "" || back != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" {
		http.Error(w, "this request is not as it should be: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := "code-" + rand.Text()
	a.codes[code] = q.Get("code_challenge")
	http.Redirect(w, r, back+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (a *Authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.PostForm)
	switch {
	case a.to != "":
		http.Redirect(w, r, a.to, http.StatusTemporaryRedirect)
		return
	case a.fails != 0:
		say(w, a.fails, map[string]any{"error": "temporarily_unavailable"})
		return
	case a.clients[r.PostForm.Get("client_id")] == "":
		say(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	good := false
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		good = a.codes[r.PostForm.Get("code")] == base64.RawURLEncoding.EncodeToString(sum[:])
		delete(a.codes, r.PostForm.Get("code"))
	case "refresh_token":
		good = a.refresh[r.PostForm.Get("refresh_token")]
		delete(a.refresh, r.PostForm.Get("refresh_token"))
	}
	if !good {
		say(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "of " + r.PostForm.Get("refresh_token")})
		return
	}
	access, refresh := a.issue()
	say(w, http.StatusOK, map[string]any{"token_type": "Bearer", "access_token": access, "refresh_token": refresh, "expires_in": a.Lifetime})
}

// issue makes two tokens; mu is held.
func (a *Authority) issue() (access, refresh string) {
	access, refresh = "access-"+rand.Text(), "refresh-"+rand.Text()
	a.access[access], a.refresh[refresh] = true, true
	return access, refresh
}

// Grant is what the file of a grant for the server at address holds after a login.
func (a *Authority) Grant(address, expiry string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients["client-of-a-test"] = "http://127.0.0.1/"
	access, refresh := a.issue()
	return fmt.Sprintf(`{"url":%q,"tokenEndpoint":%q,"clientId":"client-of-a-test","clientAuth":"params","token":{"access_token":%q,"refresh_token":%q,"expiry":%q}}`,
		address, a.URL+"/token", access, refresh, expiry)
}

// Forget makes the access tokens invalid that were given out, and with all the refresh
// tokens, too.
func (a *Authority) Forget(all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	if all {
		clear(a.refresh)
	}
}

// Fail has the token endpoint answer with that status; 0 = as it should.
func (a *Authority) Fail(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails = status
}

// Redirect has the token endpoint send everybody elsewhere.
func (a *Authority) Redirect(to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to = to
}

// Asked is what was posted to the token endpoint.
func (a *Authority) Asked() []url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]url.Values(nil), a.asked...)
}

// Good reports whether a token is good.
func (a *Authority) Good(access string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.access[access]
}

// Guard stands before the server at address, and lets in who has a token of a.
func (a *Authority) Guard(t testing.TB, address string) *httptest.Server {
	t.Helper()
	behind, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }}
	var self string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
			say(w, http.StatusOK, map[string]any{"resource": self + "/mcp", "authorization_servers": []string{a.URL}})
		case a.Good(token):
			proxy.ServeHTTP(w, r)
		default: // one that says too much
			w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, self))
			say(w, http.StatusUnauthorized, map[string]any{"error": "no such token: " + token})
		}
	}))
	self = s.URL
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
