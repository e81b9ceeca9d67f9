package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// absolute holds the candidate against a quantity.
func (x *trial) absolute() (Grade, string) {
	need, est := x.clause.Need, x.c.est
	x.limit = need.Limit.Value
	grade := decide(need.Compare, est, x.limit)
	if why := x.noService(); grade == Pass && why != "" {
		return Inconclusive, why
	}
	switch need.Quantity.Stat {
	case "count":
		return x.windowed(grade)
	case "max", "min":
		x.note(fmt.Sprintf("a fact of these %s, no evidence about the next ones", count(x.cand.counts.judged(), "request")))
		return grade, x.fact()
	}
	x.wholeRun()
	x.detect(est)
	if grade == Inconclusive {
		return grade, x.undecided(est)
	}
	if why := x.beyond(); why != "" {
		return grade, why
	}
	v, l := pair(x.Unit, est.Value, x.limit)
	return grade, fmt.Sprintf("%s is %s (limit %s): at %s confidence %s", subject(need.Quantity, x.metric), v, l, percentage(x.terms.confidence), x.boundText(est, grade))
}

// noService says why a pass on this metric proves nothing: too many answers were
// cut short, the streams were held back on their way, or too many requests
// failed, and the metric counts what was sent for them as if they had been served.
func (x *trial) noService() string {
	c := x.cand.counts
	if n := x.cand.shortened(); ofLength(x.metric) && float64(n) > maxMissing*float64(c.Completed) {
		return fmt.Sprintf("%d of %s of %s are shorter than asked, although told to ignore the end of text: they are not the planned work", n, count(c.Completed, "answer"), x.cand.variant)
	}
	if ofPace(x.metric) && x.cand.held() {
		return fmt.Sprintf("the streams of %s arrive in pieces, as behind a buffering proxy that holds them back: their gaps are not the engine's", x.cand.variant)
	}
	if !spoilt(x.metric) || float64(c.Failed) <= maxFailed*float64(c.judged()) {
		return ""
	}
	return fmt.Sprintf("%d of %s of %s failed, and what was sent for them is no service", c.Failed, count(c.judged(), "request"), x.cand.variant)
}

// wholeRun notes that a window for live traffic was not applied.
func (x *trial) wholeRun() {
	if w := x.terms.window; !w.IsZero() {
		x.note(fmt.Sprintf("judged over the whole run, not in windows of %s", w))
	}
}

// fact says a quantity that has no interval.
func (x *trial) fact() string {
	if why := x.beyond(); why != "" {
		return why
	}
	v, l := pair(x.Unit, x.c.est.Value, x.limit)
	if x.Unit == record.Requests {
		// "count of failed requests is 2 requests" says it twice.
		v, l = strings.TrimSuffix(v, " requests"), strings.TrimSuffix(l, " requests")
	}
	return fmt.Sprintf("%s is %s (limit %s), exactly, in this run", subject(x.clause.Need.Quantity, x.metric), v, l)
}

// beyond says that failed requests put the value where no number is; "" if
// there is a number.
func (x *trial) beyond() string {
	if !math.IsInf(x.c.est.Value, 0) {
		return ""
	}
	limit := "limit " + value(x.Unit, x.limit, 9)
	if x.clause.Need.Limit.relative() {
		limit = x.change.margin(x.Compare, x.limit)
	}
	c := x.cand.counts
	why := fmt.Sprintf("%d of %s failed, and a failed request is worse than any limit", c.Failed, count(c.judged(), "request"))
	if c.Failed == 0 {
		why = fmt.Sprintf("%d of %s have no %s, and what is not told is worse than any limit", c.Missing, count(c.judged(), "request"), x.metric.Title)
	}
	return fmt.Sprintf("%s is %s (%s): %s", subject(x.clause.Need.Quantity, x.metric), value(x.Unit, x.c.est.Value, 3), limit, why)
}

// leastCount is how many requests a count must be over to pass, unless the clause
// says min.
const leastCount = 20

// windowed grades a count. A count grows with the run, so a window says how
// long a run its limit is meant for: fewer events in a shorter run, or more in
// a longer one, say nothing about the window.
func (x *trial) windowed(grade Grade) (Grade, string) {
	w := x.terms.window
	if n := x.cand.counts.judged(); grade == Pass && x.terms.min == 0 && n < leastCount {
		x.Shortfall = int64(leastCount - n)
		return Inconclusive, fmt.Sprintf("%s; but only %s: a count over fewer than %d proves nothing", x.fact(), count(n, "request"), leastCount)
	}
	if w.IsZero() {
		return grade, x.fact()
	}
	length, run := float64(x.cand.counts.judged()), count(x.cand.counts.judged(), "request")
	window := float64(w.Requests)
	if w.Requests == 0 {
		length, run = float64(x.cand.span()), config.Duration(x.cand.span()).String()
		window = float64(w.For)
	}
	decided := grade == Pass && length >= window || grade == Fail && length <= window
	if decided && x.Compare.upper() {
		return grade, x.fact()
	}
	return Inconclusive, fmt.Sprintf("%s; the run is %s long, the window %s, and a count over the one does not tell that of the other", x.fact(), run, w)
}

// boundText says the bound that decided.
func (x *trial) boundText(est stat.Estimate, grade Grade) string {
	if x.Compare.upper() == (grade == Pass) {
		hi, _ := pair(x.Unit, est.Hi, x.limit)
		return "at most " + hi
	}
	lo, _ := pair(x.Unit, est.Lo, x.limit)
	return "at least " + lo
}

// undecided says why neither pass nor fail was shown, and what would help.
func (x *trial) undecided(est stat.Estimate) string {
	if why := x.unbounded(); why != "" {
		return why
	}
	span := fmt.Sprintf("at %s confidence %s", percentage(x.terms.confidence), x.spanText(est)) + drifting(est)
	if why := x.beyond(); why != "" {
		return why + "; " + span
	}
	v, l := pair(x.Unit, est.Value, x.limit)
	return fmt.Sprintf("%s is %s (limit %s): %s", subject(x.clause.Need.Quantity, x.metric), v, l, span) + x.more(est)
}

func (x *trial) spanText(est stat.Estimate) string {
	switch {
	case math.IsInf(est.Lo, 0) && math.IsInf(est.Hi, 0):
		return "without any bound"
	case math.IsInf(est.Lo, 0):
		return "at most " + value(x.Unit, est.Hi, 3) + ", without a lower bound"
	case math.IsInf(est.Hi, 0):
		return "at least " + value(x.Unit, est.Lo, 3) + ", without an upper bound"
	}
	return "between " + value(x.Unit, est.Lo, 3) + " and " + value(x.Unit, est.Hi, 3)
}

// drifting says that a bound is missing because the series is too short against
// its own memory; "" if both bounds are there.
func drifting(est stat.Estimate) string {
	i := slices.IndexFunc(est.Warnings, func(w stat.Warning) bool { return w.Code == stat.CodeFewBatches })
	if est.Estimable() || i < 0 {
		return ""
	}
	return "; " + est.Warnings[i].Text
}

// unbounded says that the sample is too small for the bound that a pass needs;
// "" if it is not.
func (x *trial) unbounded() string {
	q := x.clause.Need.Quantity
	if q.Stat != "quantile" {
		return ""
	}
	sides := []struct {
		s   *scope
		est stat.Estimate
		n   int
	}{{&x.cand, x.c.est, quantileNeeds(q.P, x.terms.confidence, x.Compare.upper())}}
	if x.clause.Need.Limit.Baseline {
		sides = append(sides, sides[0])
		sides[1].s, sides[1].est, sides[1].n = &x.base, x.b.est, quantileNeeds(q.P, x.terms.confidence, !x.Compare.upper())
	}
	for _, side := range sides {
		if side.n == math.MaxInt || side.est.Effective >= float64(side.n) {
			continue
		}
		noun := "request"
		if side.est.N > side.s.counts.judged() {
			noun = "value"
		}
		need := grouped(fmt.Sprint(side.n))
		judged := float64(side.s.counts.judged())
		x.Shortfall = about(float64(side.n)*judged/float64(side.est.N) - judged)
		if side.est.N >= side.n {
			x.Shortfall = about(float64(side.n)*judged/math.Max(side.est.Effective, 1) - judged)
			return fmt.Sprintf("%s of %s, as dependent as they are, are worth %s; a %s bound for %s needs %s", count(side.est.N, noun), side.s.variant, grouped(fmt.Sprint(int(side.est.Effective))), percentage(x.terms.confidence), q.stat(), need)
		}
		return fmt.Sprintf("only %s of %s; a %s bound for %s needs %s", count(side.est.N, noun), side.s.variant, percentage(x.terms.confidence), q.stat(), need)
	}
	return ""
}

// quantileNeeds is the least number of independent observations that bound a
// quantile on one side.
func quantileNeeds(p, confidence float64, above bool) int {
	if !above {
		p = 1 - p
	}
	return stat.NeedAbove(p, twoSided(confidence))
}

// more estimates how many more requests would decide, and says so: the interval
// shrinks with the square root of their number until its end reaches the limit.
func (x *trial) more(est stat.Estimate) string {
	end := est.Hi
	if est.Value > x.limit {
		end = est.Lo
	}
	distance, width := math.Abs(est.Value-x.limit), math.Abs(end-est.Value)
	n := float64(x.cand.counts.judged())
	if x.metric.Whole || math.IsInf(end, 0) || math.IsNaN(width) || distance == 0 || math.IsInf(distance, 0) {
		return ""
	}
	ratio := width / distance
	factor := ratio * ratio
	if est.Value == 0 && x.metric.Indicator {
		factor = ratio // without any event the bound falls as 1/n
	}
	if extra := n * (factor - 1); extra >= 1 && extra <= mostShortfall {
		x.Shortfall = about(extra)
		s := fmt.Sprintf("; about %s would decide", count(x.Shortfall, "more request"))
		if x.clause.Need.Limit.Baseline {
			s = fmt.Sprintf("; about %s of each variant would decide", count(x.Shortfall, "more request"))
		}
		return s
	}
	return ""
}

// mostShortfall is where "about so many more" stops to be of help: the value
// lies at the limit.
const mostShortfall = 1e7

// about rounds up to two significant digits.
func about(n float64) int64 {
	if !(n >= 1) {
		return 1
	}
	unit := math.Pow10(max(0, int(math.Floor(math.Log10(n)))-1))
	return int64(math.Ceil(n/unit) * unit)
}

// relative holds the candidate against the baseline.
func (x *trial) relative() (Grade, string) {
	limit := x.clause.Need.Limit
	x.wholeRun()
	x.change = change{unit: x.Unit, from: limit.yardstick()}
	x.change.kind, x.limit = changeOf(limit, x.Unit)
	gap := ""
	switch {
	case x.ownChange():
		x.diff, gap = x.wholeChange()
	case x.metric.Check != "" && !x.metric.Whole && limit.Baseline && x.change.kind == ChangeDifference:
		x.diff, gap = x.pairedChange()
	default:
		x.diff = x.against(x.b.est)
	}
	x.Change, x.ChangeIs = &Figure{x.diff}, x.change.kind
	x.Limit.Change = finite(x.limit)
	x.Limit.Value = finite(limit.Factor*x.b.est.Value + limit.Value)
	x.detect(x.diff)
	if gap != "" {
		return Inconclusive, gap
	}
	grade := decide(x.Compare, x.diff, x.limit)
	if grade == Pass && x.metric.Check == "" {
		if why := cmp.Or(x.noService(), x.brokenBaseline()); why != "" {
			return Inconclusive, why
		}
	}
	if grade == Inconclusive {
		return grade, x.undecidedChange()
	}
	if why := x.beyond(); why != "" {
		return grade, why
	}
	return grade, fmt.Sprintf("%s: at %s confidence %s", x.changeText(), percentage(x.terms.confidence), x.changeBound(grade))
}

// changeOf says how a limit against a yardstick is held: as a ratio where it is
// one, or where it leaves no margin and the unit has a zero.
func changeOf(l Limit, u record.Unit) (ChangeKind, float64) {
	if l.Factor != 1 || l.Value == 0 && u != record.Proportion && u != record.Points {
		return ChangeRatio, l.Factor
	}
	return ChangeDifference, l.Value
}

func (x *trial) against(baseline stat.Estimate) stat.Estimate {
	if x.change.kind == ChangeRatio {
		return stat.Ratio(x.c.est, baseline)
	}
	return stat.Difference(x.c.est, baseline)
}

// wreck is the share of failed requests from which on a baseline is no yardstick
// even for failing.
const wreck = 0.1

// brokenBaseline says why a pass against this baseline proves nothing: a
// yardstick that failed must not make the candidate look good.
func (x *trial) brokenBaseline() string {
	if !x.clause.Need.Limit.Baseline {
		return ""
	}
	c := x.base.counts
	most := maxFailed
	if x.metric.Indicator { // failing itself may be compared, but not with a wreck
		most = wreck
	}
	if c.Failed == 0 || x.metric.Indicator && float64(c.Failed) <= most*float64(c.judged()) {
		return ""
	}
	failed := fmt.Sprintf("%d of %s of the baseline failed", c.Failed, count(c.judged(), "request"))
	if float64(c.Failed) > most*float64(c.judged()) {
		return failed + ": it is no yardstick"
	}
	q := x.clause.Need.Quantity
	if q.Stat != "quantile" {
		return ""
	}
	adverse := x.base.measure(q, x.metric, x.two(), !x.Compare.upper())
	if adverse.gap != "" || decide(x.Compare, x.against(adverse.est), x.limit) != Pass {
		return failed + ": had they been its best, the candidate would not be shown to pass"
	}
	return ""
}

func (x *trial) changeText() string {
	q := x.clause.Need.Quantity
	return fmt.Sprintf("%s is %s (%s)", subject(q, x.metric), x.change.place(x.diff.Value), x.change.margin(x.Compare, x.limit))
}

// changeBound says the bound that decided, without a sign when value and bound
// are both above the baseline, as people say it.
func (x *trial) changeBound(grade Grade) string {
	words, b := "at least ", x.diff.Lo
	if x.Compare.upper() == (grade == Pass) {
		words, b = "at most ", x.diff.Hi
	}
	if b > x.change.zero() && x.diff.Value > x.change.zero() {
		return words + x.change.magnitude(b)
	}
	return words + x.change.signed(b)
}

func (x *trial) undecidedChange() string {
	if !x.diff.Defined() {
		for _, w := range x.diff.Warnings {
			if w.Code == stat.CodeUndefined {
				return "there is no comparison: " + w.Text
			}
		}
		return "there is no comparison"
	}
	if why := x.unbounded(); why != "" {
		return why
	}
	lo, hi := x.change.signed(x.diff.Lo), x.change.signed(x.diff.Hi)
	span := "between " + lo + " and " + hi
	switch {
	case math.IsInf(x.diff.Lo, 0) && math.IsInf(x.diff.Hi, 0):
		span = "without any bound"
	case math.IsInf(x.diff.Lo, 0):
		span = "at most " + hi + ", without a lower bound"
	case math.IsInf(x.diff.Hi, 0):
		span = "at least " + lo + ", without an upper bound"
	}
	return fmt.Sprintf("%s: at %s confidence %s", x.changeText(), percentage(x.terms.confidence), span) + drifting(x.diff) + x.more(x.diff)
}
