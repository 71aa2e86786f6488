package config

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
)

// LoadAgain is Load for a daemon that runs with running. A file that was there and is
// gone or empty now is an error: it is being replaced, or lost, and nobody means to stop
// everything that way.
func LoadAgain(flag string, running *Config) (*Config, error) {
	env := OS()
	path, named, err := Path(flag, env)
	if err != nil {
		return nil, err
	}
	text, err := env.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named && running.File == "" {
		return Default(), nil
	}
	if err != nil {
		return nil, &Error{[]Problem{{File: path, Message: cause(err), Fix: "put the file back; the daemon goes on with what it had"}}}
	}
	c, err := Parse(path, text, env)
	if err != nil {
		return nil, err
	}
	c.File = path
	if len(bytes.TrimSpace(text)) == 0 && running.File != "" && !c.Same(running) {
		return nil, &Error{[]Problem{{File: path, Message: "the file is empty", Fix: "write it again; to have the defaults alone, leave a comment in it"}}}
	}
	return c, nil
}

// Same reports whether both mean the same, wherever their values came from.
func (c *Config) Same(other *Config) bool {
	return reflect.DeepEqual(c.values(), other.values())
}

// values is c without what is not a value.
func (c *Config) values() Config {
	v := *c
	v.File, v.Sources, v.Warnings = "", nil, nil
	return v
}

// OnlyAtStart lists the keys in which c differs from started that a running daemon
// cannot take over.
func (c *Config) OnlyAtStart(started *Config) (keys []string) {
	if c.Listen != started.Listen {
		keys = append(keys, "listen")
	}
	if c.Socket != started.Socket {
		keys = append(keys, "socket")
	}
	if c.MaxRequest != started.MaxRequest {
		keys = append(keys, "max_request")
	}
	return keys
}
