package stat

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

const methodQuantile = "order statistic (Hyndman-Fan type 7), binomial ranks on the effective sample size"

// slack forgives the rounding error of a probability that was computed as
// (1-confidence)/2.
const slack = 1 + 1e-9

// Quantile estimates the p-quantile.
//
// Value is Hyndman and Fan's type 7 (the default of R and numpy). Lo and Hi are
// order statistics whose ranks follow from the binomial distribution (David &
// Nagaraja, Order Statistics, 7.1): each tail has at most half of 1-confidence,
// whatever the distribution of the values. Where no such rank exists the bound
// is infinite and a Warning tells how many observations it takes; the maximum
// never stands in for it.
func (s *Sample) Quantile(p, confidence float64) Estimate {
	n := s.N()
	tail, ok := tails(confidence)
	switch {
	case !ok:
		return undefined(n, s.over, confidence, methodQuantile, badConfidence)
	case !(p >= 0 && p <= 1):
		return undefined(n, s.over, confidence, methodQuantile, "the quantile must lie between 0 and 1")
	case n == 0:
		return undefined(n, s.over, confidence, methodQuantile, "there are no observations")
	}
	e := Estimate{
		Value: type7(s.sorted, p), Lo: math.Inf(-1), Hi: math.Inf(1),
		Confidence: confidence, N: n, Over: s.over, Method: methodQuantile,
	}
	d := s.dependence(p)
	e.Effective = math.Max(1, float64(n)/d.widened(tail))
	d.describe(&e)
	if d.tooShort() {
		return e
	}
	m := max(1, int(e.Effective))
	lo, hi := ranks(m, p, tail)
	if lo > 0 {
		// With l-1 = floor((lo-1)·n/m), the event {count < l} is no likelier
		// than {binomial(m, p) < lo}.
		l := 1 + int(math.Floor(float64(lo-1)*float64(n)/float64(m)))
		e.Lo = s.sorted[min(l, n)-1]
	}
	if hi <= m {
		h := int(math.Ceil(float64(hi) * float64(n) / float64(m)))
		e.Hi = s.sorted[min(h, n)-1]
	}
	s.explainMissing(&e, p, confidence, lo > 0, hi <= m)
	e.Lo, e.Hi = math.Min(e.Lo, e.Value), math.Max(e.Hi, e.Value)
	return e
}

// explainMissing tells why a bound does not exist and what it takes.
func (s *Sample) explainMissing(e *Estimate, p, confidence float64, hasLo, hasHi bool) {
	say := func(bound string, need int) {
		if need == math.MaxInt {
			e.warn(CodeFew, fmt.Sprintf("%s bound not estimable: no sample gives one for the %v-quantile", bound, p))
			return
		}
		e.warn(CodeFew, fmt.Sprintf("%s bound not estimable, needs n ≥ %d (effective; here %.0f of %d)", bound, need, math.Floor(e.Effective), e.N))
	}
	if !hasHi {
		say("upper", NeedAbove(p, confidence))
	}
	if !hasLo {
		say("lower", NeedAbove(1-p, confidence))
	}
	switch {
	case hasLo && math.IsInf(e.Lo, 1):
		e.warn(CodeOver, fmt.Sprintf("even the lower bound falls among the %d observations beyond any value", s.over))
	case hasHi && math.IsInf(e.Hi, 1):
		e.warn(CodeOver, fmt.Sprintf("the upper bound falls among the %d observations beyond any value", s.over))
	}
}

// type7 interpolates linearly between the order statistics around (n-1)p.
// Beyond any value, a part of infinity is infinity.
func type7(sorted []float64, p float64) float64 {
	h := float64(len(sorted)-1) * p
	i := int(math.Floor(h))
	f := h - float64(i)
	a := sorted[i]
	if f == 0 || i+1 >= len(sorted) {
		return a
	}
	b := sorted[i+1]
	switch {
	case a == b:
		return a
	case math.IsInf(b, 1):
		return b
	}
	// Rounded as numpy does (and with it pandas and Polars), so that the three
	// agree with us to the last bit; the clamp is for differences that overflow.
	x := a + float64((b-a)*f)
	if f >= .5 {
		x = b - float64((b-a)*(1-f))
	}
	return math.Max(a, math.Min(b, x))
}

// ranks gives the largest lo with P(binomial(n,p) < lo) <= tail (0: none) and
// the smallest hi with P(binomial(n,p) >= hi) <= tail (n+1: none). Ranks count
// from 1.
func ranks(n int, p, tail float64) (lo, hi int) {
	hi = 1 + sort.Search(n, func(i int) bool { return atLeast(n, i+1, p) <= tail*slack })
	lo = sort.Search(n, func(i int) bool { return below(n, i+1, p) > tail*slack })
	return lo, hi
}

// atLeast is P(binomial(n,p) >= k) for 1 <= k <= n.
func atLeast(n, k int, p float64) float64 {
	switch {
	case p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// below is P(binomial(n,p) < k) for 1 <= k <= n.
func below(n, k int, p float64) float64 { return atLeast(n, n-k+1, 1-p) }
