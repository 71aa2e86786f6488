package downstream

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipe reads an output of a child. Once the child has ended it gives what is still
// in the pipe and then ends, even if some helper of the child keeps it open.
type pipe struct {
	f    *os.File
	dry  bool // the child has ended
	left int  // bytes that may still be in the pipe then
}

// ended tells the reader that the child has ended.
func (p *pipe) ended() { _ = p.f.SetReadDeadline(time.Unix(1, 0)) }

func (p *pipe) Read(b []byte) (int, error) {
	if !p.dry {
		n, err := p.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		_ = p.f.SetReadDeadline(time.Time{})
		p.dry, p.left = true, p.size()
	}
	return p.rest(b)
}

// rest reads without waiting, and no more than the child can have left behind: a
// helper that goes on writing must not keep us here.
func (p *pipe) rest(b []byte) (n int, err error) {
	raw, err := p.f.SyscallConn()
	if err != nil || p.left <= 0 {
		return 0, io.EOF
	}
	cerr := raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), b)
		for err == unix.EINTR {
			n, err = unix.Read(int(fd), b)
		}
		return true
	})
	if cerr != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	p.left -= n
	return n, nil
}

func (p *pipe) size() int {
	n := 0
	if raw, err := p.f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0) })
	}
	return max(n, 64<<10)
}
