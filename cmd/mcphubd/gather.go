package main

import (
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	gatherFor  = 50 * time.Millisecond
	gatherMost = 64 << 10
)

// gather writes many lines at once, since every write costs more than making the
// line. Warnings and worse go out at once, with all that came before them.
type gather struct {
	w io.Writer

	mu    sync.Mutex
	lines []byte
	armed bool
}

// Write implements io.Writer.
func (g *gather) Write(p []byte) (int, error) { return g.WriteLevel(zerolog.InfoLevel, p) }

// WriteLevel implements zerolog.LevelWriter.
func (g *gather) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, p...)
	switch {
	case level >= zerolog.WarnLevel, len(g.lines) >= gatherMost:
		g.write()
	case !g.armed:
		g.armed = true
		time.AfterFunc(gatherFor, g.flush)
	}
	return len(p), nil
}

// flush writes what was gathered.
func (g *gather) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = false
	g.write()
}

func (g *gather) write() {
	if len(g.lines) > 0 {
		g.w.Write(logVeil.hide(g.lines)) // there is nobody left to tell if this fails
	}
	g.lines = g.lines[:0]
}
