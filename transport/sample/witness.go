package sample

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"mcphubd/transport/wire"
)

// Line is one line of a ledger: a result as it was written.
type Line struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // over the bytes of the result value
}

// witness notes the results that pass through it. The SDK writes one message a
// call of Write.
type witness struct {
	out    io.Writer
	ledger io.Writer
}

func (w *witness) Write(p []byte) (int, error) {
	if w.ledger != nil {
		if err := w.note(p); err != nil {
			return 0, err
		}
	}
	return w.out.Write(p)
}

func (w *witness) note(message []byte) error {
	e, err := wire.ScanEnvelope(bytes.TrimSpace(message))
	if err != nil || !e.Result.OK() {
		return nil
	}
	result := e.Result.Of(bytes.TrimSpace(message))
	sum := sha256.Sum256(result)
	line, err := json.Marshal(Line{len(result), hex.EncodeToString(sum[:])})
	if err != nil {
		return err
	}
	_, err = w.ledger.Write(append(line, '\n'))
	return err
}

// Close implements io.Closer; what it writes to belongs to the caller.
func (w *witness) Close() error { return nil }
