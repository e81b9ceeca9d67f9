package stat

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Arrivals tells whether instants look like a Poisson process of constant rate.
// Each of the three looks errs for 1 % of true Poisson processes, all together
// for about 3 % (measured).
type Arrivals struct {
	N                          int
	Rate                       float64 // arrivals per second
	CV                         float64 // coefficient of variation of the gaps; 1 for Poisson, 0 for a metronome
	CVLo, CVHi                 float64 // 99 % band of CV under Poisson
	Bin                        float64 // length of a bin of Dispersion, seconds
	Dispersion                 float64 // variance over mean of the counts per bin; 1 for Poisson
	DispersionLo, DispersionHi float64 // 99 % band of Dispersion under Poisson
	KS                         float64 // greatest distance of the empirical distribution of the instants from uniform
	KSP                        float64 // its p-value
	Poisson                    bool    // CV and Dispersion within their bands and KSP >= 0.01
}

// CheckArrivals judges arrivals, in any order, given in seconds from the start
// of an observation of duration seconds.
//
// CV sees gaps that are too even or too uneven, Dispersion sees bursts longer
// than a bin, KS sees a rate that changes over the observation. Bins are as
// many as leave 5 arrivals in each, at most 2,000. The band of CV is simulated,
// that of Dispersion is chi-squared (exact but for the roundness of counts),
// the p-value of KS is Kolmogorov's with Stephens' correction (JRSS B 32,
// 1970); given their number, Poisson arrivals are uniform. Fewer than 20
// arrivals, an instant outside of [0, duration] or NaN is an error.
func CheckArrivals(secondsFromStart []float64, duration float64) (Arrivals, error) {
	n := len(secondsFromStart)
	if n < minArrivals {
		return Arrivals{}, fmt.Errorf("checking arrivals: %d are too few; at least %d are needed", n, minArrivals)
	}
	if !(duration > 0) || math.IsInf(duration, 1) {
		return Arrivals{}, fmt.Errorf("checking arrivals: a duration of %v seconds; it must be positive and finite", duration)
	}
	at := slices.Clone(secondsFromStart)
	slices.Sort(at)
	if !(at[0] >= 0 && at[n-1] <= duration) { // slices.Sort puts NaN first
		return Arrivals{}, fmt.Errorf("checking arrivals: they lie in [%v, %v], not within the %v seconds observed", at[0], at[n-1], duration)
	}
	a := Arrivals{N: n, Rate: float64(n) / duration}
	a.CV = cvOfGaps(at)
	a.CVLo, a.CVHi = cvBand(n - 1)
	a.disperse(at, duration)
	a.KS, a.KSP = uniformKS(at, duration)
	a.Poisson = a.CVLo <= a.CV && a.CV <= a.CVHi && a.DispersionLo <= a.Dispersion && a.Dispersion <= a.DispersionHi && a.KSP >= 0.01
	return a, nil
}

const (
	minArrivals = 20
	perBin      = 5    // arrivals in a bin, at least, on average
	maxBins     = 2000 // longer bins see slower bursts, and this many still resolve 10 % in the dispersion
)

// cvOfGaps is the standard deviation of the gaps between sorted instants over
// their mean; 0 when all are equal.
func cvOfGaps(at []float64) float64 {
	m := float64(len(at) - 1)
	mean := (at[len(at)-1] - at[0]) / m
	if mean == 0 {
		return 0
	}
	ss := 0.0
	for i := 1; i < len(at); i++ {
		d := (at[i] - at[i-1]) - mean
		ss += d * d
	}
	return math.Sqrt(ss/(m-1)) / mean
}

// cvQuantiles are the 0.5 % and 99.5 % quantiles of sqrt(m)*(CV-1) for m
// exponential gaps, from 60,000 to 1,000,000 simulated series each; the last
// row is the normal limit (the variance of CV tends to 1/m).
var cvQuantiles = []struct{ gaps, lo, hi float64 }{
	{19, -1.870, 2.619},
	{29, -1.945, 2.776},
	{49, -2.043, 2.880},
	{99, -2.164, 2.929},
	{199, -2.259, 2.886},
	{499, -2.363, 2.790},
	{999, -2.427, 2.715},
	{math.Inf(1), -2.576, 2.576},
}

// cvBand is the 99 % band of the coefficient of variation of m exponential
// gaps, interpolated in 1/sqrt(m).
func cvBand(m int) (lo, hi float64) {
	root := math.Sqrt(float64(m))
	i := 1
	for i < len(cvQuantiles)-1 && float64(m) > cvQuantiles[i].gaps {
		i++
	}
	a, b := cvQuantiles[i-1], cvQuantiles[i]
	x0, x1 := 1/math.Sqrt(a.gaps), 1/math.Sqrt(b.gaps)
	w := (1/root - x0) / (x1 - x0)
	return 1 + (a.lo+w*(b.lo-a.lo))/root, 1 + (a.hi+w*(b.hi-a.hi))/root
}

// disperse counts arrivals per bin.
func (a *Arrivals) disperse(at []float64, duration float64) {
	bins := min(len(at)/perBin, maxBins)
	a.Bin = duration / float64(bins)
	counts := make([]int, bins)
	for _, t := range at {
		counts[min(int(t/a.Bin), bins-1)]++
	}
	mean := float64(len(at)) / float64(bins)
	ss := 0.0
	for _, c := range counts {
		ss += (float64(c) - mean) * (float64(c) - mean)
	}
	df := float64(bins - 1)
	a.Dispersion = ss / df / mean
	chi := distuv.ChiSquared{K: df}
	a.DispersionLo, a.DispersionHi = chi.Quantile(0.005)/df, chi.Quantile(0.995)/df
}

// uniformKS is the Kolmogorov-Smirnov distance from the uniform distribution on
// [0, duration] with its p-value.
func uniformKS(at []float64, duration float64) (d, p float64) {
	n := float64(len(at))
	for i, t := range at {
		u := t / duration
		d = math.Max(d, math.Max(u-float64(i)/n, float64(i+1)/n-u))
	}
	return d, kolmogorovP(d, n)
}
