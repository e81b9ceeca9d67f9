package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

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
	for _, a := range d.Alerts {
		line("\n**%s**", escape(a))
	}
	line("\n%s\n\n%s", escape(d.Reason), escape(d.Client.Line))
	for _, r := range moreReasons(d) {
		line("- %s", escape(r))
	}
	for _, c := range ceilingLines(d, false) {
		line("\n%s", escape(c))
	}
	for i := range d.Workloads {
		markdownWorkload(line, d, &d.Workloads[i])
	}
	for _, f := range documentFronts(d) {
		markdownFront(line, f)
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
	for _, s := range w.Steady {
		line("%s  ", escape(s.Line))
	}
	if len(w.Rows) > 0 {
		markdownRows(line, d, w)
	}
	if w.Check != nil {
		line("")
		for _, l := range w.Check.Lines {
			line("- %s", escape(l))
		}
		markdownFigures(line, d, w.Check)
	}
	if len(w.Engine) > 0 {
		markdownEngine(line, d, w)
	}
	if len(w.Arrivals) > 0 {
		line("")
	}
	for _, a := range w.Arrivals {
		line("- arrivals, %s: %s", escape(a.Variant), escape(arrivalsText(a)))
	}
}

func markdownRows(line func(string, ...any), d *Document, w *Workload) {
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
			cells = append(cells, figureText(c.Shown))
		}
		if d.Baseline != "" {
			text := ""
			if r.Change != nil {
				text = figureText(r.Change.Shown)
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

func markdownEngine(line func(string, ...any), d *Document, w *Workload) {
	head := []string{"engine"}
	for _, v := range d.Variants {
		head = append(head, escape(v.Name))
	}
	line("\n| %s |", strings.Join(head, " | "))
	line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range w.Engine {
		cells := []string{escape(r.Name)}
		for _, c := range r.Cells {
			cells = append(cells, figureText(c.Shown))
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
// mention, no reference to an issue and no link. Backslashes do not stop
// mentions and bare links, entities do.
func escape(s string) string {
	text := []rune(strings.Join(strings.Fields(s), " "))
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '<' || r == '>' || r == '&' || r == '@' || r == '#' || r == '$':
			fmt.Fprintf(&b, "&#%d;", r)
		case (r == ':' || r == '.') && i+1 < len(text) && !unicode.IsSpace(text[i+1]) && !within(text, i):
			fmt.Fprintf(&b, "&#%d;", r) // http://, www.example, :smile:
		case strings.ContainsRune("\\`*_[]|~", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	t := b.String()
	if t != "" && strings.ContainsRune("-+=", rune(t[0])) {
		t = "\\" + t // neither a list nor the underline of a heading
	}
	return t
}

// within says that text[i] stands between two digits, as in 1.5 or 12:30.
func within(text []rune, i int) bool {
	return i > 0 && unicode.IsDigit(text[i-1]) && unicode.IsDigit(text[i+1])
}
