// Command mcphubd is one daemon between every agent on a machine and every MCP
// server they use, and the tool to look at it. This package is the only one
// that knows all the others: it wires them and talks to the user. A command is
// a file with a struct whose Run(*app) does it, and a field in commands.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"mcphubd/config"
)

const about = `One local daemon between your agents and their MCP servers: every server runs once,
every result is bounded, and nothing is lost.

Exit codes: 0 ok, 1 failed, 2 usage, 3 daemon not running, 4 configuration invalid,
5 not found, 6 unhealthy, 8 timed out.`

// commands is the command line.
type commands struct {
	flags

	Serve    serveCmd    `cmd:"" help:"Run the daemon in the foreground."`
	Connect  connectCmd  `cmd:"" help:"Be the stdio end of the daemon, for clients that launch servers."`
	Status   statusCmd   `cmd:"" help:"Tell how the daemon is, what is wrong first."`
	PS       psCmd       `cmd:"" name:"ps" help:"Show the tree of actors."`
	Call     callCmd     `cmd:"" help:"Look at calls, and end them."`
	Result   resultCmd   `cmd:"" help:"Look at stored results."`
	Server   serverCmd   `cmd:"" help:"Look at servers, and start them anew."`
	Tool     toolCmd     `cmd:"" help:"List and call tools, as an agent does."`
	Stats    statsCmd    `cmd:"" help:"Sum up the calls by server or tool."`
	Logs     logsCmd     `cmd:"" help:"Show what the daemon logs."`
	Doctor   doctorCmd   `cmd:"" help:"Find what is wrong and say what to do about it."`
	Debug    debugCmd    `cmd:"" help:"Open the debug page."`
	Demo     demoCmd     `cmd:"" help:"Show the whole way of a result, with real parts."`
	Config   configCmd   `cmd:"" help:"Show and check the configuration."`
	Import   importCmd   `cmd:"" help:"Print the servers that clients have configured, as tables for the configuration."`
	Attach   attachCmd   `cmd:"" help:"Show, or with --write make, what lets a client use mcphubd."`
	Service  serviceCmd  `cmd:"" help:"Have the service manager of your session run the daemon."`
	Sample   sampleCmd   `cmd:"" help:"Be a small MCP server over a folder, to try things with."`
	JQWorker jqWorkerCmd `cmd:"" name:"jq-worker" hidden:""`
	Version  versionCmd  `cmd:"" help:"Tell which build this is."`

	Completion completionCmd `cmd:"" help:"Print what makes a shell complete commands and live names."`
}

// flags are common to all commands: with the same two, every command means the
// same daemon.
type flags struct {
	ConfigFile string `name:"config" placeholder:"FILE" help:"Configuration. Else $$MCPHUBD_CONFIG, else ~/.config/mcphubd/config.toml."`
	DataDir    string `name:"data" placeholder:"DIR" help:"Data folder. Else $$MCPHUBD_DATA, else ~/.local/share/mcphubd."`
}

// app is what a command gets: the world, and the common flags. Data goes to
// stdout, talk to stderr.
type app struct {
	flags
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
}

// load reads the configuration that the flags lead to. Its warnings go to
// stderr.
func (a *app) load() (*config.Config, error) {
	c, err := config.Load(a.ConfigFile)
	if err != nil {
		return nil, err
	}
	for _, warning := range c.Warnings {
		a.say("warning: %s", warning)
	}
	return c, nil
}

// dataDir is the absolute data folder that the flags lead to.
func (a *app) dataDir() (string, error) { return config.DataDir(a.DataDir, config.OS()) }

// say tells the user something that is not data.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }

// writeJSON writes v to stdout, indented, with < and > as they are.
func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	if len(args) > 0 && args[0] == completeWord {
		return complete(a, args[1:])
	}
	command, err := parse(a, args)
	if err == nil {
		err = command.Run(a)
	}
	if message := describe(err); message != "" {
		a.say("mcphubd: %s", message)
	}
	return codeOf(err)
}

// parse finds the command in args and fills the common flags. Help that was
// asked for is printed here.
func parse(a *app, args []string) (*kong.Context, error) {
	var line commands
	helped := false
	parser := newParser(a, &line, func(int) { helped = true })
	command, err := parser.Parse(args)
	switch {
	case helped:
		return nil, errHelped
	case err != nil:
		return nil, fail(codeUsage, fmt.Errorf("%w (mcphubd --help tells more)", err))
	}
	a.flags = line.flags
	return command, nil
}

func newParser(a *app, line *commands, exit func(int)) *kong.Kong {
	parser, err := kong.New(line,
		kong.Name("mcphubd"),
		kong.Description(about),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic(err) // commands is wrong
	}
	return parser
}

// errHelped ends the program well after it printed help.
var errHelped = errors.New("help was printed")
