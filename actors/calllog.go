package actors

import (
	"github.com/rs/zerolog"

	"mcphubd/config"
	"mcphubd/store"
)

// maskErrors hides what the configuration keeps secret: a server may say its own key
// in an error. The agent got it as it was.
func maskErrors(c *config.Config, calls []store.Call) {
	for i := range calls {
		if r := &calls[i]; r.Error != "" {
			r.Error = config.Mask(r.Error, c.Servers[r.Server].Secrets)
		}
	}
}

// logCalls writes one line a call, after the calls and outside their way: they are
// gathered for a second first. What a call was given or brought is in no line.
func logCalls(log zerolog.Logger, calls []store.Call) {
	for _, c := range calls {
		e := log.Info().Int64("call", c.Serial).Str("agent", c.Agent).Str("server", c.Server).Str("tool", c.Tool).
			Str("outcome", c.Outcome).Float64("ms", float64(c.Took.Microseconds())/1000).
			Int64("bytes", c.ResultBytes).Bool("stored", c.Stored)
		if c.Error != "" {
			e.Str("error", c.Error)
		}
		e.Msg("call")
	}
}
