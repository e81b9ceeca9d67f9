package stat

import (
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Warning is something that the reader of an Estimate must know and that is not
// an error. Code is stable and made for programs; Text is one sentence for
// people.
type Warning struct{ Code, Text string }

// The codes of Warnings.
const (
	// CodeFew: too few observations for a bound; the text says how many it takes.
	CodeFew = "few"
	// CodeFewBatches: too few observations, or too slow a drift, to judge how
	// much they depend on each other.
	CodeFewBatches = "few-batches"
	// CodeDependent: the interval rests on less than half of the observations.
	CodeDependent = "dependent"
	// CodeConstant: all values are equal; the interval of their mean has no
	// width, and that is no evidence of precision.
	CodeConstant = "constant"
	// CodeOver: a bound lies among the observations beyond any value, or a mean
	// leaves them out.
	CodeOver = "over"
	// CodeSmall: a share of so few observations that its interval is rough.
	CodeSmall = "small"
	// CodeUndefined: there is no value; the text says why.
	CodeUndefined = "undefined"
	// CodeConfidence: estimates of different confidence were combined.
	CodeConfidence = "mixed-confidence"
	// CodeUnbounded: a comparison lacks a bound, because one of its sides has
	// none or, for a ratio, one that is not positive.
	CodeUnbounded = "unbounded"
)

// Estimate is a number with the interval that the data leave for it. It is a
// value: copy it freely. This package never returns the zero Estimate.
type Estimate struct {
	// Value is the point estimate. NaN: there is none. +Inf: it lies among the
	// observations beyond any value. A difference from such a one is -Inf.
	Value float64
	// Lo and Hi bound the truth on both sides. Lo = -Inf or Hi = +Inf: no bound
	// is known. Lo = +Inf: even the lower bound lies beyond any value, so every
	// limit is exceeded. Never NaN; Lo <= Value <= Hi wherever there is a
	// Value.
	Lo, Hi float64
	// Confidence of the two-sided interval, in (0, 1).
	Confidence float64
	// N counts the observations, those in Over included; for a Rate, the slices.
	N int
	// Effective is how many independent observations N is worth, at most N.
	Effective float64
	// Over counts observations known only to lie beyond any value.
	Over int
	// Method says how Value and the bounds were found.
	Method string
	// Warnings are what the reader must know, in no order of gravity.
	Warnings []Warning
}

// Defined reports whether there is a point estimate.
func (e Estimate) Defined() bool { return !math.IsNaN(e.Value) }

// Estimable reports whether both bounds exist.
func (e Estimate) Estimable() bool { return !math.IsInf(e.Lo, 0) && !math.IsInf(e.Hi, 0) }

// Within is the estimate of something that cannot lie outside of two limits, such as
// a share, of which a correction or an approximation knows nothing. The interval is cut
// there; of a value that lies outside, the interval is moved with it to the edge first,
// so that it never vanishes, and never becomes narrower than what is cut off. Whatever
// was covered within the limits, still is.
func (e Estimate) Within(least, most float64) Estimate {
	if !e.Defined() {
		return e
	}
	x := math.Min(math.Max(e.Value, least), most)
	e.Lo, e.Hi = math.Min(e.Lo, e.Lo+x-e.Value), math.Max(e.Hi, e.Hi+x-e.Value)
	if !math.IsInf(e.Lo, 0) {
		e.Lo = math.Min(math.Max(e.Lo, least), x)
	}
	if !math.IsInf(e.Hi, 0) {
		e.Hi = math.Max(math.Min(e.Hi, most), x)
	}
	e.Value = x
	return e
}

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

// Detectable gives the smallest true effect that a two-sided test at the
// estimate's own confidence finds with a power of 80 %, given the precision
// that e has: (1 + z(0.8)/z(confidence)) times the half-width of the interval.
// For a Ratio it is a relative change (0.05 means 5 %), taken on the
// logarithmic scale; for everything else it has the unit of the estimate. It is
// +Inf where a bound is missing. It depends on the width only, never on Value,
// so it is not the "observed power" that says nothing beyond the p-value.
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

// tails turns a two-sided confidence into the probability of each tail. ok is
// false outside (0, 1).
func tails(confidence float64) (tail float64, ok bool) {
	if !(confidence > 0 && confidence < 1) {
		return 0, false
	}
	return (1 - confidence) / 2, true
}

const badConfidence = "the confidence must lie strictly between 0 and 1"
