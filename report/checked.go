package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// Checked is what became of a check, beside the figures of its values.
type Checked struct {
	Why        string             `json:"why,omitempty"` // why it proves nothing; "": it ran
	Findings   []check.Finding    `json:"findings,omitempty"`
	Figures    []check.Figure     `json:"figures,omitempty"`
	Notes      []string           `json:"notes,omitempty"`
	Signatures []record.Signature `json:"signatures,omitempty"`
	Cost       check.Cost         `json:"cost"`
	Lines      []string           `json:"lines"` // what renderers print below the figures
}

// declared is what the figures of checks are read by.
func declared(outcomes []*check.Outcome) (out []contract.Checked) {
	for _, o := range outcomes {
		c := contract.Checked{Name: o.Check, Signatures: o.Signatures, Estimates: o.Estimates, Why: o.Why}
		for _, v := range o.Values {
			c.Metrics = append(c.Metrics, v.Metric(o.Check))
		}
		out = append(out, c)
	}
	return out
}

func (b *builder) outcome(name string) *check.Outcome {
	if i := slices.IndexFunc(b.outcomes, func(o *check.Outcome) bool { return o.Check == name }); i >= 0 {
		return b.outcomes[i]
	}
	return nil
}

// metric finds a metric of the catalogue, or the value of a check.
func (b *builder) metric(name string) record.Metric {
	if m, ok := record.Find(name); ok {
		return m
	}
	for _, c := range b.checks {
		if i := slices.IndexFunc(c.Metrics, func(m record.Metric) bool { return m.Name == name }); i >= 0 {
			return c.Metrics[i]
		}
	}
	return record.Metric{}
}

// checked measures the values of a check, each as a row with the change on the same
// cases, and what else a clause asks of it.
func (b *builder) checked(o *check.Outcome) Workload {
	w := Workload{WorkloadInfo: record.WorkloadInfo{Name: o.Check, Planned: -1}, Counts: b.counts(o.Check), Rows: []Row{}, Curves: []Curve{}}
	var clauses []contract.Result
	if b.doc.Verdict != nil {
		clauses = slices.DeleteFunc(leaves(b.doc.Verdict.Clauses), func(r contract.Result) bool { return r.Workload != o.Check })
	}
	var quantities []contract.Quantity
	for _, v := range o.Values {
		q := contract.Quantity{Stat: "mean", Metric: o.Check + "." + v.Name}
		switch {
		case v.Whole:
			q.Stat = "estimate"
		case v.YesNo:
			q.Stat = "share"
		}
		quantities = append(quantities, q)
	}
	for _, c := range clauses {
		if c.Scope == c.Workload && !slices.Contains(quantities, *c.Quantity) {
			quantities = append(quantities, *c.Quantity)
		}
	}
	for _, q := range quantities {
		about := slices.DeleteFunc(slices.Clone(clauses), func(r contract.Result) bool { return *r.Quantity != q || r.Scope != r.Workload })
		row, why := b.row(o.Check, q, about)
		if why != "" {
			w.Marks = b.notes.add(w.Marks, "not shown: "+row.Name+": "+why)
			continue
		}
		b.paired(&row)
		w.Rows = append(w.Rows, row)
	}
	for _, c := range clauses {
		if c.Scope != c.Workload {
			w.Rows = append(w.Rows, b.scoped(c))
		}
	}
	w.Check = &Checked{Why: o.Why, Findings: o.Findings, Figures: o.Figures, Notes: o.Notes, Signatures: o.Signatures, Cost: o.Cost}
	w.Check.Lines = w.Check.lines(o.Check)
	return w
}

// paired puts the change on the same cases in the place of that of two independent
// figures.
func (b *builder) paired(row *Row) {
	statistic := row.Quantity.Stat
	if row.Change == nil || statistic != "share" && statistic != "mean" && statistic != "estimate" {
		return
	}
	e := contract.Evidence{Records: b.records, Checks: b.checks}
	est, is, err := contract.CompareChecked(e, row.Quantity.Metric, b.doc.Candidate, b.doc.Baseline, confidence)
	if err != nil {
		return
	}
	c := &Change{Is: is, Figure: contract.Figure{Estimate: est}}
	b.notes.shown(c, row.Unit, statistic)
	for _, warning := range est.Warnings {
		if warning.Code == "gap" || warning.Code == "note" {
			c.Shown.Marks = b.notes.add(c.Shown.Marks, warning.Text)
		}
	}
	row.Change = c
}

// signatureLines say how numbers came about: first what those of a check have in common
// (data, judge, cluster, counts), then how each is computed. Values that differ in
// what others have in common get a line of their own.
func signatureLines(check string, signatures []record.Signature) (lines []string) {
	var order []string
	values := make(map[string][]string)
	for _, s := range signatures {
		common := signatureText(s)
		if _, ok := values[common]; !ok {
			order = append(order, common)
		}
		name := strings.TrimPrefix(s.Value, check+".")
		if s.Estimator != "" {
			name += " by " + s.Estimator
		}
		values[common] = append(values[common], name)
	}
	for _, common := range order {
		lines = append(lines, fmt.Sprintf("signature: %s: %s", common, strings.Join(values[common], "; ")))
	}
	return lines
}

// signatureText is what values of a check may have in common.
func signatureText(s record.Signature) string {
	var parts []string
	add := func(what, text string) {
		if text != "" {
			parts = append(parts, what+text)
		}
	}
	if len(s.Data) > 12 {
		s.Data = s.Data[:12] + "…"
	}
	add("data ", s.Data)
	add("judge ", s.Judge)
	add("clustered by ", s.Cluster)
	return strings.Join(append(parts, fmt.Sprintf("n %d", s.N), fmt.Sprintf("missing %d", s.Missing)), ", ")
}

// lines are what a check has to say beside its figures.
func (c *Checked) lines(check string) []string {
	out := []string{}
	if c.Why != "" {
		out = append(out, "proves nothing: "+c.Why)
	}
	for _, f := range c.Findings {
		s := string(f.Severity) + ": "
		if f.Variant != "" {
			s += f.Variant + ": "
		}
		if s += f.Text; f.Case != "" {
			s += " (case " + f.Case + ")"
		}
		if f.Hint != "" {
			s += "; " + f.Hint
		}
		out = append(out, s)
	}
	for _, n := range c.Notes {
		out = append(out, "note: "+n)
	}
	out = append(out, signatureLines(check, c.Signatures)...)
	return append(out, costText(c.Cost))
}

// costText says what a check cost.
func costText(c check.Cost) string {
	s := fmt.Sprintf("cost: %s requests, %s tokens", fixed(float64(c.Requests), 0), fixed(float64(c.Tokens()), 0))
	if c.Money > 0 {
		s += fmt.Sprintf(", %.4g in the currency of the prices", c.Money)
	}
	if c.Unpriced > 0 && c.Money > 0 {
		s += fmt.Sprintf(" and %s tokens without a price", fixed(float64(c.Unpriced), 0))
	}
	if c.Failed > 0 {
		s += fmt.Sprintf(", %s failed", fixed(float64(c.Failed), 0))
	}
	if c.Reused > 0 {
		s += fmt.Sprintf(", %s answered before", fixed(float64(c.Reused), 0))
	}
	return s + ", " + c.Time.Round(time.Second/10).String()
}

// foreseenNotes say what the checks were expected to take, and what they took.
func foreseenNotes(m *record.Manifest) []string {
	f := m.Foreseen
	if f == nil || f.Time == 0 || f.Took == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the checks were announced with %s requests, about %s tokens and, after a sample of %s, %s ± %s; they then took %s (%+.0f %%)",
		fixed(float64(f.Requests), 0), fixed(float64(f.PromptTokens+f.OutputTokens), 0), fixed(float64(f.Sampled), 0), about(f.Time), about(f.Spread), about(f.Took), 100*(f.Took.Seconds()/f.Time.Seconds()-1))}
}
