package stat

import (
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Warning is something that the reader of an Estimate must know and that is not an error. Code is stable and made
// for programs; Text is one sentence for people.
type Warning struct{ Code, Text string }

// The codes of Warnings.
const (
	CodeFew        = "few"              // too few observations for the bound that was asked for; the text says how many are needed
	CodeFewBatches = "few-batches"      // too few observations to judge their dependence on each other; treated as independent
	CodeDependent  = "dependent"        // the observations are strongly dependent; the interval rests on few effective ones
	CodeConstant   = "constant"         // all values are equal: the interval has no width, and that is no evidence of precision
	CodeOver       = "over"             // observations beyond any value were left out of a mean
	CodeSmall      = "small"            // a share over so few observations that its interval is only approximate
	CodeUndefined  = "undefined"        // there is no value; the text says why
	CodeConfidence = "mixed-confidence" // two estimates of different confidence were combined; the lower one is stated
	CodeUnbounded  = "unbounded"        // a bound of one of the two estimates is missing or not positive, so the combined one is missing
)

// Estimate is a number with the interval that the data leave for it. It is a value: copy it freely.
//
// The zero Estimate is not an estimate; functions of this package never return it.
type Estimate struct {
	Value      float64   // the point estimate; NaN: there is none; +Inf: it lies among the observations beyond any value
	Lo, Hi     float64   // two-sided bounds; Lo = -Inf, Hi = +Inf: no bound is known; Lo = +Inf: even it is beyond any value. Never NaN
	Confidence float64   // of the two-sided interval, in (0, 1)
	N          int       // observations, those in Over included
	Effective  float64   // how many independent observations N is worth, at most N
	Over       int       // observations known only to lie beyond any value
	Method     string    // how Value and the bounds were found
	Warnings   []Warning // what the reader must know
}

// Defined reports whether there is a point estimate.
func (e Estimate) Defined() bool { return !math.IsNaN(e.Value) }

// Estimable reports whether both bounds exist.
func (e Estimate) Estimable() bool { return !math.IsInf(e.Lo, 0) && !math.IsInf(e.Hi, 0) }

// warn adds a warning.
func (e *Estimate) warn(code, text string) { e.Warnings = append(e.Warnings, Warning{code, text}) }

// undefined is the estimate of something that has no value.
func undefined(n, over int, confidence float64, method, why string) Estimate {
	return Estimate{
		Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence,
		N: n, Effective: float64(n), Over: over, Method: method,
		Warnings: []Warning{{CodeUndefined, why}},
	}
}

// Detectable gives the smallest true effect that a two-sided test at the estimate's own confidence finds with a
// power of 80 %, given the precision that e has: (1 + z(0.8)/z(confidence)) times the half-width of the interval.
// For a Ratio it is a relative change (0.05 means 5 %), taken on the logarithmic scale; for everything else it has
// the unit of the estimate. It is +Inf where a bound is missing. It depends on the width only, never on Value, so it
// is not the "observed power" that says nothing beyond the p-value.
func Detectable(e Estimate) float64 {
	if !e.Defined() || !e.Estimable() || !(e.Confidence > 0 && e.Confidence < 1) {
		return math.Inf(1)
	}
	k := 1 + distuv.UnitNormal.Quantile(0.8)/distuv.UnitNormal.Quantile((1+e.Confidence)/2)
	if strings.HasPrefix(e.Method, methodRatio) {
		if e.Lo <= 0 {
			return math.Inf(1)
		}
		return math.Expm1(k * (math.Log(e.Hi) - math.Log(e.Lo)) / 2)
	}
	return k * (e.Hi/2 - e.Lo/2)
}

// tails turns a two-sided confidence into the probability of each tail. ok is false outside (0, 1).
func tails(confidence float64) (tail float64, ok bool) {
	if !(confidence > 0 && confidence < 1) {
		return 0, false
	}
	return (1 - confidence) / 2, true
}

const badConfidence = "the confidence must lie strictly between 0 and 1"
