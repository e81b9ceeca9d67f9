package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// SummarySchema names the version of the JSON form of a Summary.
const SummarySchema = "assay.summary/1"

// Summary sets several runs beside each other, for a matrix of models, precisions
// or engines that were judged one by one. It judges nothing: the runs' verdicts
// stand, and its own grade is the worst of them.
type Summary struct {
	Schema string       `json:"schema"`
	Grade  string       `json:"grade"` // "" if no run was judged
	Runs   []SummaryRun `json:"runs"`
	Rows   []SummaryRow `json:"rows"`
}

// SummaryRun is one column.
type SummaryRun struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Variant  string `json:"variant"` // whose figures are shown: the candidate, or the only one
	Grade    string `json:"grade"`   // "" without a contract
	Reason   string `json:"reason"`
	Baseline string `json:"baseline,omitempty"`
}

// SummaryRow is one quantity on one workload.
type SummaryRow struct {
	Workload string        `json:"workload"`
	Name     string        `json:"name"`
	Scope    string        `json:"scope,omitempty"`
	Unit     record.Unit   `json:"unit"`
	Cells    []SummaryCell `json:"cells"` // in the order of the runs
}

// SummaryCell is what one run has of the quantity.
type SummaryCell struct {
	Figure  *contract.Figure `json:"figure"` // null: the run does not have the row
	Shown   *Shown           `json:"shown,omitempty"`
	Change  *Change          `json:"change,omitempty"` // against the baseline of the same run
	Clauses []Judged         `json:"clauses,omitempty"`
}

// Summarise sets runs beside each other in the order given. Only rows that some
// contract has a clause about are kept, or all of them if none has.
func Summarise(docs []*Document) *Summary {
	s := &Summary{Schema: SummarySchema, Runs: []SummaryRun{}, Rows: []SummaryRow{}}
	var grades []contract.Grade
	for i, d := range docs {
		run := SummaryRun{ID: d.Run.ID, Name: d.Run.Name, Grade: d.Grade, Reason: d.Reason, Baseline: d.Baseline, Variant: d.Candidate}
		if run.Variant == "" && len(d.Variants) > 0 {
			run.Variant = d.Variants[len(d.Variants)-1].Name
		}
		s.Runs = append(s.Runs, run)
		if d.Verdict != nil {
			grades = append(grades, d.Verdict.Grade)
		}
		for k := range d.Workloads {
			for _, row := range d.Workloads[k].Rows {
				s.place(d.Workloads[k].Name, row, run.Variant, i, len(docs))
			}
		}
	}
	if len(grades) > 0 {
		s.Grade = contract.Worst(grades...).String()
		if len(grades) < len(docs) && s.Grade == contract.Pass.String() {
			s.Grade = contract.Inconclusive.String() // a run without a verdict is none
		}
	}
	judged := func(r SummaryRow) bool {
		return slices.ContainsFunc(r.Cells, func(c SummaryCell) bool { return len(c.Clauses) > 0 })
	}
	if slices.ContainsFunc(s.Rows, judged) {
		s.Rows = slices.DeleteFunc(s.Rows, func(r SummaryRow) bool { return !judged(r) })
	}
	slices.SortStableFunc(s.Rows, func(a, b SummaryRow) int { return cmp.Compare(a.Workload, b.Workload) })
	return s
}

// place writes a run's row into its column.
func (s *Summary) place(workload string, row Row, variant string, column, of int) {
	i := slices.IndexFunc(s.Rows, func(r SummaryRow) bool {
		return r.Workload == workload && r.Name == row.Name && r.Scope == row.Scope && r.Unit == row.Unit
	})
	if i < 0 {
		i = len(s.Rows)
		s.Rows = append(s.Rows, SummaryRow{workload, row.Name, row.Scope, row.Unit, make([]SummaryCell, of)})
	}
	for _, c := range row.Cells {
		if c.Variant == variant {
			s.Rows[i].Cells[column] = SummaryCell{&c.Figure, &c.Shown, row.Change, row.Clauses}
		}
	}
}

// SummaryJSON writes the summary as one object on one line.
func SummaryJSON(w io.Writer, s *Summary) error { return writeJSON(w, s) }

// SummaryText writes one table for a terminal, a column a run.
func SummaryText(w io.Writer, s *Summary, o TextOptions) error {
	p := newPage(w, o)
	head, grades := []string{""}, []string{"grade"}
	for _, r := range s.Runs {
		head = append(head, s.column(r))
		grades = append(grades, strings.ToUpper(orElse(r.Grade, "not judged")))
	}
	g := &grid{}
	g.add(texts(head...))
	g.add(texts(grades...))
	for _, row := range s.Rows {
		cells := []cell{{first: row.title()}}
		for _, c := range row.Cells {
			cells = append(cells, c.cell())
		}
		g.add(cells)
	}
	g.write(p)
	p.line("")
	for _, r := range s.Runs {
		p.text("", orElse(r.Name, r.ID)+", "+r.Variant+" of "+r.ID+": "+r.Reason, noPaint)
	}
	if s.Grade != "" {
		p.text("", strings.ToUpper(s.Grade)+": the worst of the runs", boldPaint)
	}
	return p.w.Flush()
}

// column heads a run's column: its name, or its ID where names do not tell the runs apart.
func (s *Summary) column(r SummaryRun) string {
	namesakes := slices.ContainsFunc(s.Runs, func(o SummaryRun) bool { return o.ID != r.ID && o.Name == r.Name })
	if r.Name == "" || namesakes {
		return r.ID
	}
	return r.Name
}

func (r SummaryRow) title() string { return r.Workload + ": " + r.Name } // the name has the scope

func (c SummaryCell) cell() cell {
	if c.Figure == nil {
		return cell{first: missing, paint: dimPaint}
	}
	x := figureCell(Shown{Value: c.Shown.Value, Interval: c.Shown.Interval})
	for _, j := range c.Clauses {
		if j.Grade != contract.Pass {
			x.paint = gradePaint(j.Grade)
		}
	}
	return x
}

// SummaryMarkdown writes one table, a column a run, for a pull request.
func SummaryMarkdown(w io.Writer, s *Summary) error {
	b := bufio.NewWriter(w)
	line := func(format string, a ...any) { _, _ = fmt.Fprintf(b, format+"\n", a...) }
	if s.Grade != "" {
		line("## %s: %d runs\n", strings.ToUpper(s.Grade), len(s.Runs))
	} else {
		line("## %d runs\n", len(s.Runs))
	}
	head, grades := []string{""}, []string{"grade"}
	for _, r := range s.Runs {
		head = append(head, escape(s.column(r)))
		grades = append(grades, summaryGrade(r.Grade))
	}
	line("| %s |", strings.Join(head, " | "))
	line("|%s", strings.Repeat(" --- |", len(head)))
	line("| %s |", strings.Join(grades, " | "))
	for _, row := range s.Rows {
		cells := []string{escape(row.title())}
		for _, c := range row.Cells {
			cells = append(cells, summaryCell(c))
		}
		line("| %s |", strings.Join(cells, " | "))
	}
	line("")
	for _, r := range s.Runs {
		line("- %s, %s of %s: %s", escape(orElse(r.Name, r.ID)), escape(r.Variant), escape(r.ID), escape(r.Reason))
	}
	line("\nIntervals at 95 %%, two-sided; in brackets behind a figure its change against the baseline of the same run. Figures of different runs were not measured side by side: compare two of them with “assay compare”.")
	return b.Flush()
}

func summaryGrade(grade string) string {
	switch grade {
	case "":
		return "not judged"
	case contract.Pass.String():
		return grade
	}
	return "**" + strings.ToUpper(grade) + "**"
}

func summaryCell(c SummaryCell) string {
	if c.Figure == nil {
		return missing
	}
	text := figureText(Shown{Value: c.Shown.Value, Interval: c.Shown.Interval})
	if c.Change != nil {
		text += " (" + figureText(Shown{Value: c.Change.Shown.Value, Interval: c.Change.Shown.Interval}) + ")"
	}
	for _, j := range c.Clauses {
		if j.Grade != contract.Pass {
			text += " " + markdownGrade(j.Grade)
		}
	}
	return text
}
