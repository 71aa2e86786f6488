package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcphubd/actors"
)

// logs is a call in which the server logs at every level, and then answers.
func logs(_ context.Context, c actors.Call) (actors.Reply, error) {
	if c.Notify != nil {
		for _, l := range logLevels[1:] {
			c.Notify(logMethod, []byte(`{"level":"`+l+`","data":{"n":1.0,"l":"`+l+`"}}`))
		}
	}
	return held(`{"level":"` + c.LogLevel + `"}`), nil
}

func (f *fixture) setLevel(path, sid, level string) {
	f.Helper()
	a := f.do("POST", path, `{"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{"level":"`+level+`"}}`, sessionHeader, sid)
	if a.status != 200 || !strings.Contains(a.body, `"result":{}`) {
		f.Fatalf("setLevel: %d %s", a.status, a.body)
	}
}

// TestC106ACallsLogGoesToItsCallerFromItsOwnLevelUp, and to nobody who never asked.
func TestC106ACallsLogGoesToItsCallerFromItsOwnLevelUp(t *testing.T) {
	f := start(t)
	f.gw.agent("x").call = logs
	for _, level := range []string{"", "debug", "warning", "emergency"} {
		from := slices.Index(logLevels, level)
		want := []string{}
		if from > 0 {
			want = logLevels[from:]
		}
		check := func(era string, a answer) {
			t.Helper()
			var got []string
			for line := range strings.Lines(a.body) {
				if _, rest, ok := strings.Cut(line, `"method":"notifications/message","params":{"level":"`); ok {
					l, rest, _ := strings.Cut(rest, `"`)
					if !strings.HasPrefix(rest, `,"data":{"n":1.0,"l":"`+l+`"}}}`) {
						t.Errorf("%s: %s", era, line)
					}
					got = append(got, l)
				}
			}
			if !slices.Equal(got, want) || !strings.Contains(a.body, `"level":"`+level+`"}`) {
				t.Errorf("%s at %q got %q: %s", era, level, got, a.body)
			}
		}
		sid := f.login("/mcp/x")
		if level != "" {
			f.setLevel("/mcp/x", sid, level)
		}
		check("legacy", f.do("POST", "/mcp/x", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid))
		meta := modernMeta
		if level != "" {
			meta = strings.Replace(meta, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+level+`",`, 1)
		}
		check("modern", f.do("POST", "/mcp/x", callBody("1", `{"name":"d__echo",`+meta+`}`), modernCall...))
	}
}

// TestC106OtherLogGoesToSessionsThatAskedInScope, on their standing streams.
func TestC106OtherLogGoesToSessionsThatAskedInScope(t *testing.T) {
	f := start(t)
	type heard struct {
		mu  sync.Mutex
		all map[string][]string
	}
	h := heard{all: map[string][]string{}}
	got := make(chan struct{}, 100)
	attach := func(name, path string, level mcp.LoggingLevel) {
		cs := f.official(path, "2025-11-25", &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			h.mu.Lock()
			h.all[name] = append(h.all[name], fmt.Sprint(r.Params.Level, r.Params.Data))
			h.mu.Unlock()
			got <- struct{}{}
		}})
		if level == "" {
			return
		}
		if err := cs.SetLoggingLevel(context.Background(), &mcp.SetLoggingLevelParams{Level: level}); err != nil {
			t.Fatal(err)
		}
	}
	attach("a", "/mcp/a", "debug")
	attach("a2", "/mcp/a", "info")
	attach("b", "/mcp/b", "error")
	attach("c", "/mcp/c", "debug") // its scope lacks the server
	attach("d", "/mcp/d", "")
	eventually(t, "the streams of all five", func() bool { return f.s.opened() == 5 })
	for _, level := range []string{"debug", "info", "error"} {
		f.s.Log(actors.LogFrom{Server: "d"}, []byte(`{"level":"`+level+`","data":"x"}`), func(agent string) bool { return agent != "c" })
	}
	for range 3 + 2 + 1 {
		within(t, got, "a log message")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, want := range map[string][]string{"a": {"debugx", "infox", "errorx"}, "a2": {"infox", "errorx"}, "b": {"errorx"}, "c": nil, "d": nil} {
		if !slices.Equal(h.all[name], want) {
			t.Errorf("%s heard %q, want %q", name, h.all[name], want)
		}
	}
}

// TestC106TheLeastLevelOfAnAgentsSessionsIsTold, until the last of them ends.
func TestC106TheLeastLevelOfAnAgentsSessionsIsTold(t *testing.T) {
	var mu sync.Mutex
	var told []string
	f := start(t, func(s *Server) {
		s.o.LogLevel = func(agent, server, level string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, agent+"/"+server+"="+level)
		}
	})
	one, two := f.login("/mcp/x"), f.login("/mcp/x")
	f.setLevel("/mcp/x", one, "error")
	f.setLevel("/mcp/x", two, "debug")
	f.do("DELETE", "/mcp/x", "", sessionHeader, two)
	f.do("DELETE", "/mcp/x", "", sessionHeader, one)
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"x/=error", "x/=debug", "x/=error", "x/="}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestC77AReaderThatStandsStillCostsBoundedMemoryAndDelaysNobody.
func TestC77AReaderThatStandsStillCostsBoundedMemoryAndDelaysNobody(t *testing.T) {
	f := start(t)
	still, reads := f.login("/mcp/a"), f.login("/mcp/b")
	f.setLevel("/mcp/a", still, "debug")
	f.setLevel("/mcp/b", reads, "debug")
	c := f.dial()
	if _, err := fmt.Fprintf(c, "GET /mcp/a HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", f.addr, still); err != nil {
		t.Fatal(err)
	}
	s, _ := f.open("GET", "/mcp/b", "", sessionHeader, reads, "Accept", "text/event-stream")
	mine := f.s.sessions.of(f.s.identities["a"], still, time.Now())
	eventually(t, "the stream", func() bool { return mine.stream.Load() != nil })
	pad := strings.Repeat("x", 4096)
	q, last := &mine.stream.Load().feed, 0
	say := func(n int) {
		for range n {
			last++
			f.s.Log(actors.LogFrom{Server: "d"}, fmt.Appendf(nil, `{"level":"info","data":"%d %s"}`, last, pad), func(string) bool { return true })
		}
	}
	say(20_000)
	eventually(t, "news to wait, because no more of it goes out", func() bool {
		say(10)
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.all) == maxNews
	})
	f.s.Log(actors.LogFrom{Server: "d"}, []byte(`{"level":"info","data":"last"}`), func(string) bool { return true })
	q.mu.Lock()
	if len(q.all) > maxNews || q.bytes > maxNewsBytes {
		t.Errorf("%d events of %d bytes wait", len(q.all), q.bytes)
	}
	q.mu.Unlock()
	for !strings.Contains(s.next(t), `"last"`) {
	}
	if a := f.do("POST", "/mcp/a", callBody("1", `{"name":"d__echo"}`), sessionHeader, still); a.status != 200 {
		t.Error(a)
	}
}

// TestVitalNewsIsNeverLeftOut, however much else waits.
func TestVitalNewsIsNeverLeftOut(t *testing.T) {
	var q queue
	q.put(news{[]byte("question"), true})
	for i := range 1000 {
		q.put(news{make([]byte, 64<<10), false})
		if q.bytes > maxNewsBytes || len(q.all) > maxNews {
			t.Fatalf("after %d: %d events of %d bytes", i, len(q.all), q.bytes)
		}
	}
	if all := q.take(); string(all[0].event) != "question" || len(all) < 10 {
		t.Errorf("%d events, the first is %.20q", len(all), all[0].event)
	}
}

// TestC58StreamsShowLifeFromTheStart: a standing stream and a long call, for an hour.
func TestC58StreamsShowLifeFromTheStart(t *testing.T) {
	inBubble(t, func(b *slow) {
		const during = time.Hour
		b.gw.agent("x").call = func(context.Context, actors.Call) (actors.Reply, error) {
			time.Sleep(during)
			return held(`{"ok":true}`), nil
		}
		f := &fixture{addr: "127.0.0.1"}
		resp, conn := b.open(f.rawRequest("/mcp/x", hello))
		sid := resp.Header.Get(sessionHeader)
		conn.Close()
		var wg sync.WaitGroup
		for name, raw := range map[string]string{
			"GET":  "GET /mcp/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + sid + "\r\n\r\n",
			"POST": f.rawRequest("/mcp/x", callBody("1", `{"name":"d__echo"}`), sessionHeader, sid),
		} {
			began := time.Now()
			resp, conn := b.open(raw)
			wg.Go(func() {
				defer conn.Close()
				watchStream(b, name, resp, began, during)
			})
		}
		wg.Wait()
	})
}

// watchStream reads a stream and checks when something came.
func watchStream(b *slow, name string, resp *http.Response, began time.Time, during time.Duration) {
	for key, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"} {
		if got := resp.Header.Get(key); got != want {
			b.Errorf("%s: %s: %q", name, key, got)
		}
	}
	lines, last, messages := bufio.NewReader(resp.Body), began, 0
	bound := time.Second // for the first
	for time.Since(began) < during {
		line, err := lines.ReadString('\n')
		if gap := time.Since(last); gap > bound {
			b.Errorf("%s: silent for %v after %v", name, gap, last.Sub(began))
			return
		}
		last, bound = time.Now(), 15*time.Second
		switch {
		case err == io.EOF:
			b.Errorf("%s: ended after %v", name, time.Since(began))
			return
		case strings.HasPrefix(line, "data:"):
			messages++
		case line != "\n" && !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "event:"):
			b.Errorf("%s: %q", name, line)
		}
	}
	if most := map[string]int{"GET": 0, "POST": 1}[name]; messages > most {
		b.Errorf("%s: %d messages", name, messages)
	}
}
