package anytime

import (
	"fmt"
	"math"
	"sort"

	"github.com/assay-llm/assay/stat"
)

// Quantile compares a quantile of two variants where less is better, as a
// latency: the candidate's p-quantile may be at most Margin times the
// baseline's. Nothing is assumed of the distributions. One observation is one
// session (see [stat.Histogram.Add]); observations within a session may depend
// on each other, sessions may not.
//
// Where more is better, exchange the variants and give 1/margin.
//
// It is Theorem 5 of Howard & Ramdas (Sequential estimation of quantiles,
// Bernoulli 28, 2022), made one-sided, with a margin, on histograms: at the true
// quantile the product of a martingale for each variant bounds the evidence,
// and the evidence is the least product over all x. Values are rounded to the
// edges of their buckets so that the evidence gets smaller.
type Quantile struct {
	// P is the quantile, strictly between 0 and 1: 0.95.
	P float64
	// Margin is the factor, greater than 0: 1.1 lets the candidate be 10 % slower.
	Margin float64
	// Shift is added to the baseline's quantile times Margin, in the unit of the
	// values, negative or not: a Margin of 1 and a Shift of 85 let it be 85 slower.
	Shift float64
	// Horizon is the number of sessions of both variants for which the test is
	// tuned; 0 means 1,000. It costs power to miss it by far, never validity.
	Horizon int
}

// Test gives the evidence after all sessions so far.
func (t Quantile) Test(candidate, baseline *stat.Histogram) (Evidence, error) {
	if err := t.check(); err != nil {
		return Evidence{}, err
	}
	return t.test(newStairs(baseline, candidate, t.within), 1, 1), nil
}

// within is the largest value that the margin allows where the baseline has x.
func (t Quantile) within(x float64) float64 { return t.Margin*x + t.Shift }

func (t Quantile) check() error {
	if !(t.P > 0 && t.P < 1) || !(t.Margin > 0) || math.IsInf(t.Margin, 1) || math.IsNaN(t.Shift) || math.IsInf(t.Shift, 0) {
		return fmt.Errorf("testing a quantile: p = %v, margin = %v and shift = %v; p lies strictly between 0 and 1, the margin is a positive factor, and the shift is finite", t.P, t.Margin, t.Shift)
	}
	return nil
}

// stairs are both empirical distribution functions where the baseline's has a
// step. At x in step k, the baseline has base[k] observations below x for sure
// and base[k+1] that may be at most x; the candidate has candLo[k] below
// within(x) for sure, and candHi[k] that may be at most within(x). All four
// ascend with k.
type stairs struct {
	base, candLo, candHi []float64
	nBase, nCand         float64
}

func newStairs(baseline, candidate *stat.Histogram, within func(float64) float64) stairs {
	s := stairs{nBase: baseline.N(), nCand: candidate.N()}
	var cand []stat.Bucket
	var upTo []float64 // observations in cand[:i]
	sum := 0.0
	for b := range candidate.Buckets() {
		cand, upTo = append(cand, b), append(upTo, sum)
		sum += b.Count
	}
	upTo = append(upTo, sum)
	// Buckets that begin below x, and buckets that end at x or before.
	begun := func(x float64) float64 {
		return upTo[sort.Search(len(cand), func(i int) bool { return cand[i].Lo >= x })]
	}
	ended := func(x float64) float64 {
		return upTo[sort.Search(len(cand), func(i int) bool { return cand[i].Hi > x })]
	}
	at := 0.0
	s.base = append(s.base, 0)
	for b := range baseline.Buckets() {
		s.candLo = append(s.candLo, ended(within(b.Lo)))
		if math.IsInf(b.Hi, 1) {
			s.candHi = append(s.candHi, sum)
		} else {
			s.candHi = append(s.candHi, begun(within(b.Hi)))
		}
		at += b.Count
		s.base = append(s.base, at)
	}
	return s
}

// test evaluates the evidence as if each variant had grown by a factor, which
// is 1 except when planning.
func (t Quantile) test(s stairs, growBase, growCand float64) Evidence {
	horizon, alpha := tuning(t.Horizon, 0)
	w := newPair(t.P, horizon, alpha)
	nb, nc := s.nBase*growBase, s.nCand*growCand
	k := len(s.candHi)
	// Beyond the last step every observation is at most x.
	fail := least(k+1,
		func(i int) float64 { return w.more(s.base[i]*growBase, nb) },
		func(i int) float64 {
			if i == k {
				return w.less(nc, nc)
			}
			return w.less(s.candHi[i]*growCand, nc)
		})
	// Before the first step no observation is below x.
	pass := least(k+1,
		func(i int) float64 {
			if i == 0 {
				return w.more(0, nc)
			}
			return w.more(s.candLo[i-1]*growCand, nc)
		},
		func(i int) float64 { return w.less(s.base[i]*growBase, nb) })
	return Evidence{Fail: fail, Pass: pass}
}

// least is the minimum of rises(i)+falls(i) over 0 <= i < n, where rises
// ascends and falls descends: on a range the sum of the least values of the two
// bounds it, so that most of it need not be looked at.
func least(n int, rises, falls func(int) float64) float64 {
	best := math.Inf(1)
	var search func(lo, hi int, up, down [2]float64)
	search = func(lo, hi int, up, down [2]float64) {
		best = math.Min(best, math.Min(up[0]+down[0], up[1]+down[1]))
		if hi-lo < 2 || up[0]+down[1] >= best {
			return
		}
		mid := (lo + hi) / 2
		u, d := rises(mid), falls(mid)
		left := func() { search(lo, mid, [2]float64{up[0], u}, [2]float64{down[0], d}) }
		right := func() { search(mid, hi, [2]float64{u, up[1]}, [2]float64{d, down[1]}) }
		if up[0]+d < u+down[1] {
			left()
			right()
		} else {
			right()
			left()
		}
	}
	search(0, n-1, [2]float64{rises(0), rises(n - 1)}, [2]float64{falls(0), falls(n - 1)})
	return best
}
