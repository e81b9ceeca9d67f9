package stat

import "math"

const (
	methodRatio      = "ratio, MOVER on logarithms"
	methodDifference = "difference, MOVER"
)

// Difference is candidate minus baseline, two independent estimates.
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

// Ratio is candidate over baseline, two independent estimates of positive quantities.
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
	if c.Value == 0 && b.Lo > 0 && !math.IsInf(c.Hi, 1) {
		// The logarithm of zero carries no width; the corner of the rectangle of both intervals is always wide enough.
		e.Hi = c.Hi / b.Lo
	}
	if c.Lo == 0 {
		e.Lo = 0
	}
	e.Lo, e.Hi = math.Min(e.Lo, e.Value), math.Max(e.Hi, e.Value)
	e.unbounded()
	return e
}

// logBound is the logarithm of a bound; a bound that is not positive bounds nothing.
func logBound(x float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	return math.Log(x)
}

// mover bounds c-b by the method of variance estimates recovery.
func mover(c, cLo, cHi, b, bLo, bHi float64) (lo, hi float64) {
	one := func(v, from, to float64) float64 { // v minus the root of the summed squares, or the corner when v is no number
		if math.IsInf(from, -1) || math.IsInf(to, 1) {
			return math.Inf(-1)
		}
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return from - to
		}
		return v
	}
	lo = one(c-b, cLo, bHi)
	if !math.IsInf(lo, 0) && !math.IsInf(c-b, 0) {
		lo = (c - b) - math.Hypot(c-cLo, bHi-b)
	}
	hi = -one(b-c, bLo, cHi)
	if !math.IsInf(hi, 0) && !math.IsInf(c-b, 0) {
		hi = (c - b) + math.Hypot(cHi-c, b-bLo)
	}
	if math.IsNaN(lo) {
		lo = math.Inf(-1)
	}
	if math.IsNaN(hi) {
		hi = math.Inf(1)
	}
	return lo, hi
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
		e.warn(CodeOpenBaseline, "a bound is missing because one of the two estimates lacks it")
	}
}
