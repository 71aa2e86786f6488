package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
)

type logsCmd struct {
	Follow bool   `short:"f" help:"Go on with what comes."`
	Lines  int    `short:"n" default:"100" help:"How many lines from before; 0 = none."`
	Level  string `default:"debug" enum:"debug,info,warn,error" help:"Leave out what is less."`
	Server string `help:"Only lines about this server." complete:"server"`
	Agent  string `help:"Only lines about this agent." complete:"agent"`
	File   string `type:"path" placeholder:"FILE" help:"Read this log, not the daemon's."`
	JSON   bool   `name:"json" help:"Print the lines as they stand in the log."`
}

func (logsCmd) Help() string {
	return `Shows the log of a daemon that logs to a file: one that mcphubd connect started, or one of
mcphubd serve --log FILE. Any other one logs to where it was started. On a terminal lines are
made readable; else, and with --json, they come as they are.`
}

func (cmd logsCmd) Run(a *app) error {
	path, err := cmd.path(a)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(codeNotFound, fmt.Errorf("the log: %w", err))
	}
	defer func() { f.Close() }()
	out := a.screen()
	defer out.close()
	show := cmd.shower(out)
	lines, at, err := tailOf(f, cmd.Lines, cmd.wants)
	if err != nil {
		return err
	}
	for _, line := range lines {
		show(line)
	}
	if !cmd.Follow {
		return out.close()
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	err = follow(a.ctx, path, &f, func(line []byte) {
		if cmd.wants(line) {
			show(line)
		}
	}, func() { out.w.Flush() })
	if errors.Is(err, context.Canceled) {
		return nil // the user had enough
	}
	return err
}

// path is where the log of the daemon is: where the running one says, else where
// one that a client launched would have it.
func (cmd logsCmd) path(a *app) (string, error) {
	if cmd.File != "" {
		return cmd.File, nil
	}
	data, err := a.dataDir()
	if err != nil {
		return "", err
	}
	at, err := findDaemon(data)
	switch usual := filepath.Join(data, "daemon.log"); {
	case err == nil && at.Log != "":
		return at.Log, nil
	case err == nil:
		return "", fail(codeNotFound, fmt.Errorf("the daemon (pid %d) logs to where it was started; mcphubd serve --log FILE logs to a file", at.PID))
	case exists(usual):
		a.say("no daemon is running; this is what the last one logged")
		return usual, nil
	}
	return "", err
}

// logLine is what filters look at.
type logLine struct{ Level, Server, Agent string }

func (cmd logsCmd) wants(raw []byte) bool {
	var l logLine
	if json.Unmarshal(raw, &l) != nil {
		return cmd.Server == "" && cmd.Agent == ""
	}
	level, err := zerolog.ParseLevel(l.Level)
	least, _ := zerolog.ParseLevel(cmd.Level) // one of the enum
	return (err != nil || level >= least) && (cmd.Server == "" || l.Server == cmd.Server) && (cmd.Agent == "" || l.Agent == cmd.Agent)
}

// shower prints lines: as they are, or readable on a terminal.
func (cmd logsCmd) shower(out *screen) func([]byte) {
	if cmd.JSON || !out.tty {
		return func(line []byte) { out.w.Write(append(line, '\n')) }
	}
	pretty := zerolog.ConsoleWriter{Out: out.w, NoColor: !out.colour, TimeFormat: "15:04:05.000", TimeLocation: time.Local}
	return func(line []byte) {
		if _, err := pretty.Write(line); err != nil {
			out.line(text(string(line))) // no JSON: what a crash left
		}
	}
}

// tailOf returns the last n lines of f that are wanted, and where they end.
func tailOf(f *os.File, n int, wanted func([]byte) bool) (lines [][]byte, at int64, err error) {
	r := bufio.NewReaderSize(f, 256<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines[max(len(lines)-n, 0):], at, nil // what has no end yet comes later
		}
		if err != nil {
			return nil, 0, err
		}
		at += int64(len(line))
		if line = bytes.TrimRight(line, "\r\n"); n > 0 && wanted(line) {
			lines = append(lines, line)
		}
		if len(lines) > 2*n+1000 {
			lines = append(lines[:0], lines[len(lines)-n:]...)
		}
	}
}

// lookEvery is how often a log is looked at for new lines.
const lookEvery = 200 * time.Millisecond

// follow gives every line that comes, also after the file was replaced. It calls pause
// whenever there is no more for now.
func follow(ctx context.Context, path string, f **os.File, line func([]byte), pause func()) error {
	part, buf := []byte{}, make([]byte, 32<<10)
	take := func(b []byte) {
		part = append(part, b...)
		for {
			whole, rest, ended := bytes.Cut(part, []byte("\n"))
			if !ended {
				return
			}
			line(bytes.TrimSuffix(whole, []byte("\r")))
			part = rest
		}
	}
	for {
		n, err := (*f).Read(buf)
		if take(buf[:n]); err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		pause()
		if next := successor(path, *f); next != nil {
			rest, _ := io.ReadAll(*f) // written before it was replaced
			take(rest)
			(*f).Close()
			*f = next
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// successor opens the file that path names by now, if that is another one than f.
func successor(path string, f *os.File) *os.File {
	now, err := os.Stat(path)
	was, err2 := f.Stat()
	if err != nil || err2 != nil || os.SameFile(now, was) {
		return nil // or it comes yet
	}
	next, err := os.Open(path)
	if err != nil {
		return nil
	}
	return next
}
