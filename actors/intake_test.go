package actors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcphubd/store"
)

// noise is bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = rng.Read(b)
	return b
}

// rows is JSON, which does.
func rows(n int) []byte {
	b := make([]byte, 0, n+100)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, `{"id":%d,"key":"%x","note":"a text that comes again"},`, i, noise(8+i%16))
	}
	return b[:n]
}

// feed writes raw in the pieces of a pipe.
func feed(in *Intake, raw []byte) {
	for len(raw) > 0 {
		n := min(len(raw), 64<<10)
		_, _ = in.Write(raw[:n])
		raw = raw[n:]
	}
}

func sealed(r *rig, b *Body) (store.ID, error) {
	f, now := b.Facts(), time.Now()
	id := store.NewID()
	return id, b.seal(r.Spool, store.Result{ID: id, Agent: "a", Server: "d", Tool: "echo", Exposed: "d__echo",
		Bytes: f.Bytes, SHA256: f.SHA256, Stored: now, Expires: now.Add(store.Retention)})()
}

// whole checks that b still gives raw.
func whole(t *testing.T, b *Body, raw []byte) {
	t.Helper()
	var out bytes.Buffer
	n, err := b.WriteTo(&out)
	if err != nil || n != int64(len(raw)) || b.Size() != n || !bytes.Equal(out.Bytes(), raw) {
		t.Errorf("%d of %d bytes, or others: %v", n, len(raw), err)
	}
}

// stored checks that raw can be read back under id.
func stored(t *testing.T, r *rig, id store.ID, raw []byte) {
	t.Helper()
	var out bytes.Buffer
	res, err := r.reader.Get(t.Context(), id, time.Now())
	if err == nil {
		_, err = r.reader.Copy(t.Context(), &out, res.Key, 0, res.Bytes)
	}
	sum := sha256.Sum256(raw)
	if err != nil || !bytes.Equal(out.Bytes(), raw) || res.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("read back %d of %d bytes: %v", out.Len(), len(raw), err)
	}
}

// inBubble runs f in a bubble, which does not end before every goroutine in it has. The
// daemon is at rest: nobody but f has anything written and committed.
func inBubble(t *testing.T, conf string, f func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, conf+oneServer, map[string]*fakeServer{"d": {}})
		synctest.Wait()
		f(r)
	})
}

func TestABodyGivesItsBytesBeforeAndAfterItIsStored(t *testing.T) {
	inBubble(t, "", func(r *rig) {
		for _, n := range []int{1, 100, store.ChunkSize, store.ChunkSize + 1, 1 << 20, 3<<20 + 7, 40*store.ChunkSize - 1} {
			for _, raw := range [][]byte{noise(n), rows(n)} {
				in := r.Spool.Intake(1000)
				feed(in, raw)
				if in.scan != nil { // let it keep as little as it can
					in.body.handed()
					<-in.summed
					in.reap()
				}
				body := in.Body()
				whole(r.t, body, raw)
				id, err := sealed(r, body)
				if err != nil {
					r.t.Fatal(err)
				}
				whole(r.t, body, raw)
				body.Close()
				stored(r.t, r, id, raw)
			}
		}
	})
}

// A bubble in which a goroutine of an abandoned result is left would never end.
func TestAnAbandonedResultLeavesNothing(t *testing.T) {
	inBubble(t, "", func(r *rig) {
		for _, n := range []int{100, store.ChunkSize, 5 * store.ChunkSize, 30*store.ChunkSize + 5} {
			in := r.Spool.Intake(1000)
			feed(in, noise(n))
			in.Abandon()

			in = r.Spool.Intake(1000)
			feed(in, noise(n))
			body := in.Body()
			body.Close()
			body.Close()
		}
		r.pruneAll(time.Now())
		if err := r.Spool.Flush(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		if u := r.Spool.Usage(); u.UsedBytes > 1<<20 || u.Results != 0 {
			r.t.Errorf("%+v is left", u)
		}
	})
}

// What is refused may be any chunk of it, before or after others were committed.
func TestC51AResultOfWhichAChunkIsRefusedStaysWhole(t *testing.T) {
	inBubble(t, "[spool]\nmax_bytes = \"4MB\"\n", func(r *rig) {
		for _, n := range []int{17, 20, 24, 60} {
			raw := append(rows(5*store.ChunkSize), noise(n*store.ChunkSize+100)...)
			in := r.Spool.Intake(1000)
			feed(in, raw)
			body := in.Body()
			whole(r.t, body, raw)
			if _, err := sealed(r, body); !errors.Is(err, store.ErrFull) {
				r.t.Errorf("%d chunks: %v", n, err)
			}
			if _, err := sealed(r, body); !errors.Is(err, store.ErrFull) {
				r.t.Errorf("%d chunks, once more: %v", n, err)
			}
			whole(r.t, body, raw)
			body.Close()
			if err := r.Spool.Flush(r.t.Context()); err != nil { // room counts once the drop is committed
				r.t.Fatal(err)
			}
			small := noise(1 << 20)
			in = r.Spool.Intake(1000)
			feed(in, small)
			body = in.Body()
			id, err := sealed(r, body)
			if err != nil {
				r.t.Fatalf("a small one after it: %v", err)
			}
			body.Close()
			stored(r.t, r, id, small)
			if err := r.Spool.Remove(r.t.Context(), id); err != nil {
				r.t.Fatal(err)
			}
			r.pruneAll(time.Now())
		}
	})
}

// The write of one result that fails takes the open transaction with it, and with it
// chunks of results that are still arriving.
func TestAResultWhoseChunksWereRolledBackIsNotSealedWithoutThem(t *testing.T) {
	for _, committed := range []int{0, 9} {
		t.Run(fmt.Sprint(committed), func(t *testing.T) {
			inBubble(t, "", func(r *rig) {
				raw := noise(20 * store.ChunkSize)
				in := r.Spool.Intake(1000)
				feed(in, raw[:committed*store.ChunkSize])
				synctest.Wait()
				if err := r.Spool.Flush(r.t.Context()); err != nil {
					r.t.Fatal(err)
				}
				before := committed + 3 // too few more to ask for a commit
				feed(in, raw[committed*store.ChunkSize:before*store.ChunkSize])
				in.body.handed()
				bad := store.Result{ID: "no id", Key: r.Spool.newKey()}
				if _, err := r.Spool.seal(bad, nil).wait(r.t.Context()); err == nil {
					r.t.Fatal("sealed a result without an id")
				}
				feed(in, raw[before*store.ChunkSize:])
				body := in.Body()
				if _, err := sealed(r, body); err == nil || !strings.Contains(err.Error(), "is no result id") {
					r.t.Errorf("sealed, or the cause is lost: %v", err)
				}
				whole(r.t, body, raw)
				body.Close()

				in = r.Spool.Intake(1000)
				feed(in, raw)
				body = in.Body()
				id, err := sealed(r, body)
				if err != nil {
					r.t.Fatal(err)
				}
				body.Close()
				stored(r.t, r, id, raw)
			})
		})
	}
}

func TestManyResultsFlowAtOnceAndNoneHoldsUpAnother(t *testing.T) {
	inBubble(t, "", func(r *rig) {
		// One stops in the middle; its chunks wait in the open transaction.
		slow := noise(12 * store.ChunkSize)
		half := r.Spool.Intake(1000)
		feed(half, slow[:5*store.ChunkSize])
		done := make(chan error)
		for k := range 6 {
			go func() {
				raw := noise((k+1)*store.ChunkSize*3 + k)
				in := r.Spool.Intake(1000)
				feed(in, raw)
				body := in.Body()
				id, err := sealed(r, body)
				body.Close()
				if err == nil {
					stored(r.t, r, id, raw)
				}
				done <- err
			}()
		}
		for range 6 {
			if err := <-done; err != nil {
				r.t.Error(err)
			}
		}
		feed(half, slow[5*store.ChunkSize:])
		body := half.Body()
		id, err := sealed(r, body)
		if err != nil {
			r.t.Fatal(err)
		}
		body.Close()
		stored(r.t, r, id, slow)
	})
}

// BenchmarkFlow stores results of 1 MiB as they come out of a pipe.
func BenchmarkFlow(b *testing.B) {
	raw := []byte(`{"content":[{"type":"text","text":"[`)
	for i := 0; len(raw) < 1<<20; i++ {
		raw = fmt.Appendf(raw, `{\"id\":%d,\"key\":\"%x\",\"note\":\"a text that comes again\"},`, i, noise(8+i%16))
	}
	raw = append(raw, `0]"}]}`...)
	r := &rig{t: &testing.T{}, conf: oneServer, path: b.TempDir() + "/mcphubd.db", servers: map[string]*fakeServer{"d": {}}}
	r.start()
	defer r.stop()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		in := r.Spool.Intake(128 << 10)
		feed(in, raw)
		body := in.Body()
		if _, err := sealed(r, body); err != nil {
			b.Fatal(err)
		}
		body.Close()
	}
}
