package bridge

import (
	"bufio"
	"context"
	"io"
)

// A client that does not read makes every request keep its answer. What is small may be
// kept by each; of what is large only a few are read at a time, and the others stay with
// the daemon.

// message reads a whole body that the client can take. The place of a large one is kept
// until done.
func (b *Bridge) message(ctx context.Context, body io.Reader) (data []byte, done func(), err error) {
	return b.hold(ctx, b.o.MaxLine-1, func(limit int) ([]byte, bool, error) {
		data, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
		if len(data) > limit {
			return data, true, nil
		}
		return data, false, err
	})
}

// line does the same with one line.
func (b *Bridge) line(ctx context.Context, r *bufio.Reader) (data []byte, done func(), err error) {
	return b.hold(ctx, b.o.MaxLine-1+len("data: \n"), func(limit int) (line []byte, more bool, err error) {
		for {
			part, err := r.ReadSlice('\n')
			line = append(line, part...)
			if err != bufio.ErrBufferFull {
				return line, false, err
			}
			if len(line) > limit {
				return line, true, nil
			}
		}
	})
}

// hold reads up to most bytes: with read what everybody may keep, and the rest of a
// longer message only with one of the few places for those.
func (b *Bridge) hold(ctx context.Context, most int, read func(limit int) (part []byte, more bool, err error)) ([]byte, func(), error) {
	done := func() {}
	data, more, err := read(smallLine)
	if more {
		select {
		case b.large <- struct{}{}:
			done = func() { <-b.large }
		case <-ctx.Done():
			return nil, done, ctx.Err()
		}
	}
	for more && len(data) <= most {
		var part []byte
		part, more, err = read(smallLine)
		data = append(data, part...)
	}
	for more { // to its end, for the sake of what follows it
		_, more, err = read(smallLine)
	}
	if len(data) > most {
		return nil, done, tooLong(err)
	}
	return data, done, err
}

// tooLong is errTooLong, unless the connection failed as well.
func tooLong(err error) error {
	if err != nil && err != io.EOF {
		return err
	}
	return errTooLong
}
