package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/stat"
)

// unit is what is calibrated by itself: a clause on a workload, or a group.
type unit struct {
	top      int // index of its clause in the contract
	key      string
	id       string
	need     string
	scope    string
	workload string
	allowed  float64
	plain    bool // one comparison, rather than a group

	quantity contract.Quantity
	compare  contract.Compare
	scale    string
	unit     record.Unit
	limit    float64 // on the scale

	levels   []float64 // of the candidate's quantity, by pilot
	seen     []sight
	requests []float64
	short    []float64 // more requests that an undecided verdict asked for

	effects []float64
	same    report.Outcomes
	curve   []report.Outcomes
}

// sight is an identical candidate as the clause saw it, on its scale.
type sight struct{ value, lo, hi float64 }

func newUnit(top int, r contract.Result, k *contract.Contract) *unit {
	u := &unit{top: top, key: unitKey(r), id: r.ID, need: r.Need, scope: r.Scope, workload: r.Workload, plain: r.Kind == contract.KindClause && r.Quantity != nil}
	confidence := cmp.Or(r.Confidence, float64(k.Confidence), contract.DefaultConfidence)
	u.allowed = rounded(1 - confidence)
	if !u.plain {
		u.allowed = rounded(cmp.Or(r.WrongFail, 1-confidence))
		return u
	}
	u.quantity, u.compare = *r.Quantity, r.Compare
	return u
}

func rounded(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// pilot takes what an identical candidate shows of scale and level.
func (u *unit) pilot(r contract.Result) {
	if !u.plain || r.Candidate == nil || !r.Candidate.Defined() || math.IsInf(r.Candidate.Value, 0) {
		return
	}
	u.unit = r.Unit
	u.levels = append(u.levels, r.Candidate.Value)
	u.look(r)
}

// look enters one sight of the clause.
func (u *unit) look(r contract.Result) {
	if len(r.Counts) > 0 {
		u.requests = append(u.requests, float64(r.Counts[0].Completed+r.Counts[0].Failed))
	}
	switch {
	case r.Change != nil && r.Change.Defined() && r.Limit != nil && r.Limit.Change != nil && r.ChangeIs != "":
		u.scale, u.limit = string(r.ChangeIs), *r.Limit.Change
		u.seen = append(u.seen, sight{r.Change.Value, r.Change.Lo, r.Change.Hi})
	case r.ChangeIs == "" && r.Limit != nil && r.Limit.Value != nil && r.Candidate != nil && r.Candidate.Defined():
		u.scale, u.limit = scaleLevel, *r.Limit.Value
		u.seen = append(u.seen, sight{r.Candidate.Value, r.Candidate.Lo, r.Candidate.Hi})
	}
	if r.Shortfall > 0 {
		u.short = append(u.short, float64(r.Shortfall))
	}
}

const (
	scaleRatio      = string(contract.ChangeRatio)
	scaleDifference = string(contract.ChangeDifference)
	scaleLevel      = "level"
)

// observe looks at the unit's result of an identical pair of the main run.
func (u *unit) observe(v contract.Verdict) {
	if r := u.find(v); r != nil && u.plain {
		u.look(*r)
	}
}

func (u *unit) find(v contract.Verdict) *contract.Result {
	for _, c := range v.Clauses {
		for _, r := range unitsOf(c) {
			if unitKey(r) == u.key {
				return &r
			}
		}
	}
	return nil
}

func (u *unit) grade(v contract.Verdict) contract.Grade {
	if r := u.find(v); r != nil {
		return r.Grade
	}
	return contract.Inconclusive
}

// upper reports whether the limit is an upper one.
func (u *unit) upper() bool { return u.compare == "<=" || u.compare == "<" }

// identical is the effect of an identical candidate.
func (u *unit) identical() float64 {
	switch u.scale {
	case scaleRatio:
		return 1
	case scaleDifference:
		return 0
	}
	return mean(u.levels)
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func middle(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	return sorted[len(sorted)/2]
}

func deviation(xs []float64) float64 {
	m, sum := mean(xs), 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(max(1, len(xs)-1)))
}

// normal80 is the 80 % quantile of the normal distribution.
const normal80 = 0.8416

// reach is how far from the limit an effect must lie, on the bad side or on the good
// one, for the bound that decides to be on the same side in 80 % of the cases, by the
// spread of identical candidates; +Inf if that bound often does not exist.
func (u *unit) reach(bad bool) float64 {
	var values, widths []float64
	for _, s := range u.seen {
		bound := s.hi // an upper limit is passed by the upper bound, and failed by the lower one
		if u.upper() == bad {
			bound = s.lo
		}
		values, widths = append(values, s.value), append(widths, math.Abs(bound-s.value))
	}
	w := middle(widths)
	if len(values) < 2 || math.IsNaN(w) || math.IsInf(w, 0) {
		return math.Inf(1)
	}
	return w + normal80*deviation(values)
}

// choose sets the effects to plant: from identical to twice what should be found.
func (u *unit) choose() {
	if !u.plain || len(u.seen) == 0 || !plantable(u.quantity.Metric) || u.scale == "" {
		return
	}
	same, level := u.identical(), mean(u.levels)
	if timed(u.quantity.Metric) && !(level > 0) || !slices.Contains([]string{"quantile", "mean", "share"}, u.quantity.Stat) {
		return
	}
	sign := 1.0
	if !u.upper() {
		sign = -1
	}
	far := u.reach(true)
	if math.IsInf(far, 0) {
		far = math.Max(math.Abs(u.limit-same), 0.1*math.Abs(level))
		if u.scale == scaleRatio {
			far = math.Max(math.Abs(u.limit-1), 0.1)
		}
	}
	if timed(u.quantity.Metric) && u.scale == scaleLevel && u.limit > 0 {
		far *= u.limit / same // what is stretched spreads more
	}
	effects := []float64{same, (same + u.limit) / 2, u.limit}
	for _, k := range []float64{.5, 1, 1.5, 2, 3} {
		effects = append(effects, u.limit+sign*k*far)
	}
	slices.Sort(effects)
	if sign < 0 {
		slices.Reverse(effects)
	}
	for _, e := range slices.Compact(effects) {
		if u.possible(e) {
			u.effects = append(u.effects, e)
		}
	}
	u.curve = make([]report.Outcomes, len(u.effects))
}

// possible reports whether records can be made with the effect.
func (u *unit) possible(effect float64) bool {
	target := u.level(effect)
	switch {
	case timed(u.quantity.Metric):
		return target > 0.05*mean(u.levels)
	case u.quantity.Stat == "share":
		return target >= 0 && target <= 1
	}
	return true
}

// level is the candidate's quantity at an effect.
func (u *unit) level(effect float64) float64 {
	at := mean(u.levels)
	switch u.scale {
	case scaleRatio:
		return at * effect
	case scaleDifference:
		return at + effect
	}
	return effect
}

// difference is what gives the candidate's records the effect.
func (u *unit) difference(effect float64) Difference {
	at, to := mean(u.levels), u.level(effect)
	d := Difference{Metric: u.quantity.Metric, Share: u.quantity.Stat == "share"}
	if timed(d.Metric) {
		d.Factor = to / at
	} else {
		d.Shift = to - at
	}
	return d
}

// calibrated says what was seen of the unit, and whether its traffic supports it.
func (u *unit) calibrated() report.Calibrated {
	k := report.Calibrated{
		ID: u.id, Need: u.need, Scope: u.scope, Allowed: u.allowed, Identical: shares(u.same), Unit: u.unit,
		Curve: []report.CurvePoint{}, Limit: u.limit,
	}
	if n := middle(u.requests); !math.IsNaN(n) {
		k.Requests = int64(n)
	}
	if len(u.levels) > 0 {
		k.Scale, k.Same = u.scale, u.identical()
	}
	for i, e := range u.effects {
		k.Curve = append(k.Curve, report.CurvePoint{Effect: e, Outcomes: shares(u.curve[i])})
	}
	k.MDE = u.found()
	k.Needed = u.needed(k.Requests)
	k.Grade, k.Reason = u.verdict(&k)
	return k
}

// found interpolates the effect at which 80 % of the repeats fail.
func (u *unit) found() *float64 {
	for i := 1; i < len(u.curve); i++ {
		a, b := failed(u.curve[i-1]), failed(u.curve[i])
		if a < wantedPower && b >= wantedPower {
			e := u.effects[i-1] + (u.effects[i]-u.effects[i-1])*(wantedPower-a)/(b-a)
			return &e
		}
	}
	return nil
}

func failed(o report.Outcomes) float64 { return float64(o.Fail) / float64(max(o.Repeats, 1)) }

// bare reports whether the clause leaves no margin between what is identical and its
// limit.
func (u *unit) bare() bool {
	return u.scale == scaleRatio && u.limit == 1 || u.scale == scaleDifference && u.limit == 0
}

// needed extrapolates with how many requests of each variant an identical candidate
// passes in 80 % of the repeats: intervals and spread shrink with the square root.
func (u *unit) needed(requests int64) *int64 {
	if !u.plain || len(u.seen) < 2 || len(u.levels) == 0 || requests == 0 || u.bare() {
		return nil
	}
	room := u.limit - u.identical()
	if !u.upper() {
		room = -room
	}
	reach := u.reach(false)
	var n int64
	switch {
	case !(room > 0):
		return nil
	case !math.IsInf(reach, 0):
		n = int64(math.Ceil(float64(requests) * (reach / room) * (reach / room)))
	case len(u.short) > 0:
		n = requests + int64(middle(u.short))
	default:
		return nil
	}
	if n > 1e9 {
		return nil
	}
	n = max(n, 20) // below it no interval of a mean or a share is worth its name
	if u.quantity.Stat == "quantile" {
		n = max(n, int64(stat.NeedAbove(max(u.quantity.P, 1-u.quantity.P), 1-2*u.allowed)))
	}
	return &n
}

// verdict says whether the traffic supports the threshold.
func (u *unit) verdict(k *report.Calibrated) (contract.Grade, string) {
	alarms, passes := k.Identical.FailShare, k.Identical.PassShare
	if k.Identical.Repeats == 0 {
		return contract.Inconclusive, "it was never judged"
	}
	if k.Identical.Inconclusive == k.Identical.Repeats && len(u.seen) == 0 {
		return contract.Fail, "nothing of it is measured in this traffic, so that it can never be decided"
	}
	failing := fmt.Sprintf("%d of %d identical candidates fail", k.Identical.Fail, k.Identical.Repeats)
	passing := fmt.Sprintf("%d of %d identical candidates pass", k.Identical.Pass, k.Identical.Repeats)
	switch {
	case alarms.Lo > u.allowed:
		return contract.Fail, fmt.Sprintf("%s, where %s may: the threshold lies inside the noise%s", failing, percentText(u.allowed), u.advice(k))
	case passes.Hi < wantedPower:
		return contract.Fail, fmt.Sprintf("%s, where 80 %% should: it takes more requests to show that nothing changed%s", passing, u.advice(k))
	case alarms.Hi > u.allowed:
		return contract.Inconclusive, fmt.Sprintf("%s: too few repeats to say whether it is at most %s", failing, percentText(u.allowed))
	case passes.Lo < wantedPower:
		return contract.Inconclusive, passing + ": too few repeats to say whether it is at least 80 %" + u.advice(k)
	}
	return contract.Pass, fmt.Sprintf("%s, and %s", passing, strings.TrimSuffix(failing, " identical candidates fail")+" fail")
}

// advice says what would do.
func (u *unit) advice(k *report.Calibrated) string {
	switch {
	case !u.plain || len(u.levels) == 0:
		return ""
	case u.bare():
		return "; it leaves no margin, so no number of requests will do: give it one"
	case u.upper() == (u.identical() >= u.limit):
		return "; the baseline itself does not meet it, so no number of requests will do: give it a margin"
	case k.Needed == nil || *k.Needed <= k.Requests:
		return ""
	}
	return fmt.Sprintf("; about %s requests of each variant would do, where there are %s", report.Whole(*k.Needed), report.Whole(k.Requests))
}

// percentText writes a share in per cent.
func percentText(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
