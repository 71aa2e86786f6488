// Package answers holds the answer key: large tool results made from nothing but
// arithmetic, so that they are the same in every run, and what is true of them,
// worked out from the same numbers and never from the text.
package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A Payload is one large result.
type Payload struct {
	Name   string
	Result string // the raw value of a JSON-RPC result
}

// Payloads are all of them.
func Payloads() []Payload {
	return []Payload{
		{"issues", inText(raw(Issues()))},
		{"log", inText(Log())},
		{"tree", inText(indented(Tree()))},
		{"orders", inText(Orders())},
		{"snapshot", inText(Snapshot())},
		{"clusters", structured(raw(Clusters()))},
	}
}

func inText(text string) string { return `{"content":[{"type":"text","text":` + raw(text) + `}]}` }

// structured is a result as servers with an outputSchema give it: the text holds
// the same JSON once more.
func structured(object string) string {
	return strings.TrimSuffix(inText(object), "}") + `,"structuredContent":` + object + `}`
}

// raw is v as JSON on one line, indented on many.
func raw(v any) string { return encoded(v, "") }

func indented(v any) string { return encoded(v, "  ") }

func encoded(v any, indent string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic(err) // of values that are made here
	}
	return strings.TrimSpace(b.String())
}

// mix is well spread bits for i, the same in every process.
func mix(i int) uint64 {
	z := uint64(i)*0x9e3779b97f4a7c15 + 0x2545f491
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func pick[T any](from []T, i, salt int) T { return from[mix(i*64+salt)%uint64(len(from))] }

var (
	people = []string{"amara", "bjørn", "chidi", "dolores", "emeka", "farah", "goran", "hanako", "ines", "jürgen"}
	verbs  = []string{"crashes", "hangs", "leaks memory", "loses data", "is slow", "prints nothing", "ignores the flag", "panics"}
	things = []string{"the scheduler", "the parser", "an import", "the index", "a reload", "the exporter", "the watcher", "the cache"}
	whens  = []string{"on a full disk", "after a reconnect", "with two writers", "over a slow link", "when run twice", "at midnight", "on 日本語 names"}
)

func sentence(i int) string {
	return fmt.Sprintf("%s %s %s", pick(things, i, 1), pick(verbs, i, 2), pick(whens, i, 3))
}

// paragraph is about n sentences.
func paragraph(i, n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, "Step %d: %s, and %s. ", k+1, sentence(i*31+k), sentence(i*17+k+5))
	}
	return strings.TrimSpace(b.String())
}
