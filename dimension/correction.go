package dimension

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/agree"
)

// corrected is the value of a criterion as people would have it.
func corrected(k *judge.Criterion) string { return value(k) + "_corrected" }

// stratum is what corrects the marks of one criterion on some of the cases: a file of
// labels, or of a jury one for each juror.
type stratum struct {
	at    int               // of the criterion
	cases map[string]string // labels of the cases
	files []*calibration    // by juror
}

// strata puts together the files that correct the same marks.
func strata(all []*calibration, jurors int) (out []*stratum, err error) {
	for _, k := range all {
		i := slices.IndexFunc(out, func(s *stratum) bool { return s.at == k.at && maps.Equal(s.cases, k.Cases) })
		if i < 0 {
			i = len(out)
			out = append(out, &stratum{at: k.at, cases: k.Cases, files: make([]*calibration, jurors)})
		}
		if out[i].files[k.juror] != nil {
			return nil, fmt.Errorf("%s and %s calibrate the same judge for %s on the same cases", out[i].files[k.juror].File, k.File, k.criterion.Name)
		}
		out[i].files[k.juror] = k
	}
	for _, s := range out {
		if n := slices.Index(s.files, nil); n >= 0 {
			some := s.files[slices.IndexFunc(s.files, func(k *calibration) bool { return k != nil })]
			return nil, fmt.Errorf("%s calibrates one of the jury for %s, and no file juror %d: the middle mark is corrected by labels with the verdicts of all", some.File, some.criterion.Name, n+1)
		}
	}
	return out, nil
}

// covers reports whether the marks of a trial are corrected by it.
func (s *stratum) covers(t *check.Trial) bool {
	for label, want := range s.cases {
		if t.Shot.Labels[label] != want {
			return false
		}
	}
	return true
}

// marked are the marks of one criterion, of the trials of one stratum.
type marked struct {
	stratum *stratum
	trials  []*check.Trial
	marks   map[*check.Trial]map[int]float64 // by variant
}

// correction is on its way to what people would say of one criterion.
type correction struct {
	p         *check.Pass
	criterion *judge.Criterion
	parts     []marked
	asked     int // trials
	judged    int // of them
	uncovered int // of those judged, that no stratum covers, or several
}

// correct estimates what people would say of the variants, from the judge's marks of
// now and the labels: those of a variant's own answers where there are enough, else
// all, for what the judge's marks mean: labels of another model's answers say nothing
// else of this one's. Of answers of two variants to the same labelled cases it corrects the
// difference, from which errors that the judge makes with both cancel.
func (c *FidelityConfig) correct(p *check.Pass, all []*stratum, asked int, tasks []*task, criteria []judge.Criterion) {
	for _, i := range c.calibrated(criteria) {
		x := correction{p: p, criterion: &criteria[i], asked: asked}
		own := slices.DeleteFunc(slices.Clone(all), func(s *stratum) bool { return s.at != i })
		x.sort(own, tasks, i)
		compares := len(criteria[i].Levels) == 0
		for v := range p.Variants {
			if v == 0 && compares {
				continue
			}
			e := x.estimate(v, len(own) == 0)
			switch {
			case compares: // beyond the half that an equal of the baseline has
				e.Change = record.Difference
				if of := e.Of; of != nil {
					e.Of = func(confidence float64) stat.Estimate {
						return less(of(confidence).Within(0, 1), 0.5)
					}
				}
				p.Estimate(e)
			case v > 0:
				x.differ(v, len(own) == 0)
			}
		}
	}
}

// calibrated lists the criteria that the suite may have labels of.
func (c *FidelityConfig) calibrated(criteria []judge.Criterion) (out []int) {
	for i := range criteria {
		if slices.ContainsFunc(c.files(), func(f Calibration) bool { return f.Criterion == "" || f.Criterion == criteria[i].Name }) {
			out = append(out, i)
		}
	}
	return out
}

// sort puts each trial into its stratum.
func (x *correction) sort(own []*stratum, tasks []*task, criterion int) {
	for _, s := range own {
		x.parts = append(x.parts, marked{stratum: s, marks: make(map[*check.Trial]map[int]float64)})
	}
	home := make(map[*check.Trial]int)
	for _, t := range tasks {
		if t.criterion != criterion {
			continue
		}
		at, seen := home[t.trial]
		if !seen {
			at = -1
			for i, s := range own {
				if !s.covers(t.trial) {
					continue
				}
				if at >= 0 {
					at = -1
					break
				}
				at = i
			}
			home[t.trial] = at
			if x.judged++; at < 0 {
				x.uncovered++
			} else {
				x.parts[at].trials = append(x.parts[at].trials, t.trial)
				x.parts[at].marks[t.trial] = make(map[int]float64)
			}
		}
		if at >= 0 && t.mark.Scored() && !math.IsNaN(t.mark.Score) {
			x.parts[at].marks[t.trial][t.variant] = t.mark.Score
		}
	}
}

// part is the corrected mean of one stratum.
type part struct {
	of       func(confidence float64) stat.Estimate
	cases    int
	labels   int
	clusters map[string]bool
}

// whole makes an estimate of the strata's, or says why there is none.
func (x *correction) whole(none bool, one func(m *marked) (part, string)) (parts []part, missing int, why string) {
	switch {
	case none:
		return nil, 0, "no file of labels is of " + x.criterion.Name
	case x.uncovered > 0:
		return nil, 0, fmt.Sprintf("%d of %d cases belong to no file of labels, or to several", x.uncovered, x.judged)
	}
	missing = x.asked
	for i := range x.parts {
		if len(x.parts[i].trials) == 0 {
			continue
		}
		p, why := one(&x.parts[i])
		if why != "" {
			return nil, 0, why
		}
		parts, missing = append(parts, p), missing-p.cases
	}
	if len(parts) == 0 {
		return nil, 0, "nothing was judged"
	}
	return parts, missing, ""
}

// estimate writes the corrected mean of a variant.
func (x *correction) estimate(v int, none bool) check.Estimate {
	whose, hint := "of its own answers (PPI++)", drawnAlike
	parts, missing, why := x.whole(none, func(m *marked) (part, string) {
		known, own := m.stratum.labelled(x.p, v), true
		if len(known) < leastLabels {
			known, own, whose = m.stratum.labelled(x.p, -1), false, "of other answers, by which its errors are known"
		}
		if len(known) < leastLabels {
			return part{}, fmt.Sprintf("%d cases with a label and a verdict are too few to correct by, it takes %d", len(known), leastLabels)
		}
		mark := func(marks map[int]float64) (float64, bool) { x, ok := marks[v]; return x, ok }
		if own && m.alike(known, mark) {
			return m.part(known, mark, agree.PPI)
		} else if own {
			whose = "of its own answers, which the judge marks otherwise than those of this run, so that only what its marks mean is taken from them"
		}
		hint = "it holds if the judge marks answers of one worth alike, whoever gave them"
		return m.part(known, mark, agree.Calibrate)
	})
	e := check.Estimate{Value: corrected(x.criterion), Variant: v, None: why, Missing: missing}
	if why != "" {
		x.p.Estimate(e)
		x.p.Note("%s: %s", x.criterion.Name, why)
		return e
	}
	e.Of = together(parts)
	x.p.Estimate(e)
	shownAs := e.Of(shown).Within(0, 1)
	x.report(v, "corrected", fmt.Sprintf("people would give it %s on average, by the judge's marks corrected by %d labels %s", interval(shownAs), labels(parts), whose), hint, shownAs)
	return e
}

// differ writes how far people would put a variant above the baseline.
func (x *correction) differ(v int, none bool) {
	e := check.Estimate{Value: corrected(x.criterion), Variant: v, Change: record.Difference}
	parts, missing, why := x.whole(none, func(m *marked) (part, string) {
		base, both := m.stratum.labelled(x.p, 0), make(map[string]known)
		for id, o := range m.stratum.labelled(x.p, v) {
			if b, ok := base[id]; ok {
				both[id] = known{agree.Pair{Human: o.Human - b.Human, Judge: o.Judge - b.Judge}, o.cluster}
			}
		}
		if len(both) < leastLabels {
			return part{}, fmt.Sprintf("%d cases with labels of the answers of both variants are too few to correct the difference by, it takes %d", len(both), leastLabels)
		}
		mark := func(marks map[int]float64) (float64, bool) {
			o, ok := marks[v]
			b, also := marks[0]
			return o - b, ok && also
		}
		if !m.alike(both, mark) {
			return part{}, "the judge sees another difference between the labelled answers than between those of this run, so they are not like these: label answers of both variants as they are now"
		}
		return m.part(both, mark, agree.PPI)
	})
	if e.Missing, e.None = missing, why; why != "" {
		x.p.Estimate(e)
		return
	}
	e.Of = together(parts)
	x.p.Estimate(e)
	shownAs := e.Of(shown).Within(-1, 1)
	x.report(v, "difference", fmt.Sprintf("people would put it %s above the baseline, by the judge's marks corrected by the labels of both answers to %d cases (PPI++ of differences)", interval(shownAs), labels(parts)), drawnAlike, shownAs)
}

const drawnAlike = "it holds if the labelled cases were drawn like those of the set"

func (x *correction) report(v int, code, text, hint string, e stat.Estimate) {
	x.p.Report(check.Finding{
		Severity: check.Info, Code: code, Variant: x.p.Variants[v].Name, Text: x.criterion.Name + ": " + text,
		Hint: hint, Figures: figures(code, e),
	})
}

// alike reports whether the judge's marks of the labelled cases and of this run may be
// of cases drawn alike, which PPI++ needs: a file may speak of an earlier model under the
// same name. It errs in one of twenty, and then for the wider interval.
func (m *marked) alike(labels map[string]known, of func(marks map[int]float64) (float64, bool)) bool {
	var then, now moments
	for _, x := range labels {
		then.add(x.cluster, x.Judge)
	}
	for _, t := range m.trials {
		if mark, ok := of(m.marks[t]); ok {
			now.add(t.Shot.Cluster, mark)
		}
	}
	a, va := then.mean()
	b, vb := now.mean()
	return math.Abs(a-b) <= 1.96*math.Sqrt(va+vb)+1e-9
}

// moments are sums of marks by cluster.
type moments struct {
	n   float64
	sum map[string][2]float64 // and the number of marks
}

func (m *moments) add(cluster string, x float64) {
	if m.sum == nil {
		m.sum = make(map[string][2]float64)
	}
	s := m.sum[cluster]
	m.sum[cluster] = [2]float64{s[0] + x, s[1] + 1}
	m.n++
}

// mean is that of all marks, with its cluster-robust variance (CR1).
func (m *moments) mean() (mean, variance float64) {
	clusters := slices.Sorted(maps.Keys(m.sum)) // floats add up to the same in the same order
	for _, c := range clusters {
		mean += m.sum[c][0] / m.n
	}
	for _, c := range clusters {
		d := m.sum[c][0] - mean*m.sum[c][1]
		variance += d * d
	}
	g := float64(len(clusters))
	return mean, variance * g / max(g-1, 1) / (m.n * m.n)
}

// part corrects what was marked by what is known.
func (m *marked) part(labels map[string]known, of func(marks map[int]float64) (float64, bool), by func([][]agree.Pair, float64) stat.Estimate) (part, string) {
	var all clustered
	for _, id := range slices.Sorted(maps.Keys(labels)) {
		all.add("label "+labels[id].cluster, labels[id].Pair)
	}
	out := part{labels: len(labels), clusters: make(map[string]bool)}
	for _, t := range m.trials {
		if mark, ok := of(m.marks[t]); ok {
			all.add("case "+t.Shot.Cluster, agree.Pair{Human: math.NaN(), Judge: mark})
			out.clusters[t.Shot.Cluster] = true
			out.cases++
		}
	}
	if out.cases == 0 {
		return part{}, "nothing was judged"
	}
	out.of = func(confidence float64) stat.Estimate { return by(all.groups, confidence) }
	return out, ""
}

// together weighs the strata by their cases. Their errors add up as squares, since no
// case and no label is in two of them (MOVER; Zou & Donner, Statist. Med. 27, 2008); where
// a cluster has cases in two, they are added as they are, which no dependence exceeds.
func together(parts []part) func(confidence float64) stat.Estimate {
	if len(parts) == 1 {
		return parts[0].of
	}
	cases, shared, seen := 0, false, make(map[string]bool)
	for _, p := range parts {
		cases += p.cases
		for c := range p.clusters {
			shared = shared || seen[c]
			seen[c] = true
		}
	}
	add := func(a, b float64) float64 {
		if shared {
			return a + b
		}
		return math.Hypot(a, b)
	}
	return func(confidence float64) stat.Estimate {
		sum := stat.Estimate{Confidence: confidence, Method: fmt.Sprintf("corrected by %d calibrations, weighted by their cases", len(parts))}
		below, above := 0.0, 0.0
		for _, p := range parts {
			e, w := p.of(confidence), float64(p.cases)/float64(cases)
			sum.Value += w * e.Value
			sum.N, sum.Effective = sum.N+e.N, sum.Effective+e.Effective
			sum.Warnings = append(sum.Warnings, e.Warnings...)
			below, above = add(below, w*(e.Value-e.Lo)), add(above, w*(e.Hi-e.Value))
		}
		sum.Lo, sum.Hi = sum.Value-below, sum.Value+above
		return sum
	}
}

// less is the estimate of a number less a known one.
func less(e stat.Estimate, x float64) stat.Estimate {
	e.Value, e.Lo, e.Hi = e.Value-x, e.Lo-x, e.Hi-x
	return e
}

func labels(parts []part) (n int) {
	for _, p := range parts {
		n += p.labels
	}
	return n
}

// known is a labelled case with the judge's stored mark.
type known struct {
	agree.Pair
	cluster string
}

// labelled are the cases that a person and the judge marked, by their names: those of
// a variant's answers, or all if it is negative. Of a jury they are those that all
// files have, with the middle mark.
func (s *stratum) labelled(p *check.Pass, variant int) map[string]known {
	out := s.files[0].labelled(p, variant)
	if len(s.files) == 1 {
		return out
	}
	marks := make(map[string][]judge.Mark)
	for _, k := range s.files {
		for id, x := range k.labelled(p, variant) {
			if was, ok := out[id]; ok && was.Human == x.Human {
				marks[id] = append(marks[id], judge.Mark{Verdict: "stored", Score: x.Judge})
			}
		}
	}
	for id, x := range out {
		r := judge.Rule(marks[id]...)
		if len(marks[id]) < len(s.files) || !r.Mark.Scored() {
			delete(out, id)
			continue
		}
		x.Judge = r.Mark.Score
		out[id] = x
	}
	return out
}

// labelled are those of one file. A variant is known in it by its name, or by its
// model where no other has the same.
func (k *calibration) labelled(p *check.Pass, variant int) map[string]known {
	var called []string
	if variant >= 0 {
		called = []string{p.Variants[variant].Name}
		model := p.Variants[variant].Model
		others := slices.ContainsFunc(p.Variants, func(s *check.Subject) bool { return s != p.Variants[variant] && s.Model == model })
		if model != "" && !others {
			called = append(called, model)
		}
	}
	out := make(map[string]known)
	for i := range k.stored {
		o := &k.stored[i]
		x := known{agree.Pair{Human: k.human(o), Judge: k.judged(o)}, o.Cluster}
		if math.IsNaN(x.Human) || math.IsNaN(x.Judge) {
			continue
		}
		id, own := []string{o.Case}, variant < 0
		for _, column := range slices.Sorted(maps.Keys(o.Slices)) {
			if value := o.Slices[column]; slices.Contains(called, value) {
				own = true
			} else {
				id = append(id, column, value)
			}
		}
		if own {
			out[fmt.Sprintf("%q", id)] = x
		}
	}
	return out
}

// clustered are pairs by what may depend on each other.
type clustered struct {
	groups [][]agree.Pair
	at     map[string]int
}

func (c *clustered) add(cluster string, x agree.Pair) {
	if c.at == nil {
		c.at = make(map[string]int)
	}
	i, ok := c.at[cluster]
	if !ok {
		i = len(c.groups)
		c.at[cluster], c.groups = i, append(c.groups, nil)
	}
	c.groups[i] = append(c.groups[i], x)
}
