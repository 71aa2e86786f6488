package budget

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Rule is what bounds the results of one tool for one agent.
type Rule struct {
	Base     int64 // the tool's budget, else the server's, else the global one; 0 = none
	Ceiling  int64 // the agent's own bound; 0 = none
	Override int64 // how far a server may raise Base; 0 = never
	Lines    int64 // of text that the agent's client takes; 0 = any number
	Verbatim bool  // everything passes
}

// Limit returns how many bytes a result may have whose server asked for asked.
// Asking only ever raises, never beyond Override, and never beyond the agent's
// Ceiling; 0 is no limit.
func (r Rule) Limit(asked int64) int64 {
	if r.Base > 0 {
		r.Base = max(r.Base, min(asked, r.Override))
	}
	return Limit(r.Base, r.Ceiling, r.Verbatim)
}

// Highest returns the most that Limit can come to.
func (r Rule) Highest() int64 { return r.Limit(math.MaxInt64) }

// Crowded reports whether a result has to be stored because of its lines, whatever its
// size: the client would cut them.
func (r Rule) Crowded(f Facts) bool { return r.Lines > 0 && !r.Verbatim && f.Lines > r.Lines }

// MayStore reports whether any result can come to be stored.
func (r Rule) MayStore() bool { return r.Highest() > 0 || r.Lines > 0 && !r.Verbatim }

// askKeys are the members of a _meta by which servers ask for room, in bytes.
var askKeys = [...]string{"mcphub/maxResultSizeChars", "anthropic/maxResultSizeChars", "zeph/maxResultSizeChars"}

// Asked returns how many bytes the _meta of a result or of a tool asks for: the
// most that any of the keys asks for, so it makes no difference who else is
// addressed beside us. Only a JSON number written as a positive integer of at
// most 63 bits counts; anything else is as if it were not there, and so is all of
// a _meta that is too large for Facts. 0 is nothing.
func Asked(meta []byte) int64 {
	if jsontext.Value(meta).Kind() != '{' {
		return 0
	}
	found := map[string]jsontext.Value{}
	if members(meta, found) != nil {
		return 0
	}
	most := int64(0)
	for _, k := range askKeys {
		most = max(most, whole(found[k]))
	}
	return most
}

// whole reads a positive integer as JSON writes it: no fraction, no exponent.
func whole(v jsontext.Value) int64 {
	if v.Kind() != '0' {
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
