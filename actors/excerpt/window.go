package excerpt

import "bytes"

// A grepBuffer holds a piece of the text in memory.
type grepBuffer struct {
	c      *cursor
	buf    []byte
	at     int64 // offset of buf in the view
	line   int64 // number of the line at buf[0]
	lineAt int64 // where that line begins
}

// fill reads on and returns whole lines; not whole when one line is too long.
func (b *grepBuffer) fill() (p []byte, whole bool) {
	if cap(b.buf) == 0 {
		b.buf = make([]byte, 0, grepWindow/4)
	}
	for {
		if i := bytes.LastIndexByte(b.buf, '\n'); i >= 0 && (len(b.buf) >= grepWindow/8 || !b.c.more()) {
			if !b.c.more() {
				i = len(b.buf) - 1
			}
			return b.buf[:i+1], b.at == b.lineAt
		}
		if !b.c.more() {
			return b.buf, b.at == b.lineAt
		}
		if len(b.buf) >= grepWindow {
			return b.buf, false
		}
		b.buf = b.c.take(b.buf, len(b.c.p))
	}
}

// drop forgets n bytes, which end with a line.
func (b *grepBuffer) drop(n int) {
	b.line += int64(bytes.Count(b.buf[:n], lineBreak))
	b.at += int64(n)
	b.lineAt = b.at
	b.buf = b.buf[:copy(b.buf, b.buf[n:])]
}

// longLine shows what is around the matches in a line, or in a window of one that
// begins at byte off of it: those matches that begin before until.
func (g *grep) longLine(k kept, off int64, until int, ends bool) {
	i := 0
	if k.line == g.line && g.skip > off {
		i = int(min(g.skip-off, int64(len(k.text))))
	}
	for {
		a, b, ok := g.nextMatch(k.text, i, off, ends)
		if !ok || a >= until {
			return
		}
		from := max(a-shownAround, i, 0)
		for from > i && from < len(k.text) && k.text[from]&0xC0 == 0x80 {
			from--
		}
		to := min(b+shownAround, from+shownLine, len(k.text))
		to = max(wholeRunes(k.text, to), min(a+1, len(k.text)))
		if !g.put(k, '@', k.text[from:to], off+int64(from)) {
			g.stop.skip = off + int64(i)
			if g.stop.shown = g.found; g.stop.skip == 0 {
				g.stop.shown--
			}
			return
		}
		i = max(to, a+1)
		g.line, g.at, g.skip = k.line, k.at, off+int64(i)
		if i > len(k.text) {
			return
		}
	}
}

// nextMatch finds a match at or behind i. Where the pattern looks at borders, a
// match at the border of a window is none: it may only look like one.
func (g *grep) nextMatch(p []byte, i int, off int64, ends bool) (a, b int, ok bool) {
	for i <= len(p) {
		at := g.re.FindIndex(p[i:])
		if at == nil {
			return 0, 0, false
		}
		a, b = i+at[0], i+at[1]
		cutBefore := a == i && off+int64(i) > 0
		cutBehind := b == len(p) && !ends
		if !g.borders || !cutBefore && !cutBehind {
			return a, b, true
		}
		i = a + 1
	}
	return 0, 0, false
}

// giant searches a line that is longer than a window, window by window.
func (g *grep) giant(b *grepBuffer) {
	k := kept{at: b.lineAt, line: b.line}
	matched := b.line == g.line && g.skip > 0
	for {
		for len(b.buf) < grepWindow && bytes.IndexByte(b.buf, '\n') < 0 && b.c.more() {
			b.buf = b.c.take(b.buf, len(b.c.p))
		}
		end := bytes.IndexByte(b.buf, '\n')
		ends := end >= 0 || !b.c.more()
		if end < 0 {
			end = len(b.buf)
		}
		k.text = b.buf[:end]
		off, until := b.at-b.lineAt, end+1
		if !ends {
			until = end - grepOverlap
		}
		if a, _, ok := g.nextMatch(k.text, 0, off, ends); ok && a < until {
			first := !matched
			if first {
				matched = true
				g.found++
			}
			if !g.full && !(first && g.enough(k)) && g.surroundings(k) {
				g.owed = max(g.owed, k.line+g.around+1)
				g.longLine(k, off, until, ends)
			}
		}
		if ends {
			b.drop(min(end+1, len(b.buf)))
			return
		}
		b.at += int64(until)
		b.buf = b.buf[:copy(b.buf, b.buf[until:])]
	}
}
