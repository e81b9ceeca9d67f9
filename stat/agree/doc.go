// Package agree measures how far a judge, a model or a rule, agrees with people,
// and corrects what it says of many cases by what people said of some.
//
// # Which one
//
// What people would say on average of all cases, where a judge marked all and
// people some: [PPI] for any number and for the difference of two variants,
// [RoganGladen] for yes and no if only the judge's error rates are known. How far
// two raters agree beyond chance: [Kappa] of a table, [Fleiss] for several
// raters who each mark everything, [Alpha] with gaps. A statistic of cases that
// has no formula, such as a distance to how far people agree among themselves:
// [Resample].
//
// # What is promised
//
// A judge's mark is a measurement with an error. A mean of marks has an interval
// that is too short, and in the wrong place: taken alone, the 95 % intervals of
// GPT-4's labels cover the truth in one of five models of XSTest. The intervals
// here hold both errors: the sample's and the judge's.
//
// Clusters are independent of each other, what is inside one need not be, as in
// package compare. What the data do not allow is an infinite bound or a NaN with
// a [stat.Warning]. NaN stands for a case without a label where a function says
// so, and nowhere else.
//
// Everything here is a pure function of its arguments, and safe for concurrent
// use. What draws random numbers takes a seed.
package agree

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

// unknown is an estimate of nothing.
func unknown(n int, confidence float64, method, code, why string) stat.Estimate {
	return stat.Estimate{
		Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(n), Method: method,
		Warnings: []stat.Warning{{Code: code, Text: why}},
	}
}

func warn(e *stat.Estimate, code, why string) {
	e.Warnings = append(e.Warnings, stat.Warning{Code: code, Text: why})
}

func normal(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

func valid(confidence float64) bool { return confidence > 0 && confidence < 1 }

const badConfidence = "the confidence must lie strictly between 0 and 1"
