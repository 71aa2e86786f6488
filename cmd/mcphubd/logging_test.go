package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/rs/zerolog"

	"mcphubd/config"
)

// Libraries speak to slog: the SDK, and the engine of the actors.
func TestWhatLibrariesTellComesOutOfTheLog(t *testing.T) {
	was, level := slog.Default(), zerolog.GlobalLevel()
	t.Cleanup(func() { slog.SetDefault(was); zerolog.SetGlobalLevel(level) })
	var out bytes.Buffer
	_, flush := newLog(&config.Config{Log: config.Log{Level: "info"}}, &out)
	slog.Default().With("who", "library").Warn("it is odd", "n", 3)
	slog.Debug("nobody wants this")
	flush()
	var line struct {
		Level, Message, Who, Time string
		N                         int
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	if line.Level != "warn" || line.Message != "it is odd" || line.Who != "library" || line.N != 3 || line.Time == "" {
		t.Errorf("%s", out.Bytes())
	}
}
