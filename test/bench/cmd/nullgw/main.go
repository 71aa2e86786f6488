// Command nullgw is the floor: the least that a gateway from streamable HTTP to
// stdio, or to streamable HTTP, can do. Towards stdio it rewrites the JSON-RPC id; it
// never parses a result, stores nothing and keeps no sessions. It is no product but a physical limit, beside
// which the cost of a gateway is measured.
//
//	nullgw NAME=COMMAND NAME=http://ADDRESS…        listens on a free loopback port and prints it
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

const (
	hello = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"nullgw","version":"1"}}`
	greet = `,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"nullgw","version":"1"}}}`
)

func main() {
	log.SetFlags(0)
	servers := map[string]upstream{}
	for _, arg := range os.Args[1:] {
		name, at, _ := strings.Cut(arg, "=")
		s, err := reach(at)
		if err != nil {
			log.Fatal(err)
		}
		servers[name] = s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s\nready\n", l.Addr())
	log.Fatal(http.Serve(l, relay(servers)))
}

// upstream is one server.
type upstream interface {
	pass(w http.ResponseWriter, q request, body []byte)
}

func reach(at string) (upstream, error) {
	if strings.HasPrefix(at, "http://") {
		return dial(at)
	}
	return start(at)
}

// server is one child and the requests that wait for its answers.
type server struct {
	mu   sync.Mutex
	in   io.Writer
	last int
	wait map[int]chan []byte
}

func start(command string) (*server, error) {
	c := exec.Command(command)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	s := &server{in: in, wait: map[int]chan []byte{}}
	go s.read(out)
	<-s.send("initialize", hello)
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return s, err
}

// send writes one request; what follows the id of its answer arrives on the channel.
func (s *server) send(method, params string) chan []byte {
	answer := make(chan []byte, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.wait[s.last] = answer
	_, _ = io.WriteString(s.in, `{"jsonrpc":"2.0","id":`+strconv.Itoa(s.last)+`,"method":"`+method+`","params":`+params+"}\n")
	return answer
}

func (s *server) read(r io.Reader) {
	lines := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			log.Fatal("server gone: ", err)
		}
		id, end := findID(line)
		s.mu.Lock()
		answer := s.wait[id]
		delete(s.wait, id)
		s.mu.Unlock()
		if answer != nil {
			answer <- bytes.TrimRight(line[end:], "\n")
		}
	}
}

// findID returns the numeric id near the start of a line, and where it ends.
// Answers that begin {"jsonrpc":"2.0","id":N are all this floor understands.
func findID(line []byte) (id, end int) {
	const mark = `"id":`
	i := bytes.Index(line[:min(len(line), 64)], []byte(mark))
	if i < 0 {
		return 0, 0
	}
	begin := i + len(mark)
	for end = begin; end < len(line) && line[end] >= '0' && line[end] <= '9'; end++ {
	}
	id, _ = strconv.Atoi(string(line[begin:end]))
	return id, end
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// relay serves every server under its name.
func relay(servers map[string]upstream) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q request
		body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
		if err != nil || json.Unmarshal(body, &q) != nil {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		s := servers[strings.Trim(r.URL.Path, "/")]
		switch {
		case s == nil:
			http.NotFound(w, r)
		case len(q.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		case q.Method == "initialize":
			answer(w, q.ID, []byte(greet))
		default:
			s.pass(w, q, body)
		}
	}
}

func (s *server) pass(w http.ResponseWriter, q request, _ []byte) {
	answer(w, q.ID, <-s.send(q.Method, string(q.Params)))
}

func answer(w http.ResponseWriter, id, rest []byte) {
	head := `{"jsonrpc":"2.0","id":` + string(id)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(rest)))
	_, _ = io.WriteString(w, head)
	_, _ = w.Write(rest)
}
