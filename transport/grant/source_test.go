package grant

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"mcphubd/actors"
	"mcphubd/test/mcptest"
)

const (
	address = "https://docs.example/mcp"
	long    = "2000-01-01T00:00:00Z" // ago
	never   = "2200-01-01T00:00:00Z"
)

// granted is the path of a grant of an authority.
func granted(t *testing.T, a *mcptest.Authority, expiry string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docs.json")
	put(t, path, a.Grant(address, expiry))
	return path
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func source(t *testing.T, path string) *Source {
	t.Helper()
	s := NewSource(path, address, zerolog.Nop(), nil)
	if err := s.Look(); err != nil {
		t.Fatal(err)
	}
	return s
}

func inFile(t *testing.T, path string) Grant {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var g Grant
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return g
}

func TestAnExpiredTokenIsRenewedOnceForAllAndKept(t *testing.T) {
	a := mcptest.NewAuthority(t)
	path := granted(t, a, long)
	before := inFile(t, path)
	sources := []*Source{source(t, path), source(t, path)} // as of two processes
	got := make([]string, 40)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			token, err := sources[i%2].Token(t.Context())
			if err != nil {
				t.Error(err)
			}
			got[i] = token
		})
	}
	wg.Wait()
	for _, token := range got {
		if token != got[0] || !a.Good(token) {
			t.Fatalf("the tokens are %q", got)
		}
	}
	if n := len(a.Asked()); n != 1 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
	after := inFile(t, path)
	if after.Token.AccessToken != got[0] || after.Token.RefreshToken == before.Token.RefreshToken || after.Token.RefreshToken == "" || after.ClientID != before.ClientID {
		t.Errorf("the file holds %+v", after)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".grant-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestATokenThatIsRefusedBeforeItsTimeIsRenewed(t *testing.T) {
	a := mcptest.NewAuthority(t)
	s := source(t, granted(t, a, never))
	first, err := s.Token(t.Context())
	if err != nil || !a.Good(first) || len(a.Asked()) != 0 {
		t.Fatalf("%q %v", first, err)
	}
	a.Forget(false)
	if another, err := s.Renew(t.Context(), first); !another || err != nil {
		t.Fatalf("%v %v", another, err)
	}
	second, err := s.Token(t.Context())
	if err != nil || !a.Good(second) {
		t.Errorf("%q %v", second, err)
	}
	// Who comes late with the old one is told that there is another.
	if another, err := s.Renew(t.Context(), first); !another || err != nil || len(a.Asked()) != 1 {
		t.Errorf("%v %v, asked %d times", another, err, len(a.Asked()))
	}
}

func TestARefusedRenewalIsTheUsersToMendAndIsNotRepeated(t *testing.T) {
	a := mcptest.NewAuthority(t)
	path := granted(t, a, long)
	spent := inFile(t, path).Token.RefreshToken
	a.Forget(true)
	s := source(t, path)
	for range 3 {
		_, err := s.Token(t.Context())
		if !errors.Is(err, actors.ErrSignIn) || !strings.Contains(err.Error(), "HTTP 400 invalid_grant") || strings.Contains(err.Error(), spent) {
			t.Errorf("%v", err)
		}
	}
	if n := len(a.Asked()); n != 1 {
		t.Errorf("a refresh token that was refused was sent %d times", n)
	}
	put(t, path, a.Grant(address, never)) // a login
	if token, err := s.Token(t.Context()); err != nil || !a.Good(token) {
		t.Errorf("after another login: %q %v", token, err)
	}
}

func TestAnAuthorityThatIsDownIsNoRefusal(t *testing.T) {
	a := mcptest.NewAuthority(t)
	s := source(t, granted(t, a, long))
	for _, status := range []int{500, 503, 429} {
		a.Fail(status)
		if _, err := s.Token(t.Context()); err == nil || errors.Is(err, actors.ErrSignIn) {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
	a.Fail(0)
	if token, err := s.Token(t.Context()); err != nil || !a.Good(token) {
		t.Errorf("%q %v", token, err)
	}
}

func TestAGrantIsForItsOriginOnly(t *testing.T) {
	a := mcptest.NewAuthority(t)
	path := granted(t, a, never)
	for _, elsewhere := range []string{"https://evil.example/mcp", "http://docs.example/mcp", "https://docs.example:444/mcp"} {
		s := NewSource(path, elsewhere, zerolog.Nop(), nil)
		if err := s.Look(); err != nil {
			t.Errorf("%s: %v", elsewhere, err)
		}
		if token, err := s.Token(t.Context()); token != "" || err != nil {
			t.Errorf("%s would get %q %v", elsewhere, token, err)
		}
		if another, err := s.Renew(t.Context(), ""); another || err != nil || len(a.Asked()) > 0 {
			t.Errorf("%s: it was renewed: %v %v", elsewhere, another, err)
		}
	}
}

func TestTheRefreshTokenDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	var leaked atomic.Int64
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	t.Cleanup(evil.Close)
	a := mcptest.NewAuthority(t)
	a.Redirect(evil.URL)
	if _, err := source(t, granted(t, a, long)).Token(t.Context()); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("%v", err)
	}
	if leaked.Load() != 0 {
		t.Error("the other host got the refresh token")
	}
}

func TestWithoutAGrantThereIsNoTokenAndNothingIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grants", "docs.json")
	s := source(t, path)
	if token, err := s.Token(t.Context()); token != "" || err != nil {
		t.Errorf("%q %v", token, err)
	}
	if another, err := s.Renew(t.Context(), ""); another || err != nil {
		t.Errorf("%v %v", another, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("it made a folder for what there is not")
	}
}

func TestABrokenGrantIsNamedAndNotQuoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docs.json")
	put(t, path, `{"token": access-secret-1234}`)
	err := NewSource(path, address, zerolog.Nop(), nil).Look()
	if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
