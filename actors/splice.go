package actors

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var emptyObject = []byte("{}")

// splice returns the params of c for the server, in pieces: the tool has the
// server's own name, absent or null arguments are an empty object (case C62), and
// the piece at token is where the progress token goes, if somebody wants progress
// (else it is -1). All other bytes are the agent's.
func splice(c Call, tool string) (pieces [][]byte, token int) {
	token = -1
	// A name that is no UTF-8 is quoted with replacement characters, as it was read.
	name, _ := jsontext.AppendQuote(make([]byte, 0, len(tool)+8), strings.ToValidUTF8(tool, "\uFFFD"))
	edits := [3]edit{{at: c.NameAt, with: name}}
	n := 1
	at := 0
	pieces = make([][]byte, 0, 8)
	if c.ArgsAt.Empty() {
		// The object is not empty: it has a name.
		pieces = append(pieces, []byte(`{"arguments":{},`))
		at = 1
	} else if c.Params[c.ArgsAt.A] == 'n' {
		edits[n] = edit{at: c.ArgsAt, with: emptyObject}
		n++
	}
	if c.Progress != nil {
		if e, ok := tokenEdit(c); ok {
			edits[n] = e
			n++
		}
	}
	todo := edits[:n]
	sortEdits(todo)
	for _, e := range todo {
		pieces = append(pieces, c.Params[at:e.at.A])
		if e.before != "" {
			pieces = append(pieces, []byte(e.before))
		}
		if e.with == nil {
			token = len(pieces)
		}
		pieces = append(pieces, e.with)
		if e.after != "" {
			pieces = append(pieces, []byte(e.after))
		}
		at = e.at.B
	}
	return append(pieces, c.Params[at:]), token
}

// tokenEdit puts the progress token in the place of the agent's own, or adds one.
func tokenEdit(c Call) (edit, bool) {
	const key = `"progressToken":`
	switch {
	case !c.TokenAt.Empty():
		return edit{at: c.TokenAt}, true
	case c.MetaAt.Empty(): // the object is not empty: it has a name
		return edit{at: Range{1, 1}, before: `"_meta":{` + key, after: `},`}, true
	case c.Params[c.MetaAt.A] == 'n':
		return edit{at: c.MetaAt, before: `{` + key, after: `}`}, true
	case c.Params[c.MetaAt.A] != '{':
		return edit{}, false
	}
	after := ","
	if rest := bytes.TrimLeft(c.Params[c.MetaAt.A+1:c.MetaAt.B], " \t\r\n"); rest[0] == '}' {
		after = ""
	}
	return edit{at: Range{c.MetaAt.A + 1, c.MetaAt.A + 1}, before: key, after: after}, true
}

type edit struct {
	at            Range
	before, after string
	with          []byte // nil = the token's place
}

func sortEdits(e []edit) {
	for i := 1; i < len(e); i++ {
		for j := i; j > 0 && e[j].at.A < e[j-1].at.A; j-- {
			e[j], e[j-1] = e[j-1], e[j]
		}
	}
}
