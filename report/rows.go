package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// shown are the quantities that every report has, in their order.
var shown = []contract.Quantity{
	{Stat: "quantile", P: .5, Metric: "ttft"},
	{Stat: "quantile", P: .95, Metric: "ttft"},
	{Stat: "quantile", P: .99, Metric: "ttft"},
	{Stat: "mean", Metric: "cached"},
	{Stat: "quantile", P: .5, Metric: "tpot"},
	{Stat: "quantile", P: .95, Metric: "tpot"},
	{Stat: "mean", Metric: "tpot"},
	{Stat: "quantile", P: .99, Metric: "itl"},
	{Stat: "quantile", P: .5, Metric: "e2e"},
	{Stat: "quantile", P: .99, Metric: "e2e"},
	{Stat: "quantile", P: .99, Metric: "lag"},
	{Stat: "share", Metric: "failed"},
	{Stat: "rate", Metric: "output_tokens"},
	{Stat: "rate", Metric: "requests"},
	{Stat: "mean", Metric: "prompt_length"},
	{Stat: "mean", Metric: "output_length"},
}

// leaves returns the results that judge one comparison, groups opened.
func leaves(results []contract.Result) (out []contract.Result) {
	for _, r := range results {
		if r.Quantity != nil && len(r.Results) == 0 {
			out = append(out, r)
		}
		out = append(out, leaves(r.Results)...)
	}
	return out
}

// workload measures the rows of one workload.
func (b *builder) workload(info record.WorkloadInfo) Workload {
	if math.IsNaN(info.Rate) || math.IsInf(info.Rate, 0) {
		info.Rate = 0
	}
	w := Workload{WorkloadInfo: info, Counts: b.counts(info.Name)}
	var clauses []contract.Result
	if b.doc.Verdict != nil {
		clauses = slices.DeleteFunc(leaves(b.doc.Verdict.Clauses), func(r contract.Result) bool { return r.Workload != info.Name })
	}
	quantities := slices.Clone(shown)
	for _, c := range clauses {
		if c.Scope == c.Workload && !ofEngine(c) && !slices.Contains(quantities, *c.Quantity) {
			quantities = append(quantities, *c.Quantity)
		}
	}
	absent := map[string][]string{}
	var whys []string
	for _, q := range quantities {
		about := slices.DeleteFunc(slices.Clone(clauses), func(r contract.Result) bool { return *r.Quantity != q || r.Scope != r.Workload })
		row, why := b.row(info.Name, q, about)
		if why != "" {
			if absent[why] == nil {
				whys = append(whys, why)
			}
			absent[why] = append(absent[why], row.Name)
			continue
		}
		w.Rows = append(w.Rows, row)
	}
	for _, why := range whys {
		w.Marks = b.notes.add(w.Marks, "not shown: "+strings.Join(absent[why], ", ")+": "+why)
	}
	var held []string
	for _, v := range b.doc.Variants {
		if b.held(info.Name, v.Name) {
			held = append(held, v.Name)
		}
	}
	if len(held) > 0 {
		w.Marks = b.notes.add(w.Marks, "the streams of "+listed(held)+" arrive in pieces, as behind a buffering proxy that holds them back: their first token is late for it, and TPOT and ITL are not the engine's")
	}
	for _, v := range b.doc.Variants {
		if why := b.unasked(info.Name, v.Name); why != "" {
			w.Marks = b.notes.add(w.Marks, why)
		}
	}
	for _, c := range clauses {
		if c.Scope != c.Workload || ofEngine(c) {
			w.Rows = append(w.Rows, b.scoped(c))
		}
	}
	w.Curves = b.curves(info.Name)
	w.Arrivals = b.arrivals(info)
	w.Steady = b.steady(info)
	return w
}

// held reports whether the streams of a variant were held back on their way.
func (b *builder) held(workload, variant string) bool {
	var streams []*record.Record
	for i := range b.records {
		if r := &b.records[i]; r.Phase == record.Measured && r.Workload == workload && r.Variant == variant {
			streams = append(streams, r)
		}
	}
	return record.HeldBack(streams)
}

// unasked says how many planned turns of sessions a variant was not asked, and
// why; "" if none.
func (b *builder) unasked(workload, variant string) string {
	var u record.Unasked
	for _, w := range b.windows {
		if w.Workload == workload && w.Variant == variant && w.Unasked != nil {
			u.NoAnswer += w.Unasked.NoAnswer
			u.Context += w.Unasked.Context
			u.Over += w.Unasked.Over
		}
	}
	var parts []string
	for _, p := range []struct {
		n   int64
		why string
	}{
		{u.NoAnswer, "after a turn without an answer to go on with"},
		{u.Context, "since the dialogue would have outgrown its limit of tokens"},
		{u.Over, "since the time to ask was over"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.why))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: planned turns of sessions that were not asked: %s", variant, strings.Join(parts, ", "))
}

// counts is the ledger of measured requests in the order of the variants.
func (b *builder) counts(workload string) []contract.Counts {
	out := make([]contract.Counts, len(b.doc.Variants))
	index := make(map[string]int, len(out))
	for i, v := range b.doc.Variants {
		out[i].Variant, index[v.Name] = v.Name, i
	}
	for i := range b.records {
		r := &b.records[i]
		if r.Phase != record.Measured || r.Workload != workload {
			continue
		}
		i, ok := index[r.Variant]
		if !ok {
			continue
		}
		c := &out[i]
		c.Offered++
		switch g := r.Outcome.Group(); {
		case r.Outcome == record.ClientCancelled:
			c.Cancelled++
		case g == record.GroupDropped:
			c.Dropped++
		case g == record.GroupCompleted:
			c.Completed++
		default:
			c.Failed++
		}
	}
	return out
}

// row measures a quantity on every variant. why says that nothing measured it
// at all; a row that a clause is about is shown even so.
func (b *builder) row(workload string, q contract.Quantity, clauses []contract.Result) (row Row, why string) {
	m := b.metric(q.Metric)
	row = Row{Name: titled(q, m), Doc: m.Doc, Quantity: q}
	measured := false
	for _, v := range b.doc.Variants {
		est, unit := b.measure(q, v.Name, workload)
		if unit != "" {
			row.Unit = unit
		}
		measured = measured || est.Defined()
		row.Cells = append(row.Cells, Cell{Variant: v.Name, Figure: contract.Figure{Estimate: est}})
	}
	if !measured && len(clauses) == 0 {
		if len(row.Cells) == 0 {
			return row, "no variant was measured"
		}
		return row, absence(row.Cells)
	}
	b.print(&row)
	for _, c := range clauses {
		row.Clauses = append(row.Clauses, Judged{ID: c.ID, Need: needText(c), Grade: c.Grade})
	}
	return row, ""
}

// measure estimates a quantity. A rate or a count of what the server does not
// tell adds up to 0, but it is missing.
func (b *builder) measure(q contract.Quantity, variant, workload string) (stat.Estimate, record.Unit) {
	e := contract.Evidence{Records: b.records, Windows: b.windows, Baseline: b.doc.Baseline, Candidate: b.doc.Candidate, Checks: b.checks}
	est, unit, err := contract.Measure(e, q, variant, workload, nil, confidence)
	if err != nil {
		return nothing(err.Error()), unit
	}
	if (q.Stat == "rate" || q.Stat == "count") && est.Value == 0 && b.untold(q.Metric, variant, workload) {
		return nothing("the server tells no token counts"), unit
	}
	return est, unit
}

// untold reports whether the amount is one of tokens, and answers that had some
// do not say how many.
func (b *builder) untold(metric, variant, workload string) bool {
	m, ok := record.Find(metric)
	if !ok || m.Unit != record.TokenUnit || m.Amount == nil {
		return false
	}
	return slices.ContainsFunc(b.records, func(r record.Record) bool {
		told := r.Variant != variant || r.Workload != workload || r.Phase != record.Measured || r.First() == nil
		if !told {
			m.Amount(&r, func(record.Instant, float64) { told = true })
		}
		return !told
	})
}

// nothing is the estimate of what cannot be measured.
func nothing(why string) stat.Estimate {
	return stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, Warnings: []stat.Warning{{Code: stat.CodeUndefined, Text: why}}}
}

// absence says why no variant has a value.
func absence(cells []Cell) string {
	var whys []string
	for _, c := range cells {
		if why := undefinedText(c.Figure.Estimate); !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
	}
	return strings.Join(whys, "; ")
}

func undefinedText(e stat.Estimate) string {
	for _, code := range []string{"gap", stat.CodeUndefined} {
		for _, w := range e.Warnings {
			if w.Code == code && w.Text != "" {
				return w.Text
			}
		}
	}
	return "nothing was measured"
}

// print fills in the change and what every renderer shows of the row.
func (b *builder) print(row *Row) {
	var values []float64
	for _, c := range row.Cells {
		values = append(values, c.Figure.Value)
	}
	if !slices.ContainsFunc(values, func(v float64) bool { return v-v == 0 }) {
		for _, c := range row.Cells {
			values = append(values, c.Figure.Lo)
		}
	}
	s := scaleOf(row.Unit, values...)
	var base, cand *Cell
	for i := range row.Cells {
		c := &row.Cells[i]
		c.Shown.Value, c.Shown.Interval = s.figure(c.Figure.Estimate)
		c.Shown.Marks = b.notes.figure(c.Figure.Estimate)
		switch c.Variant {
		case b.doc.Baseline:
			base = c
		case b.doc.Candidate:
			cand = c
		}
	}
	if base == nil || cand == nil || b.doc.Baseline == "" {
		return
	}
	row.Change = b.notes.change(row.Unit, row.Quantity.Stat, cand.Figure.Estimate, base.Figure.Estimate)
}

// change compares two figures: shares and a check's points by their difference,
// everything else by its ratio.
func (f *footnotes) change(u record.Unit, statistic string, candidate, baseline stat.Estimate) *Change {
	c := &Change{Is: contract.ChangeRatio}
	if u == record.Proportion || u == record.Points {
		c.Is = contract.ChangeDifference
		c.Figure.Estimate = stat.Difference(candidate, baseline)
	} else {
		c.Figure.Estimate = stat.Ratio(candidate, baseline)
	}
	f.shown(c, u, statistic)
	return c
}

// shown prints a change, and says why when it has no interval.
func (f *footnotes) shown(c *Change, u record.Unit, statistic string) {
	est := c.Figure.Estimate
	c.Shown.Value, c.Shown.Interval = changeText(c.Is, u, est)
	switch {
	case !est.Defined():
		c.Shown.Marks = f.add(nil, "no change: "+changeless(est))
	case statistic == "max" || statistic == "min" || statistic == "count":
		c.Shown.Interval = ""
		c.Shown.Marks = f.add(nil, exactNote)
	case !est.Estimable():
		c.Shown.Marks = f.add(nil, "a change has no more bounds than the two figures that it compares")
	}
}

// changeless says why there is no change: the last of its warnings to say so is
// its own, those before come from the figures that it compares.
func changeless(e stat.Estimate) string {
	why := "one of the two figures has no value"
	for _, w := range e.Warnings {
		if w.Code == stat.CodeUndefined && w.Text != "" {
			why = w.Text
		}
	}
	return why
}

const exactNote = "a fact of this run; no interval, because it says nothing about the next one"

// figure returns the marks of what a reader must know of the figure.
func (f *footnotes) figure(e stat.Estimate) (marks []int) {
	switch {
	case math.IsNaN(e.Value):
		return f.add(nil, undefinedText(e))
	case exact(e):
		marks = f.add(marks, exactNote)
	case math.IsInf(e.Value, 1):
		marks = f.add(marks, fmt.Sprintf("∞: %s of %s failed, and a failed request counts as slower than any other", fixed(float64(e.Over), 0), fixed(float64(e.N), 0)))
	case math.IsInf(e.Value, -1):
		marks = f.add(marks, "−∞: a failed request counts as lower than any other")
	}
	for _, w := range e.Warnings {
		switch w.Code {
		case "gap", "note", stat.CodeConstant:
		case stat.CodeFew, stat.CodeOver, stat.CodeFewBatches, stat.CodeUnbounded:
			if e.Estimable() || math.IsInf(e.Value, 0) && w.Code != stat.CodeFew {
				continue
			}
		default:
			continue
		}
		marks = f.add(marks, general(w))
	}
	if len(marks) == 0 && !e.Estimable() {
		marks = f.add(marks, "a bound is missing: "+fallback(e))
	}
	return marks
}

// general is the text of a warning without what is special to one figure (the
// page and the JSON have that), so that like figures share a footnote.
func general(w stat.Warning) string {
	if need, _, cut := strings.Cut(w.Text, " (effective; "); cut && w.Code == stat.CodeFew {
		return need + " independent observations"
	}
	if w.Code == stat.CodeOver {
		return "∞ as a bound: it lies among the failed requests, which count as slower than any other"
	}
	return w.Text
}

// fallback is the first warning, whatever it is.
func fallback(e stat.Estimate) string {
	for _, w := range e.Warnings {
		if w.Text != "" {
			return w.Text
		}
	}
	return "the data give none"
}

// needText writes the limit of a clause as a table shows it: "≤ 800 ms",
// "≤ +5 %".
func needText(r contract.Result) string {
	sign := strings.NewReplacer("<=", "≤", ">=", "≥").Replace(string(r.Compare))
	if r.Limit == nil {
		return r.Need
	}
	switch {
	case r.Limit.Change != nil:
		v := *r.Limit.Change
		c := changeScale(r.ChangeIs, r.Unit, stat.Estimate{Value: v, Lo: v, Hi: v})
		x := (v - c.zero) * c.by
		t := plain(x, 6)
		if x > 0 {
			t = "+" + t
		}
		return sign + " " + t + c.unit
	case strings.Contains(r.Limit.Text, "baseline"):
		return sign + " " + r.Limit.Text
	case r.Limit.Value != nil:
		return sign + " " + scaleOf(r.Unit, *r.Limit.Value).exactly(*r.Limit.Value)
	}
	return sign + " " + r.Limit.Text
}

// ofEngine reports whether the clause is about what an engine told of itself, which the
// records do not have.
func ofEngine(c contract.Result) bool { return strings.HasPrefix(c.Quantity.Metric, "engine.") }

// scoped is the row of a clause about some of a workload's requests, or about an
// engine. It shows the clause's own figures, since only the clause knows what they are of.
func (b *builder) scoped(c contract.Result) Row {
	m := b.metric(c.Quantity.Metric)
	scope := strings.TrimPrefix(c.Scope, c.Workload+", ")
	name := titled(*c.Quantity, m) + " (" + scope + ")"
	if ofEngine(c) {
		name, scope = title(*c.Quantity), ""
	}
	row := Row{
		Name: name, Scope: scope, Doc: m.Doc,
		Quantity: *c.Quantity, Unit: c.Unit, Clauses: []Judged{{ID: c.ID, Need: needText(c), Grade: c.Grade}},
	}
	for _, v := range b.doc.Variants {
		figure := contract.Figure{Estimate: nothing("not judged for this variant")}
		switch {
		case v.Name == b.doc.Candidate && c.Candidate != nil:
			figure = *c.Candidate
		case v.Name == b.doc.Baseline && c.Baseline != nil:
			figure = *c.Baseline
		}
		row.Cells = append(row.Cells, Cell{Variant: v.Name, Figure: figure})
	}
	b.print(&row)
	for i := range row.Cells {
		cell := &row.Cells[i]
		if conf := cell.Figure.Confidence; cell.Figure.Defined() && conf > 0 && conf != confidence {
			cell.Shown.Marks = b.notes.add(cell.Shown.Marks, fmt.Sprintf("interval at %s %%, as the clause is judged", plain(conf*100, 4)))
		}
	}
	return row
}
