package downstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakePipes are the pipes of a server in this process that answers all with result.
func fakePipes(b *testing.B, result string) pipes {
	p, err := newPipes()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeAll([]*os.File{p.ours[1], p.ours[2], p.theirs[0], p.theirs[2]}) })
	go func() {
		in := bufio.NewReaderSize(p.theirs[0], 64<<10)
		var out []byte
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				p.theirs[1].Close()
				return
			}
			_, rest, _ := bytes.Cut(line, []byte(`"id":`))
			id, _, _ := bytes.Cut(rest, []byte(","))
			out = append(append(append(out[:0], `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
			out = append(append(out, result...), "}\n"...)
			if _, err := p.theirs[1].Write(out); err != nil {
				return
			}
		}
	}()
	return p
}

// caller makes one call and throws its result away.
type caller func(b *testing.B, arguments string)

// pipeConn is a connection to a fake server.
func pipeConn(b *testing.B, result string) caller {
	p := fakePipes(b, result)
	w, err := newWriter(p.ours[0], time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	c := &Conn{w: w, exchange: exchange{control: newControl(nil), maxFrame: math.MaxInt64, calls: map[uint64]*call{}, next: firstID}}
	w.life, w.dead = time.Now, func(error) {}
	done := make(chan bool)
	go func() { newReader(c).read(p.ours[1]); close(done) }()
	b.Cleanup(func() {
		w.close()
		<-done
	})
	return func(b *testing.B, arguments string) {
		a, err := c.Call(context.Background(), toolCall("echo", arguments))
		if err != nil {
			b.Fatal(err)
		}
		a.Result.Close()
	}
}

// floor is the least a relay can do: nothing is parsed but the id.
func floor(b *testing.B, result string) caller {
	p := fakePipes(b, result)
	var mu sync.Mutex
	waiting, next := map[int]chan []byte{}, 0
	go func() {
		in := bufio.NewReaderSize(p.ours[1], 256<<10)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			_, rest, _ := bytes.Cut(line, []byte(`"id":`))
			digits, _, _ := bytes.Cut(rest, []byte(","))
			id, _ := strconv.Atoi(string(digits))
			mu.Lock()
			ch := waiting[id]
			delete(waiting, id)
			mu.Unlock()
			ch <- line
		}
	}()
	b.Cleanup(func() { p.ours[0].Close() })
	return func(_ *testing.B, arguments string) {
		ch := make(chan []byte, 1)
		mu.Lock()
		next++
		waiting[next] = ch
		_, _ = p.ours[0].Write([]byte(`{"jsonrpc":"2.0","id":` + strconv.Itoa(next) + `,"method":"tools/call","params":{"name":"echo","arguments":` + arguments + "}}\n"))
		mu.Unlock()
		<-ch
	}
}

// BenchmarkCall is a call and its answer, and beside it the floor.
func BenchmarkCall(b *testing.B) {
	arguments := `{"query":"` + strings.Repeat("q", 100) + `"}`
	for _, n := range []int{200, 31 << 10, 1 << 20, 16 << 20} {
		result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}`
		for _, agents := range []int{1, 64} {
			for name, open := range map[string]func(*testing.B, string) caller{"ours": pipeConn, "floor": floor} {
				if n > 32<<10 && agents > 1 {
					continue
				}
				b.Run(fmt.Sprintf("%dB/%d/%s", n, agents, name), func(b *testing.B) {
					call := open(b, result)
					b.ReportAllocs()
					b.SetBytes(int64(n))
					if agents == 1 {
						for b.Loop() {
							call(b, arguments)
						}
						return
					}
					b.SetParallelism(agents / 2)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							call(b, arguments)
						}
					})
				})
			}
		}
	}
}
