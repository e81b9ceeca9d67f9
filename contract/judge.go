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
)

// Evaluate judges the contract on the evidence. It never panics and never
// fails: what cannot be judged is inconclusive, with the reason. The evidence
// is not changed.
func Evaluate(c *Contract, e Evidence) Verdict {
	v := Verdict{Schema: Schema, Confidence: DefaultConfidence, Clauses: []Result{}, Unfit: slices.Clone(e.Unfit)}
	if c == nil || len(c.Clauses) == 0 {
		v.Reason = "nothing was demanded: the contract has no clauses"
		return v
	}
	v.Contract = c.Name
	if c.Confidence != 0 {
		v.Confidence = float64(c.Confidence)
	}
	j := newJudge(e)
	j.reference = &c.Reference
	v.Baseline, v.Candidate = j.baseline, j.candidate
	for _, clause := range c.named() {
		v.Clauses = append(v.Clauses, j.clause(clause, terms{confidence: v.Confidence}))
	}
	if len(e.Unfit) > 0 {
		condemn(v.Clauses, e.Unfit[0])
	}
	v.Clauses = append(v.Clauses, undone(e.Checks)...)
	v.Grade, v.Reason = summary(v.Clauses, e.Unfit)
	v.WrongPass, v.WrongFail = unionBound(v.Clauses, len(v.Clauses))
	return v
}

// condemn takes every grade back: the run as a whole proves nothing.
func condemn(results []Result, why string) {
	for i := range results {
		r := &results[i]
		r.Notes = append(r.Notes, "as measured: "+r.Reason)
		r.Grade, r.Reason = Inconclusive, "the run proves nothing: "+why
		condemn(r.Results, why)
	}
}

// summary says in one sentence what decided.
func summary(results []Result, unfit []string) (Grade, string) {
	var grades []Grade
	for _, r := range results {
		grades = append(grades, r.Grade)
	}
	grade := Worst(grades...)
	if len(unfit) > 0 {
		return Inconclusive, "the run proves nothing: " + strings.Join(unfit, "; ")
	}
	if grade == Pass {
		if len(results) == 1 {
			return grade, results[0].ID + ": " + results[0].Reason
		}
		return grade, fmt.Sprintf("all %d clauses pass", len(results))
	}
	return grade, worstReason(results, grade)
}

// worstReason quotes the first result of that grade and counts the others.
func worstReason(results []Result, grade Grade) string {
	same, first := 0, ""
	for _, r := range results {
		if r.Grade != grade {
			continue
		}
		if same++; same == 1 {
			first = r.ID + ": " + r.Reason
		}
	}
	if same > 1 {
		first += fmt.Sprintf("; and %d more", same-1)
	}
	return first
}

// judge holds what all clauses share.
type judge struct {
	e                   Evidence
	reference           *Reference
	scopes              map[string]scope
	baseline, candidate string
	problem             string   // why no variant can be judged; "" if one can
	workloads           []string // that were measured, by name
	own                 []record.Metric
}

func newJudge(e Evidence) *judge {
	j := &judge{scopes: map[string]scope{}, e: e, baseline: e.Baseline, candidate: e.Candidate, own: metricsOf(e.Checks)}
	variants, workloads := map[string]bool{}, map[string]bool{}
	for i := range e.Records {
		r := &e.Records[i]
		if r.Phase == record.Measured && (i == 0 || r.Variant != e.Records[i-1].Variant || r.Workload != e.Records[i-1].Workload || e.Records[i-1].Phase != record.Measured) {
			variants[r.Variant], workloads[r.Workload] = true, true
		}
	}
	for _, w := range e.Windows {
		workloads[w.Workload] = true
	}
	j.workloads = slices.Sorted(maps.Keys(workloads))
	if j.candidate == "" {
		names := slices.Sorted(maps.Keys(variants))
		others := slices.DeleteFunc(slices.Clone(names), func(v string) bool { return v == e.Baseline })
		switch {
		case len(others) == 1:
			j.candidate = others[0]
		case len(names) == 1:
			j.candidate = names[0]
		case len(names) == 0:
			j.problem = "no request was measured"
		default:
			j.problem = fmt.Sprintf("none of the variants %s is named as the candidate", list(names))
		}
	}
	if j.baseline == j.candidate {
		j.baseline = ""
	}
	return j
}

// terms are what a clause inherits from its group.
type terms struct {
	on         Names
	where      map[string]string
	by         string
	min        int64
	window     Window
	confidence float64
	within     string // the workload of a joint clause, for those of its vetoes that name none
	inGroup    bool
	wrongFail  float64 // chance of a wrong fail that is left to the clause; live only
}

func (t terms) with(c Clause) terms {
	if len(c.On) > 0 {
		t.on = c.On
	}
	if len(c.Where) > 0 {
		where := maps.Clone(t.where)
		if where == nil {
			where = map[string]string{}
		}
		maps.Copy(where, c.Where)
		t.where = where
	}
	if c.By != "" {
		t.by = c.By
	}
	if c.Min > 0 {
		t.min = c.Min
	}
	if !c.Window.IsZero() {
		t.window = c.Window
	}
	if c.Confidence != 0 {
		t.confidence = float64(c.Confidence)
		t.wrongFail = 1 - t.confidence
	}
	return t
}

func (j *judge) clause(c Clause, t terms) Result {
	t = t.with(c)
	var r Result
	kind, members, _ := c.group()
	switch {
	case kind == KindJoint && !t.inGroup:
		r = j.each(c, t)
	case kind != KindJoint && len(members) > 0:
		r = j.group(&c, t)
	case kind != "" || c.Need.IsZero() || len(c.All)+len(c.Any) > 0 || c.Not != nil || c.Count != nil:
		r = Result{Kind: KindClause, Reason: "it demands nothing that can be judged"}
	default:
		r = j.each(c, t)
	}
	label(&r, c)
	return r
}

// label puts the clause's name on its results, also workload by workload.
func label(r *Result, c Clause) {
	r.ID, r.Severity = c.ID, string(c.Severity)
	if r.Kind == KindEach || r.Kind == KindSome {
		for i := range r.Results {
			label(&r.Results[i], c)
		}
	}
}

// on judges the clause on one workload.
func (j *judge) on(c Clause, t terms, workload string) Result {
	if c.Joint != nil {
		return j.anyValue(j.joint(c, t, workload), t.by)
	}
	return j.anyValue(j.one(c, t, workload), t.by)
}

// each judges the clause on every workload that it matches, and on every value of
// the label that by names. It must hold on all of them; below a not on one.
func (j *judge) each(c Clause, t terms) Result {
	places := j.match(t, c.Need.Quantity.Metric)
	if len(places) == 1 {
		return j.on(c, t.at(places[0]), places[0].workload)
	}
	r := Result{Kind: KindEach, Need: c.Need.String(), Scope: scopeText("", t.where)}
	if len(places) == 0 {
		r.Kind, r.Reason = KindClause, "no request is in scope"
		if j.problem != "" {
			r.Reason = j.problem
		}
		return r
	}
	if len(places) > mostPlaces {
		r.Kind, r.Reason = KindClause, fmt.Sprintf("%s has more than %s values; they are not judged one by one", t.by, grouped(fmt.Sprint(mostPlaces)))
		return r
	}
	least := len(places)
	if c.some {
		r.Kind, least = KindSome, 1
		t = t.share(len(places), 1)
	}
	var grades []Grade
	for _, p := range places {
		res := j.on(c, t.at(p), p.workload)
		r.Results, grades = append(r.Results, res), append(grades, res.Grade)
	}
	r.Grade = atLeast(least, grades...)
	r.WrongPass, r.WrongFail = unionBound(r.Results, least)
	if r.Grade == Pass && !c.some {
		kind := "workloads"
		if t.by != "" {
			kind = "values of " + t.by
		}
		r.Reason = fmt.Sprintf("passes on all %d %s", len(places), kind)
		return r
	}
	i := slices.Index(grades, r.Grade)
	r.Reason = "on " + places[i].scope() + ": " + r.Results[i].Reason
	return r
}

// at narrows the terms to a place.
func (t terms) at(p place) terms {
	if p.label != "" {
		t = t.with(Clause{Where: map[string]string{p.label: p.value}})
	}
	return t
}

// match lists the places that a clause is judged on: the workloads it names, even
// when nothing of them was measured, or all that have requests in its scope; and
// on each the values of the label that by names.
func (j *judge) match(t terms, metric string) []place {
	said := len(t.on) > 0
	t.on = j.meant(t.on, metric)
	if t.within != "" && !said && slices.Contains(t.on, t.within) {
		t.on = Names{t.within}
	}
	var out []place
	if len(t.where) == 0 && t.by == "" {
		names := t.on
		for _, w := range names {
			out = append(out, place{workload: w})
		}
		return out
	}
	found := map[place]bool{}
	if t.by == "" && said {
		for _, w := range t.on {
			found[place{workload: w}] = true
		}
	}
	for i := range j.e.Records {
		r := &j.e.Records[i]
		if r.Phase != record.Measured || !has(r.Labels, t.where) || !slices.Contains(t.on, r.Workload) {
			continue
		}
		p := place{workload: r.Workload}
		if t.by != "" {
			v, ok := r.Labels[t.by]
			if !ok {
				continue
			}
			p.label, p.value = t.by, v
		}
		if found[p] = true; len(found) > mostPlaces {
			break
		}
	}
	out = slices.Collect(maps.Keys(found))
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.scope(), b.scope()) })
	if t.by == "" && said {
		slices.SortStableFunc(out, func(a, b place) int { return slices.Index(t.on, a.workload) - slices.Index(t.on, b.workload) })
	}
	return out
}

func scopeText(workload string, where map[string]string) string {
	var parts []string
	if workload != "" {
		parts = append(parts, workload)
	}
	for _, k := range slices.Sorted(maps.Keys(where)) {
		parts = append(parts, k+"="+where[k])
	}
	return strings.Join(parts, ", ")
}

// trial is one clause on one workload, on its way to a result.
type trial struct {
	Result
	clause Clause
	terms  terms
	metric record.Metric
	cand   scope
	base   scope
	has    bool // there is a baseline
	c, b   reading
	diff   stat.Estimate // change, when the limit refers to the baseline
	change change
	limit  float64 // on the change, else on the quantity
}

func (j *judge) one(c Clause, t terms, workload string) Result {
	look, whole := j.interim(workload), t.confidence
	t.confidence = look.confidence(whole)
	x := trial{clause: c, terms: t, Result: Result{
		Kind: KindClause, Need: c.Need.String(), Scope: scopeText(workload, t.where), Workload: workload,
		Quantity: &c.Need.Quantity, Compare: c.Need.Compare, Confidence: t.confidence,
		Limit: &Bound{Text: c.Need.Limit.text}, Look: look.orNil(),
	}}
	if !c.Need.Quantity.fact() && decisive(whole) { // over all looks
		x.WrongPass = math.Round((1-whole)*1e12) / 1e12
		x.WrongFail = x.WrongPass
	}
	x.Grade, x.Reason = x.judge(j)
	x.Grade, x.Reason = x.early(look, x.Grade, x.Reason)
	x.remark(j)
	return x.Result
}

// judge measures, then decides. Whatever is missing is asked before anything
// is decided.
func (x *trial) judge(j *judge) (Grade, string) {
	need := x.clause.Need
	if x.Look != nil && x.Look.share() == 0 {
		return Inconclusive, "it was not looked at yet: the first look comes after a few blocks"
	}
	if !decisive(x.terms.confidence) {
		return Inconclusive, fmt.Sprintf("a confidence of %s decides nothing", percentage(x.terms.confidence))
	}
	var err error
	if x.metric, x.Unit, err = need.Quantity.metric(j.own...); err != nil {
		return Inconclusive, err.Error()
	}
	if fault := need.bind(x.metric); fault != nil {
		return Inconclusive, fault.What
	}
	x.clause.Need = need
	if why := x.check(j); why != "" {
		return Inconclusive, why
	}
	if !need.Limit.relative() {
		x.Limit.Value = finite(need.Limit.Value)
	}
	if j.problem != "" {
		return Inconclusive, j.problem
	}
	x.estimate(j)
	if why := x.missing(); why != "" {
		return Inconclusive, why
	}
	if need.Limit.relative() {
		return x.relative()
	}
	return x.absolute()
}

// two is the confidence of the two-sided interval whose ends are the one-sided
// bounds.
func (x *trial) two() float64 { return twoSided(x.terms.confidence) }

// twoSided rounds what binary arithmetic adds: 0.9, not 0.8999999999999999.
func twoSided(confidence float64) float64 { return math.Round((2*confidence-1)*1e12) / 1e12 }

// estimate fills in the figures of both variants.
func (x *trial) estimate(j *judge) {
	q, high := x.clause.Need.Quantity, x.clause.Need.Compare.upper()
	x.cand = j.scope(j.candidate, x.Workload, x.terms.where)
	x.c = x.cand.measure(q, x.metric, x.two(), high)
	x.Candidate = &Figure{x.c.est}
	x.Counts = append(x.Counts, x.cand.counts)
	x.note(x.c.notes...)
	if c := x.cand.counts; !x.metric.Indicator && float64(c.Failed) > maxFailed*float64(c.judged()) {
		x.note(fmt.Sprintf("%d of %s of %s failed; another clause must say whether that is borne", c.Failed, count(c.judged(), "request"), c.Variant))
	}
	if x.clause.Need.Limit.Reference {
		x.refer(j)
		return
	}
	if x.has = j.baseline != ""; !x.has {
		return
	}
	x.base = j.scope(j.baseline, x.Workload, x.terms.where)
	if x.base.counts.Offered == 0 && !x.clause.Need.Limit.Baseline {
		return
	}
	x.b = x.base.measure(q, x.metric, x.two(), high)
	x.Baseline = &Figure{x.b.est}
	x.Counts = append(x.Counts, x.base.counts)
	if x.clause.Need.Limit.Baseline {
		x.note(x.b.notes...)
	}
}

func (x *trial) note(notes ...string) { x.Notes = append(x.Notes, notes...) }

// missing says what must be there before a limit can be held against anything.
func (x *trial) missing() string {
	need := x.clause.Need
	switch limit := need.Limit; {
	case limit.Baseline && !x.has:
		return "no baseline in this run"
	case limit.Previous > 0, limit.Windows > 0:
		return fmt.Sprintf("%s is about live traffic: a run is judged as a whole, and has nothing before it", limit.yardstick())
	case limit.Reference && !x.has:
		return fmt.Sprintf("the contract registers no reference for %s", registeredKey(need.Quantity, x.Workload))
	}
	if x.c.gap != "" && !x.ownChange() {
		x.Shortfall = x.c.more
		return x.c.gap
	}
	least := x.terms.min
	if w := x.terms.window; w.Requests > 0 && need.Quantity.Stat != "count" {
		least = max(least, w.Requests)
	}
	if least == 0 && (need.Quantity.Stat == "max" || need.Quantity.Stat == "min") {
		return fmt.Sprintf("a %s says nothing without a minimum of requests: the clause has no min", need.Quantity.Stat)
	}
	n := int64(x.cand.counts.judged())
	if need.Quantity.Stat == "max" || need.Quantity.Stat == "min" {
		if valued := n - int64(x.cand.counts.Undefined+x.cand.counts.Aside); n >= least && valued < least {
			x.Shortfall = least - valued
			return fmt.Sprintf("only %s of %s have a %s; the clause asks for %s", count(valued, "request"), x.cand.variant, x.metric.Title, grouped(fmt.Sprint(least)))
		}
	}
	if n < least {
		x.Shortfall = least - n
		return fmt.Sprintf("only %s of %s; the clause asks for %s", count(n, "request"), x.cand.variant, grouped(fmt.Sprint(least)))
	}
	if need.Limit.Reference {
		return x.b.gap
	}
	if !need.Limit.Baseline {
		return ""
	}
	if x.b.gap != "" && !x.ownChange() {
		x.Shortfall = x.b.more
		return x.b.gap
	}
	if n := int64(x.base.counts.judged()); n < least {
		x.Shortfall = least - n
		return fmt.Sprintf("only %s of %s; the clause asks for %s", count(n, "request"), x.base.variant, grouped(fmt.Sprint(least)))
	}
	return ""
}

// decide compares the interval with the limit. A bound that does not exist
// never passes; neither does a value that does not.
func decide(c Compare, e stat.Estimate, limit float64) Grade {
	if !e.Defined() || math.IsNaN(e.Lo) || math.IsNaN(e.Hi) || math.IsNaN(limit) {
		return Inconclusive
	}
	bad, good := e.Hi, e.Lo
	if !c.upper() {
		bad, good = e.Lo, e.Hi
	}
	switch {
	case c.holds(bad, limit) && !math.IsInf(bad, 0):
		return Pass
	case !c.holds(good, limit) && !c.holds(e.Value, limit):
		return Fail
	}
	return Inconclusive
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
