package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Tools are the entries of the built-in tools, as they stand in tools/list.
const Tools = `[
{"name":"echo","description":"Answers v, after ms milliseconds.","inputSchema":{"type":"object","properties":{"v":{},"ms":{"type":"integer"}}}},
{"name":"sleep","description":"Waits ms milliseconds; ends early, without an answer, when cancelled.","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}}}},
{"name":"blob","description":"A result of exactly that many bytes; kind is json, text or random.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"},"kind":{"type":"string"}},"required":["bytes"]}},
{"name":"hostile","description":"Legal JSON that a decoder spoils; pad adds bytes.","inputSchema":{"type":"object","properties":{"pad":{"type":"integer"}}}},
{"name":"raw","description":"The params of this call as they came, in structuredContent.","inputSchema":{"type":"object"}},
{"name":"fail","description":"A result with isError.","inputSchema":{"type":"object","properties":{"v":{},"pad":{"type":"integer"}}}},
{"name":"refuse","description":"A JSON-RPC error.","inputSchema":{"type":"object"}},
{"name":"progress","description":"n progress notifications, ms apart, then an answer.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"ms":{"type":"integer"}}}},
{"name":"changed","description":"n notifications that the tool list changed, then an answer.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}},
{"name":"count","description":"How many calls this process has had.","inputSchema":{"type":"object"}},
{"name":"pid","description":"The process id.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
{"name":"env","description":"The environment, a line a variable.","inputSchema":{"type":"object"}},
{"name":"fds","description":"The open descriptors, a line each.","inputSchema":{"type":"object"}},
{"name":"crash","description":"Exits with that code, without an answer.","inputSchema":{"type":"object","properties":{"code":{"type":"integer"},"stderr":{"type":"string"}}}}
]`

// quick says whether a request is answered before the next line is read. That
// saves a goroutine where nothing waits, and the benchmarks need a cheap server.
func (s *server) quick(req *request) bool {
	return req.tool == "echo" && !strings.Contains(string(req.args), `"ms"`) || req.tool == "pid"
}

// answer gives the built-in answer to any request.
func (s *server) answer(req *request) {
	switch req.Method {
	case "initialize":
		s.send(req, Answer{Result: s.hello(req)})
	case "ping", "logging/setLevel":
		s.send(req, Answer{Result: "{}"})
	case "tools/list":
		s.send(req, s.page(req))
	case "tools/call":
		s.call(req)
	default:
		if len(req.ID) > 0 {
			s.send(req, rpcError(-32601, "Method not found"))
		}
	}
}

func (s *server) hello(req *request) Bytes {
	var p struct {
		Version string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(req.Params, &p)
	version, name, can := s.script.Protocol, s.script.Name, string(s.script.Capabilities)
	if version == "" {
		version = p.Version
	}
	if name == "" {
		name = "fake"
	}
	if can == "" {
		can = `{"tools":{"listChanged":true}}`
	}
	r := `{"protocolVersion":` + quote(version) + `,"capabilities":` + can + `,"serverInfo":{"name":` + quote(name) + `,"version":"1"}`
	if s.script.Instructions != "" {
		r += `,"instructions":` + quote(s.script.Instructions)
	}
	return Bytes(r + "}")
}

// page answers tools/list with the entries after the cursor, byte for byte.
func (s *server) page(req *request) Answer {
	list := string(s.script.Tools)
	if list == "" {
		list = strings.ReplaceAll(Tools, "\n", "")
	}
	if s.script.PageSize == 0 {
		return Answer{Result: Bytes(`{"tools":` + list + `}`)}
	}
	var entries []json.RawMessage
	var p struct{ Cursor string }
	_ = json.Unmarshal(req.Params, &p)
	at, _ := strconv.Atoi(p.Cursor)
	if err := json.Unmarshal([]byte(list), &entries); err != nil || at < 0 || at > len(entries) {
		return rpcError(-32602, "no such page")
	}
	end, next := at+s.script.PageSize, ""
	if end < len(entries) {
		next = `,"nextCursor":"` + strconv.Itoa(end) + `"`
	}
	var page []string
	for _, e := range entries[at:min(end, len(entries))] {
		page = append(page, string(e))
	}
	return Answer{Result: Bytes(`{"tools":[` + strings.Join(page, ",") + `]` + next + `}`)}
}

type arguments struct {
	V      json.RawMessage `json:"v"`
	MS     int             `json:"ms"`
	N      int             `json:"n"`
	Pad    int             `json:"pad"`
	Code   int             `json:"code"`
	Stderr string          `json:"stderr"`
	Blob
}

// call runs a built-in tool.
func (s *server) call(req *request) {
	var a arguments
	if len(req.args) > 0 {
		if err := json.Unmarshal(req.args, &a); err != nil && req.tool != "raw" {
			s.send(req, rpcError(-32602, err.Error()))
			return
		}
	}
	if a.MS > 0 && req.tool != "progress" && !pause(req, a.MS) {
		return
	}
	switch req.tool {
	case "echo":
		s.send(req, textOf(a.V))
	case "sleep":
		s.send(req, textOf([]byte(`"slept"`)))
	case "blob":
		s.send(req, Answer{Blob: &a.Blob})
	case "hostile":
		s.send(req, Answer{Hostile: &a.Pad})
	case "raw":
		s.send(req, Answer{Result: Bytes(`{"content":[],"structuredContent":{"params":` + string(req.Params) + `}}`)})
	case "fail":
		text := quote(strings.Trim(string(a.V), `"`) + strings.Repeat("e", a.Pad))
		s.send(req, Answer{Result: Bytes(`{"content":[{"type":"text","text":` + text + `}],"isError":true}`)})
	case "refuse":
		s.send(req, rpcError(-32000, "refused"))
	case "progress":
		s.progress(req, a.N, a.MS)
	case "changed":
		for range a.N {
			req.out.text(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		}
		s.send(req, textOf([]byte(`"changed"`)))
	case "count":
		s.mu.Lock()
		n := s.calls
		s.mu.Unlock()
		s.send(req, textLines(strconv.Itoa(n)))
	case "pid":
		s.send(req, textLines(strconv.Itoa(os.Getpid())))
	case "env":
		s.send(req, textLines(os.Environ()...))
	case "fds":
		s.send(req, textLines(descriptors()...))
	case "crash":
		fmt.Fprint(s.errs, a.Stderr)
		s.end(req, Exit(a.Code))
	default:
		s.send(req, rpcError(-32602, "Unknown tool: "+req.tool))
	}
}

func (s *server) progress(req *request, n, ms int) {
	for i := range n {
		if len(req.token) > 0 {
			req.out.text(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d}}`+"\n", req.token, i+1, n))
		}
		if ms > 0 && !pause(req, ms) {
			return
		}
	}
	s.send(req, textOf([]byte(`"done"`)))
}

// textOf answers one text block; v is a raw JSON value, a string as it is.
func textOf(v []byte) Answer {
	if len(v) == 0 || v[0] != '"' {
		v = []byte(quote(string(v)))
	}
	return Answer{Result: Bytes(`{"content":[{"type":"text","text":` + string(v) + `}]}`)}
}

func textLines(lines ...string) Answer { return textOf([]byte(quote(strings.Join(lines, "\n")))) }

func rpcError(code int, message string) Answer {
	return Answer{Error: Bytes(`{"code":` + strconv.Itoa(code) + `,"message":` + quote(message) + `}`)}
}

func descriptors() (list []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			list = append(list, e.Name()+" "+to)
		}
	}
	return list
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
