package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"mcphubd/actors"
)

func TestHandshakeIsReported(t *testing.T) {
	info := connect(t, stdio(t, "server"), actors.Events{}).Info()
	if info.PID == 0 || info.Protocol != "2025-06-18" || info.Name != "child" || info.Version != "7" || info.Instructions != "be kind" {
		t.Errorf("%+v", info)
	}
	if string(info.Capabilities) != `{"tools":{"listChanged":true},"x":1.0}` {
		t.Errorf("capabilities %s", info.Capabilities)
	}
}

func TestC06ResultBytesAreTheServersOwn(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	for _, result := range []string{
		`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"id":9007199254740993,"big":1234567890123456787}}`,
		`{ "a" : 1.0 , "a":-0,"b":1e400, "c":"\u003c<>&\u2028` + "\u2028" + `\u0000\ud800\/", "content":[{"type":"new"}]  }`,
		`{}`, `[]`, `"text"`, `17`,
		`{"pad":"` + strings.Repeat("é", 200<<10) + `","id":9007199254740993 }`,
	} {
		for _, form := range []string{
			`{"jsonrpc":"2.0","id":$ID,"result":%s}`, `{"result": %s ,"jsonrpc":"2.0","id":$ID}`, `  {"id":"$ID","result":%s}` + "\r",
		} {
			got, err := script(t.Context(), c, fmt.Sprintf(form, result))
			if err != nil || got != result {
				t.Errorf("%.60s in %s: got %.60s, %v", result, form, got, err)
			}
		}
	}
}

func TestC62InnerNullsReachTheServerUnchanged(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	for _, arguments := range []string{`{"a":null,"b":{"c":null}}`, `{"a":` + strings.Repeat(" ", 100<<10) + `null,"n":1e400,"d":1,"d":2}`} {
		got, err := tool(t.Context(), c, "request", arguments)
		if err != nil || !strings.HasSuffix(got, `"method":"tools/call","params":{"name":"request","arguments":`+arguments+`}}`) {
			t.Errorf("the server got %.200s, %v", got, err)
		}
	}
}

func TestRawLineBreaksInParamsDoNotCutTheMessage(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	for _, pad := range []int{1, 200 << 10} {
		got, err := tool(t.Context(), c, "echo", "{\n\r\"a\":"+strings.Repeat(" ", pad)+"1}")
		if err != nil || !strings.HasPrefix(got, `{  "a":`) {
			t.Errorf("%.100s, %v", got, err)
		}
	}
}

func TestC19AnswersComeBackToTheirCaller(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	var wg sync.WaitGroup
	for a := range 50 {
		wg.Go(func() {
			for i := range 100 {
				want := fmt.Sprintf(`{"v":"%d-%d","ms":%d}`, a, i, rand.IntN(3))
				if got, err := tool(t.Context(), c, "late", want); err != nil || got != want {
					t.Errorf("got %s, want %s, %v", got, want, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestIDsAreIntegersThatNoDoubleRoundsAndNeverComeTwice(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	seen := map[uint64]bool{}
	for range 100 {
		got, err := tool(t.Context(), c, "request", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ ID uint64 }
		if err := json.Unmarshal([]byte(got), &m); err != nil || m.ID < 1<<32 || m.ID > 1<<53 || seen[m.ID] {
			t.Fatalf("id %d: %v", m.ID, err)
		}
		seen[m.ID] = true
	}
}

func TestC28OneLongCallHoldsUpNobody(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	ctx, cancel := context.WithCancel(t.Context())
	long := make(chan error, 1)
	go func() { _, err := tool(ctx, c, "never", `{}`); long <- err }()
	for range 100 {
		works(t, c)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() { // the child exits when it reads a line that is not JSON
			want := fmt.Sprintf(`{"i":%d,"pad":"%s"}`, i, strings.Repeat("p", 200<<10))
			if got, err := tool(t.Context(), c, "echo", want); err != nil || got != want {
				t.Errorf("call %d: %.50s, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-long:
		t.Errorf("the long call ended: %v", err)
	default:
	}
	cancel()
	if err := <-long; !errors.Is(err, context.Canceled) {
		t.Errorf("after the cancel: %v", err)
	}
	works(t, c)
}

func TestCancelTellsTheServerAndLeavesTheConnectionAlone(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	why := errors.New("the agent has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		eventually(t, "the call is sent", func() bool { return c.w.sent.Load() == 3 })
		cancel(why)
	}()
	if _, err := tool(ctx, c, "never", `{}`); !errors.Is(err, why) {
		t.Errorf("err %v, want the cause", err)
	}
	eventually(t, "the server is told", func() bool {
		return strings.Contains(c.Stderr(), `told: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4294967296}}`)
	})
	works(t, c)
}

func TestC91AnswersThatNobodyWaitsForAreDropped(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	if got, err := script(t.Context(), c,
		`{"jsonrpc":"2.0","id":999999,"result":{}}`, `{"jsonrpc":"2.0","id":4999999999,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":$ID,"result":"first"}`, `{"jsonrpc":"2.0","id":$ID,"result":"second"}`,
	); err != nil || got != `"first"` {
		t.Errorf("sent twice: %s, %v", got, err)
	}
	if _, err := script(t.Context(), c, `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"m"}}`); err == nil {
		t.Error("result and error together are no error")
	}
	if got, err := script(t.Context(), c, // a request is not an answer, whatever its id
		`{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}`, `{"jsonrpc":"2.0","id":$ID,"result":7}`); err != nil || got != "7" {
		t.Errorf("request with our id: %s, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(t, "the call is under way", func() bool { return c.waiting() == 1 })
		cancel()
	}()
	if _, err := tool(ctx, c, "never", `{}`); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is given up: %v", err)
	}
	c.mu.Lock()
	late := c.next - 1
	c.mu.Unlock()
	if _, err := script(t.Context(), c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, late), `{"jsonrpc":"2.0","id":$ID,"result":{}}`); err != nil {
		t.Error(err)
	}
	eventually(t, "the second, the late and the unknown answer are counted", func() bool { return c.Dropped().Answers.Load() == 3 })
	works(t, c)
}

func TestC90StringEchoOfOurNumberIsAccepted(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	if got, err := script(t.Context(), c, `{"jsonrpc":"2.0","id":"$ID","result":{"a":1}}`); err != nil || got != `{"a":1}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestC90AStringEchoOfTheHandshakesNumberIsAccepted(t *testing.T) {
	works(t, connect(t, stdio(t, "stringer"), actors.Events{}))
}

func TestErrorObjectsPassAsTheyAre(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	b, _ := json.Marshal(order{Lines: []string{`{"jsonrpc":"2.0","id":$ID,"result":null,"error":{"code":-32000, "message":"no","data":1e400}}`}})
	a, err := c.Call(t.Context(), toolCall("lines", string(b)))
	if err != nil || string(a.Error) != `{"code":-32000, "message":"no","data":1e400}` {
		t.Errorf("%s, %v", a.Error, err)
	}
	for _, line := range []string{`{"jsonrpc":"2.0","id":$ID}`, `{"jsonrpc":"2.0","id":$ID,"error":"text"}`, `{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":1}`, `{"jsonrpc":"2.0","id":$ID,"result":{`} {
		if got, err := script(t.Context(), c, line); err == nil {
			t.Errorf("%s is taken for the answer %s", line, got)
		}
	}
	works(t, c)
}

func TestProgressReachesItsCallInOrderAndBeforeTheAnswer(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s,"x":1.0}}`
	b, _ := json.Marshal(order{Lines: []string{
		fmt.Sprintf(note, 1, "$ID"), fmt.Sprintf(note, 2, `"$ID"`), fmt.Sprintf(note, 9, "4294967999"), `{"jsonrpc":"2.0","id":$ID,"result":{}}`, fmt.Sprintf(note, 3, "$ID"),
	}})
	var got []string
	a, err := c.Call(t.Context(), actors.Request{
		Method: "tools/call", Token: 1,
		Params: [][]byte{[]byte(`{"_meta":{"progressToken":`), []byte(`"agent's"`), []byte(`},"name":"lines","arguments":`), b, []byte("}")},
		Progress: func(params []byte, token actors.Range) {
			got = append(got, string(params[:token.A])+"T"+string(params[token.B:]))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Result.Close()
	if want := `{"progress":1,"progressToken":T,"x":1.0} {"progress":2,"progressToken":T,"x":1.0}`; strings.Join(got, " ") != want {
		t.Errorf("progress %s", got)
	}
	eventually(t, "late and unknown progress is counted", func() bool { return c.Dropped().Progress.Load() == 2 })
	works(t, c)
}

func TestASlowAgentDoesNotHoldUpOthers(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	var lines []string
	for range 500 {
		lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":$ID}}`)
	}
	b, _ := json.Marshal(order{Lines: append(lines, `{"jsonrpc":"2.0","id":$ID,"result":{}}`)})
	stuck, free := make(chan bool, 1000), make(chan bool)
	done := make(chan error, 1)
	go func() {
		req := toolCall("lines", string(b))
		req.Progress = func([]byte, actors.Range) { stuck <- true; <-free }
		_, err := c.Call(t.Context(), req)
		done <- err
	}()
	<-stuck
	works(t, c)
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServerRequestsAreAnsweredAlsoAfterTheHandshakesContextHasEnded(t *testing.T) {
	changed := make(chan string, 10)
	c := connect(t, stdio(t, "server"), actors.Events{ListChanged: func(kind string) { changed <- kind }})
	if _, err := script(t.Context(), c, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","id":$ID,"result":{}}`); err != nil {
		t.Fatal(err)
	}
	if kind := <-changed; kind != "tools" {
		t.Errorf("changed %s", kind)
	}
	before := c.w.sent.Load()
	if _, err := script(t.Context(), c, `{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":$ID,"result":{}}`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ping is answered", func() bool { return c.w.sent.Load() >= before+2 })
}
