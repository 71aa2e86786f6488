package actors

import (
	"log/slog"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the engine tells slog what the Eventlog tells already
	os.Exit(m.Run())
}
