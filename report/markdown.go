package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/assay-llm/assay/contract"
)

// Markdown writes the report for a pull request: the verdict first, then a table
// a workload, the reason of every grade, and footnotes. It holds no HTML, and
// nothing in it mentions anybody or links anywhere.
func Markdown(w io.Writer, d *Document) error {
	b := bufio.NewWriter(w)
	line := func(format string, a ...any) { _, _ = fmt.Fprintf(b, format+"\n", a...) }
	if d.Verdict != nil {
		line("## %s: %s", strings.ToUpper(d.Grade), escape(d.Run.Name))
	} else {
		line("## %s", escape(d.Run.Name))
	}
	line("\n%s\n\n%s", escape(d.Reason), escape(d.Client.Line))
	for _, r := range moreReasons(d) {
		line("- %s", escape(r))
	}
	for i := range d.Workloads {
		markdownWorkload(line, d, &d.Workloads[i])
	}
	if d.Verdict != nil && len(d.Verdict.Clauses) > 0 {
		line("\n### Grades\n")
		markdownResults(line, d.Verdict.Clauses, "")
	}
	if len(d.Footnotes)+len(d.Notes) > 0 {
		line("\n### Notes\n")
		for i, n := range d.Footnotes {
			line("%s %s  ", superscript([]int{i + 1}), escape(n))
		}
		for _, n := range d.Notes {
			line("- %s", escape(n))
		}
	}
	line("\n%s; intervals at 95 %%, two-sided", escape(headline(d)))
	return b.Flush()
}

func markdownWorkload(line func(string, ...any), d *Document, w *Workload) {
	line("\n### %s%s\n", escape(w.Name), superscript(w.Marks))
	if w.WorkloadInfo.Arrivals != "" {
		line("%s  ", escape(w.WorkloadInfo.Arrivals))
	}
	for _, c := range w.Counts {
		line("%s  ", escape(countsText(c)))
	}
	for _, a := range w.Arrivals {
		line("arrivals of %s: %s  ", escape(a.Variant), escape(arrivalsText(a)))
	}
	if len(w.Rows) == 0 {
		return
	}
	head := []string{""}
	for _, v := range d.Variants {
		head = append(head, escape(v.Name))
	}
	if d.Baseline != "" {
		head = append(head, "change")
	}
	if d.Verdict != nil {
		head = append(head, "needs", "grade")
	}
	line("\n| %s |", strings.Join(head, " | "))
	line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range w.Rows {
		cells := []string{escape(r.Name)}
		for _, c := range r.Cells {
			cells = append(cells, escape(figureText(c.Shown)))
		}
		if d.Baseline != "" {
			text := ""
			if r.Change != nil {
				text = escape(figureText(r.Change.Shown))
			}
			cells = append(cells, text)
		}
		if d.Verdict != nil {
			var needs, grades []string
			for _, j := range r.Clauses {
				needs, grades = append(needs, escape(j.Need)), append(grades, markdownGrade(j.Grade))
			}
			cells = append(cells, strings.Join(needs, "; "), strings.Join(grades, "; "))
		}
		line("| %s |", strings.Join(cells, " | "))
	}
}

func markdownResults(line func(string, ...any), results []contract.Result, in string) {
	for _, r := range results {
		line("%s- %s %s", in, markdownGrade(r.Grade), escape(resultText(r)))
		for _, n := range r.Notes {
			line("%s  - %s", in, escape(n))
		}
		markdownResults(line, r.Results, in+"  ")
	}
}

func markdownGrade(g contract.Grade) string {
	if g == contract.Pass {
		return "pass"
	}
	return "**" + gradeText(g) + "**"
}

// escape makes text literal in Markdown: no markup, no HTML, no table cell, no
// mention, no reference to an issue and no link. A zero-width mark would do for
// mentions, but a backslash is not enough for those: hence the entity.
func escape(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '@':
			b.WriteString("&#64;")
		case '#':
			b.WriteString("&#35;")
		case ':':
			b.WriteString("&#58;")
		case '\\', '`', '*', '_', '{', '}', '[', ']', '(', ')', '!', '|', '~', '$':
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
