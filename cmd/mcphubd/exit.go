package main

import (
	"context"
	"errors"

	"mcphubd/config"
)

// The exit codes. Scripts rely on them.
const (
	codeOK         = 0
	codeFailed     = 1
	codeUsage      = 2
	codeNotRunning = 3 // the daemon is not running
	codeInvalid    = 4 // the configuration is invalid
	codeNotFound   = 5
	codeUnhealthy  = 6
	codeTimedOut   = 8
)

// failure is an error that chooses the exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail gives err an exit code.
func fail(code int, err error) error { return &failure{code, err} }

// codeOf is the exit code that err ends the program with.
func codeOf(err error) int {
	var chosen *failure
	var invalid *config.Error
	switch {
	case err == nil, errors.Is(err, errHelped):
		return codeOK
	case errors.As(err, &chosen):
		return chosen.code
	case errors.As(err, &invalid):
		return codeInvalid
	case errors.Is(err, context.DeadlineExceeded):
		return codeTimedOut
	}
	return codeFailed
}

// describe is what the user is told about err, or "" if there is nothing to
// tell. Problems of a configuration stand on lines of their own, so that an
// editor can jump to each.
func describe(err error) string {
	var invalid *config.Error
	switch {
	case err == nil, errors.Is(err, errHelped), errors.Is(err, errTold):
		return ""
	case errors.As(err, &invalid):
		return "the configuration is invalid\n" + err.Error()
	}
	return err.Error()
}

// errTold ends the program when the command already told what went wrong; wrap
// it with fail.
var errTold = errors.New("told already")
