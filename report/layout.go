package report

import (
	"bufio"
	"io"
	"strings"
	"unicode"
)

// TextOptions say for which terminal text is written.
type TextOptions struct {
	Width  int  // in columns; 0: 120
	Colour bool // ANSI colours; plain text without
}

const (
	usualWidth = 120
	leastWidth = 20
)

// page writes lines to a terminal of a known width.
type page struct {
	w      *bufio.Writer
	width  int
	colour bool
}

func newPage(w io.Writer, o TextOptions) *page {
	if o.Width <= 0 {
		o.Width = usualWidth
	}
	return &page{w: bufio.NewWriter(w), width: max(o.Width, leastWidth), colour: o.Colour}
}

// paint is a colour of the terminal.
type paint string

// The paints, by what they mean.
const (
	noPaint    paint = ""
	boldPaint  paint = "1"
	dimPaint   paint = "2"
	passPaint  paint = "32"
	failPaint  paint = "1;31"
	doubtPaint paint = "33"
)

func (p *page) paint(s string, c paint) string {
	if !p.colour || c == noPaint || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// line writes one line without blanks at its end. Errors stick to the writer
// and come back from Flush.
func (p *page) line(s string) { _, _ = p.w.WriteString(strings.TrimRight(s, " ") + "\n") }

// text writes a paragraph, its first line behind first, the others as far in.
func (p *page) text(first, s string, c paint) {
	in := columns(first)
	if in > p.width/2 {
		p.line(first)
		first, in = "  ", 2
	}
	for _, l := range wrap(s, p.width-in) {
		p.line(first + p.paint(l, c))
		first = strings.Repeat(" ", in)
	}
}

// columns is how wide a text is on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case r >= 0x1100 && wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether terminals give the character two columns.
func wide(r rune) bool {
	return r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd
}

// pad fills a text up to a width.
func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-columns(s))) }

// wrap breaks a text between words, and words that are too long where they are.
func wrap(s string, width int) []string {
	width = max(width, 8)
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(s) {
		for {
			n := columns(word)
			if used > 0 && used+1+n <= width {
				line, used = line+" "+word, used+1+n
				break
			}
			if used > 0 {
				lines = append(lines, line)
			}
			if n <= width {
				line, used = word, n
				break
			}
			head := clip(word, width)
			lines = append(lines, head)
			word, line, used = word[len(head):], "", 0
		}
	}
	if used > 0 || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// clip returns the longest start of s of at most that many columns, at least
// one character.
func clip(s string, width int) string {
	n := 0
	for i, r := range s {
		n += columns(string(r))
		if n > width && i > 0 {
			return s[:i]
		}
	}
	return s
}

// shorten cuts a name to a width, with a mark that it was cut.
func shorten(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	return clip(s, max(1, width-1)) + "…"
}

// grid is a table of texts; the first row is its head.
type grid struct {
	rows   [][]string
	paints map[[2]int]paint
}

func (g *grid) add(cells ...string) int {
	g.rows = append(g.rows, cells)
	return len(g.rows) - 1
}

func (g *grid) paint(row, column int, c paint) {
	if g.paints == nil {
		g.paints = make(map[[2]int]paint)
	}
	g.paints[[2]int{row, column}] = c
}

// widths returns how wide each column must be, and all together with two blanks
// between them.
func (g *grid) widths() (each []int, all int) {
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(each) {
				each = append(each, 0)
			}
			each[i] = max(each[i], columns(cell))
		}
	}
	for _, n := range each {
		if n > 0 {
			all += n + 2
		}
	}
	return each, all - 2
}

// write draws the table, or, where it does not fit, one paragraph a row.
func (g *grid) write(p *page) {
	each, all := g.widths()
	if all > p.width {
		g.stack(p)
		return
	}
	for y, row := range g.rows {
		var b strings.Builder
		for x, cell := range row {
			if each[x] == 0 {
				continue
			}
			c := g.paints[[2]int{y, x}]
			if y == 0 {
				c = dimPaint
			}
			b.WriteString(p.paint(cell, c) + strings.Repeat(" ", each[x]-columns(cell)+2))
		}
		p.line(b.String())
	}
}

// stack draws each row as its name with one line a cell below.
func (g *grid) stack(p *page) {
	if len(g.rows) == 0 {
		return
	}
	head := g.rows[0]
	label := 0
	for _, h := range head[1:] {
		label = max(label, columns(h))
	}
	label = min(label, max(4, p.width/3))
	for y, row := range g.rows[1:] {
		if strings.TrimSpace(row[0]) != "" {
			p.line(shorten(row[0], p.width))
		}
		in := strings.Repeat(" ", len(row[0])-len(strings.TrimLeft(row[0], " "))+2)
		for x, cell := range row {
			if x > 0 && cell != "" {
				p.text(in+pad(shorten(head[x], label), label)+"  ", cell, g.paints[[2]int{y + 1, x}])
			}
		}
	}
}
