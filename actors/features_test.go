package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// asked notes what a fake server was asked.
type asked struct {
	mu   sync.Mutex
	list []string
}

func (a *asked) note(method string, params []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, method+" "+string(params))
}

func (a *asked) count(prefix string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// offering is a server that answers methods with fixed results, and a note of what
// it was asked. A result that begins with "!" is an error object.
func offering(caps string, results map[string]string) (*fakeServer, *asked) {
	f, a := &fakeServer{caps: caps, methods: map[string]func([]byte) (string, string){}}, &asked{}
	for _, method := range []string{"tools/list", "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
		"resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete"} {
		f.methods[method] = func(params []byte) (string, string) {
			a.note(method, params)
			r, ok := results[method]
			if method == "tools/list" && !ok {
				return `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, ""
			}
			if !ok {
				return "", `{"code":-32601,"message":"no such method"}`
			}
			if fault, isFault := strings.CutPrefix(r, "!"); isFault {
				return "", fault
			}
			return strings.ReplaceAll(r, "PARAMS", string(params)), ""
		}
	}
	return f, a
}

const everything = `{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{}}`

// featuresKnown waits until all servers were asked for all they offer.
func (r *rig) featuresKnown() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := r.Hub.await(ctx, allFeatured); err != nil {
		r.t.Fatal("features not known:", err)
	}
}

func (r *rig) session(agent string) *Session {
	r.t.Helper()
	s, err := r.Hub.Open(context.Background(), agent)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// requester is a Session or a One.
type requester interface {
	Request(context.Context, Call) (Reply, error)
}

// ask relays a request whose name stands in params under key.
func request(s requester, method, key, name, rest string) (string, error) {
	head := `{"` + key + `":`
	q, _ := json.Marshal(name)
	c := Call{Method: method, Name: name, Params: []byte(head + string(q) + rest + `}`), NameAt: Range{len(head), len(head) + len(q)}}
	if key == "prompt" || key == "template" {
		c.Ref = map[string]string{"prompt": RefPrompt, "template": RefResource}[key]
	}
	reply, err := s.Request(context.Background(), c)
	if err != nil {
		return "", err
	}
	if reply.Error != nil {
		return "", RawError(reply.Error)
	}
	defer reply.Result.Close()
	var b bytes.Buffer
	reply.Result.WriteTo(&b)
	return b.String(), nil
}

const twoFiles = `
[servers.d1]
command = "x"
[servers.d2]
command = "x"
[agents.all]
[agents.one]
servers = ["d1"]
[agents.tools]
tools = ["d1__*"]
`

func TestC87ResourcesAndPromptsOfTwoServersAreBothReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offer := map[string]string{
			"prompts/list":             `{"prompts":[{"name":"review","x":9007199254740993}]}`,
			"resources/list":           `{"resources":[{"uri":"file:///readme","name":"r","n":1.0}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"name":"t","uriTemplate":"file:///{path}"}]}`,
			"prompts/get":              `{"messages":[],"got":PARAMS}`,
			"resources/read":           `{"contents":[],"got":PARAMS}`,
		}
		d1, _ := offering(everything, offer)
		d2, asked2 := offering(everything, offer)
		r := newRig(t, twoFiles, map[string]*fakeServer{"d1": d1, "d2": d2})
		r.featuresKnown()
		s := r.session("all")
		ctx := context.Background()
		for _, c := range []struct{ got, want string }{
			{string(s.List(ctx, PromptList)), `[{"name":"d1__review","x":9007199254740993},{"name":"d2__review","x":9007199254740993}]`},
			{string(s.List(ctx, ResourceList)), `[{"uri":"mcphub://d1/file:///readme","name":"r","n":1.0},{"uri":"mcphub://d2/file:///readme","name":"r","n":1.0}]`},
			{string(s.List(ctx, TemplateList)), `[{"name":"t","uriTemplate":"mcphub://d1/file:///{path}"},{"name":"t","uriTemplate":"mcphub://d2/file:///{path}"}]`},
		} {
			if c.got != c.want {
				t.Errorf("list\n got %s\nwant %s", c.got, c.want)
			}
		}
		for _, c := range []struct{ method, key, name, rest, want string }{
			{GetPrompt, "name", "d2__review", `,"arguments":{"a":1.0}`, `{"messages":[],"got":{"name":"review","arguments":{"a":1.0}}}`},
			{ReadResource, "uri", "mcphub://d2/file:///readme", `,"_meta":{"traceparent":"t"}`, `{"contents":[],"got":{"uri":"file:///readme","_meta":{"traceparent":"t"}}}`},
			{ReadResource, "uri", "mcphub://d1/file:///a/b%20c", ``, `{"contents":[],"got":{"uri":"file:///a/b%20c"}}`},
		} {
			if got, err := request(s, c.method, c.key, c.name, c.rest); got != c.want || err != nil {
				t.Errorf("%s %s\n got %s %v\nwant %s", c.method, c.name, got, err, c.want)
			}
		}
		if _, err := request(s, ReadResource, "uri", "file:///readme", ""); err == nil || !strings.Contains(err.Error(), "mcphub://d2/file:///readme") {
			t.Errorf("a uri of two servers: %v", err)
		}
		before := asked2.count("")
		for _, c := range []struct{ agent, method, key, name, other string }{
			{"one", ReadResource, "uri", "mcphub://d2/file:///readme", "mcphub://d9/file:///readme"},
			{"tools", ReadResource, "uri", "mcphub://d2/file:///readme", "mcphub://d9/file:///readme"},
			{"one", GetPrompt, "name", "d2__review", "d9__review"},
			{"tools", GetPrompt, "name", "d2__review", "d9__review"},
			{"tools", Complete, "prompt", "d2__review", "d9__review"},
			{"one", Complete, "template", "mcphub://d2/file:///{path}", "mcphub://d9/file:///{path}"},
		} {
			_, err1 := request(r.session(c.agent), c.method, c.key, c.name, "")
			_, err2 := request(r.session(c.agent), c.method, c.key, c.other, "")
			if err1 == nil || err2 == nil || strings.ReplaceAll(err1.Error(), "d2", "d9") != err2.Error() {
				t.Errorf("%s asks for %s: %v; out of scope and unknown differ: %v", c.agent, c.name, err1, err2)
			}
		}
		if _, err := r.session("one").Subscribe(ctx, "mcphub://d2/file:///readme", func() {}); err == nil {
			t.Error("an agent subscribed to a resource out of its scope")
		}
		if n := asked2.count(""); n != before {
			t.Errorf("d2 was asked %d times for what was out of scope", n-before)
		}
		for _, agent := range []string{"one", "tools"} {
			for kind := PromptList; kind <= TemplateList; kind++ {
				if l := string(r.session(agent).List(ctx, kind)); strings.Contains(l, "d2") || !strings.Contains(l, "d1") {
					t.Errorf("%s sees list %d: %s", agent, kind, l)
				}
			}
		}
		if got, err := request(r.session("one"), ReadResource, "uri", "file:///other", ""); err != nil || !strings.Contains(got, "file:///other") {
			t.Errorf("a server's own uri is not reached where it is clear whose it is: %s %v", got, err)
		}
	})
}

func TestC101OnlyWhatWasDeclaredIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d1, asked1 := offering(`{"tools":{}}`, nil)
		d2, asked2 := offering(`{"tools":{},"prompts":{}}`, nil) // answers -32601 to prompts/list
		r := newRig(t, twoFiles, map[string]*fakeServer{"d1": d1, "d2": d2})
		r.featuresKnown()
		s := r.session("all")
		for kind := PromptList; kind <= TemplateList; kind++ {
			if l := string(s.List(context.Background(), kind)); l != "[]" {
				t.Errorf("list %d: %s", kind, l)
			}
		}
		_, err := request(s, ReadResource, "uri", "mcphub://d1/x:y", "")
		var missing *NotFound
		if !errors.As(err, &missing) || missing.URI != "mcphub://d1/x:y" {
			t.Errorf("read from a server without resources: %v", err)
		}
		got, err := request(s, Complete, "template", "mcphub://d1/x:{y}", "")
		if err != nil || !strings.Contains(got, `"values":[]`) {
			t.Errorf("completion by a server without: %s %v", got, err)
		}
		if asked1.count("tools/list") != 1 || asked1.count("") != 1 {
			t.Errorf("d1 was asked for what it never declared: %q", asked1.list)
		}
		if asked2.count("prompts/list") != 1 {
			t.Errorf("d2: %q", asked2.list)
		}
		if out, err := r.call(context.Background(), "all", "d2__echo", "{}"); err != nil || out != text(10) {
			t.Errorf("d2's tools after its refusal: %s %v", out, err)
		}
		if v := r.Hub.View().Servers["d2"]; v.Starts != 1 || v.State != Ready || len(v.FeatureErr) != 1 {
			t.Errorf("d2: %+v", v.ServerFacts)
		}
	})
}

func TestLargeResourcesAndPromptsAreStoredWholeAndSaidSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := strings.Repeat("größer ", 100_000)
		quotedBig, _ := json.Marshal(big)
		resource := `{"contents":[{"uri":"a:b","text":` + string(quotedBig) + `}]}`
		prompt := `{"messages":[{"role":"user","content":{"type":"text","text":` + string(quotedBig) + `}}]}`
		d, _ := offering(everything, map[string]string{"resources/read": resource, "prompts/get": prompt,
			"prompts/list": `{"prompts":[{"name":"p"}]}`})
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n[agents.small]\nresponse_budget=\"512B\"\n[agents.usual]\n", map[string]*fakeServer{"d": d})
		r.featuresKnown()
		for _, agent := range []string{"small", "usual"} {
			for _, c := range []struct{ method, key, name, whole string }{
				{ReadResource, "uri", "mcphub://d/a:b", resource},
				{ReadResource, "uri", "mcphub://d/" + strings.Repeat("long", 1000), resource},
				{GetPrompt, "name", "d__p", prompt},
			} {
				got, err := request(r.session(agent), c.method, c.key, c.name, "")
				if err != nil {
					t.Fatal(err)
				}
				if agent == "small" && len(got) > 512 || len(got) > 32<<10 {
					t.Errorf("%s: %s is answered in %d bytes", agent, c.method, len(got))
				}
				var answer struct {
					Contents []struct{ URI, Text string }
					Messages []struct{ Content struct{ Text string } }
					Meta     map[string]struct{ Status, CallID string } `json:"_meta"`
				}
				if err := json.Unmarshal([]byte(got), &answer); err != nil {
					t.Fatalf("%v in %s", err, got)
				}
				said := ""
				if c.method == GetPrompt {
					said = answer.Messages[0].Content.Text
				} else {
					said = answer.Contents[0].Text
				}
				id := answer.Meta["mcphub/receipt"].CallID
				if !strings.Contains(said, id) || !strings.Contains(said, fmt.Sprint(len(c.whole))) {
					t.Errorf("the text does not say what to do: %s", said)
				}
				read, err := r.call(context.Background(), agent, "mcphub_read_result", `{"callId":"`+id+`"}`)
				if err != nil || strings.Contains(read, `"isError":true`) || agent == "usual" && !strings.Contains(read, "größer") {
					t.Errorf("%s: mcphub_read_result shows %.600s %v", agent, read, err)
				}
				if back := string(r.readBack(context.Background(), agent, id)); back != c.whole {
					t.Errorf("%s %s: %d bytes came back of %d", agent, c.method, len(back), len(c.whole))
				}
			}
		}
	})
}

func TestC108InstructionsAreSharedOutAndTheRestCanBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conf strings.Builder
		servers := map[string]*fakeServer{}
		for i := range 10 {
			n := fmt.Sprintf("s%d", i)
			fmt.Fprintf(&conf, "[servers.%s]\ncommand=\"x\"\n", n)
			f, _ := offering(`{"tools":{},"resources":{}}`, map[string]string{"resources/list": `{"resources":[]}`})
			f.says = n + " begins. " + strings.Repeat("é", 750) + " " + n + " ends."
			servers[n] = f
		}
		servers["s3"].says = "s3 begins. " + strings.Repeat("x", 100<<10) + " s3 ends."
		servers["s4"].says = "s4 is short."
		conf.WriteString("[agents.all]\n[agents.two]\nservers=[\"s3\",\"s4\"]\n")
		r := newRig(t, conf.String(), servers)
		r.featuresKnown()
		ctx := context.Background()
		all, _ := r.session("all").Hello(ctx)
		if n := len(all.Instructions); n > 2<<10 || !strings.HasPrefix(all.Instructions, "mcphub") {
			t.Errorf("%d bytes: %s", n, all.Instructions)
		}
		for n := range servers {
			if !strings.Contains(all.Instructions, n+" ") {
				t.Errorf("%s has no share: %s", n, all.Instructions)
			}
		}
		two, _ := r.session("two").Hello(ctx)
		if strings.Contains(two.Instructions, "s5") || !strings.Contains(two.Instructions, "s4 is short.") || len(two.Instructions) < 1900 {
			t.Errorf("two servers: %s", two.Instructions)
		}
		list := string(r.session("two").List(ctx, ResourceList))
		if !strings.Contains(list, `"mcphub://mcphub/instructions/s3"`) || strings.Contains(list, "instructions/s4") {
			t.Errorf("resources: %s", list)
		}
		if got, err := request(r.session("all"), ReadResource, "uri", "mcphub://mcphub/instructions/s5", ""); err != nil || !strings.Contains(got, servers["s5"].says) {
			t.Errorf("the rest of s5: %s %v", got, err)
		}
		if got, err := request(r.session("two"), ReadResource, "uri", "mcphub://mcphub/instructions/s3", ""); err != nil || !strings.Contains(got, "callId") || len(got) > 32<<10 {
			t.Errorf("the rest of s3: %.200s %v", got, err)
		}
		var missing *NotFound
		if _, err := request(r.session("two"), ReadResource, "uri", "mcphub://mcphub/instructions/s5", ""); !errors.As(err, &missing) {
			t.Errorf("instructions out of scope: %v", err)
		}
	})
}

func TestSubscriptionsAreCountedAndOutliveTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, asked := offering(everything, map[string]string{"resources/subscribe": `{}`, "resources/unsubscribe": `{}`,
			"resources/list": `{"resources":[{"uri":"a:b","name":"n"}]}`})
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n", map[string]*fakeServer{"d": d})
		r.featuresKnown()
		var mu sync.Mutex
		heard := map[string]int{}
		hear := func(who string) func() {
			return func() { mu.Lock(); heard[who]++; mu.Unlock() }
		}
		ctx := context.Background()
		stopA, err := r.session("a").Subscribe(ctx, "mcphub://d/a:b", hear("a"))
		if err != nil {
			t.Fatal(err)
		}
		stopB, err := r.session("b").Subscribe(ctx, "a:b", hear("b"))
		if err != nil {
			t.Fatal(err)
		}
		d.last.Load().events.Updated("a:b")
		d.last.Load().events.Updated("a:c")
		if heard["a"] != 1 || heard["b"] != 1 || asked.count("resources/subscribe") != 1 {
			t.Errorf("heard %v, asked %q", heard, asked.list)
		}
		stopB()
		synctest.Wait()
		if asked.count("resources/unsubscribe") != 0 {
			t.Error("unsubscribed while somebody listens")
		}
		d.last.Load().die(errors.New("gone"))
		time.Sleep(time.Second)
		synctest.Wait()
		if asked.count("resources/subscribe") != 2 || heard["a"] != 2 || heard["b"] != 1 {
			t.Errorf("after a new start: heard %v, asked %q", heard, asked.list)
		}
		stopA()
		synctest.Wait()
		if asked.count(`resources/unsubscribe {"uri":"a:b"}`) != 1 || len(r.Hub.View().Servers["d"].Handle.subs.all) != 0 {
			t.Errorf("nobody listens any more: %q", asked.list)
		}
	})
}

func TestSubscriptionsAtAServerOfTheNewestRevisionAreRequestsThatLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, asked := offering(everything, map[string]string{"resources/list": `{"resources":[{"uri":"a:b","name":"n"}]}`})
		d.protocol = "2026-07-28"
		d.methods["subscriptions/listen"] = func(params []byte) (string, string) {
			asked.note("subscriptions/listen", params)
			if strings.Contains(string(params), "refuse") {
				return "", `{"code":-32602,"message":"no"}`
			}
			return "", ""
		}
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n", map[string]*fakeServer{"d": d})
		r.featuresKnown()
		ctx := context.Background()
		var heard atomic.Int64
		stop, err := r.session("a").Subscribe(ctx, "mcphub://d/a:b", func() { heard.Add(1) })
		if err != nil || asked.count(`subscriptions/listen {"notifications":{"resourceSubscriptions":["a:b"]}}`) != 1 {
			t.Fatalf("%v %q", err, asked.list)
		}
		if _, err := r.session("a").Subscribe(ctx, "mcphub://d/refuse:", func() {}); err == nil || !strings.Contains(err.Error(), "-32602") {
			t.Errorf("refused: %v", err)
		}
		d.last.Load().events.Updated("a:b")
		d.last.Load().die(errors.New("gone"))
		time.Sleep(time.Second)
		if heard.Load() != 2 || asked.count("subscriptions/listen") != 3 || asked.count("resources/subscribe") != 0 {
			t.Errorf("heard %d times; %q", heard.Load(), asked.list)
		}
		stop()
		synctest.Wait()
		if n := len(r.Hub.View().Servers["d"].Handle.subs.all); n != 0 || asked.count("resources/unsubscribe") != 0 {
			t.Errorf("%d subscriptions left; %q", n, asked.list)
		}
	})
}

func TestC17AReloadTakesSubscriptionsOverAndEndsThoseOutOfScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conf = "[servers.d]\ncommand=\"x\"\n[agents.a]\n[agents.b]\n"
		d, asked := offering(everything, map[string]string{"resources/subscribe": `{}`, "resources/unsubscribe": `{}`,
			"resources/list": `{"resources":[{"uri":"a:b","name":"n"}]}`})
		r := newRig(t, conf, map[string]*fakeServer{"d": d})
		r.featuresKnown()
		ctx := context.Background()
		var a, b atomic.Int64
		stop, err := r.session("a").Subscribe(ctx, "mcphub://d/a:b", func() { a.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.session("b").Subscribe(ctx, "mcphub://d/a:b", func() { b.Add(1) }); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Hub.Reload(ctx, parse(t, strings.Replace(conf, `"x"`, `"y"`, 1)+"servers=[]\n")); err != nil {
			t.Fatal(err)
		}
		r.ready("d")
		synctest.Wait()
		d.last.Load().events.Updated("a:b")
		if asked.count("resources/subscribe") != 2 || a.Load() != 2 || b.Load() != 0 {
			t.Errorf("a heard %d times, b %d times; %q", a.Load(), b.Load(), asked.list)
		}
		if got := string(r.session("b").List(ctx, ResourceList)); got != "[]" {
			t.Errorf("b sees %s", got)
		}
		stop()
		synctest.Wait()
	})
}

func TestC15AllPagesOfEveryListAreReadAndNoneForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := offering(everything, nil)
		paged := func(list string, entry func(int) string, pages int, more func(int) string) func([]byte) (string, string) {
			n := 0
			return func(params []byte) (string, string) {
				if !strings.Contains(string(params), "cursor") {
					n = 0
				}
				n++
				if n > pages {
					return "", `{"code":-32603,"message":"no more"}`
				}
				return `{"` + list + `":[` + entry(n) + `]` + more(n) + `}`, ""
			}
		}
		d.methods["prompts/list"] = paged("prompts", func(n int) string { return fmt.Sprintf(`{"name":"p%d"}`, n) }, 3,
			func(n int) string {
				return map[bool]string{true: fmt.Sprintf(`,"nextCursor":"%d"`, n), false: `,"nextCursor":""`}[n < 3]
			})
		d.methods["resources/list"] = paged("resources", func(n int) string { return fmt.Sprintf(`{"uri":"r:%d"}`, n) }, 9,
			func(int) string { return `,"nextCursor":"x"` })
		d.methods["resources/templates/list"] = paged("resourceTemplates", func(n int) string { return fmt.Sprintf(`{"uriTemplate":"t:%d{x}"}`, n) }, 1,
			func(n int) string { return fmt.Sprintf(`,"nextCursor":"%d"`, n) })
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n", map[string]*fakeServer{"d": d})
		r.featuresKnown()
		ctx := context.Background()
		for kind, want := range []string{
			`[{"name":"d__p1"},{"name":"d__p2"},{"name":"d__p3"}]`,
			`[{"uri":"mcphub://d/r:1"},{"uri":"mcphub://d/r:2"}]`, // the cursor came twice
			`[{"uriTemplate":"mcphub://d/t:1{x}"}]`,               // the second page failed
		} {
			if got := string(r.session("a").List(ctx, List(kind))); got != want {
				t.Errorf("list %d\n got %s\nwant %s", kind, got, want)
			}
		}
		if errs := r.Hub.View().Servers["d"].FeatureErr; len(errs) != 2 {
			t.Errorf("what debug shows: %q", errs)
		}
	})
}

func TestC52ChangesOfPromptsAndResourcesAreReadOnceAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, asked := offering(everything, map[string]string{"prompts/list": `{"prompts":[{"name":"a"}]}`, "resources/list": `{"resources":[]}`})
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n", map[string]*fakeServer{"d": d})
		r.featuresKnown()
		s := r.session("a")
		same := s.Changed()
		for range 50 {
			d.last.Load().events.ListChanged("prompts")
		}
		time.Sleep(time.Minute)
		select {
		case <-same:
			t.Error("told of a change that was none")
		default:
		}
		if n := asked.count("prompts/list"); n != 2 {
			t.Errorf("prompts were listed %d times", n)
		}
		d.methods["prompts/list"] = func([]byte) (string, string) { return `{"prompts":[{"name":"b"}]}`, "" }
		d.last.Load().events.ListChanged("prompts")
		<-same
		if got := string(s.List(context.Background(), PromptList)); got != `[{"name":"d__b"}]` {
			t.Errorf("after the change: %s", got)
		}
		disabled := s.Changed()
		if _, err := r.Hub.Reload(context.Background(), parse(t, "[servers.d]\ncommand=\"x\"\nenabled=false\n")); err != nil {
			t.Fatal(err)
		}
		<-disabled
		if got := string(s.List(context.Background(), PromptList)); got != `[]` {
			t.Errorf("of a disabled server: %s", got)
		}
	})
}

// TestC01AServerThatLosesItsSessionsIsRemindedOfWhatWasSaidNowAndThen, and its lists are read
// again, however often that happens.
func TestC01AServerThatLosesItsSessionsIsRemindedOfWhatWasSaidNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, asked := offering(everything, map[string]string{"prompts/list": `{"prompts":[]}`, "resources/list": `{"resources":[]}`, "resources/subscribe": `{}`})
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n", map[string]*fakeServer{"d": d})
		r.featuresKnown()
		end, err := r.session("a").Subscribe(context.Background(), "mcphub://d/u://x", func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		time.Sleep(time.Minute)
		counts := func() [3]int {
			synctest.Wait()
			return [3]int{asked.count("resources/subscribe"), asked.count("prompts/list"), asked.count("resources/list")}
		}
		before := counts()
		d.last.Load().events.Renewed()
		time.Sleep(2 * relistDelay)
		if got := counts(); got != [3]int{before[0] + 1, before[1] + 1, before[2] + 1} {
			t.Errorf("after a loss %v, before it %v", got, before)
		}
		before = counts()
		for range 100 { // in ten seconds
			d.last.Load().events.Renewed()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if got := counts(); got[0] < before[0]+2 || got[0] > before[0]+4 {
			t.Errorf("after a hundred losses in ten seconds %v, before them %v", got, before)
		}
	})
}

func TestC22LastKnownToolsAreListedAtOnceAndNoEmptyListReplacesThemUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conf = "[servers.d]\ncommand=\"x\"\n"
		d, _ := offering(`{"tools":{}}`, nil)
		r := newRig(t, conf, map[string]*fakeServer{"d": d})
		r.ready("d")
		full := string(r.session("a").Tools(context.Background()))
		r.stop()

		slow := make(chan struct{})
		var mu sync.Mutex
		tools := `{"tools":[]}`
		d.connect = func(int) error { <-slow; return nil }
		d.methods["tools/list"] = func([]byte) (string, string) { mu.Lock(); defer mu.Unlock(); return tools, "" }
		r.start()
		began := time.Now()
		s := r.session("a")
		if got := string(s.Tools(context.Background())); got != full || time.Since(began) > 0 {
			t.Errorf("before the server is up, after %v:\n got %s\nwant %s", time.Since(began), got, full)
		}
		close(slow)
		r.ready("d")
		synctest.Wait() // that it offers nothing besides tools is a change too
		if got := string(s.Tools(context.Background())); got != full {
			t.Errorf("after an empty list:\n got %s\nwant %s", got, full)
		}
		changed := s.Changed()
		mu.Lock()
		tools = `{"tools":[{"name":"other","inputSchema":{"type":"object"}}]}`
		mu.Unlock()
		<-changed
		if got := string(s.Tools(context.Background())); !strings.Contains(got, "d__other") || strings.Contains(got, "d__echo") {
			t.Errorf("after the second look: %s", got)
		}
		mu.Lock()
		tools = `{"tools":[]}`
		mu.Unlock()
		changed = s.Changed()
		d.last.Load().events.ListChanged("tools")
		<-changed
		if got := string(s.Tools(context.Background())); strings.Contains(got, "d__other") {
			t.Errorf("a list that is empty at a second look too stays: %s", got)
		}
	})
}

func TestC12AHandshakeHardlyWaitsAndTellsWhatServersSaidLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, _ := offering(`{"tools":{}}`, nil)
		said.says = "be \"kind\",\nalways"
		mute, _ := offering(`{"tools":{}}`, nil)
		up := make(chan struct{})
		mute.connect = func(int) error { <-up; return nil }
		r := newRig(t, "[servers.d]\ncommand=\"x\"\n[servers.mute]\ncommand=\"y\"\n", map[string]*fakeServer{"d": said, "mute": mute})
		hello := func() (string, time.Duration) {
			t.Helper()
			s, began := r.session("a"), time.Now()
			h, err := s.Hello(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return h.Instructions, time.Since(began)
		}
		if text, took := hello(); !strings.Contains(text, said.says) || took == 0 || took >= 100*time.Millisecond {
			t.Errorf("beside a server that does not come up, after %v: %s", took, text)
		}
		close(up)
		r.ready("mute")
		r.stop()

		said.connect = func(int) error { <-t.Context().Done(); return t.Context().Err() }
		r.start()
		if text, took := hello(); !strings.Contains(text, said.says) || took > 0 {
			t.Errorf("in the next life, after %v: %s", took, text)
		}
	})
}

func TestOneServerAloneHasItsOwnNamesAndStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tool = `{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object","x":1.0}}`
		offer := map[string]string{"tools/list": `{"tools":[` + tool + `]}`, "prompts/list": `{"prompts":[{"name":"p","x":1}]}`,
			"resources/list": `{"resources":[{"uri":"a:b","name":"n"}]}`, "resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a:{x}","name":"n"}]}`,
			"resources/read": `{"contents":[],"got":PARAMS}`, "prompts/get": `!{"code":-7,"message":"no"}`, "completion/complete": `{"completion":{"values":["v"]},"got":PARAMS}`}
		d1, _ := offering(everything, offer)
		d1.says = "d1 says"
		d1.answer = func(context.Context, string, []byte) (string, error) { return text(100_000), nil }
		d2, _ := offering(everything, offer)
		d2.answer = d1.answer
		r := newRig(t, strings.Replace(twoFiles, "[servers.d2]", "[servers.d2]\nstore = true", 1), map[string]*fakeServer{"d1": d1, "d2": d2})
		r.featuresKnown()
		ctx := context.Background()
		one, err := r.session("all").One("d1")
		if err != nil {
			t.Fatal(err)
		}
		hello, err := one.Hello(ctx)
		if err != nil || hello.Instructions != "d1 says" || string(hello.Capabilities) != everything {
			t.Errorf("hello: %+v %v", hello, err)
		}
		for _, c := range []struct{ got, want string }{
			{string(one.Tools(ctx)), "[" + tool + "]"},
			{string(one.List(ctx, PromptList)), `[{"name":"p","x":1}]`},
			{string(one.List(ctx, ResourceList)), `[{"uri":"a:b","name":"n"}]`},
			{string(one.List(ctx, TemplateList)), `[{"uriTemplate":"a:{x}","name":"n"}]`},
		} {
			if c.got != c.want {
				t.Errorf("list\n got %s\nwant %s", c.got, c.want)
			}
		}
		reply, err := one.Call(ctx, callOf("echo", "{}"))
		if err != nil || reply.Result.Size() != int64(len(text(100_000))) {
			t.Errorf("a large result: %v", err)
		}
		reply.Result.Close()
		if got, err := request(one, ReadResource, "uri", "a:z", ""); got != `{"contents":[],"got":{"uri":"a:z"}}` || err != nil {
			t.Errorf("read: %s %v", got, err)
		}
		if got, err := request(one, Complete, "template", "a:{x}", ""); err != nil || !strings.Contains(got, `"v"`) {
			t.Errorf("complete: %s %v", got, err)
		}
		if _, err := request(one, GetPrompt, "name", "p", ""); err == nil || err.Error() != `{"code":-7,"message":"no"}` {
			t.Errorf("the server's own error: %v", err)
		}
		var no *RPCError
		if _, err := one.Call(ctx, callOf("mcphub_get_result", `{"callId":"x"}`)); !errors.As(err, &no) {
			t.Errorf("a tool of the gateway's on a server's own endpoint: %v", err)
		}
		if n := r.Spool.Counts().Stored; n != 0 {
			t.Errorf("%d results stored", n)
		}
		_, unknown := r.session("one").One("d9")
		_, hidden := r.session("one").One("d2")
		if unknown == nil || hidden == nil || strings.ReplaceAll(hidden.Error(), "d2", "d9") != unknown.Error() {
			t.Errorf("unknown %v, out of scope %v", unknown, hidden)
		}

		storing, _ := r.session("all").One("d2")
		if l := string(storing.Tools(ctx)); !strings.Contains(l, "mcphub_get_result") || !strings.Contains(l, `"anyOf":[`) {
			t.Errorf("store = true lists %s", l)
		}
		reply, err = storing.Call(ctx, callOf("echo", "{}"))
		if err != nil || reply.Result.Size() > 32<<10 || r.Spool.Counts().Stored != 1 {
			t.Errorf("store = true: %v", err)
		}
		reply.Result.Close()
	})
}

func TestPromptsWaitForServersThatMayStillBringThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d1, _ := offering(everything, map[string]string{"prompts/list": `{"prompts":[{"name":"p"}]}`, "prompts/get": `{"messages":[]}`,
			"resources/list": `{"resources":[]}`})
		d1.connect = func(int) error { time.Sleep(5 * time.Second); return nil }
		r := newRig(t, "[servers.d1]\ncommand=\"x\"\n", map[string]*fakeServer{"d1": d1})
		began := time.Now()
		if got, err := request(r.session("a"), GetPrompt, "name", "d1__p", ""); got != `{"messages":[]}` || err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %s %v", time.Since(began), got, err)
		}
	})
}
