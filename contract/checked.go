package contract

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// Checked is a check that a run declared: its values can be named by clauses, as
// CHECK.VALUE, and its records are those of the workload of its name. A clause on
// another metric is judged on it only if it says so by on.
type Checked struct {
	Name       string
	Metrics    []record.Metric    // of the values that it writes; Metric.Check is Name
	Signatures []record.Signature // of those values, by Signature.Value; nil: they are not known
	Estimates  []record.Estimate  // of those values that are of the whole check
	Why        string             // why it proves nothing: it could not run, or not to its end; "": it did
}

func metricsOf(checks []Checked) (out []record.Metric) {
	for _, c := range checks {
		out = append(out, c.Metrics...)
	}
	return out
}

// check returns the check of that name, or nil.
func (e *Evidence) check(name string) *Checked {
	if i := slices.IndexFunc(e.Checks, func(c Checked) bool { return c.Name == name }); i >= 0 {
		return &e.Checks[i]
	}
	return nil
}

// Declare holds the contract against the values that the checks of a suite write,
// and returns a fault for each clause that names one wrongly. Others are names of
// checks that the suite could declare, for hints.
func (c *Contract) Declare(checks []Checked, others []string) []config.Fault {
	if c == nil {
		return nil
	}
	own := metricsOf(checks)
	var l linter
	walk(c.named(), c.nodes(), func(clause *Clause, at *config.Node) {
		if clause.Need.IsZero() || clause.Need.bound {
			return
		}
		need := clause.Need
		if m, ok := find(need.Quantity.Metric, own...); ok {
			if fault := need.bind(m); fault != nil {
				l.report(CodeUnmeasured, at, clause.ID, fault.Column, fault.What, fault.Hint)
			}
			return
		}
		what, hint := unwritten(need.Quantity.Metric, checks, own, others)
		if what != "" {
			l.report(CodeUnmeasured, at, clause.ID, need.at.metric, what, hint)
		}
	})
	return l.faults
}

// unwritten says which check's value the name was to be; "": none's.
func unwritten(name string, checks []Checked, own []record.Metric, others []string) (what, hint string) {
	check, value, dotted := strings.Cut(name, ".")
	if !dotted {
		return "", ""
	}
	var names []string
	for _, m := range own {
		names = append(names, m.Name)
	}
	if i := slices.IndexFunc(checks, func(c Checked) bool { return c.Name == check }); i >= 0 {
		var its []string
		for _, m := range checks[i].Metrics {
			its = append(its, m.Name)
		}
		hint = fmt.Sprintf("it writes %s", strings.Join(its, ", "))
		if len(its) == 0 {
			hint = "it writes no values, only findings"
		}
		if near, ok := nearest(name, its); ok {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return fmt.Sprintf("the check %s writes no value %q", check, value), hint
	}
	if slices.Contains(others, check) {
		return fmt.Sprintf("the suite does not declare the check %s", check), fmt.Sprintf("add - %s: to checks:", check)
	}
	if near, ok := nearest(name, names); ok {
		return fmt.Sprintf("there is no metric %q", name), fmt.Sprintf("did you mean %s?", near)
	}
	return "", ""
}

// own lists the values of the planned checks.
func (l *linter) own() (out []record.Metric) {
	for _, p := range l.planned {
		out = append(out, p.Values...)
	}
	return out
}

// meant reports whether a clause on the metric is judged on this workload, if on
// does not say: on a check only what the check itself writes, and that nowhere
// else.
func (p *Planned) meant(m record.Metric, on Names) bool {
	if len(on) > 0 {
		return true
	}
	if m.Check != "" {
		return p.Workload == m.Check
	}
	return !p.Check
}

// meant returns the workloads that a clause on the metric is judged on.
func (j *judge) meant(on Names, metric string) []string {
	if len(on) > 0 {
		return on
	}
	m, _ := find(metric, j.own...)
	if m.Check != "" {
		return []string{m.Check}
	}
	return slices.DeleteFunc(slices.Clone(j.workloads), func(w string) bool { return j.e.check(w) != nil })
}

// check says why what a check wrote proves nothing; "" if it does, or the clause
// is about no check. It puts the signature of the value on the result.
func (x *trial) check(j *judge) string {
	c := j.e.check(x.Workload)
	switch {
	case x.metric.Check != "" && x.metric.Check != x.Workload:
		return fmt.Sprintf("only the check %s writes %s, not the workload %s", x.metric.Check, x.metric.Name, x.Workload)
	case c == nil:
		return ""
	}
	if i := slices.IndexFunc(c.Signatures, func(s record.Signature) bool { return s.Value == x.metric.Name }); i >= 0 {
		x.Signature = &c.Signatures[i]
	}
	if c.Why != "" {
		return fmt.Sprintf("the check %s proves nothing: %s", c.Name, c.Why)
	}
	return ""
}

// undone lists the checks that prove nothing, each an inconclusive result of its
// own: what a suite declares is never left out because it could not run.
func undone(checks []Checked) (out []Result) {
	for _, c := range checks {
		if c.Why != "" {
			out = append(out, Result{ID: "check " + c.Name, Kind: KindCheck, Workload: c.Name, Scope: c.Name, Reason: c.Why})
		}
	}
	return out
}

// pairing is what both variants have of one case; of a single variant y is known
// to be 0.
type pairing struct {
	cluster  string
	x, y     float64 // of the candidate and of the baseline
	has, had bool    // x and y are known
}

// alone is what one variant has of the cases that can have the value.
func (s *scope) alone(m record.Metric) (out []pairing) {
	for _, r := range s.records {
		x, has, exempt := readValue(r, m)
		if !exempt {
			out = append(out, pairing{cluster: r.Session, x: x, has: has, had: true})
		}
	}
	return out
}

// paired puts the records of both variants together that answer the same shot. A
// case that one of them was not asked is missing there.
func paired(cand, base *scope, m record.Metric) (out []pairing, oneSided int) {
	other := make(map[int64]*record.Record, len(base.records))
	for _, r := range base.records {
		other[r.Shot] = r
	}
	add := func(c, b *record.Record) {
		x, has, exempt := readValue(c, m)
		y, had, exempted := readValue(b, m)
		switch {
		case exempt && exempted || exempt && b == nil || exempted && c == nil:
		case exempt || exempted:
			oneSided++
		default:
			p := pairing{x: x, y: y, has: has, had: had}
			r := c
			if r == nil {
				r = b
			}
			p.cluster = r.Session
			out = append(out, p)
		}
	}
	for _, r := range cand.records {
		add(r, other[r.Shot])
		delete(other, r.Shot)
	}
	for _, shot := range slices.Sorted(maps.Keys(other)) {
		add(nil, other[shot])
	}
	return out, oneSided
}

// readValue reads the value off one record: known, exempt or missing.
func readValue(r *record.Record, m record.Metric) (x float64, has, exempt bool) {
	if r == nil {
		return 0, false, false
	}
	if v, ok := r.Values[m.Name]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v, true, false
	}
	_, exempt = r.Values[record.Exempt(m.Name)]
	return 0, false, exempt
}

// checkedMean estimates the mean of a check's value of one variant.
func (s *scope) checkedMean(m record.Metric, confidence float64) reading {
	s.values(m) // counts what is missing
	return hull(m, s.alone(m), false, s.variant, confidence)
}

// hull estimates the mean of x − y over clusters of cases, as far as what is
// missing leaves it: the interval reaches from the lower bound with every missing
// number at its lowest to the upper one with every at its highest. So a clause is
// decided only where both agree.
func hull(m record.Metric, cases []pairing, two bool, who string, confidence float64) reading {
	var r reading
	lost, n := 0, len(cases)
	for _, c := range cases {
		if !c.has || !c.had {
			lost++
		}
	}
	bounded := m.Least < m.Most
	if n == 0 || lost == n {
		return none(fmt.Sprintf("no case of %s %s the value “%s”", who, map[bool]string{true: "can have", false: "has"}[n == 0], m.Title), confidence)
	}
	e := meaner{metric: m, two: two, confidence: confidence}
	r.est = e.estimate(clustersOf(cases, func(c pairing) (float64, bool) { return c.x - c.y, c.has && c.had }))
	switch {
	case lost == 0:
	case bounded:
		lo := e.estimate(clustersOf(cases, func(c pairing) (float64, bool) { return c.filled(m.Least, m.Most), true }))
		hi := e.estimate(clustersOf(cases, func(c pairing) (float64, bool) { return c.filled(m.Most, m.Least), true }))
		r.est.Lo, r.est.Hi, r.est.N = lo.Lo, hi.Hi, n
		r.est.Method += ", what is missing as the worst and as the best"
		r.notes = append(r.notes, fmt.Sprintf("%d of %s of %s have no %s; they are counted as the worst and as the best that they could be", lost, count(n, "case"), who, m.Title))
	case float64(lost) > maxDropped*float64(n):
		r.gap = fmt.Sprintf("%d of %s of %s have no %s, and nothing bounds what it would be", lost, count(n, "case"), who, m.Title)
	default:
		r.notes = append(r.notes, fmt.Sprintf("%d of %s of %s have no %s and are left out", lost, count(n, "case"), who, m.Title))
	}
	return r
}

// filled is x − y with what is missing of x replaced by one end, of y by the other.
func (c pairing) filled(x, y float64) float64 {
	if c.has {
		x = c.x
	}
	if c.had {
		y = c.y
	}
	return x - y
}

// clustersOf puts the numbers of cases into their clusters, in the order of the
// clusters' names.
func clustersOf(cases []pairing, number func(pairing) (float64, bool)) [][]float64 {
	by := make(map[string][]float64)
	for _, c := range cases {
		if d, ok := number(c); ok {
			by[c.cluster] = append(by[c.cluster], d)
		}
	}
	out := make([][]float64, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

// meaner estimates means of one value, or of its differences between two variants.
type meaner struct {
	metric     record.Metric
	two        bool
	confidence float64
}

// estimate picks the sharpest estimate that is right for the data: of yes and no
// in cases that are independent the exact interval of a share, or Tango's of a
// paired difference; else the mean over clusters. Where nearly all clusters are
// equal, which leaves that without an interval, the exact bound on how many are
// not takes its place.
func (e meaner) estimate(clusters [][]float64) stat.Estimate {
	single := !slices.ContainsFunc(clusters, func(c []float64) bool { return len(c) > 1 })
	if e.metric.Indicator && single {
		above, below := 0, 0
		for _, c := range clusters {
			if c[0] > 0 {
				above++
			} else if c[0] < 0 {
				below++
			}
		}
		if e.two {
			return compare.Tango(above, below, len(clusters), e.confidence)
		}
		return stat.ExactShare(above, len(clusters), e.confidence)
	}
	est := compare.Mean(clusters, e.confidence)
	if est.Defined() && !est.Estimable() {
		e.bulk(&est, clusters)
	}
	return est
}

// bulk bounds the mean of clusters of which at least half have one mean, by how far
// below and above it the others are on average: numbers with bounds, of which most are
// 0. Where the value cannot lie beyond the most frequent mean, the distance to the
// other side is all there is, and bounds the mean from both. It needs clusters of one
// size, since else a large one weighs more.
func (e meaner) bulk(est *stat.Estimate, clusters [][]float64) {
	m, g := e.metric, len(clusters)
	if m.Least >= m.Most || g < 2 {
		return
	}
	least, most := m.Least, m.Most
	if e.two {
		least, most = m.Least-m.Most, m.Most-m.Least
	}
	means, count := make([]float64, g), make(map[float64]int)
	usual := math.NaN()
	for i, c := range clusters {
		if len(c) != len(clusters[0]) {
			return
		}
		for _, x := range c {
			means[i] += x / float64(len(c))
		}
		if count[means[i]]++; 2*count[means[i]] >= g {
			usual = means[i]
		}
	}
	if math.IsNaN(usual) {
		return
	}
	below := e.distance(means, func(x float64) float64 { return usual - x }, usual-least)
	above := e.distance(means, func(x float64) float64 { return x - usual }, most-usual)
	lo, hi := usual-below.Hi, usual+above.Hi
	switch {
	case usual >= most:
		hi = usual - below.Lo
	case usual <= least:
		lo = usual + above.Lo
	}
	est.Lo, est.Hi = math.Min(est.Value, lo), math.Max(est.Value, hi)
	est.Method = "mean over clusters, bound on how far those that are not as most are off"
	est.Warnings = nil
}

// distance estimates how far numbers lie to one side on average, those of the other
// side as 0, if none can lie further than so much. Of all or nothing the interval is
// that of a share.
func (e meaner) distance(x []float64, of func(float64) float64, most float64) stat.Estimate {
	if !(most > 0) {
		return stat.Estimate{}
	}
	whole, sum := 0, 0.0
	for _, v := range x {
		d := math.Min(math.Max(of(v)/most, 0), 1)
		sum += d
		if d == 1 {
			whole++
		}
	}
	est := stat.BoundedMean(math.Min(sum/float64(len(x)), 1), len(x), e.confidence)
	if float64(whole) == sum {
		est = stat.ExactShare(whole, len(x), e.confidence)
	}
	est.Lo, est.Hi = most*est.Lo, most*est.Hi
	return est
}

// lopsided says that one variant lacks more values than the other on the same
// cases, so that what is missing has to do with the variant; "" if chance explains
// it: McNemar's exact test at 5 %.
func lopsided(cases []pairing, title string) string {
	only, other := 0, 0
	for _, c := range cases {
		switch {
		case !c.has && c.had:
			only++
		case c.has && !c.had:
			other++
		}
	}
	if compare.McNemar(only, other, false).P >= 0.05 {
		return ""
	}
	return fmt.Sprintf("%s have no %s of the candidate alone, %s none of the baseline alone: what is missing has to do with the variant", count(only, "case"), title, count(other, "case"))
}

// only counts the cases that have no number by definition in the scope, and can have one
// in the other.
func (s *scope) only(other *scope, m record.Metric) (n int) {
	can := make(map[int64]bool, len(other.records))
	for _, r := range other.records {
		if _, _, exempt := readValue(r, m); !exempt {
			can[r.Shot] = true
		}
	}
	for _, r := range s.records {
		if _, _, exempt := readValue(r, m); exempt && can[r.Shot] {
			n++
		}
	}
	return n
}

// exempted says that one variant has no number by definition on more cases than the other,
// so that those that are compared are chosen by the variant; "" if chance explains it.
func exempted(cand, base int, title string) string {
	if compare.McNemar(cand, base, false).P >= 0.05 {
		return ""
	}
	return fmt.Sprintf("%s can have no %s of the candidate alone, %s none of the baseline alone: which cases are compared has to do with the variant; hold each against a limit, and what takes the cases out beside it", count(cand, "case"), title, count(base, "case"))
}

// pairedChange is the change of a check's value on the same cases.
func (x *trial) pairedChange() (est stat.Estimate, gap string) {
	m := x.metric
	cases, oneSided := paired(&x.cand, &x.base, m)
	if gap = lopsided(cases, m.Title); gap != "" {
		return none(gap, x.two()).est, gap
	}
	if why := exempted(x.cand.only(&x.base, m), x.base.only(&x.cand, m), m.Title); why != "" && len(cases) > 0 {
		return none(why, x.two()).est, why
	}
	if oneSided > 0 {
		x.note(fmt.Sprintf("%s can have the value “%s” of one variant alone, and are left out", count(oneSided, "case"), m.Title))
	}
	r := hull(m, cases, true, "both variants", x.two())
	x.note(r.notes...)
	return r.est, r.gap
}

// CompareChecked estimates how the candidate's value of a check differs from the
// baseline's: of a value of each case the difference on the same cases, of one of the
// whole check the difference or else the ratio that the check itself found. Warnings
// are as in [Measure].
func CompareChecked(e Evidence, metric, candidate, baseline string, confidence float64) (stat.Estimate, ChangeKind, error) {
	m, ok := find(metric, metricsOf(e.Checks)...)
	if !ok || m.Check == "" {
		return stat.Estimate{}, "", fmt.Errorf("comparing %s: no check of this run writes it", metric)
	}
	cand, base := gather(e, candidate, m.Check, nil), gather(e, baseline, m.Check, nil)
	if m.Whole {
		r, kind := cand.eitherChange(m, max(cand.counts.Failed, base.counts.Failed), confidence)
		return r.warned(), kind, nil
	}
	cases, _ := paired(&cand, &base, m)
	r := hull(m, cases, true, "both variants", confidence)
	why := lopsided(cases, m.Title)
	if why == "" && len(cases) > 0 {
		why = exempted(cand.only(&base, m), base.only(&cand, m), m.Title)
	}
	if why != "" && r.gap == "" {
		r.gap = why
	}
	return r.warned(), ChangeDifference, nil
}
