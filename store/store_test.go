package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// t0 is when the tests store things.
var t0 = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// open makes a store in a directory of its own.
func open(t testing.TB) (*Writer, *Reader) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	w := openW(t, path)
	return w, openR(t, path)
}

func openW(t testing.TB, path string) *Writer {
	t.Helper()
	w, err := OpenWriter(path, t0)
	check(t, err)
	t.Cleanup(func() { check(t, w.Close()) })
	return w
}

func openR(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := OpenReader(path)
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// result is the row of raw, stored at t0 by agent a.
func result(k Key, raw []byte) Result {
	return Result{
		ID: NewID(), Key: k, Agent: "a", Server: "srv", Tool: "read", Exposed: "srv__read",
		Bytes: int64(len(raw)), Lines: 3, SHA256: sum(raw), IsError: true,
		Stored: t0, Expires: t0.Add(Retention), Facts: []byte(`{"shape":"x"}`),
	}
}

// put stores raw in one transaction.
func put(t testing.TB, w *Writer, raw []byte) Result {
	t.Helper()
	return putResult(t, w, result(w.NextKey(), raw), raw)
}

func putResult(t testing.TB, w *Writer, r Result, raw []byte) Result {
	t.Helper()
	check(t, w.Begin())
	check(t, appendAll(w, r.Key, raw))
	check(t, w.Seal(r))
	check(t, w.Commit())
	return r
}

func appendAll(w *Writer, k Key, raw []byte) error {
	for seq := 0; len(raw) > 0; seq++ {
		n := min(len(raw), ChunkSize)
		c := Pack(raw[:n])
		err := w.Append(k, seq, c)
		c.Free()
		if err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

// readBack finds id and reads it to the end, in pages of a size that fits nothing.
func readBack(r *Reader, id ID) ([]byte, error) {
	ctx := context.Background()
	res, err := r.Get(ctx, id, t0)
	if err != nil {
		return nil, err
	}
	var raw []byte
	for page := make([]byte, 100_003); ; {
		n, err := r.ReadAt(ctx, res.Key, page, int64(len(raw)))
		raw = append(raw, page[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if sum(raw) != res.SHA256 {
		return nil, fmt.Errorf("result %s: %d bytes with another hash", id, len(raw))
	}
	return raw, nil
}

func rows(t testing.TB, w *Writer, table string) int64 {
	t.Helper()
	n, err := number(w.conn, "select count(*) from "+table)
	check(t, err)
	return n
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// noise does not compress; text does, like the JSON of a tool.
func noise(n int) []byte {
	var seed [32]byte
	b := make([]byte, n)
	rand.NewChaCha8(seed).Read(b)
	return b
}

func text(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"file":"internal/pkg%d/file_%d.go","line":%d,"text":"func handle%d(ctx context.Context) error {"},`,
			i%37, i*7919%1013, i*31%997, i)
	}
	return b.Bytes()[:n]
}

func TestStoredBytesReadBackExactly(t *testing.T) {
	w, r := open(t)
	for _, raw := range [][]byte{
		{}, {0}, make([]byte, 700), text(1),
		noise(ChunkSize - 1), noise(ChunkSize), noise(ChunkSize + 1),
		text(ChunkSize - 1), text(ChunkSize), text(ChunkSize + 1), text(2 * ChunkSize),
		noise(3 << 20), text(3 << 20), append(text(300_000), noise(300_000)...),
		[]byte("a\x00b \xff\xfe\xed\xa0\x80 \u2028 <>& 12345678901234567890"),
	} {
		want := put(t, w, raw)
		got, err := readBack(r, want.ID)
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d bytes: got %d, %v", len(raw), len(got), err)
		}
		var out bytes.Buffer
		n, err := r.Copy(context.Background(), &out, want.Key, 0, int64(len(raw)))
		if err != nil || n != int64(len(raw)) || !bytes.Equal(out.Bytes(), raw) {
			t.Errorf("copy of %d bytes: %d, %v", len(raw), n, err)
		}
	}
}

func TestAnyRangeReadsBackExactly(t *testing.T) {
	w, r := open(t)
	raw := append(text(ChunkSize+ChunkSize/2), noise(ChunkSize*2)...)
	res := put(t, w, raw)
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		off, n := rnd.IntN(len(raw)+10), rnd.IntN(ChunkSize*3)
		want := raw[min(off, len(raw)):min(off+n, len(raw))]
		p := make([]byte, n)
		m, err := r.ReadAt(ctx, res.Key, p, int64(off))
		if (err == io.EOF) != (off+n > len(raw)) || err != nil && err != io.EOF || !bytes.Equal(p[:m], want) {
			t.Fatalf("ReadAt(%d, %d) = %d, %v", off, n, m, err)
		}
		var out bytes.Buffer
		_, err = r.Copy(ctx, &out, res.Key, int64(off), int64(n))
		if errors.Is(err, io.ErrUnexpectedEOF) != (off+n > len(raw)) {
			t.Fatalf("Copy(%d, %d): %v", off, n, err)
		}
		if err == nil && !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("Copy(%d, %d) differs", off, n)
		}
	}
	if _, err := r.ReadAt(ctx, res.Key, make([]byte, 1), -1); err == nil {
		t.Error("a negative offset was accepted")
	}
	if _, err := r.ReadAt(ctx, res.Key+1, make([]byte, 1), 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
}

func TestRowsComeBackAsTheyWereSealed(t *testing.T) {
	w, r := open(t)
	ctx := context.Background()
	first := put(t, w, text(10))
	second := result(w.NextKey(), nil)
	second.Parent, second.Query, second.Facts, second.IsError = first.ID, "jq .a", nil, false
	putResult(t, w, second, nil)
	other := result(w.NextKey(), nil)
	other.Agent = "b"
	putResult(t, w, other, nil)

	list, err := r.List(ctx, "a", t0, 10)
	check(t, err)
	if len(list) != 2 {
		t.Fatalf("listed %d results", len(list))
	}
	for i, want := range []Result{second, first} {
		got, err := r.Get(ctx, want.ID, t0)
		check(t, err)
		for _, got := range []Result{got, list[i]} {
			if !got.Stored.Equal(want.Stored) || !got.Expires.Equal(want.Expires) {
				t.Errorf("times %v %v", got.Stored, got.Expires)
			}
			got.Stored, got.Expires = want.Stored, want.Expires
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		}
	}
	if list, err = r.List(ctx, "a", t0, 1); err != nil || len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("the newest one: %v, %v", list, err)
	}
}

func TestCommittedChunksReadBackBeforeTheSeal(t *testing.T) {
	w, r := open(t)
	ctx := context.Background()
	raw, k := text(ChunkSize*2+5), w.NextKey()
	check(t, w.Begin())
	check(t, appendAll(w, k, raw))
	if _, err := r.ReadAt(ctx, k, make([]byte, 1), 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("before the commit: %v", err)
	}
	check(t, w.Commit())
	var out bytes.Buffer
	_, err := r.Copy(ctx, &out, k, 0, int64(len(raw)))
	if err != nil || !bytes.Equal(out.Bytes(), raw) {
		t.Errorf("after the commit: %d bytes, %v", out.Len(), err)
	}
}

func TestCallsComeBackNewestFirstWithClippedError(t *testing.T) {
	w, r := open(t)
	long := strings.Repeat("é", 600)
	var want []Call
	for i := range 5 {
		want = append(want, Call{
			At: t0.Add(time.Duration(i) * time.Second), Agent: "a", Server: "s", Tool: "t", Outcome: "ok",
			Took: 3 * time.Millisecond, ArgBytes: 7, ResultBytes: 9, Stored: i%2 == 0, Error: long,
		})
	}
	check(t, w.Record(want))
	got, err := r.Calls(context.Background(), t0.Add(time.Second), 3)
	check(t, err)
	if len(got) != 3 {
		t.Fatalf("%d calls", len(got))
	}
	for i, c := range got {
		wanted := want[4-i]
		wanted.Error = strings.Repeat("é", 500)
		if !c.At.Equal(wanted.At) {
			t.Errorf("call %d at %v", i, c.At)
		}
		c.At = wanted.At
		if c != wanted {
			t.Errorf("got %v, want %v", c, wanted)
		}
	}
}

func TestIDsHaveOneForm(t *testing.T) {
	if a, b := NewID(), NewID(); !a.Valid() || !b.Valid() || a == b {
		t.Errorf("%q %q", a, b)
	}
	for _, id := range []ID{"", "abc", ID(strings.Repeat("A", 32)), ID(strings.Repeat("g", 32)), ID(strings.Repeat("a", 33)), "0123456789abcdef0123456789abcde\x00"} {
		if id.Valid() {
			t.Errorf("%q is valid", id)
		}
	}
	_, r := open(t)
	for _, id := range []ID{"' or 1=1 --", NewID()} {
		if _, err := r.Get(context.Background(), id, t0); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
