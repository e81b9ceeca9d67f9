package anytime

import (
	"fmt"
	"math"
)

// Mismatch checks whether sessions were assigned as planned: counts are the
// sessions of each variant, shares what each should have had, constant
// meanwhile. It gives the logarithm of an e-value against the plan (a sample
// ratio mismatch), valid at any time; from ln(1000) = 6.9 on, the assignment is
// broken and no comparison of these sessions means anything. That they agree is
// no evidence for anything.
//
// It is the Dirichlet-multinomial test of Lindon & Malek (NeurIPS 2022) with a
// concentration of 10,000. Shares add up to 1.
func Mismatch(counts []int, shares []float64) (float64, error) {
	if len(counts) != len(shares) || len(counts) < 2 {
		return 0, fmt.Errorf("checking the assignment: %d counts and %d shares; give one of each for every variant", len(counts), len(shares))
	}
	xs, whole := make([]float64, len(counts)), 0.0
	for i, c := range counts {
		if c < 0 || !(shares[i] > 0) {
			return 0, fmt.Errorf("checking the assignment: variant %d has %d sessions at a share of %v; counts are not negative, and shares are positive", i, c, shares[i])
		}
		xs[i] = float64(c)
		whole += shares[i]
	}
	if math.Abs(whole-1) > 1e-9 {
		return 0, fmt.Errorf("checking the assignment: the shares add up to %v instead of 1", whole)
	}
	return mismatch(xs, shares), nil
}

func mismatch(counts, shares []float64) float64 {
	const concentration = 10_000
	n, log := 0.0, 0.0
	for i, x := range counts {
		n += x
		grown, _ := math.Lgamma(concentration*shares[i] + x)
		start, _ := math.Lgamma(concentration * shares[i])
		log += grown - start - x*math.Log(shares[i])
	}
	start, _ := math.Lgamma(concentration)
	grown, _ := math.Lgamma(concentration + n)
	return log + start - grown
}

// NeedMismatch gives the number of sessions that [Mismatch] needs to find that a
// variant gets the actual share instead of the one that was planned. An Alpha of
// 0 means 0.001 here.
func NeedMismatch(actual, share float64, plan Plan) int {
	if plan.Alpha == 0 {
		plan.Alpha = 0.001
	}
	if !(share > 0 && share < 1) || !(actual >= 0 && actual <= 1) {
		return math.MaxInt
	}
	return plan.filled().need(func(n float64) float64 {
		return mismatch([]float64{n * actual, n * (1 - actual)}, []float64{share, 1 - share})
	})
}
