package contract

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// Tradeoff is the evidence of a joint clause on one workload.
//
// The utility of a variant is the weighted geometric mean of how good it is in
// each objective, from 0 at the worst end of its scale to 1 at the best; of an
// objective without a scale the value itself counts, or its inverse where lower is
// better. The candidate passes if every veto passes and the bound of its utility,
// as a ratio to the baseline's, shows that it lost no more than the margin.
//
// A candidate that is worse than the baseline in every objective by more than the
// margin has lost more than that under any weights, so it never passes by its
// weights. The front and the probabilities of being dominated are told beside the
// grade, for all variants of the run.
type Tradeoff struct {
	Weighting  string          `json:"weighting"`  // aggressive, balanced, conservative, seed-v1 or own
	Margin     float64         `json:"margin"`     // share of the baseline's utility that may be lost
	Utility    *Figure         `json:"utility"`    // candidate / baseline; null: unknown
	Dominated  bool            `json:"dominated"`  // shown worse than the baseline in every objective, by more than the margin
	Objectives []ObjectiveSide `json:"objectives"` // in the contract's order
	Points     []Point         `json:"points"`     // one a variant; the baseline first, then the candidate
}

// ObjectiveSide is one objective with its weight.
type ObjectiveSide struct {
	Quantity Quantity    `json:"quantity"`
	Better   string      `json:"better"` // lower or higher
	Unit     record.Unit `json:"unit,omitempty"`
	Worst    *float64    `json:"worst,omitempty"`
	Best     *float64    `json:"best,omitempty"`
	Weight   float64     `json:"weight"`            // of a sum of 1
	Formula  *float64    `json:"formula,omitempty"` // what seed-v1 gave before it was scaled to that sum
	Ratio    *Figure     `json:"ratio"`             // of the utilities in this objective alone, candidate / baseline; null: unknown
}

// Point is a variant in the plane of the objectives.
type Point struct {
	Variant   string   `json:"variant"`
	Figures   []Figure `json:"figures"` // in the order of the objectives; two-sided, both ends at the clause's confidence
	Front     bool     `json:"front"`   // no other variant is as good in every objective and better in one, by the values
	By        []string `json:"dominated_by,omitempty"`
	Dominated *float64 `json:"dominated"` // probability, given the intervals, that another is better in every objective; null: unknown
}

// joint judges a joint clause on one workload.
func (j *judge) joint(c Clause, t terms, workload string) Result {
	inner := t
	inner.on, inner.within, inner.by, inner.inGroup = nil, workload, "", true
	look, whole := j.interim(workload), t.confidence
	t.confidence = look.confidence(whole)
	r := Result{Kind: KindJoint, Scope: scopeText(workload, t.where), Workload: workload, Confidence: t.confidence, Look: look.orNil()}
	var grades []Grade
	for _, v := range c.Joint.Vetoes {
		res := j.clause(v, inner)
		r.Results, grades = append(r.Results, res), append(grades, res.Grade)
	}
	w := weighing{j: j, joint: c.Joint, terms: t, workload: workload}
	grade, why := w.judge()
	r.Joint, r.Notes = w.evidence(), append(r.Notes, w.notes...)
	r.Grade, r.Reason = Worst(append(grades, grade)...), why
	if veto := Worst(append(grades, Pass)...); veto != Pass && r.Grade == veto {
		r.Reason = "veto: " + worstReason(r.Results, veto)
	}
	if decisive(whole) { // over all looks
		wrong := math.Round((1-whole)*1e12) / 1e12
		r.WrongPass, r.WrongFail = unionBound(append(slices.Clone(r.Results), Result{WrongPass: wrong, WrongFail: wrong}), len(r.Results)+1)
	}
	return r
}

// weighing is a joint clause on one workload, on its way to a grade.
type weighing struct {
	j        *judge
	joint    *Joint
	terms    terms
	workload string
	trials   []*trial
	weights  []float64 // nil: none that decide
	formula  []float64 // of seed-v1
	utility  stat.Estimate
	worse    bool // in every objective, beyond the margin
	notes    []string
}

// judge measures, then decides. What is missing in one objective is missing in all.
func (w *weighing) judge() (Grade, string) {
	w.utility = none("not judged", twoSided(w.terms.confidence)).est
	if len(w.joint.Objectives) < leastObjectives {
		return Inconclusive, "it demands nothing that can be judged"
	}
	var missing, doubt string
	for i := range w.joint.Objectives {
		x, gap, why := w.measure(&w.joint.Objectives[i])
		w.trials = append(w.trials, x)
		missing, doubt = cmp.Or(missing, gap), cmp.Or(doubt, why)
	}
	if missing != "" {
		return Inconclusive, missing
	}
	if w.weights = w.joint.weights(); w.joint.Weights == seedWeights {
		if why := w.seed(); why != "" {
			return Inconclusive, why
		}
	}
	return w.decide(doubt)
}

// measure estimates one objective of both variants, as a comparison with the
// baseline does. The gap says why there is no figure, the doubt why a pass would
// prove nothing.
func (w *weighing) measure(o *Objective) (x *trial, gap, doubt string) {
	x = &trial{clause: Clause{Need: o.need}, terms: w.terms, Result: Result{
		Workload: w.place(o), Compare: o.need.Compare, Quantity: &o.need.Quantity, Limit: &Bound{}, Confidence: w.terms.confidence,
	}}
	_, why := x.judge(w.j)
	switch {
	case x.Change == nil: // it did not come so far
		return x, fmt.Sprintf("%s: %s", o.Of, why), ""
	case x.metric.Whole && cmp.Or(x.c.gap, x.b.gap) != "":
		return x, fmt.Sprintf("%s: %s", o.Of, cmp.Or(x.c.gap, x.b.gap)), ""
	case !x.c.est.Defined() || !x.b.est.Defined():
		return x, fmt.Sprintf("%s has no value", o.Of), ""
	}
	if !x.c.est.Estimable() || !x.b.est.Estimable() {
		if few := x.unbounded(); few != "" {
			return x, fmt.Sprintf("%s: %s", o.Of, few), ""
		}
	}
	if why := cmp.Or(x.noService(), x.wreckedBaseline()); why != "" {
		doubt = fmt.Sprintf("%s: %s", o.Of, why)
	}
	return x, "", doubt
}

// place is the workload that an objective is of: that of the clause, or the check that
// writes its values.
func (w *weighing) place(o *Objective) string {
	if m, _ := find(o.Of.Metric, w.j.own...); m.Check != "" {
		return m.Check
	}
	return w.workload
}

// wreckedBaseline says that too much of the baseline failed for a yardstick.
func (x *trial) wreckedBaseline() string {
	most := maxFailed
	if x.metric.Indicator {
		most = wreck
	}
	if c := x.base.counts; float64(c.Failed) > most*float64(c.judged()) {
		return fmt.Sprintf("%d of %s of the baseline failed: it is no yardstick", c.Failed, count(c.judged(), "request"))
	}
	return ""
}

// seed takes the weights that the formula gives for the baseline's values.
func (w *weighing) seed() string {
	if why := w.joint.seedless(); why != "" {
		return why
	}
	var values []float64
	for _, x := range w.trials {
		values = append(values, x.b.est.Value)
	}
	w.formula = w.joint.seeded(values)
	w.weights = normalised(w.formula)
	for i, f := range w.formula {
		if !(f >= 0) {
			w.weights = nil
			return fmt.Sprintf("seed-v1 gives %s the weight %s, with which worse would count as better", w.joint.Objectives[i].Of, significant(f, 3))
		}
	}
	if w.weights == nil {
		return "the weights of seed-v1 do not add up to more than 0"
	}
	w.notes = append(w.notes, "seed-v1 is kept to compare with: it counts a rate below 100 tokens/s as 100, and its weights depend on what is measured; a profile has no such faults")
	return ""
}

// decide holds the utility against the margin.
func (w *weighing) decide(doubt string) (Grade, string) {
	limit := 1 - w.joint.margin()
	w.utility = w.ratio(func(x *trial) stat.Estimate { return x.b.est })
	w.worse = w.dominated(limit)
	if !w.utility.Defined() {
		return Inconclusive, "there is no ratio of utilities: the baseline is at the worst end of a scale; write a wider one"
	}
	grade := decide(">=", w.utility, limit)
	if grade == Pass && doubt == "" {
		doubt = w.adverse(limit)
	}
	said := fmt.Sprintf("utility under %s is %s (margin %s): at %s confidence ", w.joint.title(), change{kind: ChangeRatio, from: "baseline"}.place(w.utility.Value), trim(100*w.joint.margin(), 4)+" %", percentage(w.terms.confidence))
	c := change{kind: ChangeRatio}
	switch {
	case grade == Pass && doubt != "":
		return Inconclusive, doubt
	case grade == Pass:
		return grade, said + "at least " + c.signed(w.utility.Lo)
	case grade == Fail && w.worse:
		return grade, said + "at most " + c.signed(w.utility.Hi) + "; worse in every objective by more than the margin, so under any weights"
	case grade == Fail:
		return grade, said + "at most " + c.signed(w.utility.Hi)
	case math.IsInf(w.utility.Hi, 1):
		return grade, said + "without an upper bound"
	}
	return grade, said + "between " + c.signed(w.utility.Lo) + " and " + c.signed(w.utility.Hi)
}

// adverse says that a pass rests on requests of the baseline that failed: had they
// been its best, it would not be shown; "" if it would.
func (w *weighing) adverse(limit float64) string {
	failed := false
	best := w.ratio(func(x *trial) stat.Estimate {
		if c := x.base.counts; c.Failed == 0 || x.metric.Indicator || x.clause.Need.Quantity.Stat != "quantile" {
			return x.b.est
		}
		failed = true
		m := x.base.measure(x.clause.Need.Quantity, x.metric, x.two(), !x.Compare.upper())
		if m.gap != "" {
			return none(m.gap, x.two()).est
		}
		return m.est
	})
	if failed && decide(">=", best, limit) != Pass {
		return "some requests of the baseline failed: had they been its best, the candidate would not be shown to pass"
	}
	return ""
}

// dominated reports whether the candidate is shown worse in every objective by
// more than the margin.
func (w *weighing) dominated(limit float64) bool {
	for i := range w.trials {
		if one := w.alone(i); decide(">=", one, limit) != Fail {
			return false
		}
	}
	return true
}

// alone is the ratio of the utilities in one objective.
func (w *weighing) alone(i int) stat.Estimate {
	only := make([]float64, len(w.weights))
	only[i] = 1
	v := weighing{joint: w.joint, trials: w.trials, weights: only, terms: w.terms}
	return v.ratio(func(x *trial) stat.Estimate { return x.b.est })
}

// ratio is the candidate's utility over the baseline's, with bounds. Within a
// variant the objectives are of the same requests, so that their errors go
// together: they are added up as if they always did, which no dependence between
// them exceeds (Minkowski). The errors of the two variants are independent and
// add up as squares (MOVER; Zou & Donner, Statist. Med. 27, 2008).
func (w *weighing) ratio(baseline func(*trial) stat.Estimate) stat.Estimate {
	conf := twoSided(w.terms.confidence)
	c := w.level(func(x *trial) stat.Estimate { return x.c.est })
	b := w.level(baseline)
	if math.IsNaN(c.Value) || math.IsNaN(b.Value) || math.IsInf(b.Value, 0) || w.weights == nil {
		return none("a utility is not known", conf).est
	}
	e := stat.Estimate{Confidence: conf, N: min(c.N, b.N), Effective: math.Min(c.Effective, b.Effective), Method: "ratio of weighted geometric means; errors of the objectives added up, of the variants as squares"}
	d := c.Value - b.Value
	e.Value = math.Exp(d)
	e.Lo = math.Exp(d - math.Hypot(c.Value-c.Lo, b.Hi-b.Value))
	e.Hi = math.Exp(d + math.Hypot(c.Hi-c.Value, b.Value-b.Lo))
	if math.IsInf(c.Value, -1) { // at the worst end of a scale
		e.Lo, e.Hi = 0, math.Exp(c.Hi-b.Lo)
	}
	return e
}

// level is the logarithm of a variant's utility.
func (w *weighing) level(of func(*trial) stat.Estimate) stat.Estimate {
	sum := stat.Estimate{N: math.MaxInt, Effective: math.Inf(1)}
	for i, x := range w.trials {
		if w.weights == nil || w.weights[i] == 0 {
			continue
		}
		o, e := &w.joint.Objectives[i], of(x)
		lo, hi := o.utility(e.Lo), o.utility(e.Hi)
		if o.Better == "lower" {
			lo, hi = hi, lo
		}
		if e.Lo > e.Hi || math.IsNaN(e.Lo) || math.IsNaN(e.Hi) {
			lo, hi = math.Inf(-1), math.Inf(1)
		}
		sum.Value += w.weights[i] * o.utility(e.Value)
		sum.Lo += w.weights[i] * lo
		sum.Hi += w.weights[i] * hi
		sum.N, sum.Effective = min(sum.N, e.N), math.Min(sum.Effective, e.Effective)
	}
	return sum
}

// utility is the logarithm of how good a value is: of its place on the scale, or
// without one of the value or its inverse. −Inf is of no use, NaN unknown.
func (o *Objective) utility(x float64) float64 {
	switch {
	case !o.Worst.IsZero():
		return math.Log(min(max((x-o.Worst.Value)/(o.Best.Value-o.Worst.Value), 0), 1))
	case o.Better == "higher":
		return math.Log(max(x, 0))
	case x <= 0: // below what such a quantity can be, as the lower end of an interval may be
		return math.Inf(1)
	}
	return -math.Log(x)
}

// evidence writes down what was weighed.
func (w *weighing) evidence() *Tradeoff {
	t := &Tradeoff{Weighting: cmp.Or(w.joint.Weights, w.joint.Profile, "balanced"), Margin: w.joint.margin(), Dominated: w.worse, Objectives: []ObjectiveSide{}, Points: []Point{}}
	if strings.HasSuffix(w.joint.title(), "own weights") {
		t.Weighting = "own"
	}
	if w.utility.Defined() {
		t.Utility = &Figure{w.utility}
	}
	for i := range w.joint.Objectives {
		o := &w.joint.Objectives[i]
		side := ObjectiveSide{Quantity: o.Of, Better: o.Better}
		if !o.Worst.IsZero() {
			side.Worst, side.Best = finite(o.Worst.Value), finite(o.Best.Value)
		}
		if w.weights != nil {
			side.Weight = w.weights[i]
		}
		if w.formula != nil {
			side.Formula = finite(w.formula[i])
		}
		if i < len(w.trials) {
			side.Unit = w.trials[i].Unit
			if w.weights != nil && w.trials[i].Change != nil {
				if one := w.alone(i); one.Defined() {
					side.Ratio = &Figure{one}
				}
			}
		}
		t.Objectives = append(t.Objectives, side)
	}
	w.points(t)
	return t
}

// points places every variant that was measured on the workload.
func (w *weighing) points(t *Tradeoff) {
	names := w.variants()
	if len(names) == 0 || len(w.trials) < len(w.joint.Objectives) {
		return
	}
	var estimates [][]stat.Estimate
	less := make([]bool, len(w.trials))
	for _, name := range names {
		var es []stat.Estimate
		p := Point{Variant: name}
		for k, x := range w.trials {
			less[k] = w.joint.Objectives[k].Better == "lower"
			e := none("nothing measures it", twoSided(w.terms.confidence)).est
			if x.metric.Name != "" {
				s := w.j.scope(name, x.Workload, w.terms.where)
				r := s.measure(x.clause.Need.Quantity, x.metric, twoSided(w.terms.confidence), x.Compare.upper())
				if e = r.est; r.gap != "" {
					e = none(r.gap, e.Confidence).est
				}
			}
			es, p.Figures = append(es, e), append(p.Figures, Figure{e})
		}
		estimates, t.Points = append(estimates, es), append(t.Points, p)
	}
	standings, err := compare.Pareto(estimates, less, 1)
	if err != nil {
		return
	}
	for i, s := range standings {
		t.Points[i].Front, t.Points[i].Dominated = s.Front, finite(s.Dominated)
		for _, k := range s.By {
			t.Points[i].By = append(t.Points[i].By, names[k])
		}
	}
}

// variants lists those with measured requests in scope: the baseline, the
// candidate, then the others by name.
func (w *weighing) variants() []string {
	found := map[string]bool{}
	for i := range w.j.e.Records {
		r := &w.j.e.Records[i]
		if r.Phase == record.Measured && r.Workload == w.workload && has(r.Labels, w.terms.where) {
			found[r.Variant] = true
		}
	}
	names := slices.Sorted(maps.Keys(found))
	rank := func(v string) int {
		switch v {
		case w.j.baseline:
			return 0
		case w.j.candidate:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}
