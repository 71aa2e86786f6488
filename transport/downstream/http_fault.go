package downstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"mcphubd/actors"
	"mcphubd/transport/wire"
)

// fault is why a request over HTTP has no answer.
type fault struct {
	server string
	text   string
	ran    bool // the call may have run
	broken bool // the transport failed, not the call
	strike bool // more of these in a row mean that the server is down
	down   bool // it is down
	gone   bool // the session is lost, and the call was refused for that
	signIn bool
	era    bool // it does not speak the revision that was agreed on
}

func (f *fault) Error() string {
	end := "; the call did not run"
	if f.ran {
		end = "; the call may have run and was not repeated"
	}
	if f.broken {
		return actors.ErrLost.Error() + ": " + f.server + ": " + f.text + end
	}
	return f.server + ": " + f.text + end
}

func (f *fault) Is(target error) bool {
	return f.broken && target == actors.ErrLost || f.signIn && target == actors.ErrSignIn
}

// cause is f as the reason why a connection ends or never begins.
func (f *fault) cause() error {
	if f.signIn {
		return &unreached{text: f.text, signIn: true}
	}
	return errors.New(f.text)
}

// noAnswer is the fault of a server that took a request and answered something else.
func (x *exchange) noAnswer(res *http.Response, body []byte, why string) *fault {
	text := fmt.Sprintf("it gave no answer: HTTP %d", res.StatusCode)
	if kind := mediaType(res); kind != "" {
		text += " " + kind
	}
	text += ", " + why
	if said := x.said(body); said != "" {
		text += ": " + said
	}
	return &fault{server: x.server, text: text + "; the outcome is unknown", ran: true}
}

// said is the beginning of a body for an error text.
func (x *exchange) said(body []byte) string { return x.mask.show(body, 200) }

// refusal is what a server said with a status that is no success.
type refusal struct {
	status int
	kind   string
	header http.Header
	body   []byte // its beginning

	rpc     []byte // the error object in it, nil without one
	id      []byte // of that error
	code    int
	message string
}

// maxRefusal is how much is read of what a server says in refusing.
const maxRefusal = 256 << 10

func readRefusal(res *http.Response) *refusal {
	r := &refusal{status: res.StatusCode, kind: mediaType(res), header: res.Header}
	r.body, _ = io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body.Close()
	text := bytes.TrimPrefix(r.body, byteOrderMark)
	if isStream(res) { // one event is all that a refusal has to say
		var message []byte
		ev := &events{data: func(p []byte) { message = append(message, p...) }, done: func(string, bool) {}}
		ev.feed(text)
		text = message
	}
	e, err := wire.ScanEnvelope(text)
	if err != nil || e.Method.OK() || !hasValue(e.Error, text) {
		return r
	}
	var object struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	raw := e.Error.Of(text)
	if raw[0] != '{' || !json.Valid(raw) {
		return r
	}
	_ = json.Unmarshal(raw, &object)
	r.rpc, r.id, r.code, r.message = raw, e.ID.Of(text), object.Code, object.Message
	return r
}

const (
	codeNoMethod   = -32601
	codeBadParams  = -32602
	codeBadHeader  = -32020
	codeBadVersion = -32022
)

var aboutSession = regexp.MustCompile(`(?i)session|not initialized`)

// sessionGone reports whether the server has forgotten the session, which proves that the
// call did not run. The standard says 404. Others say 400 with a text about sessions, and
// an id that is not the call's: they have not looked at the call. (Servers made after the
// example of the TypeScript SDK do that.)
func (r *refusal) sessionGone(ours func(id []byte) bool) bool {
	mine := r.rpc != nil && ours(r.id)
	text := r.message
	if r.rpc == nil {
		text = string(r.body)
	}
	switch r.status {
	case http.StatusNotFound, http.StatusGone:
		return !mine || r.code != codeNoMethod && r.code != codeBadParams && aboutSession.MatchString(text)
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity:
		return !mine && len(text) < 1000 && aboutSession.MatchString(text)
	}
	return false
}

// fault words a refusal that is no JSON-RPC error.
func (x *exchange) fault(r *refusal) *fault {
	f := &fault{server: x.server, text: fmt.Sprintf("HTTP %d %s", r.status, http.StatusText(r.status))}
	if said := x.words(r); said != "" {
		f.text += ": " + said
	}
	switch s := r.status; {
	case s == http.StatusUnauthorized:
		f.signIn, f.strike = true, true
		f.text = fmt.Sprintf("%s: %s; %s", actors.ErrSignIn, f.text+x.challenge(r), x.login)
	case s == http.StatusForbidden:
		f.text = fmt.Sprintf("not allowed: %s; %s", f.text+x.challenge(r), x.permit)
		if x.oauth {
			f.text += r.wanted()
		}
	case s == http.StatusTooManyRequests:
		f.text += x.retryAfter(r)
	case s == http.StatusServiceUnavailable:
		f.text += x.retryAfter(r)
		f.ran, f.strike = true, true
	case s == http.StatusBadGateway, s == http.StatusGatewayTimeout:
		f.ran, f.strike = true, true
	case s >= 500 || s < 400:
		f.ran = true
	}
	return f
}

// words is what a refusal says that is worth reading: of a page, its title.
func (x *exchange) words(r *refusal) string {
	if r.rpc != nil {
		return x.mask.show([]byte(r.message), 200)
	}
	if strings.Contains(r.kind, "html") {
		if m := title.FindSubmatch(r.body); m != nil {
			return "a page: " + x.said(m[1])
		}
		return "a page"
	}
	return x.said(r.body)
}

var title = regexp.MustCompile(`(?is)<title[^>]*>\s*(.*?)\s*</title>`)

func (x *exchange) challenge(r *refusal) string {
	if said := r.header.Get("Www-Authenticate"); said != "" {
		return " (" + x.mask.show([]byte(said), 200) + ")"
	}
	return ""
}

func (x *exchange) retryAfter(r *refusal) string {
	if after := r.header.Get("Retry-After"); after != "" {
		return "; Retry-After: " + clip(after, 40)
	}
	return ""
}
