package downstream

import (
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A server that answers everything, server/discover included, with an empty result is
// one of the older revisions: what it declares stands in its answer to initialize.
func TestWhatAServerDeclaresStandsInTheHandshakeThatCounted(t *testing.T) {
	c := newControl(func(jsonrpc.Message, []byte) error { return nil })
	for i, step := range []struct{ method, answer string }{
		{"server/discover", `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"initialize", `{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`},
		{"tools/list", `{"jsonrpc":"2.0","id":3,"result":{"capabilities":{"none":"of this"}}}`},
	} {
		id, err := jsonrpc.MakeID(float64(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), &jsonrpc.Request{ID: id, Method: step.method}); err != nil {
			t.Fatal(err)
		}
		if c.take([]byte(step.answer)) != taken {
			t.Fatalf("%s was not taken", step.answer)
		}
	}
	if got := string(capabilities(c.first())); got != `{"tools":{}}` {
		t.Errorf("it declares %s", got)
	}
}

// TestC98TheRevisionIsKnownBeforeTheNextMessageIsMade, which names it: on a busy machine the
// SDK went on before we knew, and servers refused the header.
func TestC98TheRevisionIsKnownBeforeTheNextMessageIsMade(t *testing.T) {
	c := newControl(func(jsonrpc.Message, []byte) error { return nil })
	told := ""
	c.greeted = func(hello []byte) {
		if told += string(hello); len(c.in) > 1 {
			t.Error("the SDK has the answer already")
		}
	}
	for id, method := range []string{"server/discover", "initialize"} {
		id, err := jsonrpc.MakeID(float64(id))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), &jsonrpc.Request{ID: id, Method: method}); err != nil {
			t.Fatal(err)
		}
		if c.take(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%v,"result":{"of":%q}}`, id.Raw(), method)) != taken {
			t.Fatal("not taken")
		}
	}
	if told != `{"of":"initialize"}` {
		t.Errorf("told of %s", told)
	}
}
