package agent

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

var clock = regexp.MustCompile(`"time":"[^"]*",`)

func TestWhatTheSDKLogsIsTalkForDebugging(t *testing.T) {
	for level, want := range map[zerolog.Level]string{
		zerolog.InfoLevel:  "",
		zerolog.DebugLevel: `{"level":"debug","by":"sdk","session":"7","error":"gone","message":"it ended"}`,
	} {
		var out bytes.Buffer
		sdkLog(zerolog.New(&out).Level(level)).With("session", "7").Error("it ended", "error", "gone")
		if got := clock.ReplaceAllString(strings.TrimSpace(out.String()), ""); got != want {
			t.Errorf("at %s: %s, want %s", level, got, want)
		}
	}
}
