package downstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcphubd/actors"
)

// Tokens is what a user granted at the server.
type Tokens interface {
	// Look is told that a connection begins: something else may be granted by now.
	Look() error
	// Token is what a request shows, "" for nothing.
	Token(ctx context.Context) (string, error)
	// Renew is for a token that was refused, and says whether there is another one now.
	// Errors that only the user can mend wrap actors.ErrSignIn.
	Renew(ctx context.Context, refused string) (bool, error)
	// Secrets belong in no text.
	Secrets() []string
}

// do sends q and returns the beginning of the answer. A token that is refused is renewed
// once, and q sent again, for it was not looked at.
func (l *link) do(ctx context.Context, q request) (*http.Response, error) {
	token, err := l.token(ctx)
	if err != nil {
		return nil, err
	}
	res, err := l.reach(ctx, q, token)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	if another, err := l.renew(ctx, token); err != nil {
		discard(res)
		return nil, err
	} else if !another {
		return l.refused(res), nil
	}
	discard(res)
	if token, err = l.token(ctx); err != nil {
		return nil, err
	}
	if res, err = l.reach(ctx, q, token); err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	return l.refused(res), nil
}

// refused tells of a 401.
func (l *link) refused(res *http.Response) *http.Response {
	if l.denied != nil {
		l.denied()
	}
	return res
}

// login is what lets us into a server that refuses us.
func (l *link) login() string {
	header := fmt.Sprintf(`put a valid credential into headers of [servers.%s], such as Authorization = "Bearer ${file:PATH}"`, l.server)
	if l.tokens == nil {
		return header
	}
	return fmt.Sprintf("sign in once with: mcphubd server login %s; or, if it takes no OAuth, %s", l.server, header)
}

// permit is what lets us do more at a server than it permits.
func (l *link) permit() string {
	if l.tokens == nil {
		return fmt.Sprintf("the credential in headers of [servers.%s] does not permit this", l.server)
	}
	return "what was granted does not permit this; ask for more with: mcphubd server login " + l.server
}

// plainScopes are those that can stand in a command.
var plainScopes = regexp.MustCompile(`^[A-Za-z0-9:/._ -]{1,500}$`)

// wanted is what a refusal says that is missing, as arguments of a login.
func (r *refusal) wanted() string {
	challenges, err := oauthex.ParseWWWAuthenticate(r.header.Values("Www-Authenticate"))
	if err != nil {
		return ""
	}
	for _, c := range challenges {
		if scope := c.Params["scope"]; plainScopes.MatchString(scope) {
			return ` --scope "` + scope + `"`
		}
	}
	return ""
}

// signIn is how to help against err, if it is for want of a credential.
func (l *link) signIn(err error) string {
	if !errors.Is(err, actors.ErrSignIn) {
		return ""
	}
	return "; sign in again with: mcphubd server login " + l.server
}

// token is what to show the server, "" = nothing.
func (l *link) token(ctx context.Context) (string, error) {
	if l.tokens == nil {
		return "", nil
	}
	token, err := l.tokens.Token(ctx)
	return token, l.tokenless(ctx, err)
}

// renew reports whether there is another token than one that the server refused.
func (l *link) renew(ctx context.Context, refused string) (bool, error) {
	if l.tokens == nil {
		return false, nil
	}
	another, err := l.tokens.Renew(ctx, refused)
	return another, l.tokenless(ctx, err)
}

// tokenless words why there is no token. The server was not reached with the request, or
// refused it.
func (l *link) tokenless(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &unreached{text: l.mask.mask(clip(err.Error(), errorChars)) + l.signIn(err), signIn: errors.Is(err, actors.ErrSignIn)}
}
