package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// CompareText writes the comparison for a terminal.
func CompareText(w io.Writer, c *Comparison, o TextOptions) error {
	p := newPage(w, o)
	p.text("A  ", compared(c.A), boldPaint)
	p.text("B  ", compared(c.B), boldPaint)
	for _, t := range c.Workloads {
		p.line("")
		p.text("", t.Name+superscript(t.Marks), boldPaint)
		for i, n := range t.Counts {
			n.Variant = "AB"[i : i+1]
			p.text("  ", countsText(n), dimPaint)
		}
		if len(t.Rows) == 0 {
			continue
		}
		g := &grid{tail: 2}
		g.add(texts("", "A", "B", "B against A", "detectable", ""))
		for _, r := range t.Rows {
			word := cell{first: r.Word, paint: dimPaint}
			if r.Word != wordNone {
				word.paint = boldPaint
			}
			g.add([]cell{{first: "  " + r.Name}, figureCell(r.A.Shown), figureCell(r.B.Shown), figureCell(r.Change.Shown), figureCell(r.Least), word})
		}
		g.write(p)
	}
	if len(c.Warnings)+len(c.Notes) > 0 {
		p.line("")
	}
	for _, warning := range c.Warnings {
		p.reason(p.paint("warning", doubtPaint)+"  ", 9, warning)
	}
	for _, n := range c.Notes {
		p.text("note     ", n, dimPaint)
	}
	p.footnotes(c.Footnotes)
	return p.w.Flush()
}

// compared says what a side is.
func compared(s Compared) string {
	t := s.Label
	if s.Model != "" {
		t += " " + s.Model
	}
	return t + fmt.Sprintf(", seed %d", s.Seed)
}

// CompareMarkdown writes the comparison for a pull request, as safe as Markdown.
func CompareMarkdown(w io.Writer, c *Comparison) error {
	b := bufio.NewWriter(w)
	line := func(format string, a ...any) { _, _ = fmt.Fprintf(b, format+"\n", a...) }
	line("## Comparison\n\nA: %s  \nB: %s  ", escape(compared(c.A)), escape(compared(c.B)))
	for _, t := range c.Workloads {
		line("\n### %s%s\n", escape(t.Name), superscript(t.Marks))
		for i, n := range t.Counts {
			n.Variant = "AB"[i : i+1]
			line("%s  ", escape(countsText(n)))
		}
		if len(t.Rows) == 0 {
			continue
		}
		line("\n| | A | B | B against A | detectable | |\n|%s", strings.Repeat(" --- |", 6))
		for _, r := range t.Rows {
			word := r.Word
			if word != wordNone {
				word = "**" + word + "**"
			}
			line("| %s | %s | %s | %s | %s | %s |", escape(r.Name), figureText(r.A.Shown), figureText(r.B.Shown),
				figureText(r.Change.Shown), figureText(r.Least), word)
		}
	}
	if len(c.Warnings) > 0 {
		line("\n### Warnings\n")
		for _, warning := range c.Warnings {
			line("- %s", escape(warning))
		}
	}
	if len(c.Footnotes)+len(c.Notes) > 0 {
		line("\n### Notes\n")
		for i, n := range c.Footnotes {
			line("%s %s  ", superscript([]int{i + 1}), escape(n))
		}
		for _, n := range c.Notes {
			line("\n%s", escape(n))
		}
	}
	return b.Flush()
}
