package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// remote is a server at a URL. Every request is a POST of its own, so not even ids have
// to be rewritten: bytes go there and come back as they are.
type remote struct {
	url, session string
	pool         *http.Transport
}

func dial(url string) (*remote, error) {
	r := &remote{url: url, pool: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	res, err := r.post([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + hello + `}`))
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("initialize %s: HTTP %d", url, res.StatusCode)
	}
	r.session = res.Header.Get("Mcp-Session-Id")
	if res, err = r.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err == nil {
		res.Body.Close()
	}
	return r, err
}

func (r *remote) post(body []byte) (*http.Response, error) {
	q, err := http.NewRequest(http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if r.session != "" {
		q.Header["Mcp-Session-Id"], q.Header["Mcp-Protocol-Version"] = []string{r.session}, []string{"2025-06-18"}
	}
	return r.pool.RoundTrip(q)
}

func (r *remote) pass(w http.ResponseWriter, _ request, body []byte) {
	res, err := r.post(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
	if res.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(res.ContentLength, 10))
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}
