package actors

import (
	"strings"
	"testing"
)

func TestC20TheEndOfStderrIsShownWholeLinesFirst(t *testing.T) {
	long := strings.Repeat("é", stderrShown)
	for name, tt := range map[string]struct{ all, want string }{
		"short":                      {"one\ntwo\n", "one\ntwo\n"},
		"long, with whole lines":     {long + "\none\ntwo\n", "one\ntwo\n"},
		"no line ends":               {"x" + long, long[len(long)/2:]},
		"the last alone is too long": {long + "\n", long[len(long)/2+2:] + "\n"},
		"and an empty one":           {long + "\n\n", long[len(long)/2+2:] + "\n\n"},
	} {
		if got := endOf(tt.all); got != tt.want {
			t.Errorf("%s: %d bytes that end with %q, want %d", name, len(got), got[max(len(got)-8, 0):], len(tt.want))
		}
	}
}
