package agent

import (
	"testing"

	"mcphubd/actors"
)

// FuzzRelayedNamesStandWhereTheySay: of whatever is relayed, the place that will be
// rewritten holds the very name that was looked up, and nothing else does.
func FuzzRelayedNamesStandWhereTheySay(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"d__p","arguments":{"name":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"_meta":{"uri":"no"},"uri":"a:\u0062"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"a:{b}","name":"n"},"argument":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a","name":"b"},"argument":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b","\u0075ri":"c:d"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, no := parse(body)
		if no != nil || !relays(m.method) {
			return
		}
		p, no := findParams(m.params.Of(body))
		if no != nil {
			return
		}
		c, no := callOf(m, p)
		if no != nil {
			return
		}
		name, ok := text(c.NameAt.Of(c.Params))
		if !ok || name != c.Name || name == "" {
			t.Fatalf("%q is looked up, %q stands at %v of %s", c.Name, c.NameAt.Of(c.Params), c.NameAt, c.Params)
		}
		if (c.Method == actors.Complete) != (c.Ref != "") {
			t.Fatalf("%s about %q", c.Method, c.Ref)
		}
	})
}
