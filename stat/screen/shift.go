package screen

import (
	"math"
	"slices"
)

// Shift watches a series, oldest first, for a lasting change to greater values
// (up) or to smaller ones. It gives the evidence after each point: a
// Shiryaev-Roberts statistic that is fed with the rank of each new point among all
// before it. Where the order of the points is of no account, which is what "no
// change" means here, whatever their distribution is, the first time that it
// reaches A comes after A points or more on average; within n points it comes with a
// probability of at most n/A.
//
// The ranks of an exchangeable series without ties are independent, and the share p
// of points that are at least as extreme is not smaller than uniform. A bet pays
// e p^(e-1) on it, which has a mean of 1 over the uniform, for several e at once;
// what has been won, R = (1 + R) times the pay, is not more than the number of
// points on average (Vovk et al., Retrain or not retrain: conformal test
// martingales for change-point detection, COPA 2021). Ties count against the
// change. Points that depend on each other, or a level that wanders, are found too:
// they are a change. Values must not be NaN.
func Shift(series []float64, up bool) []float64 {
	out := make([]float64, len(series))
	won := make([]float64, len(stakes))
	sorted := make([]float64, 0, len(series))
	for i, x := range series {
		if !up {
			x = -x
		}
		at, _ := slices.BinarySearch(sorted, x)
		p := float64(len(sorted)-at+1) / float64(i+1)
		sorted = slices.Insert(sorted, at, x)
		for k, e := range stakes {
			won[k] = (1 + won[k]) * e * math.Pow(p, e-1)
			out[i] += won[k] / float64(len(stakes))
		}
	}
	return out
}

// stakes are the exponents of the bets: small ones win much on few extreme points.
var stakes = []float64{0.1, 0.2, 0.4, 0.7}
