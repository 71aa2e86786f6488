package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// source is the document on its way to the child. Its error, of reading or of size,
// stops the run.
type source struct {
	r    io.Reader
	left int64
	over error // when there is more than left
	stop context.CancelCauseFunc
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.left -= int64(n)
	switch {
	case s.left < 0:
		s.err = s.over
	case err != nil && !errors.Is(err, io.EOF):
		s.err = fmt.Errorf("jq: read the document: %w", err)
	default:
		return n, err
	}
	s.stop(s.err)
	return 0, s.err
}

// sink is the output on its way from the child. Its error, of writing or of size,
// stops the run.
type sink struct {
	w    io.Writer
	left int64
	over error
	stop context.CancelCauseFunc
	err  error
}

func (s *sink) Write(p []byte) (int, error) {
	n := min(len(p), int(s.left))
	written, err := s.w.Write(p[:n])
	s.left -= int64(written)
	switch {
	case err != nil:
		s.err = fmt.Errorf("jq: write the output: %w", err)
	case n < len(p):
		s.err = s.over
	default:
		return written, nil
	}
	s.stop(s.err)
	return written, s.err
}

// head keeps the beginning of what is written to it: a dying child says what it dies
// of first.
type head struct{ strings.Builder }

const maxHead = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.Builder.Write(p[:min(len(p), maxHead-h.Len())])
	return len(p), nil
}

// shortened is s in at most n bytes, cut between characters.
func shortened(s string, n int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= n {
		return s
	}
	for n -= len("…"); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:n] + "…"
}
