package actors

import (
	"context"
	"io"
)

// Filter runs a jq program over a JSON document and writes what it gives, one value
// a line. It is told by ctx when nobody waits any more; its error is for an agent
// to read. It must be safe for concurrent use.
type Filter interface {
	Run(ctx context.Context, program string, doc io.Reader, out io.Writer) error
}
