package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// remote is the running daemon, as its owner sees it over the socket.
type remote struct {
	address
	http *http.Client
}

// patience is how long a daemon may take to tell its state.
const patience = 10 * time.Second

// remote finds the daemon that the flags lead to.
func (a *app) remote() (*remote, error) {
	data, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	at, err := findDaemon(data)
	if err != nil {
		return nil, err
	}
	return &remote{at, socketClient(func() string { return at.Socket })}, nil
}

// look asks the daemon that the flags lead to for its state.
func (a *app) look() (s state, raw []byte, err error) {
	r, err := a.remote()
	if err != nil {
		return s, nil, err
	}
	return r.state(a.ctx)
}

// state asks the daemon for its state: as a value, and as it was sent.
func (r *remote) state(ctx context.Context) (s state, raw []byte, err error) {
	raw, err = r.ask(ctx, http.MethodGet, "/debug/state")
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, nil, fmt.Errorf("ask the daemon (pid %d) for its state: %w", r.PID, err)
	}
	return s, raw, nil
}

// ask makes one request and returns the answer. A 404 is an error with
// codeNotFound, every other refusal one with the daemon's own words.
func (r *remote) ask(ctx context.Context, method, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusMethodNotAllowed:
		return nil, fail(codeNotFound, fmt.Errorf("the daemon says: %s", reason(answer, res.Status)))
	case res.StatusCode >= 300:
		return nil, fmt.Errorf("the daemon refuses: %s", reason(answer, res.Status))
	}
	return answer, nil
}

// reason is what an answer says, else its status.
func reason(answer []byte, status string) string {
	var e struct{ Error string }
	if json.Unmarshal(answer, &e) == nil && e.Error != "" {
		return e.Error
	}
	if text := oneLine(string(answer), 300); text != "" {
		return strings.TrimSuffix(text, "\n")
	}
	return status
}
