package store

import (
	"errors"
	"time"
)

// ErrNotFound reports an id that no stored result has.
var ErrNotFound = errors.New("no such result")

// ErrExpired reports a result whose 24 hours are over.
var ErrExpired = errors.New("result has expired")

// ErrFull reports that the bytes would exceed the bound set for the store.
var ErrFull = errors.New("store is full")

// Retention is how long a result is kept. No setting extends it.
const Retention = 24 * time.Hour

// ChunkSize is the number of raw bytes in every chunk of a result but its last.
const ChunkSize = 256 << 10

// ID names a stored result: 128 random bits as 32 lower-case hex digits.
type ID string

// Key numbers a result inside the store. Its chunks are rows k = key<<24 | seq.
type Key int64

// Chunk is up to ChunkSize raw bytes as they go to disk: compressed where that
// pays, plain otherwise.
type Chunk struct {
	N    int    // raw bytes
	Zip  bool   // Data is compressed
	Sum  uint32 // CRC-32C of the raw bytes
	Data []byte // what the row holds

	buf *[]byte // what Data is a part of, if Pack took it
}

// Result is the row of one sealed result; writing it is the commit point.
type Result struct {
	ID      ID
	Key     Key
	Agent   string // identity that made the call
	Server  string
	Tool    string // the server's own tool name
	Exposed string // the name the agent called
	Bytes   int64
	Lines   int64
	SHA256  string // hex, over the stored bytes
	IsError bool
	Stored  time.Time
	Expires time.Time
	Parent  ID     // of a derived result, else ""
	Query   string // of a derived result, else ""
	Facts   []byte // opaque JSON of the package that sealed it
}

// Call is the record of one proxied call; it holds no arguments and no result.
type Call struct {
	Serial      int64 // in the life of the process; not stored
	At          time.Time
	Agent       string
	Server      string
	Tool        string
	Outcome     string // ok | tool_error | rpc_error | failed | cancelled | timeout
	Took        time.Duration
	ArgBytes    int64
	ResultBytes int64
	Stored      bool
	Error       string // at most 500 characters
}

// Usage is the size of the store.
type Usage struct {
	Results      int64     `json:"results"`      // rows that were not pruned
	RawBytes     int64     `json:"rawBytes"`     // bytes of their results
	UsedBytes    int64     `json:"usedBytes"`    // pages in use × page size
	FileBytes    int64     `json:"fileBytes"`    // the database file
	WALBytes     int64     `json:"walBytes"`     // the write-ahead log
	Calls        int64     `json:"calls"`        // call records
	OldestExpiry time.Time `json:"oldestExpiry"` // zero when there is no result
}

// Pruned says what one slice of pruning did.
type Pruned struct {
	Results int  `json:"results"` // results whose bytes were removed
	Chunks  int  `json:"chunks"`  // chunk rows removed
	Calls   int  `json:"calls"`   // call records removed
	More    bool `json:"-"`       // another slice is wanted
}
