package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/rs/zerolog"
	"gopkg.in/natefinch/lumberjack.v2"

	"mcphubd/config"
)

func init() { zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00" }

// newLog makes the log of a daemon: JSON lines to w. What libraries tell slog comes
// out of it too. The last lines are there after flush.
func newLog(c *config.Config, w io.Writer) (_ zerolog.Logger, flush func()) {
	setLogLevel(c)
	g := &gather{w: w}
	log := zerolog.New(g).With().Timestamp().Logger()
	slog.SetDefault(slog.New(bridged{zerolog.NewSlogHandler(log)}))
	return log, g.flush
}

// setLogLevel has less logged, or more, from now on, and no secret of c.
func setLogLevel(c *config.Config) {
	level, err := zerolog.ParseLevel(c.Log.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	zerolog.SetGlobalLevel(level)
	logVeil.cover(c)
}

// bridged carries slog into the log, but for what the actors' engine says of its
// events: the eventlog says it better.
type bridged struct{ slog.Handler }

func (b bridged) Handle(ctx context.Context, r slog.Record) error {
	frame, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
	if strings.Contains(frame.Function, "hollywood/actor.(*eventStream)") {
		return nil
	}
	return b.Handler.Handle(ctx, r)
}

func (b bridged) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bridged{b.Handler.WithAttrs(attrs)}
}

func (b bridged) WithGroup(name string) slog.Handler { return bridged{b.Handler.WithGroup(name)} }

const (
	logMegabytes = 20 // of one log file
	logFiles     = 5  // older ones that are kept
	logDays      = 30 // and for how long
)

// openLog opens a log file that is replaced before it grows too long. Only its
// owner can read it.
func openLog(path string) (*lumberjack.Logger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: logFiles, MaxAge: logDays}, nil
}

// logFile is where a log goes that is a file; "" = to whoever started the daemon.
func logFile(w io.Writer) string {
	if l, ok := w.(*lumberjack.Logger); ok {
		return l.Filename
	}
	return ""
}
