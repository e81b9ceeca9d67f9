package report

import (
	"bufio"
	"io"
	"slices"
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

// text writes a paragraph, its first line behind first, the others as far in: a
// text from outside never begins a line of its own.
func (p *page) text(first, s string, c paint) {
	in := max(2, columns(first))
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
	for _, word := range words(s) {
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

// words splits a text where a line may break: not between a number and its unit.
func words(s string) []string {
	out := strings.Fields(s)
	n := 0
	for _, w := range out {
		if n > 0 && len(w) <= len("points,") && unitWord(w) && out[n-1] != "" && unicode.IsDigit(rune(out[n-1][len(out[n-1])-1])) {
			out[n-1] += " " + w
			continue
		}
		out[n] = w
		n++
	}
	return out[:n]
}

func unitWord(w string) bool {
	switch strings.TrimRight(w, ",;.:)]") {
	case "%", "pt", "ns", "µs", "ms", "s", "tok", "req", "tok/s", "req/s", "point", "points":
		return true
	}
	return false
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

// cell is a text of a table with a second part, which may stand beside the first
// or below it.
type cell struct {
	first, second string
	paint         paint
}

// joined is the cell on one line.
func (c cell) joined() string {
	if c.second == "" {
		return c.first
	}
	return c.first + " " + c.second
}

// texts makes cells of plain texts.
func texts(s ...string) []cell {
	out := make([]cell, len(s))
	for i := range s {
		out[i].first = s[i]
	}
	return out
}

// grid is a table; the first row is its head. The last columns, as many as tail
// says, are short remarks that may stand beside the name of their row.
type grid struct {
	rows [][]cell
	tail int
}

func (g *grid) add(row []cell) { g.rows = append(g.rows, row) }

// widths returns how wide each column must be, and all together with two blanks
// between them. Folded cells have their second part below the first.
func (g *grid) widths(folded bool) (each []int, all int) {
	for _, row := range g.rows {
		for i, c := range row {
			if i == len(each) {
				each = append(each, 0)
			}
			n := columns(c.joined())
			if folded {
				n = max(columns(c.first), columns(c.second))
			}
			each[i] = max(each[i], n)
		}
	}
	for _, n := range each {
		if n > 0 {
			all += n + 2
		}
	}
	return each, all - 2
}

// write draws the table as wide as the page lets it: a line a row, or two with
// the second parts below, or two with the name and the remarks above, or a
// paragraph a row.
func (g *grid) write(p *page) {
	if each, all := g.widths(false); all <= p.width {
		for y, row := range g.rows {
			p.row(row, each, y == 0, cell.joined)
		}
		return
	}
	each, all := g.widths(true)
	if all > p.width {
		if !g.banners(p) {
			g.stack(p)
		}
		return
	}
	for y, row := range g.rows {
		p.row(row, each, y == 0, func(c cell) string { return c.first })
		if slices.ContainsFunc(row, func(c cell) bool { return c.second != "" }) {
			p.row(row, each, true, func(c cell) string { return c.second })
		}
	}
}

// row draws one line of a table.
func (p *page) row(row []cell, each []int, dim bool, text func(cell) string) {
	var b strings.Builder
	for x, c := range row {
		if each[x] == 0 {
			continue
		}
		paint, t := c.paint, text(c)
		if dim {
			paint = dimPaint
		}
		b.WriteString(p.paint(t, paint) + strings.Repeat(" ", each[x]-columns(t)+2))
	}
	p.line(b.String())
}

// banners draws each row as a line with its name and its remarks, and one with
// its figures below. It reports false, and draws nothing, where that is too wide.
func (g *grid) banners(p *page) bool {
	figures := grid{}
	var heads []string
	for y, row := range g.rows {
		cut := len(row) - g.tail
		head, wide := row[0].first, columns(row[0].first)
		for x, c := range row[cut:] {
			if t := c.joined(); y > 0 && t != "" {
				label := "  " + strings.TrimLeft(g.rows[0][cut+x].first+" ", " ")
				head += label + p.paint(t, c.paint)
				wide += columns(label + t)
			}
		}
		if wide > p.width {
			return false
		}
		heads = append(heads, head)
		figures.add(append([]cell{{first: "  "}}, row[1:cut]...))
	}
	each, all := figures.widths(false)
	if all > p.width || len(g.rows[0]) < 3 {
		return false
	}
	for y, row := range figures.rows {
		if y > 0 && strings.TrimSpace(heads[y]) != "" {
			p.line(heads[y])
		}
		if slices.ContainsFunc(row[1:], func(c cell) bool { return c.first != "" }) {
			p.row(row, each, y == 0, cell.joined)
		}
	}
	return true
}

// stack draws each row as its name with one line a cell below.
func (g *grid) stack(p *page) {
	if len(g.rows) == 0 {
		return
	}
	head := g.rows[0]
	label := 0
	for _, h := range head[1:] {
		label = max(label, columns(h.first))
	}
	label = min(label, max(4, p.width/3))
	for _, row := range g.rows[1:] {
		if name := row[0].first; strings.TrimSpace(name) != "" {
			p.line(shorten(name, p.width))
		}
		for x, c := range row {
			if t := c.joined(); x > 0 && t != "" {
				p.text("    "+pad(shorten(head[x].first, label), label)+"  ", t, c.paint)
			}
		}
	}
}
