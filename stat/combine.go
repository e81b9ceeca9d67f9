package stat

import "math"

const (
	methodRatio      = "ratio, MOVER on logarithms"
	methodDifference = "difference, MOVER"
)

// Difference is candidate minus baseline for two independent estimates of the
// same kind, by MOVER (Zou & Donner, Statist. Med. 27, 2008); for two shares
// that is Newcombe's interval. A missing bound makes the bound that needs it
// missing. Confidence is the lower one of the two; N, Effective and Over are
// sums.
func Difference(candidate, baseline Estimate) Estimate {
	c, b := candidate, baseline
	e := combined(c, b, methodDifference)
	if !e.pairDefined(c, b) {
		return e
	}
	e.Value = c.Value - b.Value
	if math.IsNaN(e.Value) {
		e.warn(CodeUndefined, "both values lie beyond any value; their difference is not defined")
		return e
	}
	e.Lo, e.Hi = mover(c.Value, c.Lo, c.Hi, b.Value, b.Lo, b.Hi)
	e.unbounded()
	return e
}

// Ratio is candidate over baseline for two independent estimates of positive
// quantities, by MOVER on logarithms. A bound that is missing, or not positive
// and so without a logarithm, makes the bound that needs it missing. A ratio to
// a baseline of zero is undefined and says so. A candidate beyond any value
// gives +Inf, a baseline beyond any value 0.
func Ratio(candidate, baseline Estimate) Estimate {
	c, b := candidate, baseline
	e := combined(c, b, methodRatio)
	if !e.pairDefined(c, b) {
		return e
	}
	switch {
	case b.Value == 0:
		e.warn(CodeUndefined, "the baseline is zero; a ratio to it is not defined; compare by difference")
		return e
	case b.Value < 0 || c.Value < 0:
		e.warn(CodeUndefined, "a ratio needs positive values; compare by difference")
		return e
	case math.IsInf(c.Value, 1) && math.IsInf(b.Value, 1):
		e.warn(CodeUndefined, "both values lie beyond any value; their ratio is not defined")
		return e
	}
	e.Value = c.Value / b.Value
	lo, hi := mover(math.Log(c.Value), logBound(c.Lo), logBound(c.Hi), math.Log(b.Value), logBound(b.Lo), logBound(b.Hi))
	e.Lo, e.Hi = math.Exp(lo), math.Exp(hi)
	if math.IsInf(lo, -1) {
		e.Lo = math.Inf(-1)
	}
	if c.Lo == 0 {
		e.Lo = 0 // a quantity that is not negative over one that is positive
	}
	e.Lo, e.Hi = math.Min(e.Lo, e.Value), math.Max(e.Hi, e.Value)
	e.unbounded()
	return e
}

// logBound is the logarithm of a bound; a bound that is not positive bounds
// nothing.
func logBound(x float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	return math.Log(x)
}

// mover bounds c-b by the method of variance estimates recovery: the distance
// of each bound from its value stands for a multiple of a standard error on
// that side, and independent squares add.
func mover(c, cLo, cHi, b, bLo, bHi float64) (lo, hi float64) {
	return recovered(c, cLo, b, bHi), -recovered(b, bLo, c, cHi)
}

// recovered is the lower bound of a-b from the lower bound of a and the upper
// bound of b, -Inf where one is missing.
func recovered(a, aLo, b, bHi float64) float64 {
	switch {
	case math.IsInf(aLo, -1) || math.IsInf(bHi, 1):
		return math.Inf(-1)
	case math.IsInf(a-b, 0):
		// An infinite value (or the logarithm of zero) has no distance from its
		// bound. The corner of the rectangle of both intervals is at most as
		// great as the bound that distances would give.
		return aLo - bHi
	}
	return (a - b) - math.Hypot(a-aLo, bHi-b)
}

// combined starts the estimate of a comparison.
func combined(c, b Estimate, method string) Estimate {
	e := Estimate{
		Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: math.Min(c.Confidence, b.Confidence),
		N: c.N + b.N, Effective: c.Effective + b.Effective, Over: c.Over + b.Over, Method: method,
	}
	for _, w := range c.Warnings {
		e.warn(w.Code, "candidate: "+w.Text)
	}
	for _, w := range b.Warnings {
		e.warn(w.Code, "baseline: "+w.Text)
	}
	if c.Confidence != b.Confidence {
		e.warn(CodeConfidence, "the two estimates have different confidences; the lower one holds")
	}
	return e
}

// pairDefined reports whether both sides have a value.
func (e *Estimate) pairDefined(c, b Estimate) bool {
	switch {
	case !c.Defined():
		e.warn(CodeUndefined, "the candidate has no value")
	case !b.Defined():
		e.warn(CodeUndefined, "the baseline has no value")
	default:
		return true
	}
	return false
}

// unbounded says that a bound is missing.
func (e *Estimate) unbounded() {
	if !e.Estimable() {
		e.warn(CodeUnbounded, "a bound is missing because one of the two estimates lacks it")
	}
}
