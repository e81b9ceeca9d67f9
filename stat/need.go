package stat

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// NeedAbove is the least number of independent observations for which a
// two-sided interval of the given confidence for the p-quantile has a finite
// upper bound: the least n with p^n <= (1-confidence)/2. For a one-sided bound
// at confidence c pass 2c-1. The lower bound of the p-quantile needs
// NeedAbove(1-p, confidence). It is math.MaxInt where no n suffices (p = 1, or
// nonsense).
func NeedAbove(p, confidence float64) int {
	tail, ok := tails(confidence)
	if !ok || !(p >= 0 && p < 1) {
		return math.MaxInt
	}
	if p <= tail {
		return 1
	}
	x := math.Log(tail*slack) / math.Log(p)
	if x >= math.MaxInt64/2 {
		return math.MaxInt
	}
	return max(1, int(math.Ceil(x)))
}

// NeedViolations is the least number of independent observations that prove, at
// the one-sided confidence given, that the p-quantile is within a limit when k
// of them exceed the limit: the least n with P(binomial(n, 1-p) <= k) <=
// 1-confidence. With k = 0 it equals NeedAbove(p, 2*confidence-1). It is
// math.MaxInt where no n suffices.
func NeedViolations(p, confidence float64, k int) int {
	if !(confidence > 0 && confidence < 1) || !(p >= 0 && p < 1) || k < 0 {
		return math.MaxInt
	}
	alpha := (1 - confidence) * slack
	enough := func(n int) bool {
		if n <= k {
			return false
		}
		if p == 0 {
			return true
		}
		return mathext.RegIncBeta(float64(n-k), float64(k+1), p) <= alpha
	}
	hi := k + 1
	for !enough(hi) {
		if hi > math.MaxInt64/4 || float64(hi)*(1-p) > 1e7+10*float64(k) {
			return math.MaxInt
		}
		hi *= 2
	}
	return sort.Search(hi, enough)
}

// LeastEffect is the least effect between from and to that n observations
// detect, when need gives the number that each effect needs and falls from
// from to to: a minimum detectable effect from any of the Need functions. From
// is where nothing can be told apart, the margin; to is the greatest effect of
// interest, on either side of it. It is NaN when even that needs more than n.
//
// With the power in the place of the effect, from 0.9999 to 0.01, it gives the
// power of n observations for one effect.
func LeastEffect(n int, from, to float64, need func(effect float64) int) float64 {
	if !(need(to) <= n) {
		return math.NaN()
	}
	for range 40 {
		mid := from + (to-from)/2
		if need(mid) <= n {
			to = mid
		} else {
			from = mid
		}
	}
	return to
}
