package stat

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	methodStudent = "t interval of a given standard error"
	methodDraws   = "percentiles of draws"
)

// Student returns the estimate, at any confidence, of a value with a standard
// error of so many degrees of freedom, 0 or +Inf for a normal one, from n
// observations. Without a finite value, or with a standard error that is not
// above 0, it has no bounds.
func Student(value, se, freedom float64, n int) func(confidence float64) Estimate {
	return func(confidence float64) Estimate {
		tail, ok := tails(confidence)
		switch {
		case !ok:
			return undefined(n, 0, confidence, methodStudent, badConfidence)
		case math.IsNaN(value) || math.IsInf(value, 0):
			return undefined(n, 0, confidence, methodStudent, "there is no value")
		}
		e := Estimate{Value: value, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(n), Method: methodStudent}
		if !(se > 0) || math.IsInf(se, 0) || math.IsNaN(freedom) || freedom < 0 {
			e.warn(CodeConstant, "there is no standard error; there is no interval")
			return e
		}
		w := se * distuv.UnitNormal.Quantile(1-tail)
		if freedom > 0 && !math.IsInf(freedom, 1) {
			w = se * distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(1-tail)
		}
		e.Lo, e.Hi = value-w, value+w
		return e
	}
}

// Draws returns the estimate, at any confidence, of a value of which a bootstrap,
// or a sampler of a posterior, gave these draws, from n observations. The ends are
// the draws of rank ⌊(B+1)·tail⌋ from below and from above of B draws; an end of
// which that rank is 0 has no bound, nor has one that is an infinite draw. The
// interval is stretched to hold the value. The draws are not kept.
//
// It takes what it is given as it is: of fewer than about thirty clusters a
// bootstrap's percentiles are too narrow, and of yes and no an exact interval is
// better.
func Draws(value float64, draws []float64, n int) func(confidence float64) Estimate {
	sorted := slices.Clone(draws)
	slices.Sort(sorted) // NaN first
	return func(confidence float64) Estimate {
		tail, ok := tails(confidence)
		switch {
		case !ok:
			return undefined(n, 0, confidence, methodDraws, badConfidence)
		case math.IsNaN(value) || math.IsInf(value, 0):
			return undefined(n, 0, confidence, methodDraws, "there is no value")
		case len(sorted) == 0 || math.IsNaN(sorted[0]):
			return undefined(n, 0, confidence, methodDraws, "the statistic is not defined for all draws")
		}
		b := len(sorted)
		e := Estimate{Value: value, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(n), Method: methodDraws}
		rank := int(float64(b+1)*tail + 1e-9)
		if rank < 1 {
			e.warn(CodeFew, fmt.Sprintf("%d draws are too few for a bound at this confidence; it takes %d", b, int(math.Ceil(1/tail-1e-9))-1))
			return e
		}
		if sorted[0] == sorted[b-1] {
			e.warn(CodeConstant, "all draws are equal, which is no evidence of precision; there is no interval")
			return e
		}
		e.Lo, e.Hi = math.Min(sorted[rank-1], value), math.Max(sorted[b-rank], value)
		return e
	}
}
