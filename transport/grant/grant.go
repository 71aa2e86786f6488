package grant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/oauth2"
)

// Grant is the leave to speak to one server, as it stands in a file.
type Grant struct {
	URL           string       `json:"url"` // of the server; it is for this origin only
	TokenEndpoint string       `json:"tokenEndpoint"`
	ClientID      string       `json:"clientId"`
	ClientSecret  string       `json:"clientSecret,omitempty"`
	ClientAuth    string       `json:"clientAuth,omitempty"` // how the client says who it is: params | header; "" = found out
	Scopes        []string     `json:"scopes,omitempty"`     // that were asked for
	Token         oauth2.Token `json:"token"`
}

// Path is where the grant of a server is kept below the data directory.
func Path(data, server string) string { return filepath.Join(data, "grants", server+".json") }

// read returns the grant in a file, nil when there is none.
func read(path string) (*Grant, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := &Grant{}
	if err := json.Unmarshal(b, g); err != nil { // not the error's text: it may quote a token
		return nil, fmt.Errorf("the grant %s is no JSON of the form that a login writes", path)
	}
	return g, nil
}

// write puts g in the place of the file, whole or not at all. Only the owner can read it.
func (g *Grant) write(path string) error {
	b, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".grant-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// isFor reports whether g was given for the server at address.
func (g *Grant) isFor(address string) bool {
	a, errA := url.Parse(g.URL)
	b, errB := url.Parse(address)
	return errA == nil && errB == nil && a.Host != "" && sameOrigin(a, b)
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// client is how g says who we are at the token endpoint.
func (g *Grant) client() *oauth2.Config {
	c := &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenEndpoint}}
	switch g.ClientAuth {
	case "params":
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	case "header":
		c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	return c
}

// grantOf is what c and t of a login come to.
func grantOf(address string, c *oauth2.Config, t *oauth2.Token) *Grant {
	g := &Grant{URL: address, TokenEndpoint: c.Endpoint.TokenURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Scopes: c.Scopes, Token: *t}
	switch c.Endpoint.AuthStyle {
	case oauth2.AuthStyleInParams:
		g.ClientAuth = "params"
	case oauth2.AuthStyleInHeader:
		g.ClientAuth = "header"
	case oauth2.AuthStyleAutoDetect:
	}
	return g
}

// secrets is what of g belongs in no text.
func (g *Grant) secrets() (all []string) {
	for _, s := range []string{g.Token.AccessToken, g.Token.RefreshToken, g.ClientSecret} {
		if s != "" {
			all = append(all, s)
		}
	}
	return all
}
