// Package compare holds the tests and intervals for two variants that are looked
// at once, when the data are complete. For looks in between use package anytime.
//
// # Which one
//
// Right or wrong on the same cases: [Tango] for the difference, [McNemar] for a
// p-value. Scores on the same cases: [Mean] of the differences, [Randomise] for
// a p-value that assumes nothing but symmetry. Shares of two separate groups:
// [Proportions]. A statistic without a formula: [Bootstrap]. Whole
// distributions: [MannWhitney] for "which tends to be greater", with an effect
// size, and [KolmogorovSmirnov] for "do they differ anywhere". Many tests at once:
// [Holm]. More than two variants with several objectives: [Pareto]. How many it
// takes: [Design].
//
// # The unit is the session
//
// Values come as [][]float64: one slice for each cluster of values that may
// depend on each other, a session, a document, a template. Clusters are
// independent, values within them need not be. Where every value stands for
// itself, each cluster has one ([Single]). An interval that takes the turns of a
// session as independent is too short: with sessions of 8 turns a nominal error
// rate of 5 % becomes 17 to 28 %.
//
// # What is promised
//
// What the data do not allow is an infinite bound or a NaN with a
// [stat.Warning], never a guess: no interval from one cluster, none from a
// bootstrap of zeros and ones, no evidence in the equality of all values.
// Measured error rates and power are in docs/error-rates.md.
//
// Everything here is a pure function of its arguments, and safe for concurrent
// use. What draws random numbers takes a seed.
package compare

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

// Test is the result of a test. P-values are NaN where there are none.
type Test struct {
	Statistic float64
	// P is two-sided. Greater is small when the candidate is greater, Less when
	// it is less; both are NaN for a test that knows no direction.
	P, Greater, Less float64
	// N counts the clusters on both sides.
	N        int
	Method   string
	Warnings []stat.Warning
}

func noTest(n int, method, code, why string) Test {
	return Test{math.NaN(), math.NaN(), math.NaN(), math.NaN(), n, method, []stat.Warning{{Code: code, Text: why}}}
}

// Single makes each value a cluster of its own.
func Single(values []float64) [][]float64 {
	out := make([][]float64, len(values))
	for i := range values {
		out[i] = values[i : i+1 : i+1]
	}
	return out
}

// flat joins the clusters. It refuses what was not measured.
func flat(clusters [][]float64) ([]float64, error) {
	var out []float64
	for i, c := range clusters {
		if len(c) == 0 {
			return nil, fmt.Errorf("cluster %d is empty; leave it out", i)
		}
		for _, x := range c {
			if math.IsNaN(x) {
				return nil, fmt.Errorf("cluster %d has a NaN; leave out what was not measured", i)
			}
		}
		out = append(out, c...)
	}
	return out, nil
}

// unknown is an estimate of nothing.
func unknown(n int, confidence float64, method, code, why string) stat.Estimate {
	return stat.Estimate{
		Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(n), Method: method,
		Warnings: []stat.Warning{{Code: code, Text: why}},
	}
}

// invert finds where a function that falls from lo to hi takes a value.
func invert(lo, hi, value float64, f func(float64) float64) float64 {
	for range 100 {
		if mid := lo + (hi-lo)/2; f(mid) > value {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + (hi-lo)/2
}

func normal(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

func valid(confidence float64) bool { return confidence > 0 && confidence < 1 }

const badConfidence = "the confidence must lie strictly between 0 and 1"
