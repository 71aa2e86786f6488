package actors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"mcphubd/actors/catalog"
	"mcphubd/config"
	"mcphubd/store"
)

// keep fills in what a server offered before, until it says so itself: agents see
// the last known lists while it starts anew.
func (f *ServerFacts) keep(was ServerFacts) {
	if !f.Listed {
		f.Tools, f.Listed = was.Tools, was.Listed
	}
	if !f.Featured {
		f.Prompts, f.Offer, f.Featured = was.Prompts, was.Offer, was.Featured
	}
	if f.Info.Protocol == "" {
		f.Info.Instructions, f.Info.Capabilities = was.Info.Instructions, was.Info.Capabilities
	}
}

// recalled is what a server said and listed in an earlier life of the daemon.
type recalled struct {
	origin       string
	protocol     string
	instructions string
	tools        []catalog.Tool
}

// maxKnown bounds what is kept of one server's list.
const maxKnown = 8 << 20

// recall reads what the store knows of servers. Without it nothing is lost but
// time: agents wait for the servers then.
func recall(s *System, sp Spool) map[string]recalled {
	all := map[string]recalled{}
	if sp.reader == nil {
		return all
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	rows, err := sp.reader.Known(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("store: the tools that servers listed last are not known")
	}
	for _, k := range rows {
		tools, _ := catalog.ParseTools([][]byte{k.Tools}) // bad ones were left out before
		var how struct{ Protocol, Instructions string }
		_ = json.Unmarshal(k.Tools, &how) // none in rows from before
		all[k.Server] = recalled{k.Origin, how.Protocol, how.Instructions, tools}
	}
	return all
}

// known is the row of what a server says and lists now. What is too long is not kept.
func known(c config.Server, info ConnInfo, tools []catalog.Tool) store.Known {
	b := quoteTo([]byte(`{"protocol":`), info.Protocol)
	b = quoteTo(append(b, `,"instructions":`...), info.Instructions)
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		if b = append(b, t.Raw...); len(b) > maxKnown {
			return known(c, ConnInfo{Protocol: info.Protocol}, nil)
		}
	}
	return store.Known{Server: c.Name, Origin: originOf(c), Tools: append(b, `]}`...)}
}

// originOf tells servers of one name apart by how they are started.
func originOf(c config.Server) string {
	b, _ := json.Marshal([]any{c.Command, c.Args, c.Cwd, c.URL}) // texts always marshal
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
