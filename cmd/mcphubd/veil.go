package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mcphubd/config"
)

// logVeil lies over all that is logged in this process, like the level does.
var logVeil veil

// veil hides secrets in text, plain or as they stand in JSON. It is the last line of
// defence: who words a text hides what belongs in none. The zero value hides nothing.
type veil struct {
	mu     sync.Mutex
	known  []string // of all configurations so far: a server that is stopped still speaks
	tokens []string // that were granted, the newest last
	over   atomic.Pointer[strings.Replacer]
}

// maxTokens bounds the tokens that are hidden: there is a new one every hour.
const maxTokens = 256

// cover hides the secrets of c too.
func (v *veil) cover(c *config.Config) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = config.SecretSet(append(v.known, c.Secrets()...))
	v.lay()
}

// coverTokens hides what was granted, too.
func (v *veil) coverTokens(tokens []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tokens = append(v.tokens, tokens...)
	v.tokens = v.tokens[max(0, len(v.tokens)-maxTokens):]
	v.lay()
}

func (v *veil) lay() {
	var pairs []string
	for _, s := range config.SecretSet(slices.Concat(v.known, v.tokens)) {
		for _, form := range forms(s) {
			pairs = append(pairs, form, "***")
		}
	}
	if pairs != nil {
		v.over.Store(strings.NewReplacer(pairs...))
	}
}

// forms are the ways in which a secret is written.
func forms(s string) []string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text always encodes
	if quoted := strings.Trim(b.String(), "\n"); quoted != `"`+s+`"` {
		return []string{quoted[1 : len(quoted)-1], s}
	}
	return []string{s}
}

// veiled is a way out that the veil lies over.
type veiled struct{ io.Writer }

func (w veiled) Write(p []byte) (int, error) {
	_, err := w.Writer.Write(logVeil.hide(p))
	return len(p), err
}

// hide returns lines without secrets.
func (v *veil) hide(lines []byte) []byte {
	if r := v.over.Load(); r != nil {
		return []byte(r.Replace(string(lines)))
	}
	return lines
}
