package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

//go:embed default.toml
var defaultFile []byte

// DefaultFile is the annotated file that holds the defaults.
func DefaultFile() []byte { return append([]byte(nil), defaultFile...) }

// Default is the configuration of an empty file.
func Default() *Config {
	c, err := Parse("default.toml", nil, Env{})
	if err != nil {
		panic(err) // default.toml is part of this program
	}
	return c
}

// Parse turns the text of a file into a Config. It looks at nothing but its
// arguments. name stands in messages, and its folder is what a relative
// ${file:PATH} is relative to. The error is an *Error with all that is wrong.
func Parse(name string, text []byte, env Env) (*Config, error) {
	c := &Config{Servers: map[string]Server{}, Agents: map[string]Agent{}, Sources: Sources{}}
	if _, err := read(c, "", defaultFile, Env{}); err != nil {
		return nil, err
	}
	r, err := read(c, name, text, env)
	if err != nil {
		return nil, err
	}
	c.inherit()
	c.Warnings = r.warnings(c)
	return c, nil
}

// read lays one document over c.
func read(c *Config, name string, text []byte, env Env) (*reader, error) {
	top, problem := parseTOML(name, text)
	if problem != nil {
		return nil, &Error{[]Problem{*problem}}
	}
	r := &reader{
		file:     name,
		expander: expander{env: env, dir: filepath.Dir(name)},
		sources:  c.Sources,
		lines:    map[string]int{},
	}
	r.walk(top, r.topFields(c))
	r.checkWhole(c)
	if len(r.problems) > 0 {
		return nil, &Error{inOrder(r.problems)}
	}
	return r, nil
}

// inherit gives every server the global values of what it does not set.
func (c *Config) inherit() {
	for name, s := range c.Servers {
		key := "servers." + name + "."
		if s.CallTimeout == 0 {
			s.CallTimeout = c.CallTimeout
			c.Sources[key+"call_timeout"] = c.Sources["call_timeout"]
		}
		if c.Sources[key+"idle_timeout"] == "" { // "0" is a value of its own
			s.IdleTimeout = c.IdleTimeout
			c.Sources[key+"idle_timeout"] = c.Sources["idle_timeout"]
		}
		if s.ConnectTimeout == 0 {
			s.ConnectTimeout = c.ConnectTimeout
			c.Sources[key+"connect_timeout"] = c.Sources["connect_timeout"]
		}
		c.Servers[name] = s
	}
}

// Load reads the configuration that flag (the value of --config, or "") leads
// to. Where nobody named a file and there is none, it is the defaults; a named
// file that is missing is an error.
func Load(flag string) (*Config, error) {
	env := OS()
	path, named, err := Path(flag, env)
	if err != nil {
		return nil, err
	}
	text, err := env.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return Default(), nil
	}
	if err != nil {
		return nil, &Error{[]Problem{{
			File: path, Message: cause(err),
			Fix: "name another with --config, or make one: mcphubd config default",
		}}}
	}
	c, err := Parse(path, text, env)
	if err != nil {
		return nil, err
	}
	c.File = path
	return c, nil
}

// Path is where the configuration is looked for: flag, else $MCPHUBD_CONFIG,
// else mcphubd/config.toml in the user's configuration folder. It is absolute,
// and never guessed from the working directory. named tells whether somebody
// asked for this very file.
func Path(flag string, env Env) (path string, named bool, err error) {
	return locate(flag, env, "MCPHUBD_CONFIG", "XDG_CONFIG_HOME", "~/.config", "mcphubd/config.toml")
}

// DataDir is where the daemon keeps its database, lock and logs: flag, else
// $MCPHUBD_DATA, else mcphubd in the user's data folder. It is absolute.
func DataDir(flag string, env Env) (string, error) {
	path, _, err := locate(flag, env, "MCPHUBD_DATA", "XDG_DATA_HOME", "~/.local/share", "mcphubd")
	return path, err
}

func locate(flag string, env Env, variable, xdg, home, rest string) (path string, named bool, err error) {
	path = flag
	if path == "" {
		path, _ = env.lookup(variable)
	}
	if path != "" {
		if path, err = env.tilde(path); err == nil {
			path, err = filepath.Abs(path)
		}
		return path, true, err
	}
	base, _ := env.lookup(xdg)
	if !filepath.IsAbs(base) { // as the XDG rules say
		if base, err = env.tilde(home); err != nil {
			return "", false, fmt.Errorf("find %s: %w", rest, err)
		}
	}
	return filepath.Join(base, rest), false, nil
}
