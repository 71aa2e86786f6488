package main

import (
	"cmp"
	"net/http"
	"os"
	"strings"
)

// agentToken is the token in a file, or in the environment; "" when there is none. It
// is no argument: those can be read by everybody on the machine.
func agentToken(file string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv("MCPHUBD_TOKEN")), nil
	}
	b, err := os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

// withToken has c bring a token with every request; "" = none.
func withToken(c *http.Client, token string) *http.Client {
	if token != "" {
		c.Transport = authorised{cmp.Or(c.Transport, http.DefaultTransport), token}
	}
	return c
}

type authorised struct {
	http.RoundTripper
	token string
}

func (t authorised) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // a RoundTripper may not change what it is given
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.RoundTripper.RoundTrip(r)
}
