package judge

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/agree"
	"github.com/assay-llm/assay/stat/compare"
)

// Position says how far the place of an answer decides.
type Position struct {
	Pairs int // with a score in both orders
	// Bias is half the share of pairs in which the first place was preferred, beyond
	// what the answers earn, minus that of the second: 0 is none, 1/2 a judge that
	// always names the first. Without ties it is the mean of how often the first
	// place wins, in either order, minus 1/2.
	Bias stat.Estimate
	// Flips is the share of pairs whose two orders name different answers.
	Flips stat.Estimate
}

// PositionBias takes the preferences of many pairs together. Clusters names the
// cluster of each; nil: each pair stands for itself.
func PositionBias(all []Preference, clusters []string, confidence float64) Position {
	type lean struct {
		cluster string
		by      float64
	}
	var leans []lean
	first, second, flips := 0, 0, 0
	for i := range all {
		by := all[i].First()
		if math.IsNaN(by) {
			continue
		}
		l := lean{by: 0}
		if clusters != nil {
			l.cluster = clusters[i]
		}
		switch {
		case by > 0:
			first++
			l.by = 0.5
		case by < 0:
			second++
			l.by = -0.5
		}
		if math.Abs(by) == 0.5 {
			flips++
		}
		leans = append(leans, l)
	}
	p := Position{Pairs: len(leans), Flips: stat.ExactShare(flips, len(leans), confidence)}
	groups := grouped(leans, func(l lean) string { return l.cluster })
	if len(groups) == len(leans) {
		p.Bias = compare.Tango(first, second, len(leans), confidence)
		p.Bias.Value, p.Bias.Lo, p.Bias.Hi = p.Bias.Value/2, p.Bias.Lo/2, p.Bias.Hi/2
		return p
	}
	values := make([][]float64, len(groups))
	for i, g := range groups {
		for _, l := range g {
			values[i] = append(values[i], l.by)
		}
	}
	p.Bias = compare.Mean(values, confidence)
	return p
}

// Sized is the score of a comparison and how much longer the candidate's answer
// is.
type Sized struct {
	Cluster string
	Score   float64 // 0 to 1; NaN is left out
	Longer  float64 // than the baseline's: the difference of their characters
}

// Length is a win rate with and without the part that length explains.
type Length struct {
	Raw        stat.Estimate // mean score
	Controlled stat.Estimate // expected score of two answers of one length
	Deviation  float64       // of Longer, in characters
}

// ControlLength estimates the win rate at equal length: a logistic regression of
// the score on tanh(longer/deviation), read at 0 (as in AlpacaEval 2, but with
// intervals of the whole fit, the deviation included, by a bootstrap of clusters).
func ControlLength(all []Sized, confidence float64, seed uint64) Length {
	var kept []Sized
	var scores []Score
	for _, s := range all {
		if s.Score >= 0 && s.Score <= 1 && !math.IsNaN(s.Longer) {
			kept = append(kept, s)
			scores = append(scores, Score{Cluster: s.Cluster, Value: s.Score})
		}
	}
	groups := grouped(kept, func(s Sized) string { return s.Cluster })
	l := Length{Raw: meanOf(scores, confidence), Deviation: deviation(kept)}
	l.Controlled = agree.Resample(groups, func(s []Sized) float64 { return 1 / (1 + math.Exp(-fit(s))) }, confidence, seed)
	l.Controlled.Method = "logistic regression on tanh of the difference of lengths, bootstrap of the whole fit"
	return l
}

func deviation(all []Sized) float64 {
	n, mean, v := float64(len(all)), 0.0, 0.0
	for _, s := range all {
		mean += s.Longer / n
	}
	for _, s := range all {
		v += (s.Longer - mean) * (s.Longer - mean) / (n - 1)
	}
	return math.Sqrt(v)
}

// fit gives the logit at equal length by Newton's method, with a ridge so
// small that it only matters where the data would make them infinite. NaN: lengths
// do not differ.
func fit(all []Sized) float64 {
	const ridge = 0.1
	sigma := deviation(all)
	if !(sigma > 0) {
		return math.NaN()
	}
	a, b := 0.0, 0.0
	for range 50 {
		ga, gb, haa, hab, hbb := -ridge*a, -ridge*b, ridge, 0.0, ridge
		for _, s := range all {
			x := math.Tanh(s.Longer / sigma)
			p := 1 / (1 + math.Exp(-a-b*x))
			w := p * (1 - p)
			ga, gb = ga+s.Score-p, gb+(s.Score-p)*x
			haa, hab, hbb = haa+w, hab+w*x, hbb+w*x*x
		}
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		a, b = a+da, b+db
		if math.Abs(da)+math.Abs(db) < 1e-10 {
			return a
		}
	}
	return math.NaN()
}

// Canary reports whether a labelled case is one of those that each run judges
// again, unseen by whoever tunes a judge: about so large a share, chosen by the
// case's name.
func Canary(caseID string, share float64, seed uint64) bool {
	c := code(seed, []string{"canary", caseID}, nil)
	n := uint64(0)
	if _, err := fmt.Sscanf(c[:12], "%x", &n); err != nil {
		return false
	}
	return float64(n) < share*float64(uint64(1)<<48)
}

// Drift compares marks of cases with those of the same cases in an earlier run.
type Drift struct {
	N       int // marked both times
	Up      int // better now
	Down    int // worse now
	Lost    int // scored then and not now
	P       float64
	Drifted bool
	Open    bool // not drifted, and not said to be the same either
	Reason  string

	// Detects is the least share of the verdicts that is found in four of five runs of
	// so many cases when all of it moves one way and nothing else changes; NaN: not even
	// all of them would be. What changes by chance makes it larger.
	Detects float64
}

// Without a retest nobody knows how many verdicts change by chance. Then more than
// changeable is a drift, and unless it is proven (95 %) that less than mostChange do,
// the judge is not said to be the same.
const (
	changeable = 0.2
	mostChange = 0.5
)

// FindDrift tests whether a judge still judges as it did: as many verdicts may have
// become better as worse (McNemar, exact), no more may have changed than did when
// the judge was asked twice in one run (retest: changed among so many; Fisher,
// exact), and none more may be unscored. With a retest of less than half as many
// cases, verdicts that change in both directions say nothing by themselves: then at
// most a fifth may change, and where it is not proven at 95 % that less than half do,
// the result is open. It errs for a judge that did not change, and of which no more
// than a fifth of the verdicts change by chance, with a chance of at most alpha. NaN is
// a case that was not scored.
func FindDrift(stored, now []float64, retestChanged, retestOf int, alpha float64) Drift {
	d := Drift{P: 1}
	for i := range min(len(stored), len(now)) {
		switch {
		case math.IsNaN(stored[i]):
		case math.IsNaN(now[i]):
			d.Lost++
		default:
			d.N++
			if now[i] > stored[i] {
				d.Up++
			} else if now[i] < stored[i] {
				d.Down++
			}
		}
	}
	if d.N == 0 {
		d.P, d.Detects, d.Reason = math.NaN(), math.NaN(), "no case was judged both times"
		return d
	}
	tests := []struct {
		p   float64
		say string
	}{
		{compare.McNemar(d.Up, d.Down, false).P, fmt.Sprintf("%d verdicts became better and %d worse", d.Up, d.Down)},
		{stat.ChanceAtLeast(d.Lost, d.N+d.Lost, MostErrors), fmt.Sprintf("%d of %d have no score any more", d.Lost, d.N+d.Lost)},
	}
	changed, unknown := d.Up+d.Down, 2*retestOf < d.N
	if unknown {
		tests = append(tests, struct {
			p   float64
			say string
		}{
			stat.ChanceAtLeast(changed, d.N, changeable),
			fmt.Sprintf("%d of %d verdicts changed, more than %.0f %%", changed, d.N, 100*changeable),
		})
	}
	if retestOf > 0 {
		tests = append(tests, struct {
			p   float64
			say string
		}{
			stat.ChanceFewer(retestChanged, retestOf, changed, d.N),
			fmt.Sprintf("%d of %d verdicts changed, asked twice in one run only %d of %d do", changed, d.N, retestChanged, retestOf),
		})
	}
	d.Detects = detectable(d.N, alpha/float64(len(tests)))
	for _, t := range tests {
		if p := math.Min(1, t.p*float64(len(tests))); p < d.P {
			d.P, d.Reason = p, t.say
		}
	}
	if d.Drifted = d.P < alpha; !d.Drifted {
		d.Reason = fmt.Sprintf("%d of %d verdicts changed", changed, d.N)
		d.Open = unknown && !(stat.ExactShare(changed, d.N, 0.9).Hi < mostChange)
	}
	return d
}

// detectable is the share of n verdicts that McNemar's test finds at alpha in four of
// five runs when that share moves one way.
func detectable(n int, alpha float64) float64 {
	least := 1
	for compare.McNemar(least, 0, false).P >= alpha {
		if least++; least > n {
			return math.NaN()
		}
	}
	lo, hi := 0.0, 1.0
	for range 40 {
		if mid := (lo + hi) / 2; stat.ChanceAtLeast(least, n, mid) < 0.8 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
