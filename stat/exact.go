package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// ChanceAtLeast is the probability that k or more of n independent trials
// succeed, each with probability p: the p-value of the exact binomial test
// against "at most p", and with p = 1/2 that of the sign test, and of McNemar's
// on the k of n pairs that changed one way. It is 1 for k <= 0 and 0 for k > n;
// NaN for p outside [0, 1].
func ChanceAtLeast(k, n int, p float64) float64 {
	switch {
	case !(p >= 0 && p <= 1):
		return math.NaN()
	case k <= 0:
		return 1
	case k > n:
		return 0
	}
	// DLMF 8.17.5: the upper tail of a binomial is a regularised incomplete beta.
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// ChanceAtMost is the probability of k or fewer successes; see ChanceAtLeast.
func ChanceAtMost(k, n int, p float64) float64 { return ChanceAtLeast(n-k, n, 1-p) }

// ChanceFewer is the p-value of Fisher's exact test, one-sided: how probable it
// is, if both groups have the same chance of success and given their common
// number of successes, that group a has k of n or fewer while b has the rest
// (other of m observed). It is 1 where a group is empty.
func ChanceFewer(k, n, other, m int) float64 {
	if n <= 0 || m <= 0 || k < 0 || other < 0 || k > n || other > m {
		return 1
	}
	total := k + other
	choose := func(n, k int) float64 { return mathext.Lbeta(float64(n-k+1), float64(k+1)) + math.Log(float64(n+1)) }
	p := 0.0
	for i := max(0, total-m); i <= k; i++ { // hypergeometric; choose is −ln C(n, k)
		p += math.Exp(choose(n+m, total) - choose(n, i) - choose(m, total-i))
	}
	return math.Min(p, 1)
}

// ExactShare estimates the chance of success by k of n independent trials, with
// the interval of Clopper and Pearson (Biometrika 26, 1934), which covers the
// truth at least as often as the confidence says. It is for trials that are
// independent by design; Share is for series of requests.
func ExactShare(k, n int, confidence float64) Estimate {
	tail, ok := tails(confidence)
	switch {
	case !ok:
		return undefined(n, 0, confidence, methodExact, badConfidence)
	case n <= 0 || k < 0 || k > n:
		return undefined(n, 0, confidence, methodExact, "there are no observations")
	}
	e := Estimate{Value: float64(k) / float64(n), Confidence: confidence, N: n, Effective: float64(n), Method: methodExact}
	e.Lo, e.Hi = clopperPearson(e.Value, float64(n), tail)
	return e
}

const methodExact = "share, Clopper-Pearson"

// BoundedMean estimates the mean of n independent numbers from 0 to 1, whose mean
// was this, with no other knowledge of them: the interval has every truth at which
// Chernoff's bound gives a mean so far off a chance of the tail or more (Hoeffding, J. Am. Stat.
// Assoc. 58, 1963, theorem 1). It covers the truth at least as often as the confidence
// says at any n, and is wider than an interval by the spread where there are enough
// numbers for one.
func BoundedMean(mean float64, n int, confidence float64) Estimate {
	tail, ok := tails(confidence)
	switch {
	case !ok:
		return undefined(n, 0, confidence, methodBounded, badConfidence)
	case n <= 0 || !(mean >= 0 && mean <= 1):
		return undefined(n, 0, confidence, methodBounded, "there is no mean from 0 to 1")
	}
	e := Estimate{Value: mean, Confidence: confidence, N: n, Effective: float64(n), Method: methodBounded}
	most := -math.Log(tail) / float64(n)
	e.Lo, e.Hi = divergent(mean, 0, most), divergent(mean, 1, most)
	return e
}

const methodBounded = "mean of bounded numbers, Chernoff-Hoeffding"

// divergent finds the truth between the mean and an end of which the mean diverges
// by so much (Kullback and Leibler's, of yes and no); the end if none does.
func divergent(mean, end, most float64) float64 {
	term := func(p, q float64) float64 {
		if p == 0 {
			return 0
		}
		return p * math.Log(p/q)
	}
	near, far := mean, end
	for range 100 {
		q := (near + far) / 2
		if term(mean, q)+term(1-mean, 1-q) < most {
			near = q
		} else {
			far = q
		}
	}
	return far
}
