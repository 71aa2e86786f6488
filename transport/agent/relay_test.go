package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// modernPost sends a 2026-07-28 request with the headers that it needs.
func (f *fixture) modernPost(path, method, name, params string, more ...string) answer {
	h := []string{versionHeader, "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	body := `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + modernMeta + `}}`
	return f.do("POST", path, body, append(h, more...)...)
}

func TestC63RelayedRequestsKeepTheirBytesBothWaysInBothEras(t *testing.T) {
	f := start(t)
	sid := f.login("/mcp/x")
	for _, c := range []struct{ method, name, params string }{
		{"prompts/get", "d__p", `"name":"d__p","arguments":{"a":"\u00e9","n":9007199254740993},"future":[1.0]`},
		{"resources/read", "mcphub://d/a:b", `"future":-0,"uri":"mcphub://d/a:b"`},
		{"completion/complete", "", `"ref":{"x":1e400,"type":"ref/prompt","name":"d__p"},"argument":{"name":"a","value":"v"}`},
		{"completion/complete", "", `"argument":{"name":"a","value":"v"},"ref":{"uri":"mcphub://d/a:{b}","type":"ref/resource"}`},
	} {
		legacy := f.do("POST", "/mcp/x", `{"jsonrpc":"2.0","id":"q","method":"`+c.method+`","params":{`+c.params+`}}`, sessionHeader, sid)
		if want := `"params":{` + c.params + `}}}`; legacy.status != 200 || !strings.HasSuffix(legacy.body, want) || !strings.HasPrefix(legacy.body, `{"jsonrpc":"2.0","id":"q","result":{"method":"`+c.method) {
			t.Errorf("legacy %s: %d %s", c.method, legacy.status, legacy.body)
		}
		modern := f.modernPost("/mcp/x", c.method, c.name, c.params+",")
		if want := `"params":{` + c.params + `,` + modernMeta + `}}}`; modern.status != 200 || !strings.HasSuffix(modern.body, want) || !strings.Contains(modern.body, `"result":{"resultType":"complete",`) {
			t.Errorf("modern %s: %d %s", c.method, modern.status, modern.body)
		}
	}
}

func TestRequestsWhoseHeadersSaySomethingElseAreRefused(t *testing.T) {
	f := start(t)
	for _, c := range []struct{ method, name, params string }{
		{"prompts/get", "d__other", `"name":"d__p",`},
		{"resources/read", "", `"uri":"mcphub://d/a:b",`},
		{"resources/read", "mcphub://d/a:c", `"uri":"mcphub://d/a:b",`},
	} {
		if a := f.modernPost("/mcp/x", c.method, c.name, c.params); a.status != 400 {
			t.Errorf("%s with Mcp-Name %q: %d %s", c.method, c.name, a.status, a.body)
		}
	}
	if n := f.gw.agent("x").count(); n != 0 {
		t.Errorf("%d of them got through", n)
	}
	if a := f.modernPost("/mcp/x", "resources/read", "=?base64?bWNwaHViOi8vZC9hOmI=?=", `"uri":"mcphub://d/a:b",`); a.status != 200 {
		t.Errorf("a coded Mcp-Name: %d %s", a.status, a.body)
	}
}

func TestC101ListsAreServedFromWhatIsKnownAndUnknownMethodsAreErrors(t *testing.T) {
	f := start(t)
	a := f.gw.agent("x")
	a.lists = [3]string{`[{"name":"d__p","x":1.0}]`, "", `[{"uriTemplate":"t"}]`}
	sid := f.login("/mcp/x")
	for _, c := range []struct{ method, want string }{
		{"prompts/list", `{"prompts":[{"name":"d__p","x":1.0}]}`},
		{"resources/list", `{"resources":[]}`},
		{"resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"t"}]}`},
	} {
		legacy := f.do("POST", "/mcp/x", `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`"}`, sessionHeader, sid)
		if legacy.body != `{"jsonrpc":"2.0","id":1,"result":`+c.want+`}` {
			t.Errorf("legacy %s: %s", c.method, legacy.body)
		}
		modern := f.modernPost("/mcp/x", c.method, "", "")
		var got struct {
			Result struct {
				ResultType string
				TTL        *int `json:"ttlMs"`
				CacheScope string
			}
		}
		if err := json.Unmarshal([]byte(modern.body), &got); err != nil || got.Result.ResultType != "complete" || got.Result.TTL == nil || got.Result.CacheScope != "private" || !strings.Contains(modern.body, c.want[1:len(c.want)-1]) {
			t.Errorf("modern %s: %s", c.method, modern.body)
		}
	}
	for _, body := range []string{`{"jsonrpc":"2.0","id":2,"method":"x/custom"}`, `{"jsonrpc":"2.0","id":2,"method":"x/custom","params":{}}`} {
		if got := f.do("POST", "/mcp/x", body, sessionHeader, sid); !strings.Contains(got.body, "-32601") {
			t.Errorf("unknown method: %d %s", got.status, got.body)
		}
	}
	if n := a.count(); n != 0 {
		t.Errorf("%d requests got to a server", n)
	}
}

func TestAMissingResourceIsSaidAsEachEraKnowsIt(t *testing.T) {
	f := start(t)
	f.gw.agent("x").request = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		return actors.Reply{}, &actors.NotFound{URI: c.Name}
	}
	legacy := f.do("POST", "/mcp/x", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:\"b"}}`, sessionHeader, f.login("/mcp/x"))
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"a:\"b"}}}`; legacy.body != want {
		t.Errorf("legacy: %s", legacy.body)
	}
	modern := f.modernPost("/mcp/x", "resources/read", `a:"b`, `"uri":"a:\"b",`)
	if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"a:\"b"}}}`; modern.body != want || modern.status != 400 {
		t.Errorf("modern: %d %s", modern.status, modern.body)
	}
}

func TestOneServerHasAnEndpointAndSessionsOfItsOwn(t *testing.T) {
	f := start(t)
	one := f.gw.agent("default at d")
	one.hello = actors.Hello{Instructions: "d says", Capabilities: []byte(`{"tools":{},"completions":{}}`)}
	one.tools = `[{"name":"echo","inputSchema":{"type":"object"}}]`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		cs := f.official("/servers/d/mcp", version, nil)
		i := cs.InitializeResult()
		if i.Instructions != "d says" || i.Capabilities.Tools == nil || i.Capabilities.Completions == nil || i.Capabilities.Prompts != nil || i.Capabilities.Resources != nil || i.Capabilities.Logging != nil {
			t.Errorf("%s: %+v", version, i.Capabilities)
		}
		if l, err := cs.ListTools(context.Background(), nil); err != nil || len(l.Tools) != 1 || l.Tools[0].Name != "echo" {
			t.Errorf("%s: %v %v", version, l, err)
		}
	}
	sid := f.login("/servers/d/mcp")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for path, want := range map[string]int{"/servers/d/mcp": 200, "/mcp": 404, "/servers/d/mcp/x": 404} {
		if a := f.do("POST", path, ping, sessionHeader, sid); a.status != want {
			t.Errorf("the session at %s: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/servers/e/mcp", "/servers/d", "/servers/d/mcp/", "/servers//mcp", "/servers/d/mcp/a@b", "/mcp/a@d"} {
		if a := f.do("POST", path, hello); a.status != 404 || !strings.Contains(a.body, `"message":"no`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestC87UpdatesGoToTheSubscribersOnly(t *testing.T) {
	f := start(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		a := f.gw.agent("x" + version[:4])
		path := "/mcp/x" + version[:4]
		told, other := make(chan string, 10), make(chan string, 10)
		listen := func(to chan string) *mcp.ClientOptions {
			return &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
				select {
				case to <- r.Params.URI:
				default: // enough was heard, and Close waits for us
				}
			}}
		}
		cs := f.official(path, version, listen(told))
		f.official(path, version, listen(other))
		const uri = "mcphub://d/a:b"
		if err := cs.Subscribe(context.Background(), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
		if got := within(t, a.subscribed, "the subscription"); got != uri {
			t.Fatalf("%s: subscribed to %q", version, got)
		}
		// The SDK notes the subscriber after ours; what changes before is not yet its business.
		for heard := false; !heard; {
			a.mu.Lock()
			a.heard()
			a.mu.Unlock()
			select {
			case got := <-told:
				if heard = true; got != uri {
					t.Errorf("%s: told of %s", version, got)
				}
			case <-t.Context().Done():
				t.Fatal("no update")
			case <-time.After(10 * time.Millisecond):
			}
		}
		cs.Close()
		if got := within(t, a.ended, "the end of the subscription"); got != uri {
			t.Errorf("%s: ended %s", version, got)
		}
		if len(other) > 0 {
			t.Errorf("%s: somebody else was told of %s", version, <-other)
		}
	}
}

// 2026-07-28 demands of a reading how long it may be kept, and by whom. An older server
// does not say, so its result must not be kept.
func TestAReadingOfAnOlderServerSaysThatItMustNotBeKept(t *testing.T) {
	f := start(t)
	f.gw.agent("x").request = func(_ context.Context, c actors.Call) (actors.Reply, error) { return held(`{"contents":[]}`), nil }
	for _, r := range []struct{ method, name, params, want string }{
		{"resources/read", "a:b", `"uri":"a:b",`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}`},
		{"prompts/get", "p", `"name":"p",`, `{"resultType":"complete","contents":[]}`},
	} {
		if a := f.modernPost("/mcp/x", r.method, r.name, r.params); !strings.Contains(a.body, `"result":`+r.want+`}`) {
			t.Errorf("%s: %s", r.method, a.body)
		}
	}
	f.gw.agent("x").request = func(_ context.Context, c actors.Call) (actors.Reply, error) {
		return held(`{"contents":[],"resultType":"complete","ttlMs":9,"cacheScope":"public"}`), nil
	}
	if a := f.modernPost("/mcp/x", "resources/read", "a:b", `"uri":"a:b",`); !strings.Contains(a.body, `"result":{"contents":[],"resultType":"complete","ttlMs":9,"cacheScope":"public"}}`) {
		t.Errorf("a newer server: %s", a.body)
	}
}
