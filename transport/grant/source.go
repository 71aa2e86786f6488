package grant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"mcphubd/actors"
)

// renewalBound is how long it may take to renew a token, whoever waits.
const renewalBound = 30 * time.Second

// Source gives the tokens for one server. It is safe for concurrent use.
type Source struct {
	path, url string
	log       zerolog.Logger
	learned   func(secrets []string) // told of all that must not be shown; may be nil

	now  atomic.Pointer[Grant] // nil = there is none
	turn singleflight.Group

	mu     sync.Mutex
	dead   string   // a refresh token that was refused
	why    error    // and what was said about it
	veiled []string // what Secrets tells
}

// NewSource gives the tokens of the grant at path for the server at url.
func NewSource(path, url string, log zerolog.Logger, learned func(secrets []string)) *Source {
	return &Source{path: path, url: url, log: log, learned: learned}
}

// Look reads the grant as it is now.
func (s *Source) Look() error {
	g, err := read(s.path)
	if err != nil {
		return err
	}
	if g != nil && !g.isFor(s.url) {
		s.log.Warn().Str("grant", s.path).Str("for", g.URL).Msg("a grant is for another server than this, which does not get it; a login replaces it")
		g = nil
	}
	s.take(g)
	return nil
}

// Token is what a request shows, "" when nothing was granted. It is valid as far as can
// be seen from here.
func (s *Source) Token(ctx context.Context) (string, error) {
	g := s.now.Load()
	if g == nil || g.Token.Valid() {
		return g.access(), nil
	}
	if err := s.renew(ctx, g.Token.AccessToken); err != nil {
		return "", err
	}
	return s.now.Load().access(), nil
}

func (g *Grant) access() string {
	if g == nil {
		return ""
	}
	return g.Token.AccessToken
}

// Renew is for a token that the server refused. It reports whether there is another one
// by now; an error says why there cannot be.
func (s *Source) Renew(ctx context.Context, refused string) (bool, error) {
	if err := s.renew(ctx, refused); err != nil {
		return false, err
	}
	return s.now.Load().access() != refused, nil
}

// renew gets a token in the place of one that is of no use. All who come meanwhile wait
// for the same attempt, which goes on when they do not: a refresh token that was spent
// leads nowhere without its answer.
func (s *Source) renew(ctx context.Context, stale string) error {
	done := s.turn.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), renewalBound, fmt.Errorf("no answer within %s", renewalBound))
		defer cancel()
		return nil, s.replace(ctx, stale)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// replace takes what another process or a login has written meanwhile, else renews.
func (s *Source) replace(ctx context.Context, stale string) error {
	if replaced, err := s.replaced(stale); replaced || err != nil {
		return err
	}
	unlock, err := lock(s.path)
	if err != nil {
		return fmt.Errorf("keep others from the grant: %w", err)
	}
	defer unlock()
	if replaced, err := s.replaced(stale); replaced || err != nil {
		return err
	}
	g := s.now.Load()
	if g.Token.RefreshToken == "" {
		return fmt.Errorf("%w: the token is not taken any more, and came without one to renew it", actors.ErrSignIn)
	}
	if err := s.refused(g.Token.RefreshToken); err != nil {
		return err
	}
	return s.refresh(ctx, g)
}

// replaced looks whether the file holds another token than a stale one, or whether there
// is nothing at all to renew.
func (s *Source) replaced(stale string) (bool, error) {
	if err := s.Look(); err != nil {
		return false, err
	}
	switch g := s.now.Load(); {
	case g == nil && stale == "":
		return true, nil
	case g == nil:
		return false, fmt.Errorf("%w: the grant %s is gone", actors.ErrSignIn, s.path)
	default:
		return g.Token.AccessToken != stale && g.Token.Valid(), nil
	}
}

// refresh trades the refresh token of g.
func (s *Source) refresh(ctx context.Context, g *Grant) error {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client())
	token, err := g.client().TokenSource(ctx, &oauth2.Token{RefreshToken: g.Token.RefreshToken}).Token()
	if err != nil {
		return s.unrenewed(ctx, g.Token.RefreshToken, err)
	}
	next := *g
	next.Token = *token
	if err := next.write(s.path); err != nil { // it is good all the same, in this process
		s.log.Warn().Str("grant", s.path).Err(err).Msg("a token was renewed and cannot be kept: the next start may need another login")
	}
	s.take(&next)
	return nil
}

// unrenewed words why there is no new token. What the endpoint said is not quoted but
// for its error code: it may hold anything.
func (s *Source) unrenewed(ctx context.Context, refresh string, err error) error {
	var refusal *oauth2.RetrieveError
	if !errors.As(err, &refusal) {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("renew the token: %w", err)
	}
	status := 0
	if refusal.Response != nil {
		status = refusal.Response.StatusCode
	}
	said := strings.TrimSpace(fmt.Sprintf("HTTP %d %.60s", status, refusal.ErrorCode))
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		return fmt.Errorf("renew the token: %s", said)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.why = refresh, fmt.Errorf("%w: the token could not be renewed: %s", actors.ErrSignIn, said)
	return s.why
}

// refused is what was said about a refresh token that was of no use before.
func (s *Source) refused(refresh string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refresh == s.dead {
		return s.why
	}
	return nil
}

// take makes g the grant of the moment.
func (s *Source) take(g *Grant) {
	if g != nil {
		s.mu.Lock()
		// What went before stays hidden: a server may still speak of it.
		s.veiled = append(g.secrets(), s.veiled[:min(len(s.veiled), 16)]...)
		s.mu.Unlock()
		if s.learned != nil {
			s.learned(g.secrets())
		}
	}
	s.now.Store(g)
}

// Secrets is what belongs in no text.
func (s *Source) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.veiled
}

// lock keeps other processes from renewing what is in the file.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// client speaks to authorization servers. What it posts are credentials: those go to the
// origin that they are meant for, wherever it redirects to.
func client() *http.Client {
	return &http.Client{Timeout: renewalBound, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		switch first := before[0]; {
		case first.Method == http.MethodPost && !sameOrigin(first.URL, next.URL):
			return fmt.Errorf("it redirects to another host, %s, which gets nothing from here", next.URL.Host)
		case len(before) > 3:
			return errors.New("it redirects more than 3 times")
		}
		return nil
	}}
}
