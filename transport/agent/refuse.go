package agent

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Codes of JSON-RPC, and the one that clients know for a lost session.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNoSession      = -32001
)

// A refusal is a request that ends before anything was done.
type refusal struct {
	status int // of HTTP
	code   int // of JSON-RPC
	text   string
}

func invalid(text string) *refusal {
	return &refusal{http.StatusBadRequest, codeInvalidRequest, text}
}

// refuse answers with a JSON-RPC error in a body of its own. A nil id is null.
func refuse(w http.ResponseWriter, status int, id []byte, code int, text string) {
	if id == nil {
		id = []byte("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"error":`...)
	b = append(appendError(b, code, text), '}')
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = itoa(int64(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

func appendError(b []byte, code int, text string) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	return append(appendText(b, text), '}')
}

// appendText appends text as a JSON string; bytes that are no UTF-8 are replaced.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

// statusOf is the HTTP status that goes with an error code. Before 2026-07-28
// every answer to a request is a 200.
func statusOf(code int, modern bool) int {
	switch {
	case !modern:
		return http.StatusOK
	case code == codeMethodNotFound:
		return http.StatusNotFound
	case code == codeInvalidParams, code == codeInvalidRequest, code == -32021, code == -32022:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
