package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// paint is what a text means; on a terminal it has a colour.
type paint string

const (
	plain paint = ""
	good  paint = "32"
	warn  paint = "33"
	bad   paint = "31"
	faint paint = "2"
	head  paint = "1"
)

// cell is one text of a table.
type cell struct {
	text  string
	paint paint
	right bool // numbers stand on the right
}

func text(s string) cell             { return cell{text: s} }
func number(s string) cell           { return cell{text: s, right: true} }
func painted(s string, p paint) cell { return cell{text: s, paint: p} }
func heads(names ...string) (h []cell) {
	for _, n := range names {
		name, right := strings.CutPrefix(n, ">")
		h = append(h, cell{name, head, right})
	}
	return h
}

// screen is stdout: where tables go. What it is given is made harmless first,
// since names and errors come from servers.
type screen struct {
	w      *bufio.Writer
	tty    bool
	colour bool
	width  int // 0 = lines may be as long as they are
}

func (a *app) screen() *screen {
	s := &screen{w: bufio.NewWriter(a.stdout)}
	f, ok := a.stdout.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return s
	}
	s.tty = true
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
		s.width = int(size.Col)
	}
	return s
}

// list prints rows under their heads, or with --json the value v that they show. It says
// none where there is nothing.
func (a *app) list(asJSON bool, v any, rows [][]cell, none string) error {
	if asJSON {
		return a.writeJSON(v)
	}
	if len(rows) == 1 {
		a.say("%s", none)
		return nil
	}
	out := a.screen()
	out.table(rows...)
	return out.close()
}

// line writes texts one after the other.
func (s *screen) line(parts ...cell) {
	for _, p := range parts {
		s.put(harmless(p.text), p.paint)
	}
	s.w.WriteByte('\n')
}

func (s *screen) put(text string, p paint) {
	if s.colour && p != plain && text != "" {
		text = "\x1b[" + string(p) + "m" + text + "\x1b[0m"
	}
	s.w.WriteString(text)
}

// table writes rows in columns that are as wide as they need to be. On a terminal
// the last column is cut at its edge.
func (s *screen) table(rows ...[]cell) {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i].text = harmless(row[i].text)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	for _, row := range rows {
		s.row(row, widths)
	}
}

func (s *screen) row(row []cell, widths []int) {
	at, gap := 0, 0 // spaces are written when something follows them
	for i, c := range row {
		if last := i == len(row)-1; last && s.width > at+8 {
			c.text = oneLine(c.text, s.width-at)
		}
		free := max(widths[i]-utf8.RuneCountInString(c.text), 0)
		if c.right {
			gap += free
		}
		if c.text != "" {
			s.w.WriteString(strings.Repeat(" ", gap))
			gap = 0
		} else if !c.right {
			gap += free
		}
		s.put(c.text, c.paint)
		if !c.right && c.text != "" {
			gap = free
		}
		gap += 2
		at += widths[i] + 2
	}
	s.w.WriteByte('\n')
}

// pairs writes a list of names and values; those without a value are left out.
func (s *screen) pairs(rows ...[2]string) {
	var table [][]cell
	for _, r := range rows {
		if r[1] != "" {
			table = append(table, []cell{painted(r[0], faint), text(r[1])})
		}
	}
	width := s.width
	s.width = 0 // values are not cut
	s.table(table...)
	s.width = width
}

// Write lets texts of several lines through, harmless ones.
func (s *screen) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		body, ended := strings.CutSuffix(line, "\n")
		s.w.WriteString(harmless(body))
		if ended {
			s.w.WriteByte('\n')
		}
	}
	return len(p), nil
}

// close writes what is left.
func (s *screen) close() error { return s.w.Flush() }

var _ io.Writer = (*screen)(nil)

// harmless replaces what a terminal would obey.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case !unicode.IsPrint(r) && r != '\u00a0':
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
