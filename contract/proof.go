package contract

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/anytime"
)

// Step is a stretch of live traffic over which the split between the variants did
// not change.
type Step struct {
	Since  time.Time
	Weight float64 // the candidate's share of the sessions, as they are assigned; 0: not told
}

// Proof is what a rule remembers of the sequential test of one comparison between
// two looks. The steps before the present one are closed: of each only the
// logarithms of its e-values are left, and those of all steps are added up.
type Proof struct {
	From   time.Time `json:"from"`             // where the evidence begins
	Step   time.Time `json:"step,omitzero"`    // where the part that is not closed begins
	Starts int       `json:"starts,omitempty"` // how often a test was begun anew in the closed steps
	Fail   float64   `json:"fail,omitempty"`   // of the closed steps, against "within the margin"
	Pass   float64   `json:"pass,omitempty"`   // of the closed steps, against "not within the margin"
}

// The guards of a comparison by evidence.
const (
	wrongSplit  = 1000 // e-value from which on the sessions were not assigned as planned
	mostApart   = 0.2  // of the requests in flight per replica; a server is faster when it is emptier
	leastFailed = -1e6 // logarithm of the smallest e-value that is remembered
)

// byEvidence reports whether a live rule that is judged so decides the comparison by
// a test that holds at all looks together: against a baseline that runs beside the
// candidate, unless the rule asks for something else. A rate has no test: it is of
// time, and not of sessions.
func byEvidence(n Need, judge string) bool {
	return n.Limit.Baseline && stageOf(n.Quantity.Metric) == nil && (judge == "" || judge == "evidence") && slices.Contains([]string{"quantile", "mean", "share"}, n.Quantity.Stat)
}

// prove judges the comparison by all evidence since its proof began.
func (x *sight) prove(p Proof) (Proof, look) {
	steps := x.steps(&p)
	for i, s := range steps[:len(steps)-1] {
		t := x.trial(later(s.Since, p.From), steps[i+1].Since, s)
		if t.why == "" {
			p.Fail, p.Pass = p.Fail+t.proof.Fail, p.Pass+t.proof.Pass
		}
		p.Fail, p.Pass = math.Max(p.Fail, leastFailed), math.Max(p.Pass, leastFailed)
		p.Starts += 1 + x.windows(t.to.Sub(t.from))
		p.Step = t.to
	}
	last := steps[len(steps)-1]
	t := x.trial(later(last.Since, p.From), x.at, last)
	if p.Step.IsZero() {
		p.Step = t.from
	}
	if t.why != "" {
		return p, look{blind: true, reason: t.why}
	}
	fail, pass := x.since(p, t)
	switch {
	case fail.shows(x.terms.wrongFail):
		return p, look{grade: Fail, reason: fail.reason("violated", x.terms.wrongFail)}
	case !pass.shows(1 - x.terms.confidence):
		return p, look{reason: fmt.Sprintf("%s: not decided, e-values %s that it is violated (%s decide) and %s that it holds (%s decide)",
			t.text(), eValue(fail.log), eNeed(x.terms.wrongFail), eValue(pass.log), eNeed(1-x.terms.confidence))}
	case float64(t.base.Over) > maxFailed*float64(t.base.N):
		return p, look{reason: fmt.Sprintf("%s; %d of %d of the baseline failed: it is no yardstick", t.text(), t.base.Over, t.base.N)}
	}
	return p, look{grade: Pass, reason: pass.reason("met", 1-x.terms.confidence)}
}

// steps returns the steps that are not closed, the present one last, and sets
// where the proof begins if it begins now.
func (x *sight) steps(p *Proof) []Step {
	from := later(p.Step, p.From)
	if from.IsZero() {
		from = x.at
	}
	steps := slices.Clone(x.seen.Steps(from, x.at))
	if len(steps) == 0 {
		steps = []Step{{Since: from}}
	}
	if p.From.IsZero() {
		steps = steps[len(steps)-1:]
		if p.From = later(steps[0].Since, x.rule.Cleared); p.From.IsZero() {
			p.From = x.at
		}
	}
	return steps
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return kept(a)
	}
	return kept(b)
}

// windows is how many windows of the clause end within d.
func (x *sight) windows(d time.Duration) int {
	if w := x.terms.window.For; w > 0 && d > 0 {
		return int((d - 1) / w)
	}
	return 0
}

// since is the evidence of the proof as a whole. What was seen since it began has
// half of the stake; the other half is spread over tests that begin anew with each
// window, the k-th with 1/(k(k+1)) of it, so that a change is found soon however long
// all was well before. Each of them is an e-process, and so is their sum with
// stakes that add up to one; the greatest of some of them is less than the sum.
func (x *sight) since(p Proof, t trialOf) (fail, pass shown) {
	fail, pass = shown{p.Fail + t.proof.Fail, &t}, shown{p.Pass + t.proof.Pass, &t}
	if inForce(x.rule.Phase) {
		fail.log = math.Inf(-1) // it is known that it was violated: only whether it still is counts
	}
	if x.terms.window.For == 0 {
		return fail, pass
	}
	fail.log, pass.log = fail.log-math.Ln2, pass.log-math.Ln2
	last := x.windows(t.to.Sub(t.from))
	for back := 0; back <= last; back = max(1, 2*back) {
		j := last - back
		if j == 0 && p.Starts == 0 {
			break // the whole
		}
		part := x.trial(t.from.Add(time.Duration(j)*x.terms.window.For), x.at, t.step)
		if part.why != "" {
			continue
		}
		k := float64(p.Starts + j + 1)
		stake := -math.Ln2 - math.Log(k) - math.Log1p(k)
		if log := part.proof.Fail + stake; log > fail.log && (back < 2 || !inForce(x.rule.Phase)) {
			fail = shown{log, &part}
		}
		if log := part.proof.Pass + stake; log > pass.log {
			pass = shown{log, &part}
		}
	}
	return fail, pass
}

// shown is the logarithm of an e-value, and the test that gave it.
type shown struct {
	log float64
	of  *trialOf
}

func (s shown) shows(alpha float64) bool { return anytime.Evidence{Fail: s.log}.Fails(alpha) }

func (s shown) reason(what string, alpha float64) string {
	return fmt.Sprintf("%s: shown to be %s, e-value %s (%s decide)", s.of.text(), what, eValue(s.log), eNeed(alpha))
}

// eNeed is the e-value that decides.
func eNeed(alpha float64) string { return significant(math.Round(1e6/alpha)/1e6, 3) }

// trialOf is one test: over the sessions that began in a stretch within one step.
type trialOf struct {
	*sight
	from, to   time.Time
	step       Step
	cand, base Series
	proof      anytime.Evidence
	why        string // why it is no evidence; "" if it is
}

// trial tests the sessions that began above from and up to to, as far as they were
// known at to. Requests in flight then are each taken for what speaks least for
// the hypothesis that is to be proved; a little before the end there are fewer of
// them, so it looks there, too.
func (x *sight) trial(from, to time.Time, s Step) trialOf {
	t := trialOf{sight: x, from: from, to: to, step: s}
	t.cand, t.base = x.sessions("candidate", from, to, to), x.sessions(baselineName, from, to, to)
	if t.why = t.gap(); t.why != "" {
		return t
	}
	t.proof, t.why = t.test(t.cand, t.base)
	if t.cand.Pending+t.base.Pending == 0 || t.why != "" {
		return t
	}
	settled := to.Add(-to.Sub(from) / 8)
	c, b := x.sessions("candidate", from, settled, to), x.sessions(baselineName, from, settled, to)
	if e, why := t.test(c, b); why == "" {
		t.proof = anytime.Evidence{Fail: math.Max(t.proof.Fail, e.Fail), Pass: math.Max(t.proof.Pass, e.Pass)}
	}
	return t
}

func (x *sight) sessions(variant string, from, to, at time.Time) Series {
	a := x.ask(variant, from, to)
	a.At, a.Sessions, a.Low = at, true, !x.need.Compare.upper()
	return x.seen.See(a)
}

// gap says why the sessions are no evidence; "" if they are.
func (t *trialOf) gap() string {
	least := max(t.terms.min, 1)
	for _, v := range []struct {
		who string
		s   Series
	}{{"the candidate", t.cand}, {"the baseline", t.base}} {
		s := v.s
		switch {
		case s.N == 0:
			return t.nothing(v.who)
		case s.N < least:
			return fmt.Sprintf("no data: %s rests on %s of %s since %s; the clause asks for %s", t.need.Quantity, grouped(fmt.Sprint(s.N)), v.who, t.from.UTC().Format(time.TimeOnly), grouped(fmt.Sprint(least)))
		case float64(s.Missing) > maxMissing*float64(s.N+s.Missing):
			return fmt.Sprintf("no data: %s: %d of %d of %s have no %s", t.need.Quantity, s.Missing, s.N+s.Missing, v.who, t.metric.Title)
		case t.need.Quantity.Stat == "mean" && float64(s.Over) > maxFailed*float64(s.N):
			return fmt.Sprintf("no data: %s: %d of %d of %s failed, and a mean leaves them out", t.need.Quantity, s.Over, s.N, v.who)
		}
	}
	return t.invalid()
}

// invalid says why the two variants cannot be compared; "" if they can.
func (t *trialOf) invalid() string {
	if w := t.step.Weight; w > 0 && w < 1 {
		all := func(variant string) int {
			a := t.ask(variant, t.from, t.to)
			a.Metric, a.At, a.Sessions = "failed", t.to, true
			if s := t.seen.See(a); s.Worst != nil {
				return int(s.Worst.N())
			}
			return 0
		}
		c, b := all("candidate"), all(baselineName)
		if e, err := anytime.Mismatch([]int{c, b}, []float64{w, 1 - w}); err != nil || e >= math.Log(wrongSplit) {
			return fmt.Sprintf("no verdict: %d of %d sessions went to the candidate, at a weight of %s: they were not assigned as planned, so nothing of them can be compared", c, c+b, config.Percent(w))
		}
	}
	c, b := t.cand.InFlight, t.base.InFlight
	if t.timed() && c > 0 && b > 0 && math.Abs(c/b-1) > mostApart {
		return fmt.Sprintf("no verdict: the candidate has %s requests in flight per replica and the baseline %s; a server is faster when it is emptier, so they must be within %s", significant(c, 3), significant(b, 3), percentage(mostApart))
	}
	return ""
}

// timed reports whether the metric depends on how busy a server is.
func (x *sight) timed() bool {
	return x.metric.Unit == record.Nanoseconds || x.metric.Unit == record.TokensPerSecond
}

// test gives the evidence of two series. Where the demand is a lower limit, the
// variants change places, and the margin its side.
func (t *trialOf) test(cand, base Series) (anytime.Evidence, string) {
	both := func(test func(c, b Series, worst bool) (anytime.Evidence, error)) (anytime.Evidence, string) {
		fail, err := test(cand, base, false)
		pass := fail
		if err == nil && (cand.open() || base.open()) {
			pass, err = test(cand, base, true)
		}
		if err != nil {
			return anytime.Evidence{}, fmt.Sprintf("no data: %s: %v", t.need.Quantity, err)
		}
		return anytime.Evidence{Fail: fail.Fail, Pass: pass.Pass}, ""
	}
	if t.need.Quantity.Stat == "mean" {
		return both(t.means)
	}
	if cand.Best == nil || base.Best == nil {
		return anytime.Evidence{}, fmt.Sprintf("no data: nothing tells %s of each session", t.need.Quantity)
	}
	if t.need.Quantity.Stat == "share" {
		return both(t.shares)
	}
	return both(t.quantiles)
}

// open reports whether its two histograms differ.
func (s Series) open() bool { return s.Best != s.Worst }

// at returns the histogram of the side that favours the candidate, or not.
func (s Series) at(worst bool) *stat.Histogram {
	if worst {
		return s.Worst
	}
	return s.Best
}

func (t *trialOf) quantiles(cand, base Series, worst bool) (anytime.Evidence, error) {
	l := t.need.Limit
	q := anytime.Quantile{P: t.need.Quantity.P, Margin: l.Factor, Shift: l.Value}
	if t.need.Compare.upper() {
		return q.Test(cand.at(worst), base.at(!worst))
	}
	q.Margin, q.Shift = 1/l.Factor, -l.Value
	return q.Test(base.at(!worst), cand.at(worst))
}

// events counts the bad events of a share: fractions of sessions.
func (t *trialOf) events(h *stat.Histogram) anytime.Count {
	c := anytime.Count{N: h.N()}
	for b := range h.Buckets() {
		if b.Lo > 0.5 == t.need.Compare.upper() {
			c.Events += b.Count
		}
	}
	c.Events = math.Min(c.Events, c.N)
	return c
}

func (t *trialOf) shares(cand, base Series, worst bool) (anytime.Evidence, error) {
	l := t.need.Limit
	c, b := t.events(cand.at(worst)), t.events(base.at(!worst))
	if l.Factor == 1 {
		margin := l.Value
		if !t.need.Compare.upper() {
			margin = -margin
		}
		return anytime.Proportion{Margin: margin}.Test(c, b)
	}
	if t.step.Weight <= 0 || t.step.Weight >= 1 {
		return anytime.Evidence{}, fmt.Errorf("a ratio of shares is tested by the share of all events that is the candidate's, and nobody tells the weight of the variants")
	}
	if !t.need.Compare.upper() { // good events: the baseline's may be at most 1/factor times the candidate's
		c.Events, b.Events = c.N-c.Events, b.N-b.Events
		return anytime.Exceedance{Margin: 1 / l.Factor, Weight: 1 - t.step.Weight}.Test(b.Events, c.Events)
	}
	return anytime.Exceedance{Margin: l.Factor, Weight: t.step.Weight}.Test(c.Events, b.Events)
}

func (t *trialOf) means(cand, base Series, _ bool) (anytime.Evidence, error) {
	l := t.need.Limit
	mean := anytime.Mean{Relative: l.Factor != 1}
	margin := l.Value
	if mean.Relative {
		margin = l.Factor
	}
	if t.need.Compare.upper() {
		return mean.Test(&cand.Sums, &base.Sums, margin)
	}
	if margin = -margin; mean.Relative {
		margin = 1 / l.Factor
	}
	return mean.Test(&base.Sums, &cand.Sums, margin)
}

// text says what was seen.
func (t *trialOf) text() string {
	kind, limit := changeOf(t.need.Limit, t.unit)
	ch := change{kind: kind, unit: t.unit, from: "baseline"}
	of := func(s Series) float64 {
		switch t.need.Quantity.Stat {
		case "mean":
			return s.Sums.Ratio()
		case "share":
			c := t.events(s.Best)
			if !t.need.Compare.upper() {
				c.Events = c.N - c.Events
			}
			return c.Events / c.N
		}
		return s.Best.Quantile(t.need.Quantity.P)
	}
	diff := of(t.cand) - of(t.base)
	if kind == ChangeRatio {
		diff = of(t.cand) / of(t.base)
	}
	sessions := func(s Series) string { return grouped(fmt.Sprint(s.sessions())) }
	return fmt.Sprintf("%s is %s (%s), of %s and %s sessions since %s", subject(t.need.Quantity, t.metric), ch.place(diff), ch.margin(t.need.Compare, limit),
		sessions(t.cand), sessions(t.base), t.from.UTC().Format(time.TimeOnly))
}

// sessions is how many sessions the series is of.
func (s Series) sessions() int {
	if s.Worst != nil {
		return int(math.Round(s.Worst.N()))
	}
	return s.Sums.N()
}

// eValue writes an e-value by its logarithm.
func eValue(log float64) string {
	switch {
	case log > math.Log(1e6):
		return "over 1,000,000"
	case log < math.Log(0.01):
		return "under 0.01"
	}
	return significant(math.Exp(log), 2)
}
