package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcphubd/actors/catalog"
)

// This file is the part of a downstream that reads lists: tools before the server
// is ready, prompts and resources right after, and each again when it says so.

// Kinds of lists, as in Events.ListChanged.
const (
	kindTools     = "tools"
	kindPrompts   = "prompts"
	kindResources = "resources"
)

// An empty list of tools from a server that declared tools is looked at again, the
// first time after firstLook, then doubling, maxLooks times (case C22).
const (
	firstLook = time.Second
	maxLooks  = 6
)

func (a *downstreamActor) listChanged(m listChanged) {
	if m.conn == a.conn {
		a.relistAfter(relistDelay, m.kind)
	}
}

// relistAfter has one list read again, unless that is due already.
func (a *downstreamActor) relistAfter(d time.Duration, kind string) {
	if !a.gathering[kind] && a.conn != nil {
		a.gathering[kind] = true
		after[downstreamMsg](a.self, d, relist{a.conn, kind})
	}
}

// kindSaid is gathered like a list: what was said to a server that it may have forgotten.
const kindSaid = "said"

// renewed follows a session that was made in the place of a lost one. A server that loses
// them one after the other is not told each time.
func (a *downstreamActor) renewed(m renewed) {
	if m.conn != a.conn {
		return
	}
	a.relistAfter(relistDelay, kindTools)
	if !a.gathering[kindSaid] {
		a.gathering[kindSaid] = true
		after[downstreamMsg](a.self, max(0, relistRetry-time.Since(a.reminded)), remind{m.conn})
	}
}

// remind says again what was said before, and looks at what may have changed besides tools.
func (a *downstreamActor) remind(m remind) {
	if m.conn != a.conn {
		return
	}
	a.gathering[kindSaid], a.reminded = false, time.Now()
	a.subs.renew(m.conn)
	a.sys.logs.forget(m.conn)
	a.relistAfter(relistDelay, kindPrompts)
	a.relistAfter(relistDelay, kindResources)
}

func (a *downstreamActor) relist(m relist) {
	if m.conn != a.conn || a.facts.State != Ready {
		return
	}
	a.gathering[m.kind] = false
	if m.kind != kindTools {
		a.readFeatures(m.conn, m.kind)
		return
	}
	self, conn := a.self, m.conn
	ctx, cancel := context.WithTimeout(a.ctx, a.cfg.ConnectTimeout)
	work(func() (listing, error) { return listTools(ctx, conn), nil },
		func(l listing, err error) {
			cancel()
			if err != nil {
				l.err = err
			}
			self.tell(listed{conn, l})
		})
}

func (a *downstreamActor) listed(m listed) {
	if m.conn != a.conn {
		return
	}
	a.take(m.conn, m.listing)
	a.publish()
}

// take makes l the tools of this server. A list that failed never replaces one
// that did not, and an empty one replaces another only at a second look.
func (a *downstreamActor) take(conn Conn, l listing) {
	a.facts.ListErr = ""
	if l.err != nil {
		a.facts.ListErr = l.err.Error()
		if conn.Err() == nil {
			a.again(conn, relistRetry)
		}
		if a.facts.Listed || len(l.tools) == 0 {
			return
		}
	}
	if len(l.tools) > 0 {
		a.looks = 0
	} else if declaredBy(conn).tools && a.looks < maxLooks {
		a.again(conn, firstLook<<a.looks)
		a.looks++
		if a.looks == 1 && (a.recalled || len(a.facts.Tools) > 0) {
			return
		}
	}
	a.recalled = false
	a.facts.Listed = true
	a.facts.Bad = l.bad
	if !sameList(a.facts.Tools, l.tools) {
		a.facts.Tools = l.tools
	}
}

// again has the tools of conn read once more, also before it is the connection.
func (a *downstreamActor) again(conn Conn, d time.Duration) {
	if !a.gathering[kindTools] {
		a.gathering[kindTools] = true
		after[downstreamMsg](a.self, d, relist{conn, kindTools})
	}
}

// features is one kind of what a server offers besides tools.
type features struct {
	kind    string // "" = nothing was read, for there was nothing to read
	prompts []catalog.Prompt
	offer   catalog.Offer
	errs    []string // what could not be read; the rest counts
	refused bool     // the server said no; it is not asked again until it says so
}

// readFeatures reads one kind of lists, if the server declared it.
func (a *downstreamActor) readFeatures(conn Conn, kind string) {
	caps := declaredBy(conn)
	if kind == kindPrompts && !caps.prompts || kind == kindResources && !caps.resources {
		return
	}
	a.reading++
	self := a.self
	ctx, cancel := context.WithTimeout(a.ctx, a.cfg.ConnectTimeout)
	work(func() (features, error) { return listFeatures(ctx, conn, kind), nil },
		func(f features, _ error) {
			cancel()
			self.tell(featured{conn, f})
		})
}

// isRefusal reports whether the server itself answered with an error.
func isRefusal(err error) bool {
	var raw RawError
	return errors.As(err, &raw)
}

func listFeatures(ctx context.Context, c Conn, kind string) (f features) {
	f.kind, f.refused = kind, true
	read := func(method string) [][]byte {
		pages, err := readPages(ctx, c, method)
		if err != nil {
			f.errs = append(f.errs, clip(err.Error(), 500))
			f.refused = f.refused && isRefusal(err)
		}
		return pages
	}
	say := func(method string, bad []catalog.Bad) {
		for _, b := range bad {
			if len(f.errs) < maxFeatureErrs {
				f.errs = append(f.errs, method+": "+b.String())
			}
		}
	}
	var bad []catalog.Bad
	if kind == kindPrompts {
		if pages := read("prompts/list"); len(pages) > 0 {
			f.prompts, bad = catalog.ParsePrompts(pages)
			say("prompts/list", bad)
		}
		return f
	}
	if pages := read("resources/list"); len(pages) > 0 {
		f.offer.Resources, bad = catalog.ParseResources(pages)
		say("resources/list", bad)
	}
	// Many servers with resources know no templates: their refusal is no news.
	if pages, err := readPages(ctx, c, "resources/templates/list"); err == nil || len(pages) > 0 || !isRefusal(err) {
		if err != nil {
			f.errs, f.refused = append(f.errs, clip(err.Error(), 500)), false
		}
		if len(pages) > 0 {
			f.offer.Templates, bad = catalog.ParseTemplates(pages)
			say("resources/templates/list", bad)
		}
	}
	return f
}

// featureRetry follows prompts or resources that could not be read for another
// reason than that the server refused.
const featureRetry = 30 * time.Second

const maxFeatureErrs = 20

// featured takes what a server offers besides tools. What failed leaves the server
// as usable as it was (case C101), and what was known before.
func (a *downstreamActor) featured(m featured) {
	if m.conn != a.conn {
		return
	}
	if m.kind != "" {
		a.reading--
		a.faults[m.kind] = m.errs
		a.facts.FeatureErr = slices.Concat(a.faults[kindPrompts], a.faults[kindResources])
		if len(m.errs) > 0 && !m.refused {
			a.relistAfter(featureRetry, m.kind)
		}
	}
	switch failed := len(m.errs) > 0; {
	case m.kind == kindPrompts && (!failed || len(m.prompts) > 0) && !catalog.SamePrompts(a.facts.Prompts, m.prompts):
		a.facts.Prompts = m.prompts
	case m.kind == kindResources && (!failed || !m.offer.Empty()) && !m.offer.Same(a.facts.Offer):
		a.facts.Offer = &m.offer
	}
	if a.reading <= 0 {
		a.facts.Featured = true
	}
	a.publish()
}
