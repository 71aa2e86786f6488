package agent

import (
	"context"
	"log/slog"

	"github.com/rs/zerolog"
)

// sdkLog carries what the SDK logs into our log, as talk for debugging: much of it is
// what agents do wrong, which is no fault of the daemon and must not fill its log.
func sdkLog(log zerolog.Logger) *slog.Logger {
	return slog.New(sdkTalk{zerolog.NewSlogHandler(log.With().Str("by", "sdk").Logger())})
}

// sdkTalk makes every record one for debugging.
type sdkTalk struct{ slog.Handler }

func (t sdkTalk) Enabled(ctx context.Context, _ slog.Level) bool {
	return t.Handler.Enabled(ctx, slog.LevelDebug)
}

func (t sdkTalk) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return t.Handler.Handle(ctx, r)
}

func (t sdkTalk) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkTalk{t.Handler.WithAttrs(attrs)}
}
func (t sdkTalk) WithGroup(name string) slog.Handler { return sdkTalk{t.Handler.WithGroup(name)} }
