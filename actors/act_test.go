package actors

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/config"
	"mcphubd/store"
)

const serverA = "[servers.a]\ncommand = \"x\"\n"

// waits is a server whose calls end with their context.
func waits(ctx context.Context, _ string, _ []byte) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func TestTheOwnerEndsACallAndItsAgentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, serverA, map[string]*fakeServer{"a": {answer: waits}})
		r.ready("a")
		ended := make(chan error)
		go func() {
			_, err := r.call(context.Background(), "me", "a__echo", `{"x":1}`)
			ended <- err
		}()
		synctest.Wait()
		calls := r.Snapshot().Calls
		if len(calls) != 1 || calls[0].Agent != "me" || calls[0].Server != "a" || calls[0].Tool != "a__echo" || calls[0].Kind != "tools/call" || calls[0].ArgBytes != 7 {
			t.Fatalf("in flight: %+v", calls)
		}
		if r.Hub.Cancel(calls[0].Serial + 1) {
			t.Error("a call that is not there was cancelled")
		}
		if !r.Hub.Cancel(calls[0].Serial) {
			t.Error("the call was not found")
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "owner") {
			t.Errorf("the agent was told: %v", err)
		}
		synctest.Wait()
		s := r.Snapshot()
		if len(s.Calls) != 0 || len(s.Recent) != 1 || s.Recent[0].Outcome != "cancelled" || s.Recent[0].Serial != calls[0].Serial {
			t.Errorf("afterwards: %+v, %+v", s.Calls, s.Recent)
		}
	})
}

func TestARestartServesAnewWhileOldCallsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		f := &fakeServer{answer: func(_ context.Context, _ string, p []byte) (string, error) {
			if strings.Contains(string(p), "slow") {
				<-finish
			}
			return text(10), nil
		}}
		r := newRig(t, serverA, map[string]*fakeServer{"a": f})
		r.ready("a")
		old := make(chan error)
		go func() {
			_, err := r.call(context.Background(), "me", "a__echo", `{"slow":1}`)
			old <- err
		}()
		synctest.Wait()
		if err := r.Hub.Restart(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.call(context.Background(), "me", "a__echo", `{}`); err != nil {
			t.Error("the new one:", err)
		}
		if n := len(f.started()); n != 2 {
			t.Errorf("started %d times", n)
		}
		close(finish)
		if err := <-old; err != nil {
			t.Error("the call on the old one:", err)
		}
	})
}

func TestARestartOfWhatIsNotThereIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, serverA+"enabled = false\n", map[string]*fakeServer{"a": {}})
		if err := r.Hub.Restart(context.Background(), "b"); !errors.Is(err, ErrNoServer) {
			t.Errorf("unknown: %v", err)
		}
		if err := r.Hub.Restart(context.Background(), "a"); !errors.Is(err, ErrDisabled) {
			t.Errorf("disabled: %v", err)
		}
	})
}

func TestTheSnapshotCountsWhatContextsWereSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := text(100_000)
		r := newRig(t, serverA, map[string]*fakeServer{"a": {answer: func(_ context.Context, _ string, p []byte) (string, error) {
			if strings.Contains(string(p), "big") {
				return big, nil
			}
			return text(10), nil
		}}})
		r.ready("a")
		var given int
		for _, args := range []string{`{"big":1}`, `{}`} {
			got, err := r.call(context.Background(), "me", "a__echo", args)
			if err != nil {
				t.Fatal(err)
			}
			if args != `{}` {
				given = len(got)
			}
		}
		if _, err := r.call(context.Background(), "me", "mcphub_read_result", `{}`); err != nil {
			t.Fatal(err)
		}
		s := r.Snapshot()
		if want := int64(len(big) - given); s.Totals.Receipts != 1 || s.Totals.KeptOutBytes != want || s.Totals.Calls != 2 {
			t.Errorf("totals %+v, want %d bytes kept out", s.Totals, want)
		}
		if s.Totals.Reads["list"] != 1 || s.Servers[0].Tally.Outcomes["ok"] != 2 {
			t.Errorf("reads %v, server %+v", s.Totals.Reads, s.Servers[0].Tally)
		}
		if len(s.Recent) != 2 || s.Recent[0].Stored || !s.Recent[1].Stored || s.Recent[1].GivenBytes != int64(given) {
			t.Errorf("recent: %+v", s.Recent)
		}
	})
}

func TestTheLedgerKeepsTheLast200Calls(t *testing.T) {
	l := newLedger()
	for i := range 1000 {
		l.record(store.Call{Serial: int64(i + 1), Server: fmt.Sprint("s", i), Outcome: "ok", Took: time.Millisecond}, 1)
	}
	c := l.show()
	if len(c.Recent) != recentCalls || c.Recent[0].Serial != 1000 || c.Recent[recentCalls-1].Serial != 801 {
		t.Errorf("%d calls, from %+v", len(c.Recent), c.Recent[0])
	}
	if len(c.Servers) > maxTallies+1 || c.Total.Calls != 1000 || c.Servers[otherServers].Calls != 1000-maxTallies {
		t.Errorf("%d tallies, %d calls of others", len(c.Servers), c.Servers[otherServers].Calls)
	}
}

func TestAMeterTellsTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m meter
		for i := range 120 {
			took := time.Millisecond
			if i%10 == 0 {
				took = 100 * time.Millisecond
			}
			m.add(time.Now(), took)
			time.Sleep(time.Second)
		}
		p := m.read(time.Now())
		if p.PerMinute < 55 || p.PerMinute > 65 {
			t.Errorf("%v a minute, want about 60", p.PerMinute)
		}
		if p.P50 < 700*time.Microsecond || p.P50 > 1300*time.Microsecond || p.P95 < 70*time.Millisecond || p.P95 > 130*time.Millisecond {
			t.Errorf("p50 %s, p95 %s", p.P50, p.P95)
		}
		time.Sleep(3 * time.Minute)
		if p := m.read(time.Now()); p != (Pace{}) {
			t.Errorf("after rest: %+v", p)
		}
	})
}

// BenchmarkSnapshot reads the state of 500 actors, all of which had mail.
func BenchmarkSnapshot(b *testing.B) {
	var conf strings.Builder
	for i := range 250 {
		fmt.Fprintf(&conf, "[servers.s%d]\ncommand = \"x\"\n", i)
	}
	c, err := config.Parse("bench.toml", []byte(conf.String()), config.Env{})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "mcphubd.db")
	w, err := store.OpenWriter(path, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	reader, err := store.OpenReader(path)
	if err != nil {
		b.Fatal(err)
	}
	d, err := Start(Options{Config: c, Writer: w, Reader: reader, Log: zerolog.Nop(), Dial: func(config.Server, Spool) Connector {
		return &fakeServer{tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`,
			answer: func(context.Context, string, []byte) (string, error) { return text(10), nil }}
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { d.Stop(context.Background()); reader.Close(); w.Close() }()
	d.Hub.await(context.Background(), allFeatured)
	for i := range 246 {
		s, err := d.Hub.Open(context.Background(), fmt.Sprint("agent", i))
		if err != nil {
			b.Fatal(err)
		}
		for range 2 {
			s.Call(context.Background(), callOf("s0__echo", `{}`))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(d.Snapshot().Actors); n < 500 {
			b.Fatalf("%d actors", n)
		}
	}
}
