package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"mcphubd/store"
)

const (
	// batchBytes is how much one transaction takes before it is committed.
	batchBytes = 4 << 20
	// copyBytes is how much the log grows before it is copied into the file, which flushes
	// the disk twice.
	copyBytes = 12 << 20
)

// Spool writes results and call records (records.go) to the store and keeps it in shape
// (upkeep.go). All writes of the daemon go through it. The zero Spool keeps everything in
// memory, for tests of others.
type Spool struct {
	ref[spoolMsg]
	pub    *spoolPublic
	reader *store.Reader
}

// spoolPublic is what the Spool publishes outside its mailbox.
type spoolPublic struct {
	keys       atomic.Int64 // the last key that was given out
	maxBytes   atomic.Int64 // bound of the store; 0 = none
	usage      atomic.Pointer[store.Usage]
	failures   atomic.Int64     // appends and seals that were refused
	stored     atomic.Int64     // results sealed since the process started
	bytes      atomic.Int64     // bytes of those results
	failedOpen atomic.Int64     // results that went to the agent because the store refused
	clock      func() time.Time // set before anybody uses the spool; nil = time.Now
}

// now is the wall clock of retention.
func (s Spool) now() time.Time {
	if s.pub == nil || s.pub.clock == nil {
		return time.Now()
	}
	return s.pub.clock()
}

// newKey numbers a new result. A key that is never sealed costs nothing.
func (s Spool) newKey() store.Key { return store.Key(s.pub.keys.Add(1)) }

// append writes a chunk of a result. It does not wait; the reply comes once the chunk is
// committed, which somebody may have to ask for: a seal, a drop, or a later chunk that is
// due. Chunks without a seal are dropped by Drop, or at the next start.
func (s Spool) append(m appendChunk) reply[struct{}] {
	return post[struct{}, spoolMsg](s.ref, m)
}

// seal writes the row of a result behind its chunks; those of a result that did not flow
// come along. The reply comes once all are committed: from then on the result reads back
// whole, after any crash. A result of which a chunk was refused is refused.
func (s Spool) seal(r store.Result, chunks []store.Chunk) reply[struct{}] {
	return post[struct{}, spoolMsg](s.ref, seal{r, chunks})
}

// Drop removes the chunks of a result that will not be sealed.
func (s Spool) Drop(k store.Key) { s.tell(drop{k}) }

// Record notes finished calls. It never waits; records are written in batches.
func (s Spool) Record(rows []store.Call) { s.tell(record{rows}) }

// Prune removes one slice of what is over at now.
func (s Spool) Prune(ctx context.Context, now time.Time, slice int) (store.Pruned, error) {
	return ask[store.Pruned, spoolMsg](ctx, s.ref, prune{now, slice})
}

// Shrink gives pages back to the file system; it reports how many.
func (s Spool) Shrink(ctx context.Context, pages int) (int, error) {
	return ask[int, spoolMsg](ctx, s.ref, shrink{pages})
}

// Flush writes everything that waits, call records too.
func (s Spool) Flush(ctx context.Context) error {
	_, err := ask[struct{}, spoolMsg](ctx, s.ref, flushAll{})
	return err
}

// bound sets how many bytes the store may use; 0 = no bound.
func (s Spool) bound(n int64) {
	if s.pub != nil {
		s.tell(spoolLimits{n})
	}
}

// remember keeps what a server listed for the next daemon. It never waits.
func (s Spool) remember(k store.Known) {
	if s.pub != nil {
		s.tell(remember{k})
	}
}

// Usage is the size of the store as of the last write. It asks nobody.
func (s Spool) Usage() store.Usage { return *s.pub.usage.Load() }

// SpoolCounts counts since the process started.
type SpoolCounts struct {
	Stored      int64 `json:"stored"`      // results
	StoredBytes int64 `json:"storedBytes"` // their bytes
	Failures    int64 `json:"failures"`    // writes that were refused
	FailedOpen  int64 `json:"failedOpen"`  // results given whole because the store refused them
}

// Counts returns what the Spool did since the process started.
func (s Spool) Counts() SpoolCounts {
	return SpoolCounts{s.pub.stored.Load(), s.pub.bytes.Load(), s.pub.failures.Load(), s.pub.failedOpen.Load()}
}

//sumtype:decl
type spoolMsg interface{ isSpoolMsg() }

type (
	appendChunk struct {
		key   store.Key
		seq   int
		chunk store.Chunk
		due   bool // somebody will wait for it
	}
	seal struct {
		result store.Result
		chunks []store.Chunk
	}
	drop   struct{ key store.Key }
	record struct{ calls []store.Call }

	remember struct{ known store.Known }
	prune    struct {
		now   time.Time
		slice int
	}
	shrink      struct{ pages int }
	flushAll    struct{}
	flush       struct{}            // self: ends the batch
	copied      struct{ err error } // work: the log is in the file
	writeCalls  struct{}            // self: the gathered records are due, or are tried again
	spoolLimits struct{ maxBytes int64 }
)

func (appendChunk) isSpoolMsg() {}
func (seal) isSpoolMsg()        {}
func (drop) isSpoolMsg()        {}
func (record) isSpoolMsg()      {}
func (remember) isSpoolMsg()    {}
func (prune) isSpoolMsg()       {}
func (shrink) isSpoolMsg()      {}
func (flushAll) isSpoolMsg()    {}
func (flush) isSpoolMsg()       {}
func (copied) isSpoolMsg()      {}
func (writeCalls) isSpoolMsg()  {}
func (spoolLimits) isSpoolMsg() {}

func spawnSpool(s *System, w *store.Writer, r *store.Reader, maxBytes int64) Spool {
	pub := new(spoolPublic)
	pub.keys.Store(int64(w.NextKey()) - 1)
	pub.maxBytes.Store(maxBytes)
	usage, err := w.Usage()
	if err != nil {
		s.log.Warn().Err(err).Msg("store: usage is unknown")
	}
	pub.usage.Store(&usage)
	ref := spawn(s, "spool", "writer", "hub", func() behaviour[spoolMsg] {
		return &spoolActor{sys: s, w: w, pub: pub}
	})
	return Spool{ref, pub, r}
}

type spoolActor struct {
	sys  *System
	w    *store.Writer
	pub  *spoolPublic
	self ref[spoolMsg]

	open    bool                // a transaction is open
	ending  bool                // a flush is on its way
	batch   []waiting           // written, not yet committed
	torn    map[store.Key]error // results of which a chunk was refused, until they are dropped
	size    int64               // bytes in the batch
	logged  int64               // bytes committed since the log was last copied
	copying bool                // into the file
	used    int64               // of the store, as of the transaction's start
	calls   []store.Call        // to be written
	armed   bool                // the store refused them; a writeCalls is on its way
	due     bool                // a writeCalls is on its way
	lost    int64               // records given up because the store refused them for long
	usageAt time.Time           // when the usage was last read
}

// A waiting asker is answered when its transaction is committed.
type waiting struct {
	from  asker
	value any
	chunk store.Key // of the result whose chunk it is; 0 = it is none
}

// whole reports whether w waits for a result, not for a part of one.
func (w waiting) whole() bool { return w.chunk == 0 }

func (a *spoolActor) start(self ref[spoolMsg]) {
	a.self = self
	self.line.note("idle", nil)
}

func (a *spoolActor) stop() {
	a.writeCalls()
	a.commit()
}

func (a *spoolActor) handle(from asker, m spoolMsg) {
	switch m := m.(type) {
	case appendChunk:
		a.append(from, m)
	case seal:
		a.seal(from, m)
	case drop:
		a.drop(m.key)
	case record:
		a.record(m.calls)
	case remember:
		a.remember(m.known)
	case remove:
		a.remove(from, m)
	case prune:
		a.prune(from, m)
	case shrink:
		a.shrink(from, m.pages)
	case flushAll:
		a.flushAll(from)
	case flush:
		a.ending = false
		a.commit()
	case copied:
		a.copied(m)
	case writeCalls:
		a.writeCalls()
	case spoolLimits:
		a.pub.maxBytes.Store(m.maxBytes)
	}
}

func (a *spoolActor) append(from asker, m appendChunk) {
	if err := a.torn[m.key]; err != nil {
		from.answer(nil, err)
		return
	}
	if err := a.write(m.key, m.seq, m.chunk); err != nil {
		a.tear(m.key, err)
		a.refuse(from, err)
		return
	}
	if m.due {
		a.hurry()
	}
	a.await(waiting{from, struct{}{}, m.key})
}

// tear refuses all that is still to come of a result: it would never be whole.
func (a *spoolActor) tear(k store.Key, cause error) {
	if a.torn == nil {
		a.torn = map[store.Key]error{}
	}
	a.torn[k] = cause
}

func (a *spoolActor) seal(from asker, m seal) {
	if err := a.torn[m.result.Key]; err != nil {
		from.answer(nil, fmt.Errorf("store result: %w", err))
		return
	}
	err := a.write(m.result.Key, 0, m.chunks...)
	if err == nil {
		err = a.w.Seal(m.result)
	}
	if err != nil {
		a.refuse(from, fmt.Errorf("store result: %w", err))
		return
	}
	a.pub.stored.Add(1)
	a.pub.bytes.Add(m.result.Bytes)
	a.hurry()
	a.await(waiting{from: from, value: struct{}{}})
}

// write puts chunks into the open transaction, or begins one.
func (a *spoolActor) write(k store.Key, seq int, chunks ...store.Chunk) error {
	if err := a.begin(); err != nil {
		return err
	}
	var size int64
	for _, c := range chunks {
		size += int64(len(c.Data))
	}
	if bound := a.pub.maxBytes.Load(); bound > 0 && a.used+a.size+size > bound {
		return fmt.Errorf("%w: %d of %d bytes are in use (spool.max_bytes)", store.ErrFull, a.used+a.size, bound)
	}
	for i, c := range chunks {
		if err := a.w.Append(k, seq+i, c); err != nil {
			return err
		}
	}
	a.size += size
	return nil
}

// begin opens a transaction. It stays open until somebody waits for what is in it: the
// chunks of a result that is still arriving share the commit of its row.
func (a *spoolActor) begin() error {
	if a.open {
		return nil
	}
	if err := a.w.Begin(); err != nil {
		return err
	}
	a.open, a.used = true, a.w.Used()
	return nil
}

// hurry has the transaction committed soon. The flush lands behind everything that
// already waits, so the mailbox is the batch window.
func (a *spoolActor) hurry() {
	if !a.ending {
		a.ending = true
		a.self.tell(flush{})
	}
}

func (a *spoolActor) await(w waiting) {
	a.batch = append(a.batch, w)
	if a.size >= batchBytes {
		a.commit()
	}
}

// refuse fails the request at hand. The transaction may hold half of it, so it is
// rolled back, and the rest of the batch is failed too: they fail open.
func (a *spoolActor) refuse(from asker, err error) {
	a.failed(err)
	from.answer(nil, err)
	if errors.Is(err, store.ErrFull) {
		return // refused before anything was written
	}
	a.rollback(err)
}

func (a *spoolActor) commit() {
	if !a.open {
		return
	}
	if err := a.w.Commit(); err != nil {
		err = fmt.Errorf("commit: %w", err)
		a.failed(err)
		a.rollback(err)
		return
	}
	if slices.ContainsFunc(a.batch, waiting.whole) { // chunks alone may be of what is refused
		a.sys.problems.Clear("spool-failing", "spool")
		a.sys.problems.Clear("spool-full", "spool")
	}
	for _, w := range a.batch {
		w.from.answer(w.value, nil)
	}
	a.logged += a.size
	a.copy()
	a.clear()
	a.publish(false)
}

func (a *spoolActor) rollback(cause error) {
	if a.open {
		if err := a.w.Rollback(); err != nil {
			a.sys.log.Error().Err(err).Msg("store: rollback")
		}
	}
	for _, w := range a.batch {
		if w.chunk != 0 {
			a.tear(w.chunk, cause)
		}
		w.from.answer(nil, cause)
	}
	a.clear()
}

func (a *spoolActor) clear() {
	clear(a.batch) // let go of what was answered
	a.open, a.batch, a.size = false, a.batch[:0], 0
}

func (a *spoolActor) failed(err error) {
	a.pub.failures.Add(1)
	a.self.line.failed(err)
	a.sys.problems.Raise(refusal(err))
}

// refusal is the problem that results are not stored, because of err.
func refusal(err error) Problem {
	text := "results are not stored: " + err.Error()
	if errors.Is(err, store.ErrFull) {
		return Problem{Code: "spool-full", Subject: "spool", Text: text,
			Fix: "raise spool.max_bytes, or remove large results: mcphubd result ls, mcphubd result rm ID"}
	}
	return Problem{Code: "spool-failing", Subject: "spool", Text: text, Fix: "free disk space"}
}

func (a *spoolActor) drop(k store.Key) {
	delete(a.torn, k)
	if err := a.begin(); err != nil {
		return // they are swept at the next start
	}
	a.hurry()
	if err := a.w.Drop(k); err != nil {
		a.sys.log.Warn().Err(err).Msg("store: chunks of an abandoned result stay until the next start")
		a.rollback(err)
	}
}
