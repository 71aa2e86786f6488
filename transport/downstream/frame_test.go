package downstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcphubd/actors"
)

func TestC02LinesOfAnyLengthArriveWhole(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	for _, name := range []string{"big", "bigfirst"} {
		for _, n := range []int{70_000, maxLine - 100, maxLine, 3 << 19, 64 << 20} {
			got, err := tool(t.Context(), c, name, fmt.Sprintf(`{"bytes":%d}`, n))
			want := `{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}`
			if err != nil || got != want {
				t.Errorf("%s %d: %d bytes, %v", name, n, len(got), err)
			}
			works(t, c)
		}
	}
	a, err := c.Call(t.Context(), actors.Request{Method: "tools/list", Token: -1})
	if err != nil || a.Result.Size() < 3<<20 {
		t.Fatalf("tools/list: %v", err)
	}
	a.Result.Close()
}

func TestC02OverTheFrameLimitOnlyThatCallFails(t *testing.T) {
	for _, limit := range []int64{64 << 10, 1 << 20} {
		s := stdio(t, "server")
		s.MaxFrame = limit
		c := connect(t, s, actors.Events{})
		for _, name := range []string{"big", "bigfirst"} {
			_, err := tool(t.Context(), c, name, fmt.Sprintf(`{"bytes":%d}`, 5<<20))
			if err == nil || !strings.Contains(err.Error(), "max_frame = "+sizeText(c.maxFrame)) || errors.Is(err, actors.ErrLost) {
				t.Errorf("%s over %d: %v", name, limit, err)
			}
			pid := c.Info().PID
			works(t, c)
			if got, err := tool(t.Context(), c, name, fmt.Sprintf(`{"bytes":%d}`, limit-200)); err != nil || int64(len(got)) < limit-200 || c.Info().PID != pid {
				t.Errorf("%s below %d: %d bytes, %v", name, limit, len(got), err)
			}
		}
	}
}

func TestALongLineDoesNotHoldUpTheAnswersBehindIt(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	long := make(chan error, 8)
	for range cap(long) {
		go func() {
			got, err := tool(t.Context(), c, "big", `{"bytes":4000000}`)
			if err == nil && len(got) < 4000000 {
				err = fmt.Errorf("%d bytes", len(got))
			}
			long <- err
		}()
	}
	for range 20 {
		works(t, c)
	}
	for range cap(long) {
		if err := <-long; err != nil {
			t.Error(err)
		}
	}
}

func TestLongLinesThatAreNoAnswerAreDropped(t *testing.T) {
	c := connect(t, stdio(t, "server"), actors.Events{})
	pad := strings.Repeat("x", 2*maxLine)
	got, err := script(t.Context(), c,
		pad, `{"level":"`+pad+`"}`, `{"jsonrpc":"2.0","id":7,"result":"`+pad+`"}`, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"`+pad+`"}}`,
		`{"id":4999999999,"result":"`+pad+`"}`, `{"jsonrpc":"2.0","id":$ID,"result":{"a":1}}`)
	if err != nil || got != `{"a":1}` {
		t.Errorf("%.100s, %v", got, err)
	}
	if _, err := script(t.Context(), c, `{"result":"`+pad+`","id":$ID,"error":{"code":1}}`); err == nil {
		t.Error("result and error together are no error")
	}
	if _, err := script(t.Context(), c, `{"result":"`+pad+`","id":$ID,"result":1}`); err == nil {
		t.Error("two results are no error")
	}
	works(t, c)
}

func TestC21NoiseOnStdoutIsSkippedAndCounted(t *testing.T) {
	told := make(chan int64, 1000)
	c := connect(t, stdio(t, "banner"), actors.Events{Noise: func(n int64, _ string) { told <- n }})
	n, samples := c.Noise()
	if n != 10 || len(samples) != maxSamples || samples[0] != "Loading tools..." {
		t.Errorf("%d lines of noise, first %q", n, samples)
	}
	lines := []string{`{"jsonrpc":"2.0","id":9,"meth`, "", "  "}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("debug %d s3cr3t-value", i))
	}
	if got, err := script(t.Context(), c, append(lines, `{"jsonrpc":"2.0","id":$ID,"result":{}}`)...); err != nil || got != `{}` {
		t.Errorf("%s, %v", got, err)
	}
	if n, _ := c.Noise(); n != 51 {
		t.Errorf("%d lines of noise, want 51", n)
	}
	for range 51 {
		<-told
	}
	works(t, c)
}

func TestC20StderrIsAlwaysDrainedAndItsTailBounded(t *testing.T) {
	c := connect(t, stdio(t, "loud"), actors.Events{})
	for _, arguments := range []string{`{"bytes":10485760,"text":"line\n"}`, `{"bytes":5242880,"text":"x"}`, `{"bytes":4096,"text":"\n\u00ff"}`, `{"bytes":36,"text":"a s3cr3t-value\n"}`} {
		if _, err := tool(t.Context(), c, "stderr", arguments); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the last line is in the tail", func() bool { return strings.HasSuffix(c.Stderr(), "a ***\n") })
	if s := c.Stderr(); len(s) > tailBytes || strings.Contains(s, "s3cr3t") {
		t.Errorf("tail of %d bytes", len(s))
	}
	works(t, c)
}

func TestC33AChildThatReadsSlowlyGetsItAll(t *testing.T) {
	c := connect(t, stdio(t, "slow"), actors.Events{})
	arguments := `{"pad":"` + strings.Repeat("p", 5<<20) + `"}`
	if got, err := tool(t.Context(), c, "echo", arguments); err != nil || got != arguments {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestC33AChildThatDoesNotReadFailsCallsAtTheirDeadlineAndIsThenEnded(t *testing.T) {
	s := stdio(t, "server")
	s.Stall = time.Hour
	c := connect(t, s, actors.Events{})
	if _, err := tool(t.Context(), c, "stopreading", `{}`); err != nil {
		t.Fatal(err)
	}
	arguments := `{"pad":"` + strings.Repeat("p", 1<<20) + `"}`
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			eventually(t, "the call waits for the child", func() bool { return c.waiting() == 1 })
			cancel(context.DeadlineExceeded)
		}()
		if _, err := tool(ctx, c, "echo", arguments); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the deadline: %v", err)
		}
	}
	c.w.mu.Lock()
	c.w.stall = time.Millisecond // the hour is over
	c.w.mu.Unlock()
	eventually(t, "the child is given up", func() bool {
		_ = c.w.f.SetWriteDeadline(time.Now())
		return c.Err() != nil
	})
	<-c.Done()
	if err := c.Err(); !errors.Is(err, actors.ErrLost) || !strings.Contains(err.Error(), "read nothing") {
		t.Errorf("err %v", err)
	}
}
