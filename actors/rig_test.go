package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcphubd/config"
	"mcphubd/store"
)

// fakeServer is a connector that takes orders; it stands for a process outside.
type fakeServer struct {
	mu       sync.Mutex
	starts   []time.Time
	connect  func(n int) error // n counts from 1; nil = always succeeds
	tools    string            // the raw array of tools/list
	caps     string            // raw, as declared in the handshake
	protocol string
	says     string                                                // instructions
	methods  map[string]func(params []byte) (result, fault string) // other methods than tools/call
	answer   func(ctx context.Context, tool string, args []byte) (string, error)
	fault    string // the error object that every call is answered with; "" = none
	last     atomic.Pointer[fakeConn]
	spool    Spool
}

type fakeConn struct {
	s      *fakeServer
	events Events
	once   sync.Once
	done   chan struct{}
	err    error
	closed atomic.Bool
}

func (f *fakeServer) Connect(ctx context.Context, ev Events) (Conn, error) {
	f.mu.Lock()
	f.starts = append(f.starts, time.Now())
	n := len(f.starts)
	f.mu.Unlock()
	if f.connect != nil {
		if err := f.connect(n); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	c := &fakeConn{s: f, events: ev, done: make(chan struct{})}
	f.last.Store(c)
	return c, nil
}

func (f *fakeServer) started() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.starts...)
}

func (c *fakeConn) die(err error) { c.once.Do(func() { c.err = err; close(c.done) }) }

func (c *fakeConn) Call(ctx context.Context, r Request) (Answer, error) {
	params := bytes.Join(r.Params, nil)
	if f := c.s.methods[r.Method]; f != nil {
		result, fault := f(params)
		if result == "" && fault == "" { // an answer that does not come
			select {
			case <-ctx.Done():
				return Answer{}, context.Cause(ctx)
			case <-c.done:
				return Answer{}, fmt.Errorf("%w: %w", ErrLost, c.err)
			}
		}
		if fault != "" {
			return Answer{Error: []byte(fault)}, nil
		}
		return Answer{Result: HeldBody([]byte(result), nil)}, nil
	}
	if r.Method == "tools/list" {
		return Answer{Result: HeldBody([]byte(`{"tools":`+c.s.tools+`}`), nil)}, nil
	}
	if c.s.fault != "" {
		return Answer{Error: []byte(c.s.fault)}, nil
	}
	type out struct {
		s   string
		err error
	}
	got := make(chan out, 1)
	go func() {
		s, err := c.s.answer(ctx, string(params), params)
		got <- out{s, err}
	}()
	select {
	case o := <-got:
		if o.err != nil {
			return Answer{}, o.err
		}
		in := c.s.spool.Intake(r.Hold)
		for b := []byte(o.s); len(b) > 0; { // as it arrives over a pipe
			n := min(len(b), 100_000)
			in.Write(b[:n])
			b = b[n:]
		}
		return Answer{Result: in.Body()}, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-c.done:
		return Answer{}, fmt.Errorf("%w: %w", ErrLost, c.err)
	}
}

func (c *fakeConn) Info() ConnInfo {
	return ConnInfo{PID: 4711, Protocol: orElse(c.s.protocol, "2025-11-25"), Capabilities: []byte(c.s.caps), Instructions: c.s.says}
}

func (c *fakeConn) Done() <-chan struct{} { return c.done }
func (c *fakeConn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}
func (c *fakeConn) Stderr() string { return "" }
func (c *fakeConn) Close(context.Context) error {
	c.closed.Store(true)
	c.die(errors.New("closed"))
	return nil
}

// text is a result with one text block of n bytes.
func text(n int) string {
	return `{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}`
}

// rig is a whole daemon over fake servers and a real store.
type rig struct {
	*Daemon
	t       *testing.T
	conf    string
	path    string
	servers map[string]*fakeServer
	writer  *store.Writer
	reader  *store.Reader
	log     logBook
}

// logBook keeps the lines of a log.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logBook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// warned returns the warnings and errors in the log that hold part.
func (r *rig) warned(part string) (lines []string) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	for _, line := range r.log.lines {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

// newRig starts a daemon on the configuration conf (TOML). Every server named in
// it needs a fake of the same name.
func newRig(t *testing.T, conf string, servers map[string]*fakeServer) *rig {
	t.Helper()
	r := &rig{t: t, conf: conf, path: filepath.Join(t.TempDir(), "mcphubd.db"), servers: servers}
	r.start()
	t.Cleanup(r.stop)
	return r
}

// start starts a daemon on the store that the one before it left.
func (r *rig) start() {
	r.t.Helper()
	c := parse(r.t, r.conf)
	var err error
	if r.writer, err = store.OpenWriter(r.path, time.Now()); err != nil {
		r.t.Fatal(err)
	}
	if r.reader, err = store.OpenReader(r.path); err != nil {
		r.t.Fatal(err)
	}
	r.Daemon, err = Start(Options{Config: c, Writer: r.writer, Reader: r.reader, Log: zerolog.New(&r.log).Level(zerolog.WarnLevel),
		Dial: func(s config.Server, sp Spool) Connector {
			f := r.servers[s.Name]
			f.spool = sp
			if f.tools == "" {
				f.tools = `[{"name":"echo","inputSchema":{"type":"object"}}]`
			}
			if f.answer == nil {
				f.answer = func(_ context.Context, _ string, p []byte) (string, error) { return text(10), nil }
			}
			return f
		}})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		r.t.Error("stop:", err)
	}
	r.reader.Close()
	r.writer.Close()
}

// pruneAll removes all that is over at now.
func (r *rig) pruneAll(now time.Time) {
	r.t.Helper()
	for more := true; more; {
		p, err := r.Spool.Prune(r.t.Context(), now, 64)
		if err != nil {
			r.t.Fatal(err)
		}
		more = p.More
	}
}

func parse(t *testing.T, conf string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.toml", []byte(conf), config.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call makes one call as agent with the tool's name and raw arguments.
func (r *rig) call(ctx context.Context, agent, name, args string) (string, error) {
	r.t.Helper()
	s, err := r.Hub.Open(ctx, agent)
	if err != nil {
		return "", err
	}
	reply, err := s.Call(ctx, callOf(name, args))
	if err != nil {
		return "", err
	}
	if reply.Error != nil {
		return string(reply.Error), nil
	}
	defer reply.Result.Close()
	var b bytes.Buffer
	if _, err := reply.Result.WriteTo(&b); err != nil {
		return "", err
	}
	return b.String(), nil
}

// callOf lays out a call the way the wire does.
func callOf(name, args string) Call {
	head := `{"name":`
	q := `"` + name + `"`
	c := Call{Name: name, Params: []byte(head + q + `,"arguments":` + args + `}`)}
	c.NameAt = Range{len(head), len(head) + len(q)}
	at := len(head) + len(q) + len(`,"arguments":`)
	c.ArgsAt = Range{at, at + len(args)}
	return c
}

// ready waits until all named servers are ready.
func (r *rig) ready(names ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := r.Hub.await(ctx, func(v *View) bool {
		for _, n := range names {
			if v.Servers[n].State != Ready {
				return false
			}
		}
		return true
	})
	if err != nil {
		r.t.Fatal("not ready:", err)
	}
}
