package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

const (
	methodClusters = "bootstrap of clusters, BCa"
	methodBlocks   = "bootstrap of blocks, BCa"

	leastClusters = 30
)

// Bootstrap estimates any statistic of values that depend on each other by
// drawing whole clusters, or blocks of a series, again and again. The interval
// is BCa (Efron, JASA 82, 1987): percentiles, corrected for bias and for a
// standard error that changes with the value.
//
// It refuses what bootstraps get wrong without a sign: fewer than 30 clusters
// or blocks, and values of which only two are distinct, such as right and wrong
// (use [Tango], [Proportions] or [stat.Share]).
type Bootstrap struct {
	// Repeats is how often to draw; 0 means 2,000.
	Repeats int
	// Seed of the draws. The same seed gives the same interval.
	Seed uint64
}

// Clusters draws whole clusters. The statistic gets all values of the drawn
// clusters, in an order without meaning, and must not keep or change them.
func (b Bootstrap) Clusters(clusters [][]float64, statistic func([]float64) float64, confidence float64) stat.Estimate {
	values, err := flat(clusters)
	if err != nil {
		return unknown(len(clusters), confidence, methodClusters, stat.CodeUndefined, err.Error())
	}
	return b.estimate(clusters, values, statistic, confidence, methodClusters, func(r *rand.Rand) []float64 {
		return clusters[r.IntN(len(clusters))]
	})
}

// Blocks draws blocks of so many neighbours from a series in time order, which
// is closed to a ring (Politis & Romano, 1992). Blocks must be longer than the
// memory of the series.
func (b Bootstrap) Blocks(series []float64, length int, statistic func([]float64) float64, confidence float64) stat.Estimate {
	if length < 1 {
		return unknown(len(series), confidence, methodBlocks, stat.CodeUndefined, "blocks must have a length")
	}
	var blocks [][]float64
	for at := 0; at+length <= len(series); at += length {
		blocks = append(blocks, series[at:at+length])
	}
	if _, err := flat([][]float64{series}); err != nil {
		return unknown(len(series), confidence, methodBlocks, stat.CodeUndefined, err.Error())
	}
	ring := slices.Concat(series, series)
	return b.estimate(blocks, series, statistic, confidence, methodBlocks, func(r *rand.Rand) []float64 {
		at := r.IntN(len(series))
		return ring[at : at+length]
	})
}

func (b Bootstrap) estimate(parts [][]float64, values []float64, statistic func([]float64) float64, confidence float64, method string, draw func(*rand.Rand) []float64) stat.Estimate {
	n := len(values)
	switch {
	case !valid(confidence):
		return unknown(n, confidence, method, stat.CodeUndefined, badConfidence)
	case len(parts) < leastClusters:
		return unknown(n, confidence, method, stat.CodeFew, fmt.Sprintf("%d clusters or blocks are too few to draw from; it takes %d", len(parts), leastClusters))
	case fewValues(values):
		return unknown(n, confidence, method, stat.CodeConstant, "the values are zeros and ones, or all equal, where a bootstrap is wrong; use an interval for shares")
	}
	repeats := b.Repeats
	if repeats <= 0 {
		repeats = 2000
	}
	e := stat.Estimate{Value: statistic(values), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(len(parts)), Method: method}
	r := rand.New(rand.NewPCG(b.Seed, uint64(n)))
	drawn := make([]float64, repeats)
	buf := make([]float64, 0, n)
	for i := range drawn {
		buf = buf[:0]
		for range parts {
			buf = append(buf, draw(r)...)
		}
		drawn[i] = statistic(buf)
	}
	if math.IsNaN(e.Value) || slices.ContainsFunc(drawn, math.IsNaN) {
		return unknown(n, confidence, method, stat.CodeUndefined, "the statistic is not defined for all draws")
	}
	slices.Sort(drawn)
	below := 0.0
	for _, x := range drawn {
		if x < e.Value {
			below++
		} else if x == e.Value {
			below += 0.5
		}
	}
	half := 0.5 / float64(repeats)
	bias := normal(math.Min(math.Max(below/float64(repeats), half), 1-half))
	skew := acceleration(parts, statistic)
	at := func(p float64) float64 {
		z := bias + normal(p)
		return drawn[min(max(int(distuv.UnitNormal.CDF(bias+z/(1-skew*z))*float64(repeats)), 0), repeats-1)]
	}
	tail := (1 - confidence) / 2
	if tail*float64(repeats) < 10 {
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: fmt.Sprintf("%d draws are too few for a confidence of %v; draw %d", repeats, confidence, int(10/tail)+1)})
		return e
	}
	e.Lo, e.Hi = math.Min(at(tail), e.Value), math.Max(at(1-tail), e.Value)
	return e
}

// acceleration is a sixth of the skewness of what each part adds, by leaving it
// out. Of many parts it leaves out neighbours together, which changes neither
// sum below in expectation.
func acceleration(parts [][]float64, statistic func([]float64) float64) float64 {
	const most = 200
	step := (len(parts) + most - 1) / most
	var without, buf []float64
	mean := 0.0
	for from := 0; from < len(parts); from += step {
		buf = buf[:0]
		for k, p := range parts {
			if k < from || k >= from+step {
				buf = append(buf, p...)
			}
		}
		without = append(without, statistic(buf))
		mean += without[len(without)-1]
	}
	mean /= float64(len(without))
	s2, s3 := 0.0, 0.0
	for _, x := range without {
		s2 += (mean - x) * (mean - x)
		s3 += (mean - x) * (mean - x) * (mean - x)
	}
	if !(s2 > 0) {
		return 0
	}
	return s3 / (6 * math.Pow(s2, 1.5))
}

// fewValues reports whether at most two values are distinct.
func fewValues(values []float64) bool {
	seen := map[float64]bool{}
	for _, x := range values {
		if seen[x] = true; len(seen) > 2 {
			return false
		}
	}
	return true
}
