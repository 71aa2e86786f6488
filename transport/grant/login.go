package grant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Login is what a user does once for a server that wants OAuth.
type Login struct {
	URL          string      // of the server
	Stream       bool        // it is one of the older HTTP with SSE
	Header       http.Header // what it wants besides
	ClientID     string      // registered beforehand; "" = we register ourselves
	ClientSecret string
	Scopes       []string // besides those that the server asks for
	Port         int      // to which the browser comes back; 0 = any

	// Show gives the user the address at which to say yes.
	Show func(address string)

	had []string // scopes
}

// Run waits for the user and keeps what was granted at path.
func (l Login) Run(ctx context.Context, path string) error {
	back, err := listen(l.Port)
	if err != nil {
		return err
	}
	defer back.close()
	var g *Grant
	if before, err := read(path); err == nil && before != nil && before.isFor(l.URL) {
		l.had = before.Scopes
	}
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back.url,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "mcphubd", RedirectURIs: []string{back.url}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		RequestRefreshToken:   true,
		AcceptUnadvertisedIss: true,
		Client:                client(),
		ScopeFilter:           l.scopes,
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if err := back.expect(a.URL); err != nil {
				return nil, err
			}
			l.Show(a.URL)
			return back.wait(ctx)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			g = grantOf(l.URL, c, t)
			return oauth2.StaticTokenSource(t), nil
		},
	}
	if l.ClientID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.ClientID}
		if l.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.ClientSecret}
		}
	}
	handler, err := auth.NewAuthorizationCodeHandler(c)
	if err != nil {
		return err
	}
	req, res, err := l.knock(ctx)
	if err != nil {
		return err
	}
	status := res.StatusCode
	res.StatusCode = http.StatusUnauthorized
	if err := handler.Authorize(ctx, req, res); err != nil {
		if status != http.StatusUnauthorized {
			err = fmt.Errorf("%w; the server itself wants no credential for a first request: it answered HTTP %d", err, status)
		}
		return err
	}
	unlock, err := lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	return g.write(path)
}

// scopes is what is asked for: what was found, what is wished, and nothing less than what
// was granted before.
func (l Login) scopes(found []string) []string {
	all := slices.Clone(found)
	for _, s := range slices.Concat(l.had, l.Scopes) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Two requests that hardly any server answers without a credential, if it wants one.
const (
	discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcphubd","version":"login"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	hello    = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcphubd","version":"login"}}}`
)

// knock asks without a credential. The refusal says whom to ask for one. A server that
// answers something else may still want one for other requests, and is then looked at as
// one that gives no hint.
func (l Login) knock(ctx context.Context) (req *http.Request, res *http.Response, err error) {
	tries := []struct{ method, body, protocol, about string }{
		{http.MethodPost, discover, "2026-07-28", "server/discover"},
		{http.MethodPost, hello, "", ""},
	}
	if l.Stream {
		tries = tries[:1]
		tries[0].method, tries[0].body, tries[0].protocol, tries[0].about = http.MethodGet, "", "", ""
	}
	for _, t := range tries {
		if req, err = http.NewRequestWithContext(ctx, t.method, l.URL, strings.NewReader(t.body)); err != nil {
			return nil, nil, errors.New("url: it is no address")
		}
		req.Header = l.Header.Clone()
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": t.protocol, "Mcp-Method": t.about} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		if res, err = client().Do(req); err != nil {
			return nil, nil, err
		}
		res.Body.Close() // what it says may have no end
		res.Body = http.NoBody
		if res.StatusCode == http.StatusUnauthorized {
			break
		}
	}
	return req, res, nil
}

// comeback is where the browser comes back to with the code.
type comeback struct {
	url    string
	state  atomic.Value // what whoever comes back from there has to know; a string
	server *http.Server
	result chan *auth.AuthorizationResult
	failed chan error
}

func listen(port int) (*comeback, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	b := &comeback{url: "http://" + l.Addr().String() + "/callback", result: make(chan *auth.AuthorizationResult, 1), failed: make(chan error, 1)}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = b.server.Serve(l) }()
	return b, nil
}

// expect lets in who comes back from address.
func (b *comeback) expect(address string) error {
	u, err := url.Parse(address)
	if err == nil {
		b.state.Store(u.Query().Get("state"))
	}
	return err
}

func (b *comeback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if state, ok := b.state.Load().(string); !ok || r.URL.Path != "/callback" || q.Get("state") != state {
		http.Error(w, "this is not the answer that mcphubd waits for", http.StatusNotFound)
		return
	}
	switch {
	case q.Get("error") != "":
		select {
		case b.failed <- fmt.Errorf("the authorization server says %.100q %.200q", q.Get("error"), q.Get("error_description")):
		default:
		}
	case q.Get("code") != "":
		select {
		case b.result <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}:
		default:
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "mcphubd has its answer; the terminal tells how it went. This page can be closed.\n")
}

// wait waits for the user.
func (b *comeback) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case r := <-b.result:
		return r, nil
	case err := <-b.failed:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *comeback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx) // the browser gets its page
	_ = b.server.Close()
}
