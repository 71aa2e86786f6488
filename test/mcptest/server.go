package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// server runs one script. It holds the pipe and what was counted; the answers
// themselves are made in tools.go and the steps followed in steps.go.
type server struct {
	script Script
	out    *writer
	errs   io.Writer
	record *log
	ledger *log

	mu     sync.Mutex
	open   map[string]context.CancelFunc // requests being answered, by raw id
	seen   map[string]int                // messages by method and tool
	meet   map[int]*gathering            // by rule
	calls  int                           // tools/call so far
	busy   sync.WaitGroup
	silent chan struct{} // closed by StopReading
}

// request is one message from the gateway, with its raw parts.
type request struct {
	ctx    context.Context
	out    *writer             // where its answer goes
	http   http.ResponseWriter // of a Remote, else nil
	ID     json.RawMessage     `json:"id"`
	Method string              `json:"method"`
	Params json.RawMessage     `json:"params"`
	tool   string
	args   json.RawMessage
	token  json.RawMessage
}

// Serve runs the script over the given pipes until in ends. It is what the fake
// server process does; steps that end or signal the process mean this one.
func Serve(script Script, in io.Reader, out, errs io.Writer) error {
	s, err := newServer(script, errs)
	if err != nil {
		return err
	}
	s.out = &writer{w: out}
	s.follow(&request{ctx: context.Background(), out: s.out}, script.Start, nil)
	s.read(in)
	s.cancelAll()
	if script.IgnoreEOF {
		select {}
	}
	s.busy.Wait()
	return nil
}

func newServer(script Script, errs io.Writer) (*server, error) {
	s := &server{
		script: script, errs: errs, silent: make(chan struct{}),
		open: map[string]context.CancelFunc{}, seen: map[string]int{}, meet: map[int]*gathering{},
	}
	var err error
	if s.record, err = openLog(script.Record); err != nil {
		return nil, err
	}
	s.ledger, err = openLog(script.Ledger)
	return s, err
}

func (s *server) read(in io.Reader) {
	size := 256 << 10
	if n := s.script.ReadBytes; n > 0 {
		in, size = slow{in, time.Duration(s.script.ReadMS) * time.Millisecond}, n // the buffer bounds a read
	}
	r := bufio.NewReaderSize(in, size)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			s.record.write(line)
			s.take(bytes.TrimRight(line, "\r\n"))
		}
		select {
		case <-s.silent:
			select {}
		default:
		}
		if err != nil {
			return
		}
	}
}

// take answers one line. What could take time runs in a goroutine of its own, so
// answers leave in the order in which they are ready.
func (s *server) take(line []byte) {
	req := parse(line)
	if req == nil {
		return // an answer, or noise: the record has it
	}
	req.ctx, req.out = context.Background(), s.out
	if req.Method == "notifications/cancelled" {
		s.cancel(req.Params)
	}
	rule, n := s.match(req)
	if rule == nil && len(req.ID) == 0 {
		return
	}
	if rule == nil && s.quick(req) {
		s.answer(req)
		return
	}
	done := s.begin(req)
	go func() {
		defer done()
		if rule == nil {
			s.answer(req)
			return
		}
		s.follow(req, rule.Do, s.meeting(rule, n))
	}()
}

// parse reads a request or notification; nil for anything else.
func parse(line []byte) *request {
	r := &request{}
	if json.Unmarshal(line, r) != nil || r.Method == "" {
		return nil
	}
	if r.Method != "tools/call" {
		return r
	}
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &p)
	r.tool, r.args, r.token = p.Name, p.Arguments, p.Meta.Token
	return r
}

// match finds the rule for a message, and its index.
func (s *server) match(req *request) (*Rule, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Method == "tools/call" {
		s.calls++
	}
	if len(s.script.Rules) == 0 {
		return nil, 0
	}
	s.seen[req.Method+" "+req.tool]++
	if req.tool != "" {
		s.seen[req.Method+" "]++
	}
	for i := range s.script.Rules {
		r := &s.script.Rules[i]
		if r.Method != req.Method || r.Tool != "" && r.Tool != req.tool {
			continue
		}
		if r.Nth == 0 || r.Nth == s.seen[r.Method+" "+r.Tool] {
			return r, i
		}
	}
	return nil, 0
}

// begin makes a request cancellable and counts it until the returned func runs.
func (s *server) begin(req *request) (done func()) {
	var stop context.CancelFunc
	req.ctx, stop = context.WithCancel(req.ctx)
	key := string(req.ID)
	s.mu.Lock()
	s.open[key] = stop
	s.mu.Unlock()
	s.busy.Add(1)
	return func() {
		stop()
		s.mu.Lock()
		delete(s.open, key)
		s.mu.Unlock()
		s.busy.Done()
	}
}

func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.open[string(p.ID)]; stop != nil {
		stop()
	}
}

func (s *server) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stop := range s.open {
		stop()
	}
}

// send writes one response: the head, the result and the end, with nothing between.
func (s *server) send(req *request, a Answer) {
	id := []byte(fill(string(a.ID), req))
	if len(id) == 0 {
		id = req.ID
	}
	if s.script.StringID && len(id) > 0 && id[0] != '"' {
		id = strconv.AppendQuote(nil, string(id))
	}
	head, end := `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`, "}\n"
	if a.ResultFirst || s.script.ResultFirst {
		head, end = `{"result":`, `,"jsonrpc":"2.0","id":`+string(id)+"}\n"
	}
	if a.Error != "" {
		req.out.text(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":` + string(a.Error) + "}\n")
		return
	}
	body, err := a.body()
	if err != nil {
		req.out.text(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32602,"message":` + quote(err.Error()) + "}}\n")
		return
	}
	var note func(string)
	if s.ledger != nil {
		note = func(digest string) {
			s.ledger.entry(Entry{Tool: req.tool, ID: string(req.ID), Args: Bytes(req.args), Bytes: body.size(), SHA256: digest})
		}
	}
	for range max(1, a.Times) {
		req.out.message(head, body, end, a.Pace, note)
	}
}

func (s *server) signal(n int) { _ = syscall.Kill(os.Getpid(), syscall.Signal(n)) }
