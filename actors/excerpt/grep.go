package excerpt

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
)

const (
	maxAround = 50
	// grepCount is how much more of the text is searched just to say how many lines
	// match, slowCount with a pattern that has no literal to look for.
	grepCount = 256 << 20
	slowCount = 8 << 20
	// otherWords is how much longer a header may be that has other words.
	otherWords = "                                "
	// shownLine is the longest line that is shown whole; of a longer one, what is
	// around its matches.
	shownLine   = 1000
	shownAround = 100
)

// A grepPlace is how far a search has come.
type grepPlace struct {
	pattern string
	around  int64
	at      int64 // offset of the line to go on with
	line    int64 // its number, counted from 0
	skip    int64 // bytes of that line that were dealt with
	owed    int64 // lines up to this number are shown, whether they match or not; +1, 0 is none
	shown   int64 // matching lines on the pages before
	total   int64 // matching lines, +1; 0 is unknown
	limit   int64 // hits on a page; 0 is as many as fit
}

func (g grepPlace) token(part int, callID string) string {
	n := []int64{g.around, g.at, g.line, g.skip, g.owed, g.shown, g.total}
	if g.limit > 0 {
		n = append(n, g.limit)
	}
	return place{nextGrep, part, n, g.pattern}.token(callID)
}

func grepPlaceOf(p place) grepPlace {
	n := append(p.n, 0)
	return grepPlace{p.text, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]}
}

// grep is one search for one page.
type grep struct {
	grepPlace
	re      *regexp.Regexp
	literal literal
	borders bool
	page    *page
	hits    int64 // matching lines on the page; a long one counts once for each place shown
	full    bool
	stop    grepPlace // where the next page begins, once full
	before  []kept    // lines that wait for a match behind them
	last    int64     // the line shown last, counted from 1
	first   int64     // the line shown first
	found   int64     // matching lines so far, those on pages before included
}

// kept is a line that may be shown.
type kept struct {
	at, line int64
	text     []byte
}

func (r Reading) grep(part int, at grepPlace) (Answer, error) {
	re, err := pattern(at.pattern)
	if err != nil {
		return Answer{}, err
	}
	d, v, err := r.view(part)
	if err != nil {
		return Answer{}, err
	}
	if at.at > v.n {
		return Answer{}, errToken
	}
	worst := grepPlace{at.pattern, maxAround, v.n, v.lines, v.n, v.lines + maxAround, v.lines, v.lines + 1, at.limit}
	count := fmt.Sprint(v.lines) + " or more"
	p, err := r.Limits.page(at.head(d, v.lines, v.lines, count, v.lines, v.lines, worst.token(part, r.CallID))+otherWords, nil)
	if err != nil {
		return Answer{}, err
	}
	tree, err := syntax.Parse(at.pattern, syntax.Perl)
	if err != nil {
		return Answer{}, err
	}
	g := &grep{grepPlace: at, re: re, literal: literalOf(tree), borders: hasBorders(tree), page: p, found: at.shown}
	ended, err := g.run(v, r.Src)
	if err != nil {
		return Answer{}, err
	}
	if ended && g.total == 0 {
		g.total = g.found + 1
	}
	next, upTo, of := "", g.found, fmt.Sprint(g.total-1)
	if g.total == 0 {
		of = fmt.Sprint(g.found) + " or more"
	}
	if g.full {
		upTo, g.stop.total = g.stop.shown, g.total
		next = g.stop.token(part, r.CallID)
	}
	head := at.head(d, at.shown+1, upTo, of, g.first, g.last, next)
	if l := r.layout; g.found == 0 && next == "" && part == partAuto && d.part != partStructured && l.structured.size() > 0 {
		head = head[:len(head)-1] + `; part "structured" has more]` // the text may only sum it up
	}
	return Answer{Result: textAnswer([]byte(head), lineBreak, g.page.body)}, nil
}

// head is the header of a page with matching lines from to to, which stand between
// the lines first and last.
func (g grepPlace) head(d *document, from, to int64, of string, first, last int64, next string) string {
	s := fmt.Sprintf("[%s, %s: grep %s: ", d.label(), d.as, show(oneLine(g.pattern)))
	switch {
	case from <= to:
		s += fmt.Sprintf("matching lines %d-%d of %s, within lines %d-%d of %d", from, to, of, first, last, d.shown.lines)
	case from > 1:
		s += fmt.Sprintf("the rest of the lines around matching line %d of %s, up to line %d of %d", to, of, last, d.shown.lines)
	case next != "":
		s += fmt.Sprintf("the lines before matching line 1 of %s, from line %d of %d", of, first, d.shown.lines)
	default:
		s += fmt.Sprintf("no matching line in %d", d.shown.lines)
	}
	if next != "" {
		s += "; next=" + next
	}
	return s + "]"
}

// run searches from where it stands until the page is full, and then on to count.
// ended says that it came to the end of the text.
func (g *grep) run(v *view, src Source) (ended bool, err error) {
	back := max(g.skip-int64(grepOverlap), 0)
	c := cursorAt(v, src, g.at+back)
	count := int64(grepCount)
	if g.literal.text == nil {
		count = slowCount
	}
	b := &grepBuffer{c: c, at: g.at + back, line: g.line, lineAt: g.at}
	for {
		if g.full && (g.total > 0 || b.at > g.stop.at+count) {
			return false, c.fault()
		}
		part, whole := b.fill()
		if len(part) == 0 {
			return true, c.fault()
		}
		if whole {
			g.region(b, part)
			b.drop(len(part))
			continue
		}
		g.giant(b)
		if c.fault() != nil {
			return false, c.fault()
		}
	}
}

// region searches whole lines.
func (g *grep) region(b *grepBuffer, p []byte) {
	line, i := b.line, 0
	for i < len(p) {
		if g.literal.text != nil && (line >= g.owed || g.full) {
			k := g.literal.index(p[i:])
			if k < 0 {
				k = len(p) - i
			}
			// Lines before the one that may match only matter as its surroundings.
			if from := i + bytes.LastIndexByte(p[i:i+k], '\n') + 1; from > i {
				g.pass(b, p, i, from, line)
				line += int64(bytes.Count(p[i:from], lineBreak))
				if i = from; i == len(p) {
					return
				}
			}
		}
		n := bytes.IndexByte(p[i:], '\n')
		end := i + n
		if n < 0 {
			n, end = len(p)-i, len(p)
		} else {
			n++
		}
		g.inLine(kept{at: b.at + int64(i), line: line, text: trimCR(p[i:end])})
		i += n
		line++
	}
}

func trimCR(s []byte) []byte { return bytes.TrimSuffix(s, []byte{'\r'}) }

// pass goes over lines that do not match and keeps the last ones.
func (g *grep) pass(b *grepBuffer, p []byte, from, to int, line int64) {
	if g.around == 0 || g.full {
		return
	}
	at, n := to, line+int64(bytes.Count(p[from:to], lineBreak))
	var last []kept
	for at > from && int64(len(last)) < g.around {
		end := at - 1
		at = from + bytes.LastIndexByte(p[from:end], '\n') + 1
		n--
		last = append(last, kept{at: b.at + int64(at), line: n, text: p[at:end]})
	}
	for i := len(last) - 1; i >= 0; i-- {
		g.keep(last[i])
	}
}

// keep remembers a line that a match may follow.
func (g *grep) keep(k kept) {
	if g.around == 0 || g.full {
		return
	}
	k.text = bytes.Clone(trimCR(k.text[:min(len(k.text), shownLine+1)]))
	if g.before = append(g.before, k); int64(len(g.before)) > g.around {
		g.before = g.before[1:]
	}
}

// inLine searches one line that is in memory.
func (g *grep) inLine(k kept) {
	match := g.re.Match(k.text)
	if match && !(k.line == g.line && g.skip > 0) {
		g.found++
	}
	if g.full {
		return
	}
	switch {
	case match:
		if g.enough(k) || !g.surroundings(k) {
			return
		}
		g.owed = max(g.owed, k.line+g.around+1)
		if len(k.text) > shownLine {
			g.longLine(k, 0, len(k.text)+1, true)
		} else {
			g.put(k, ':', k.text, 0)
		}
	case k.line < g.owed:
		g.put(k, '-', k.text, 0)
	default:
		g.keep(k)
	}
}

// enough ends the page before the matching line k, and what is shown with it, when
// the page has as many as were asked for.
func (g *grep) enough(k kept) bool {
	if g.limit <= 0 || g.hits < g.limit {
		return false
	}
	g.owed = max(g.owed, k.line+g.around+1)
	if len(g.before) > 0 {
		k = g.before[0]
	}
	g.full, g.stop = true, g.grepPlace
	g.stop.at, g.stop.line, g.stop.skip, g.stop.shown = k.at, k.line, 0, g.found-1
	return true
}

// surroundings shows the lines before the matching line k; false when the page is full.
func (g *grep) surroundings(k kept) bool {
	for _, b := range g.before {
		if b.line < g.owed {
			continue
		}
		if !g.put(b, '-', b.text, 0) {
			g.stop.owed = k.line + g.around + 1
			g.stop.shown = g.found - 1
			return false
		}
	}
	g.before = g.before[:0]
	return true
}

// put shows a line, or with the sign @ a place in a long one. When it does not fit, the
// page ends before it.
func (g *grep) put(k kept, sign byte, text []byte, skip int64) bool {
	enough := sign == '@' && g.limit > 0 && g.hits >= g.limit
	var b []byte
	if g.around > 0 && g.last > 0 && k.line > g.last && sign != '@' {
		b = append(b, "--\n"...)
	}
	b = strconv.AppendInt(b, k.line+1, 10)
	if sign == '@' {
		b = strconv.AppendInt(append(b, '@'), skip, 10)
		b = append(b, ':')
	} else {
		b = append(b, sign)
	}
	frame := len(b)
	b = append(b, text[:wholeRunes(text, shownLine)]...)
	if len(text) > shownLine && sign != '@' {
		b = append(b, "…"...)
	}
	if !enough && g.page.whole(append(b, '\n')) {
		g.note(k, sign)
		return true
	}
	if len(g.page.body) == 0 {
		n := g.page.fits(b, false)
		for n > frame && !g.page.whole(append(b[:n:n], "…\n"...)) {
			n = wholeRunes(b, n-1)
		}
		if len(g.page.body) > 0 {
			g.note(k, sign)
			return true
		}
	}
	g.full = true
	g.stop = g.grepPlace
	g.stop.at, g.stop.line, g.stop.skip, g.stop.shown = k.at, k.line, 0, g.found
	if sign == ':' {
		g.stop.shown--
	}
	return false
}

func (g *grep) note(k kept, sign byte) {
	if sign != '-' {
		g.hits++
	}
	g.last = k.line + 1
	if g.first == 0 {
		g.first = g.last
	}
}
