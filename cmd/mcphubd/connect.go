package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"mcphubd/config"
	"mcphubd/transport/bridge"
)

type connectCmd struct {
	Agent   string `default:"default" help:"Which agent this is: what it may see and how much it can take is configured under this name."`
	URL     string `name:"url" help:"A daemon elsewhere on this machine, as http://127.0.0.1:PORT, in place of this user's own."`
	Token   string `name:"token-file" placeholder:"FILE" type:"path" help:"Holds the agent's token, if it has one; else $MCPHUBD_TOKEN does."`
	MaxLine string `default:"10MB" help:"The longest line that the client takes; what is longer is stored."`

	Patience time.Duration `default:"30s" help:"How long a request waits for a daemon that is down."`
}

func (connectCmd) Help() string {
	return `Speaks MCP on stdin and stdout, for clients that launch their servers: it relays to the
daemon over its socket, and starts the daemon if none runs. It outlives restarts of the
daemon: then it repeats the handshake, and never a call. It ends with its stdin.`
}

func (cmd connectCmd) Run(a *app) error {
	limit, err := config.ParseSize(cmd.MaxLine)
	if err != nil {
		return fail(codeUsage, fmt.Errorf("--max-line: %w", err))
	}
	if !config.ValidAgentName(cmd.Agent) {
		return fail(codeUsage, fmt.Errorf("--agent: %q cannot be a name", cmd.Agent))
	}
	token, err := agentToken(cmd.Token)
	if err != nil {
		return fail(codeUsage, fmt.Errorf("--token-file: %w", err))
	}
	o := bridge.Options{MaxLine: int(limit), Patience: cmd.Patience, Log: zerolog.New(a.stderr).Level(zerolog.WarnLevel)}
	if cmd.URL != "" {
		o.URL, err = url.JoinPath(cmd.URL, "mcp", cmd.Agent)
		if err != nil {
			return fail(codeUsage, fmt.Errorf("--url: %w", err))
		}
		o.HTTP = withToken(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}, token)
		return bridge.Run(a.ctx, o, a.stdin, a.stdout)
	}
	s, err := a.starter()
	if err != nil {
		return err
	}
	o.URL = "http://localhost/mcp/" + cmd.Agent
	o.HTTP = withToken(socketClient(s.at), token)
	o.Ensure = s.ensure
	return bridge.Run(a.ctx, o, a.stdin, a.stdout)
}

// starter sees to it that there is a daemon.
type starter struct {
	*app
	data, socket string
}

func (a *app) starter() (*starter, error) {
	data, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	c, err := a.load()
	if err == nil {
		return &starter{a, data, socketPath(c, data)}, nil
	}
	if _, none := findDaemon(data); none != nil {
		return nil, err
	}
	// The one that runs goes on with what it had, and so can we.
	a.say("mcphubd: the configuration is invalid, and the running daemon is used as it is: %v", err)
	return &starter{app: a, data: data}, nil
}

// at is the socket to use: where the last daemon said that it listens, else where one
// would.
func (s *starter) at() string {
	if a, err := readAddress(s.data); err == nil && a.Socket != "" {
		return a.Socket
	}
	return s.socket
}

// startPatience is how long a new daemon may take to listen.
const startPatience = 15 * time.Second

// ensure starts the daemon if none runs. Of many that come at once one starts it, and
// the others wait for it: that is what the lock is for.
func (s *starter) ensure(ctx context.Context) error {
	if _, err := findDaemon(s.data); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(s.data, "start.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*startPatience)
	defer cancel()
	for unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		if err := pause(ctx); err != nil {
			return err
		}
	}
	if _, err := findDaemon(s.data); err == nil {
		return nil
	}
	return s.start(ctx)
}

// start launches a daemon of its own session and waits until it listens.
func (s *starter) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// What it says besides its log: why it did not start, or how it crashed.
	out := filepath.Join(s.data, "daemon.out")
	os.Rename(out, out+".old") // there may be none
	said, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	args := []string{"serve", "--data", s.data, "--log", filepath.Join(s.data, "daemon.log")}
	if s.ConfigFile != "" {
		file, err := filepath.Abs(s.ConfigFile)
		if err != nil {
			return err
		}
		args = append(args, "--config", file)
	}
	c := exec.Command(self, args...)
	c.Stdout, c.Stderr, c.Dir = said, said, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	return s.await(ctx, c, out)
}

// await returns when the daemon listens that c is, or says why it does not; out is where
// it says more.
func (s *starter) await(ctx context.Context, c *exec.Cmd, out string) error {
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if _, err := findDaemon(s.data); err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the daemon ended at once: %s; see %s", lastWords(out, c.ProcessState), out)
		default:
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("the daemon does not listen after %s; see %s", startPatience, out)
		}
	}
}

// lastWords is what a daemon said when it did not start, else how it ended.
func lastWords(out string, end *os.ProcessState) string {
	said, _ := os.ReadFile(out)
	if words := strings.TrimSpace(string(said)); words != "" {
		return oneLine(words, 500)
	}
	return end.String()
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}
