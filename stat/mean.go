package stat

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	methodMean  = "mean, t interval on the effective sample size"
	methodShare = "share, Wilson interval on the effective sample size"
	methodRate  = "ratio of sums over slices of time, linearised variance, t interval on the effective number of slices"
)

// Mean estimates the mean of the values that were measured. Observations beyond any value have no place in a mean:
// they are left out, and a Warning says so.
func (s *Sample) Mean(confidence float64) Estimate {
	n := s.N() - s.over
	tail, ok := tails(confidence)
	switch {
	case !ok:
		return undefined(s.N(), s.over, confidence, methodMean, badConfidence)
	case n == 0:
		return undefined(s.N(), s.over, confidence, methodMean, "there are no values")
	}
	values := s.series
	if s.over > 0 {
		values = make([]float64, 0, n)
		for _, x := range s.series {
			if !math.IsInf(x, 1) {
				values = append(values, x)
			}
		}
	}
	e := meanOf(values, tail)
	e.N, e.Over, e.Confidence, e.Method = s.N(), s.over, confidence, methodMean
	if s.over > 0 {
		e.warn(CodeOver, fmt.Sprintf("the mean is over the %d values that were measured; %d observations beyond any value are left out", n, s.over))
	}
	return e
}

// meanOf gives the mean of a non-empty series with a t interval on its effective size.
func meanOf(values []float64, tail float64) Estimate {
	n := len(values)
	e := Estimate{Lo: math.Inf(-1), Hi: math.Inf(1), N: n, Effective: float64(n)}
	// A power of two near the greatest value keeps squares in range and changes no digit.
	biggest := 0.0
	for _, x := range values {
		biggest = math.Max(biggest, math.Abs(x))
	}
	scale := 1.0
	if biggest > 0 {
		_, exp := math.Frexp(biggest)
		scale = math.Ldexp(1, max(exp-1, -1000))
	}
	z := make([]float64, n)
	for i, x := range values {
		z[i] = x / scale
	}
	mean := sum(z) / float64(n)
	e.Value = mean * scale
	if n < 2 {
		e.warn(CodeFew, "a mean needs two values to have an interval")
		return e
	}
	half, effective := tHalf(z, mean, tail, &e)
	e.Effective = effective
	e.Lo, e.Hi = (mean-half)*scale, (mean+half)*scale
	e.Lo, e.Hi = math.Min(e.Lo, e.Value), math.Max(e.Hi, e.Value)
	return e
}

// tHalf is the half-width of the t interval around the mean of z.
func tHalf(z []float64, mean, tail float64, e *Estimate) (half, effective float64) {
	n := float64(len(z))
	ss := 0.0
	for _, x := range z {
		ss += (x - mean) * (x - mean)
	}
	if ss == 0 {
		e.warn(CodeConstant, "all values are equal, so the interval has no width; that is no proof of precision")
		return 0, n
	}
	d := inflationOf(z)
	effective = math.Max(2, n/d.inflation)
	e.Effective = effective
	d.describe(e)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: effective - 1}.Quantile(1 - tail)
	return t * math.Sqrt(ss/(n-1)/effective), effective
}

// Share estimates the share of ones in a series of zeros and ones in time order.
func Share(zeroOnesInTimeOrder []float64, confidence float64) Estimate {
	z := zeroOnesInTimeOrder
	n := len(z)
	tail, ok := tails(confidence)
	switch {
	case !ok:
		return undefined(n, 0, confidence, methodShare, badConfidence)
	case n == 0:
		return undefined(n, 0, confidence, methodShare, "there are no observations")
	}
	ones := 0
	for i, x := range z {
		if x != 0 && x != 1 {
			return undefined(n, 0, confidence, methodShare, fmt.Sprintf("observation %d is %v, neither 0 nor 1", i, x))
		}
		ones += int(x)
	}
	e := Estimate{Value: float64(ones) / float64(n), Confidence: confidence, N: n, Method: methodShare}
	d := inflationOf(z)
	e.Effective = math.Max(1, float64(n)/d.inflation)
	d.describe(&e)
	e.Lo, e.Hi = wilson(e.Value, e.Effective, distuv.UnitNormal.Quantile(1-tail))
	if n < 30 {
		e.warn(CodeSmall, fmt.Sprintf("a share over %d observations has an approximate interval", n))
	}
	return e
}

// wilson is Wilson's score interval (JASA 22, 1927) for a share p of n.
func wilson(p, n, z float64) (lo, hi float64) {
	z2 := z * z
	centre := (p + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	lo, hi = math.Max(0, centre-half), math.Min(1, centre+half)
	if p == 0 {
		lo = 0
	}
	if p == 1 {
		hi = 1
	}
	return math.Min(lo, p), math.Max(hi, p)
}

// Rate estimates an amount per second from slices of time: the sum of amounts over the sum of seconds.
func Rate(amounts, seconds []float64, confidence float64) Estimate {
	n := len(amounts)
	tail, ok := tails(confidence)
	switch {
	case !ok:
		return undefined(n, 0, confidence, methodRate, badConfidence)
	case n != len(seconds):
		return undefined(n, 0, confidence, methodRate, fmt.Sprintf("%d amounts but %d durations", n, len(seconds)))
	case n == 0:
		return undefined(n, 0, confidence, methodRate, "there are no slices of time")
	}
	for i := range n {
		if bad := math.IsNaN(amounts[i]) || math.IsInf(amounts[i], 0); bad || !(seconds[i] >= 0) || math.IsInf(seconds[i], 1) {
			return undefined(n, 0, confidence, methodRate, fmt.Sprintf("slice %d has amount %v over %v seconds", i, amounts[i], seconds[i]))
		}
	}
	total := sum(seconds)
	if !(total > 0) || math.IsInf(total, 1) {
		return undefined(n, 0, confidence, methodRate, "the slices cover no time")
	}
	e := Estimate{Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: n, Effective: float64(n), Method: methodRate}
	e.Value = sum(amounts) / total
	if math.IsInf(e.Value, 0) || math.IsNaN(e.Value) {
		return undefined(n, 0, confidence, methodRate, "the amounts are too large to add")
	}
	if n < 2 {
		e.warn(CodeFew, "a rate needs two slices of time to have an interval")
		return e
	}
	z := make([]float64, n)
	for i := range n {
		z[i] = (amounts[i] - e.Value*seconds[i]) / (total / float64(n))
	}
	r := meanOf(z, tail)
	e.Effective, e.Warnings = r.Effective, r.Warnings
	half := (r.Hi - r.Lo) / 2
	if math.IsNaN(half) {
		half = math.Inf(1)
	}
	e.Lo, e.Hi = e.Value-half, e.Value+half
	return e
}
