package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"mcphubd/config"
)

// configCmd holds the commands about the configuration. None needs a daemon.
type configCmd struct {
	Check   configCheckCmd   `cmd:"" help:"Check the configuration; exit code 4 if it is invalid."`
	Default configDefaultCmd `cmd:"" help:"Print the defaults, annotated: a file to start from."`
	Show    configShowCmd    `cmd:"" help:"Print what is in force, secrets masked."`
	Path    configPathCmd    `cmd:"" help:"Print which file is read."`
	Migrate configMigrateCmd `cmd:"" help:"Add the keys that your file does not speak of yet, commented out."`
}

type configCheckCmd struct {
	JSON bool `name:"json" help:"Print the findings as JSON."`
}

func (configCheckCmd) Help() string {
	return `Reads the file as the daemon would, and tells everything that is wrong with it at once:
file, line, key, and what to write instead. Nothing is started or changed.`
}

// checked is what config check --json prints.
type checked struct {
	OK       bool             `json:"ok"`
	File     string           `json:"file"`
	Problems []config.Problem `json:"problems"`
	Warnings []string         `json:"warnings"`
}

func (cmd configCheckCmd) Run(a *app) error {
	if cmd.JSON {
		return cmd.json(a)
	}
	c, err := a.load()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok, %s, %s\n", origin(c),
		count(len(c.Servers), "server"), count(len(c.Agents), "agent"))
	return err
}

func (cmd configCheckCmd) json(a *app) error {
	path, _, err := config.Path(a.ConfigFile, config.OS())
	if err != nil {
		return err
	}
	found := checked{File: path, Problems: []config.Problem{}, Warnings: []string{}}
	c, err := config.Load(a.ConfigFile)
	var invalid *config.Error
	switch {
	case errors.As(err, &invalid):
		found.Problems = invalid.Problems
	case err != nil:
		return err
	default:
		found.OK, found.Warnings = true, append(found.Warnings, c.Warnings...)
	}
	if err := a.writeJSON(found); err != nil {
		return err
	}
	if !found.OK {
		return fail(codeInvalid, errTold)
	}
	return nil
}

// origin names what c was read from.
func origin(c *config.Config) string {
	if c.File == "" {
		return "the defaults, as there is no file"
	}
	return c.File
}

type configDefaultCmd struct{}

func (configDefaultCmd) Help() string {
	return `This file is what the program itself reads first; your own file needs only the lines that differ.`
}

func (configDefaultCmd) Run(a *app) error {
	_, err := a.stdout.Write(config.DefaultFile())
	return err
}

type configShowCmd struct {
	Sources bool `help:"Tell where each value came from: default, or file and line."`
	JSON    bool `name:"json" help:"Print JSON."`
}

func (configShowCmd) Help() string {
	return `Prints every value in force as TOML. Of environment variables, headers and tokens only the
names are shown, and other secrets are masked: the output can be pasted into a report.`
}

// shown is what config show --json prints.
type shown struct {
	File     string            `json:"file"`
	Config   map[string]any    `json:"config"`
	Sources  map[string]string `json:"sources,omitempty"`
	Warnings []string          `json:"warnings"`
}

func (cmd configShowCmd) Run(a *app) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	settings := c.Settings()
	if !cmd.JSON {
		return config.Write(a.stdout, settings, cmd.Sources)
	}
	out := shown{File: c.File, Config: config.Tree(settings), Warnings: append([]string{}, c.Warnings...)}
	if cmd.Sources {
		out.Sources = map[string]string{}
		for _, s := range settings {
			out.Sources[s.Key.String()] = s.Source
		}
	}
	return a.writeJSON(out)
}

type configPathCmd struct {
	JSON bool `name:"json" help:"Print JSON, with the data folder."`
}

// places is what config path --json prints.
type places struct {
	Config string `json:"config"`
	Exists bool   `json:"exists"`
	Data   string `json:"data"`
}

func (cmd configPathCmd) Run(a *app) error {
	path, named, err := config.Path(a.ConfigFile, config.OS())
	if err != nil {
		return err
	}
	_, err = os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if cmd.JSON {
		data, err := a.dataDir()
		if err != nil {
			return err
		}
		return a.writeJSON(places{path, !missing, data})
	}
	switch {
	case missing && named:
		a.say("there is no such file, which is an error for every other command")
	case missing:
		a.say("there is no such file, so the defaults are in force")
	}
	_, err = fmt.Fprintln(a.stdout, path)
	return err
}
