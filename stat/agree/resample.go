package agree

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const (
	methodResample = "bootstrap of clusters, bias-corrected percentiles"

	leastClusters = 30
	repeats       = 2000
)

// Resample estimates any statistic of cases, such as a kappa, a difference of two,
// or the result of a whole fit, by drawing clusters of cases with replacement
// 2,000 times; the percentiles are corrected for bias (Efron, Can. J. Statist. 9,
// 1981). It gives no interval from fewer than 30 clusters, nor where the statistic
// does not vary over the draws: then nothing was seen that could make it vary.
//
// The statistic must not keep or change its cases, whose order means nothing. It
// may be NaN for at most one draw in a hundred, which are left out.
func Resample[T any](clusters [][]T, statistic func([]T) float64, confidence float64, seed uint64) stat.Estimate {
	all := slices.Concat(clusters...)
	e := stat.Estimate{Value: statistic(all), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: len(all), Effective: float64(len(clusters)), Method: methodResample}
	switch {
	case !valid(confidence):
		return unknown(e.N, confidence, methodResample, stat.CodeUndefined, badConfidence)
	case math.IsNaN(e.Value):
		return unknown(e.N, confidence, methodResample, stat.CodeUndefined, "the statistic is not defined for these cases")
	case len(clusters) < leastClusters:
		warn(&e, stat.CodeFew, fmt.Sprintf("%d clusters are too few to draw from; it takes %d", len(clusters), leastClusters))
		return e
	}
	r := rand.New(rand.NewPCG(seed, uint64(len(all))))
	drawn := make([]float64, 0, repeats)
	buf := make([]T, 0, len(all))
	for range repeats {
		buf = buf[:0]
		for range clusters {
			buf = append(buf, clusters[r.IntN(len(clusters))]...)
		}
		if x := statistic(buf); !math.IsNaN(x) {
			drawn = append(drawn, x)
		}
	}
	if len(drawn) < repeats-repeats/100 {
		warn(&e, stat.CodeUndefined, "the statistic is not defined for many draws; there is no interval")
		return e
	}
	slices.Sort(drawn)
	if drawn[len(drawn)-1]-drawn[0] < 1e-12 {
		warn(&e, stat.CodeConstant, "the statistic is the same for all draws, which is no evidence of precision; there is no interval")
		return e
	}
	below := 0.0
	for _, x := range drawn {
		if x < e.Value {
			below++
		} else if x == e.Value {
			below += 0.5
		}
	}
	m := float64(len(drawn))
	bias := normal(math.Min(math.Max(below/m, 0.5/m), 1-0.5/m))
	at := func(p float64) float64 {
		return drawn[min(max(int(distuv.UnitNormal.CDF(2*bias+normal(p))*m), 0), len(drawn)-1)]
	}
	e.Lo, e.Hi = math.Min(at((1-confidence)/2), e.Value), math.Max(at((1+confidence)/2), e.Value)
	return e
}
