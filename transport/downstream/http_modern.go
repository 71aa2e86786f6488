package downstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"mcphubd/actors"
)

const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
	paramHeader  = "Mcp-Param-"
)

// compose makes the HTTP request of a call. Its bytes are its own: HTTP may read them
// longer than the call lasts.
func (s *session) compose(id uint64, req actors.Request) request {
	protocol := s.agreed()
	if protocol < modern {
		req = older(id, req)
	}
	params := paramsOf(id, req)
	q := request{method: http.MethodPost}
	if protocol < modern {
		q.header, q.whole = s.plainHeaders(protocol), true
	} else {
		q.header = s.headers(protocol)
		params = withMeta(params, protocol, s.h.Version, req)
		s.describe(q.header, req.Method, params)
	}
	q.body = frameOf(id, req.Method, params)
	return q
}

// describe adds the headers that repeat the body.
func (s *session) describe(h http.Header, method string, params []byte) {
	h[methodHeader] = []string{method}
	key := "name"
	switch method {
	case "resources/read":
		key = "uri"
	case "tools/call", "prompts/get":
	default:
		return
	}
	at, _ := valueOf(params, key)
	var name string
	if json.Unmarshal(at.Of(params), &name) != nil {
		return
	}
	h[nameHeader] = []string{headerValue(name)}
	if method == "tools/call" {
		s.describeParams(h, name, params)
	}
}

const (
	encodedBegin = "=?base64?"
	encodedEnd   = "?="
)

// headerValue is text as a header can carry it.
func headerValue(text string) string {
	plain := strings.TrimSpace(text) == text && !(strings.HasPrefix(text, encodedBegin) && strings.HasSuffix(text, encodedEnd))
	for _, c := range []byte(text) {
		plain = plain && c >= ' ' && c <= '~'
	}
	if plain {
		return text
	}
	return encodedBegin + base64.StdEncoding.EncodeToString([]byte(text)) + encodedEnd
}

// spellOut puts an encoded name into h as it is, and reports whether that is something
// new: servers made with the SDK of today do not decode it.
func spellOut(h http.Header) bool {
	encoded, ok := strings.CutPrefix(h.Get(nameHeader), encodedBegin)
	name, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, encodedEnd))
	if !ok || err != nil || strings.ContainsFunc(string(name), unicode.IsControl) || bytes.HasPrefix(name, []byte(encodedBegin)) {
		return false
	}
	h[nameHeader] = []string{string(name)}
	return true
}

// binding says which argument of a tool goes into which header.
type binding struct {
	path   []string
	header string
}

// learn notes the headers that tools want their arguments in, from a page of tools/list.
func (s *session) learn(list []byte) {
	var page struct {
		Tools []struct {
			Name        string `json:"name"`
			InputSchema schema `json:"inputSchema"`
		} `json:"tools"`
	}
	if !bytes.Contains(list, []byte("x-mcp-header")) || json.Unmarshal(list, &page) != nil {
		return
	}
	s.state.Lock()
	defer s.state.Unlock()
	if s.params == nil {
		s.params = map[string][]binding{}
	}
	for _, t := range page.Tools {
		s.params[t.Name] = t.InputSchema.bindings(nil)
	}
}

// schema is what matters of a JSON schema here.
type schema struct {
	Header     any               `json:"x-mcp-header"`
	Properties map[string]schema `json:"properties"`
}

func (c schema) bindings(path []string) (all []binding) {
	if name, ok := c.Header.(string); ok && name != "" && len(path) > 0 && !strings.ContainsFunc(name, notToken) {
		all = append(all, binding{path, name})
	}
	for name, p := range c.Properties {
		all = append(all, p.bindings(append(path[:len(path):len(path)], name))...)
	}
	return all
}

func notToken(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// describeParams adds the headers for arguments.
func (s *session) describeParams(h http.Header, tool string, params []byte) {
	s.state.Lock()
	wanted := s.params[tool]
	s.state.Unlock()
	if len(wanted) == 0 {
		return
	}
	at, _ := valueOf(params, "arguments")
	for _, b := range wanted {
		if text, ok := argument(at.Of(params), b.path); ok {
			h[http.CanonicalHeaderKey(paramHeader+b.header)] = []string{headerValue(text)}
		}
	}
}

// argument is the text of a string, a truth value or a whole number among arguments.
func argument(arguments []byte, path []string) (string, bool) {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(arguments, &object) != nil || object[name] == nil {
			return "", false
		}
		arguments = object[name]
	}
	var v any
	_ = json.Unmarshal(arguments, &v)
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10), true
		}
	}
	return "", false
}
