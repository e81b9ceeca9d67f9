package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
)

// Text writes the report for a terminal: a table a workload with intervals and
// grades, the reason of every grade, footnotes, and the verdict last.
func Text(w io.Writer, d *Document, o TextOptions) error {
	p := newPage(w, o)
	p.text("assay: ", headline(d), boldPaint)
	for _, a := range d.Alerts {
		p.text("! ", a, doubtPaint)
	}
	for i := range d.Workloads {
		p.line("")
		p.workload(d, &d.Workloads[i])
	}
	p.fronts(d)
	p.reasons(d)
	p.footnotes(d.Footnotes)
	p.arrivals(d)
	p.line("")
	p.verdict(d)
	p.text("", d.Client.Line, clientPaint(d))
	for _, r := range moreReasons(d) {
		p.text("  ", r, noPaint)
	}
	for _, c := range ceilingLines(d, false) {
		p.text("", c, dimPaint)
	}
	for _, n := range d.Notes {
		p.text("note: ", n, noPaint)
	}
	return p.w.Flush()
}

// headline says which run this is.
func headline(d *Document) string {
	s := d.Run.Name
	if s == "" {
		s = "run"
	}
	if d.Run.ID != "" {
		s += " " + d.Run.ID
	}
	s += fmt.Sprintf(", seed %d", d.Run.Seed)
	for i, v := range d.Variants {
		if i == 0 {
			s += ": "
		} else {
			s += ", "
		}
		s += v.Name
		if v.Model != "" {
			s += " " + v.Model
		}
	}
	return s
}

func clientPaint(d *Document) paint {
	if d.Client.Fit {
		return dimPaint
	}
	return doubtPaint
}

// moreReasons are those of an unfit client that its line leaves out.
func moreReasons(d *Document) []string {
	if d.Client.Fit || len(d.Client.Reasons) < 2 {
		return nil
	}
	return d.Client.Reasons[1:]
}

// countsText says what is behind the figures of a variant.
func countsText(c contract.Counts) string {
	s := fmt.Sprintf("%s n %s, failed %s, dropped %s", c.Variant, fixed(float64(c.Completed+c.Failed), 0), fixed(float64(c.Failed), 0), fixed(float64(c.Dropped), 0))
	if c.Cancelled > 0 {
		s += ", cancelled " + fixed(float64(c.Cancelled), 0)
	}
	return s
}

func (p *page) workload(d *Document, w *Workload) {
	head := w.Name
	if w.WorkloadInfo.Arrivals != "" {
		head += " · " + w.WorkloadInfo.Arrivals
	}
	p.text("", head+superscript(w.Marks), boldPaint)
	for _, c := range w.Counts {
		p.text("  ", countsText(c), dimPaint)
	}
	for _, s := range w.Steady {
		p.text("  ", s.Line, dimPaint)
	}
	if len(w.Rows) > 0 {
		p.rows(d, w).write(p)
	}
	if w.Check != nil {
		for _, l := range w.Check.Lines {
			p.text("  ", l, noPaint)
		}
		p.figures(d, w.Check)
	}
	if len(w.Engine) > 0 {
		p.line("")
		engineGrid(d, w).write(p)
	}
}

// rows lays the workload's figures out as a table.
func (p *page) rows(d *Document, w *Workload) *grid {
	g := new(grid)
	head := []string{""}
	for _, v := range d.Variants {
		head = append(head, shorten(v.Name, 32))
	}
	changes := d.Baseline != ""
	if changes {
		head = append(head, "change")
	}
	if d.Verdict != nil {
		head = append(head, "needs", "grade")
		g.tail = 2
	}
	g.add(texts(head...))
	for _, r := range w.Rows {
		row := texts("  " + r.Name)
		for _, c := range r.Cells {
			row = append(row, figureCell(c.Shown))
		}
		if changes && r.Change != nil {
			row = append(row, figureCell(r.Change.Shown))
		} else if changes {
			row = append(row, cell{})
		}
		blank := make([]cell, len(row))
		for i, j := range r.Clauses {
			if i > 0 {
				row = slices.Clone(blank)
			}
			g.add(append(row, cell{first: j.Need}, cell{first: gradeText(j.Grade), paint: gradePaint(j.Grade)}))
		}
		if len(r.Clauses) == 0 {
			g.add(append(row, make([]cell, len(head)-len(row))...))
		}
	}
	return g
}

// figureCell is a value with its interval: "412 ms [391, 440]¹".
func figureCell(s Shown) cell {
	if s.Interval == "" {
		return cell{first: s.Value + superscript(s.Marks)}
	}
	return cell{first: s.Value, second: s.Interval + superscript(s.Marks)}
}

// figureText is the cell on one line.
func figureText(s Shown) string { return figureCell(s).joined() }

func gradeText(g contract.Grade) string {
	if g == contract.Fail {
		return "FAIL"
	}
	return g.String()
}

func gradePaint(g contract.Grade) paint {
	switch g {
	case contract.Pass:
		return passPaint
	case contract.Fail:
		return failPaint
	}
	return doubtPaint
}

func (p *page) footnotes(notes []string) {
	if len(notes) == 0 {
		return
	}
	p.line("")
	for i, n := range notes {
		p.text(superscript([]int{i + 1})+" ", n, dimPaint)
	}
}

// arrivals says whether what was sent was the process that was planned.
func (p *page) arrivals(d *Document) {
	first := true
	for _, w := range d.Workloads {
		for _, a := range w.Arrivals {
			if first {
				p.line("")
				first = false
			}
			p.text("arrivals  ", w.Name+", "+a.Variant+": "+arrivalsText(a), noPaint)
		}
	}
}

// shareText writes a probability.
func shareText(p float64) string {
	if p < .001 {
		return "< 0.001"
	}
	return fixed(p, 3)
}

// reasons gives the reason of every grade.
func (p *page) reasons(d *Document) {
	if d.Verdict == nil || len(d.Verdict.Clauses) == 0 {
		return
	}
	p.line("")
	p.results(d.Verdict.Clauses, "")
}

func (p *page) results(results []contract.Result, in string) {
	width := 0
	for _, r := range results {
		width = max(width, columns(gradeText(r.Grade)))
	}
	for _, r := range results {
		grade := gradeText(r.Grade)
		first := in + p.paint(grade, gradePaint(r.Grade)) + strings.Repeat(" ", width-columns(grade)+2)
		p.reason(first, columns(in)+width+2, resultText(r))
		for _, n := range r.Notes {
			p.text(in+strings.Repeat(" ", width+2), "note: "+n, dimPaint)
		}
		p.results(r.Results, in+"  ")
	}
}

// reason is text behind a painted start of known width.
func (p *page) reason(first string, in int, s string) {
	for _, l := range wrap(s, p.width-in) {
		p.line(first + l)
		first = strings.Repeat(" ", in)
	}
}

// resultText names a clause and gives the reason of its grade.
func resultText(r contract.Result) string {
	name := r.ID
	if r.Scope != "" && r.Kind == contract.KindClause {
		name += " (" + r.Scope + ")"
	}
	return name + ": " + r.Reason
}

// verdict is the last word.
func (p *page) verdict(d *Document) {
	if d.Verdict == nil {
		p.text("", d.Reason, noPaint)
		return
	}
	word := strings.ToUpper(d.Grade)
	p.reason(p.paint(word, gradePaint(d.Verdict.Grade))+"  ", columns(word)+2, d.Reason)
}
