package config

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
)

// Error is everything that is wrong with a configuration, found in one pass. It
// never contains the value of a secret.
type Error struct{ Problems []Problem }

// Error is a line a problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing that is wrong, where it stands, and what to write
// instead.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0 = the file as a whole
	Key     string `json:"key,omitempty"`  // dotted
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// String is `file:line: key: message; fix`, without the parts that are empty.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(place(p.File, p.Line))
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// inOrder sorts problems as they stand in the file.
func inOrder(problems []Problem) []Problem {
	sort.SliceStable(problems, func(i, j int) bool { return problems[i].Line < problems[j].Line })
	return problems
}

// cause is the reason of a failed file operation without the path, which the
// message names already.
func cause(err error) string {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.As(err, &path):
		return path.Err.Error()
	}
	return err.Error()
}
