package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Env is what a configuration may look at outside its own text. Everything that
// is nil is empty, so the zero Env is a world with nothing in it.
type Env struct {
	Lookup   func(name string) (value string, ok bool)
	ReadFile func(path string) ([]byte, error)
	Home     func() (string, error)
}

// OS is the environment of this process.
func OS() Env {
	return Env{Lookup: os.LookupEnv, ReadFile: os.ReadFile, Home: os.UserHomeDir}
}

func (e Env) lookup(name string) (string, bool) {
	if e.Lookup == nil {
		return "", false
	}
	return e.Lookup(name)
}

func (e Env) readFile(path string) ([]byte, error) {
	if e.ReadFile == nil {
		return nil, os.ErrNotExist
	}
	return e.ReadFile(path)
}

// tilde replaces a leading ~ or ~/ by the home directory. Another user's home
// (~name) stays as it is written.
func (e Env) tilde(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	if e.Home == nil {
		return "", errors.New("~ means the home directory, and there is none")
	}
	home, err := e.Home()
	if err != nil {
		return "", fmt.Errorf("~ means the home directory: %w", err)
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~")), nil
}

// maxSecretFile bounds what ${file:PATH} reads: it is meant for a token, not
// for a document.
const maxSecretFile = 64 << 10

// expandError is a reference that leads nowhere, and what to do about it.
type expandError struct{ message, fix string }

func (e expandError) Error() string { return e.message }

// expander replaces what stands in ${…}. No shell is involved: $5, $$ and a
// lone $ stay as they are, and $${ is how a literal ${ is written.
type expander struct {
	env     Env
	dir     string   // what a relative ${file:…} is relative to
	secrets []string // what came out of files and of variables named like secrets
}

func (x *expander) expand(text string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), nil
		}
		if head, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(head + "${")
			text = rest
			continue
		}
		b.WriteString(before)
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", expandError{"${ has no closing }", "close it, or write $${ for a literal ${"}
		}
		part, err := x.reference(inner)
		if err != nil {
			return "", err
		}
		b.WriteString(part)
		text = after
	}
}

// reference is the value of what stands between the braces.
func (x *expander) reference(inner string) (string, error) {
	if path, ok := strings.CutPrefix(inner, "file:"); ok {
		return x.file(path)
	}
	name, fallback, hasFallback := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !isVariable(name) {
		return "", expandError{"a ${…} holds what is no variable and no file",
			"write ${VAR}, ${VAR:-default}, ${env:VAR} or ${file:PATH}, or $${ for a literal ${"}
	}
	value, ok := x.env.lookup(name)
	if isSecretName(name) {
		x.secrets = append(x.secrets, value)
	}
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !ok:
		return "", expandError{fmt.Sprintf("environment variable %s is not set", name),
			fmt.Sprintf("set it, or write ${%s:-default}", name)}
	}
	return value, nil
}

func (x *expander) file(written string) (string, error) {
	wrong := func(why, fix string) (string, error) {
		return "", expandError{fmt.Sprintf("${file:%s}: %s", written, why), fix}
	}
	path, err := x.env.tilde(written)
	switch {
	case err != nil:
		return wrong(err.Error(), "write the whole path")
	case path == "":
		return wrong("names no file", "write the path of one")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(x.dir, path)
	}
	data, err := x.env.readFile(path)
	if err != nil {
		return wrong(cause(err), "put the value into that file, readable by you alone")
	}
	if len(data) > maxSecretFile {
		return wrong(fmt.Sprintf("more than %s", Size(maxSecretFile)), "name a file that holds only the value")
	}
	text := strings.TrimSuffix(string(data), "\n")
	text = strings.TrimSuffix(text, "\r")
	x.secrets = append(x.secrets, text)
	return text, nil
}

func isVariable(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
