package agent

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// bodies keeps the buffers of small requests. What is not small is not kept. They begin
// small themselves: each call under way holds one.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

const keepBuffer = 64 << 10

func giveBack(pool *sync.Pool, b *[]byte) {
	if cap(*b) <= keepBuffer {
		pool.Put(b)
	}
}

// readBody reads a request body whole into buf. It takes at most limit+1 bytes of
// it, and waits at most patience for the next ones: a slow sender is welcome, a
// stalled one is not.
func readBody(w http.ResponseWriter, r *http.Request, buf []byte, limit int64, patience time.Duration) ([]byte, *refusal) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return buf, &refusal{http.StatusUnsupportedMediaType, codeInvalidRequest, "Content-Encoding " + e + " is not accepted: send the body as it is"}
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return buf, tooLarge(limit)
	}
	if n := r.ContentLength; n > int64(cap(buf)) {
		// Believed only so far: memory grows with what was sent, not with what was promised.
		buf = make([]byte, 0, min(n+1, 1<<20))
	}
	rc := http.NewResponseController(w)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		rc.SetReadDeadline(time.Now().Add(patience))
		n, err := r.Body.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			w.Header().Set("Connection", "close")
			return buf, tooLarge(limit)
		case err == io.EOF:
			return buf, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.Header().Set("Connection", "close")
			return buf, &refusal{http.StatusRequestTimeout, codeInvalidRequest, fmt.Sprintf("the request body stalled for %v", patience)}
		case err != nil:
			w.Header().Set("Connection", "close")
			return buf, &refusal{http.StatusBadRequest, codeInvalidRequest, "the request body broke off"}
		}
	}
}

func tooLarge(limit int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, codeInvalidRequest,
		fmt.Sprintf("the request is larger than %d bytes: raise max_request in the configuration, or send less", limit)}
}
