package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcphubd/config"
)

// writes counts what reaches the outside.
type writes struct {
	mu   sync.Mutex
	all  bytes.Buffer
	many int
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.many++
	return w.all.Write(p)
}

func (w *writes) read() (text string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String(), w.many
}

func TestLogLinesAreWrittenTogetherAndWarningsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &writes{}
		log, flush := newLog(&config.Config{Log: config.Log{Level: "info"}}, out)
		for range 100 {
			log.Info().Msg("call")
		}
		log.Debug().Msg("quiet")
		if _, n := out.read(); n != 0 {
			t.Errorf("%d writes before their time", n)
		}
		time.Sleep(gatherFor)
		synctest.Wait()
		if text, n := out.read(); n != 1 || strings.Count(text, "\n") != 100 {
			t.Errorf("%d lines in %d writes", strings.Count(text, "\n"), n)
		}
		log.Info().Msg("before")
		log.Warn().Msg("now")
		if text, n := out.read(); n != 2 || !strings.HasSuffix(text, "\"message\":\"now\"}\n") || !strings.Contains(text, "before") {
			t.Errorf("a warning waited: %s", text)
		}
		log.Info().Msg("last")
		flush()
		if text, _ := out.read(); !strings.Contains(text, "last") {
			t.Error("the end of the log is missing")
		}
	})
}
