package debug

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
)

//go:embed page.html
var pageHTML string

// pageRules lets the page run its own script and style, speak to where it came from,
// and nothing else.
var pageRules = "default-src 'none'; connect-src 'self'; img-src data:; script-src " + digestOf("script") +
	"; style-src " + digestOf("style") + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// digestOf names the one element of that kind in the page by what is in it.
func digestOf(element string) string {
	_, rest, _ := strings.Cut(pageHTML, "<"+element+">")
	text, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page serves the page, which holds nothing of the daemon: it reads the state as
// everybody does.
func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pageRules)
	w.Write([]byte(pageHTML))
}
