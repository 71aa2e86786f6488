package actors

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/store"
)

func TestEveryCallIsOneLineOfTheLog(t *testing.T) {
	var out bytes.Buffer
	logCalls(zerolog.New(&out), []store.Call{
		{Serial: 7, Agent: "a", Server: "s", Tool: "t", Outcome: "ok", Took: 1500 * time.Microsecond, ArgBytes: 3, ResultBytes: 40, Stored: true},
		{Serial: 8, Agent: "a", Server: "s", Tool: "t\n{", Outcome: "failed", Error: "gone\nfor good"},
	})
	want := `{"level":"info","call":7,"agent":"a","server":"s","tool":"t","outcome":"ok","ms":1.5,"bytes":40,"stored":true,"message":"call"}
{"level":"info","call":8,"agent":"a","server":"s","tool":"t\n{","outcome":"failed","ms":0,"bytes":0,"stored":false,"error":"gone\nfor good","message":"call"}
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	for line := range bytes.Lines(out.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestAServersKeyInAnErrorIsNotRecorded(t *testing.T) {
	const key = "sk-live-0123456789"
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, oneServer+"env = { API_KEY = \""+key+"\" }\n",
			map[string]*fakeServer{"d": {fault: `{"code":-32000,"message":"bad key ` + key + `"}`}})
		if got, err := r.call(t.Context(), "a", "d__echo", `{}`); err != nil || !strings.Contains(got, key) {
			t.Errorf("the agent gets the answer as it was: %s, %v", got, err)
		}
		time.Sleep(settleEvery)
		synctest.Wait()
		rows, err := r.reader.Calls(t.Context(), time.Time{}, 10)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		if strings.Contains(rows[0].Error, key) || !strings.Contains(rows[0].Error, "bad key") {
			t.Errorf("recorded: %s", rows[0].Error)
		}
	})
}

// BenchmarkCallLine is what a call costs in the log: a line into a file.
func BenchmarkCallLine(b *testing.B) {
	f, err := os.CreateTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for name, w := range map[string]io.Writer{"file": f, "nothing": io.Discard} {
		b.Run(name, func(b *testing.B) {
			log := zerolog.New(zerolog.SyncWriter(w)).With().Timestamp().Logger()
			rows := []store.Call{{Serial: 7, Agent: "claude-code", Server: "fs", Tool: "read_text_file", Outcome: "ok", Took: time.Millisecond, ResultBytes: 400}}
			for b.Loop() {
				logCalls(log, rows)
			}
		})
	}
}
