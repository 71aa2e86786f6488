package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// listen writes what the daemon says unasked, until ctx ends. When the stream is cut
// it is opened again, more and more slowly; when the session is lost, a new one is
// made, which brings its own stream.
func (b *Bridge) listen(ctx context.Context, session, version string) {
	pause := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := b.stream(ctx, session, version)
		switch {
		case ctx.Err() != nil, errors.Is(err, errNoStream):
			return
		case errors.Is(err, errLost):
			b.work.Go(func() { // not in this goroutine: the new session ends it
				if err := b.renew(context.WithoutCancel(ctx), session); err != nil {
					b.o.Log.Debug().Err(err).Msg("the session is lost")
				}
			})
			return
		}
		if time.Since(began) > time.Minute {
			pause = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if pause = min(2*pause, 2*time.Second); b.o.Ensure != nil {
			b.o.Ensure(ctx)
		}
	}
}

var (
	errLost     = errors.New("the session is lost")
	errNoStream = errors.New("the daemon offers no stream")
)

func (b *Bridge) stream(ctx context.Context, session, version string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.o.URL, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	if version != "" {
		r.Header.Set("Mcp-Protocol-Version", version)
	}
	res, err := b.o.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound:
		return errLost
	case res.StatusCode == http.StatusMethodNotAllowed:
		return errNoStream
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("stream: HTTP %s", res.Status)
	}
	return b.eachEvent(ctx, res.Body, b.out.write)
}

// eachEvent gives the data of each event to f. The daemon's own streams have LF ends
// and one data line an event. A message that the client could not take is left out, and
// the error says so at the end.
func (b *Bridge) eachEvent(ctx context.Context, body io.Reader, f func([]byte)) error {
	r := bufio.NewReaderSize(body, 64<<10)
	var long error
	for {
		line, done, err := b.line(ctx, r)
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = bytes.TrimSpace(data); len(data) > 0 {
				f(data)
			}
		}
		done()
		switch {
		case errors.Is(err, errTooLong):
			long = err
		case errors.Is(err, io.EOF):
			return long
		case err != nil:
			return err
		}
	}
}

// headerText is a name as a header may carry it.
func headerText(name string) string {
	for _, c := range []byte(name) {
		if c < 0x20 || c > 0x7e {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
		}
	}
	return name
}
