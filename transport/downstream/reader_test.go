package downstream

import (
	"bytes"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"io"
	"testing"
)

// cutter gives its bytes in reads of the lengths of cuts, over and over.
type cutter struct {
	b, cuts []byte
	i       int
}

func (c *cutter) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := len(c.b)
	if len(c.cuts) > 0 {
		n = min(n, int(c.cuts[c.i%len(c.cuts)])+1)
		c.i++
	}
	n = copy(p, c.b[:n])
	c.b = c.b[n:]
	return n, nil
}

// FuzzEveryLineIsCountedOnce feeds the reader any bytes in any pieces, short and long
// lines by a small frame limit: each line that is not blank is one message or one noise.
func FuzzEveryLineIsCountedOnce(f *testing.F) {
	f.Add([]byte("a\n\r\n \n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n{\"id\":4294967296,\"result\":1}\n{\"id\":1}"), []byte{1, 3}, 20)
	f.Add(bytes.Repeat([]byte("long line "), 9000), []byte{}, 100)
	f.Add([]byte("\xEF\xBB\xBF{}\n{\"result\":[1,2,3,4,5,6,7,8,9],\"id\":4294967296}"), []byte{0}, 5)
	f.Fuzz(func(t *testing.T, b, cuts []byte, limit int) {
		b = append(bytes.Clone(b), '\n')
		c := &Conn{exchange: exchange{maxFrame: int64(max(limit, 1)), control: newControl(func(jsonrpc.Message, []byte) error { return nil }), noise: &noise{}, dropped: &Dropped{}, calls: map[uint64]*call{}}}
		r := newReader(c)
		r.read(&cutter{b: b, cuts: cuts})
		r.flows.Wait()
		want := 0
		for line := range bytes.Lines(b) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			short := int64(len(line)) <= c.maxFrame
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
			if len(bytes.TrimSpace(line)) == 0 && short {
				continue
			}
			want++
		}
		n, _ := c.Noise()
		got := int(n+c.dropped.Answers.Load()+c.dropped.Progress.Load()+c.dropped.Control.Load()) + len(c.control.in)
		if got != want {
			t.Fatalf("%d lines are accounted for, want %d: %q", got, want, b)
		}
	})
}
