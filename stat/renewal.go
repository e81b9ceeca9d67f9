package stat

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Gaps is the distribution of the gaps of a renewal process, of mean 1. Kind is
// "poisson" (exponential gaps), "gamma" or "weibull"; Shape belongs to the last
// two.
type Gaps struct {
	Kind  string
	Shape float64
}

// CV is the coefficient of variation of the gaps; NaN for another kind.
func (g Gaps) CV() float64 {
	switch g.Kind {
	case "poisson":
		return 1
	case "gamma":
		return 1 / math.Sqrt(g.Shape)
	case "weibull":
		two, _ := math.Lgamma(1 + 2/g.Shape)
		one, _ := math.Lgamma(1 + 1/g.Shape)
		return math.Sqrt(math.Expm1(two - 2*one))
	}
	return math.NaN()
}

// below is the probability of a gap of at most x.
func (g Gaps) below(x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case g.Kind == "gamma":
		return mathext.GammaIncReg(g.Shape, g.Shape*x)
	case g.Kind == "weibull":
		return -math.Expm1(-math.Pow(x*math.Gamma(1+1/g.Shape), g.Shape))
	}
	return -math.Expm1(-x)
}

// Renewal tells whether arrivals are a renewal process of known gaps. Each of the
// two looks errs for 1 % of true processes at most.
type Renewal struct {
	N      int     // arrivals
	KS     float64 // greatest distance of the gaps' empirical distribution from the one asked for, beyond what the tolerance explains
	KSP    float64 // its p-value; conservative if there is a tolerance
	Drift  float64 // greatest distance of the arrivals' empirical distribution, at its midpoints, from an even one
	DriftP float64 // its p-value (asymptotic)
	Fits   bool    // KSP and DriftP of at least 0.01 each
}

// Instants are what is known of one arrival: it was somewhere from Lo to Hi, on
// the axis of expected arrivals (time, or the integral of a rate that varies).
type Instants struct{ Lo, Hi float64 }

// CheckRenewal judges arrivals in order of time, on an axis from 0 to end on which
// one arrival is expected a unit.
//
// Bursts have many gaps that are shorter than any clock is exact: of gamma gaps
// with CV 2, a sixth are shorter than a five-hundredth of the mean. So each
// arrival is an interval, and the distribution of the gaps is held against what
// would be seen if they were as long, and as short, as the intervals allow. With
// Lo = Hi this is the test of Kolmogorov and Smirnov, with Stephens' correction.
// Drift is the same on the arrivals themselves: they spread by the CV of their gaps
// more, or less, than those of a Poisson process do, in the limit of many
// (Donsker's theorem for renewals; Billingsley 1999, section 14). So there must be
// 100·max(1, CV²) arrivals at least. Fewer, or arrivals out of order, are an error.
func CheckRenewal(at []Instants, end float64, g Gaps) (Renewal, error) {
	cv := g.CV()
	if !(cv > 0) || math.IsInf(cv, 1) {
		return Renewal{}, fmt.Errorf("checking arrivals: no gaps of kind %q and shape %v are known", g.Kind, g.Shape)
	}
	n := len(at)
	if need := int(math.Ceil(renewalNeed * max(1, cv*cv))); n < need {
		return Renewal{}, fmt.Errorf("checking arrivals: %d are too few for gaps with a CV of %.3g; at least %d are needed", n, cv, need)
	}
	shortest, longest := make([]float64, n-1), make([]float64, n-1)
	drift := 0.0
	for i, x := range at {
		if !(x.Lo <= x.Hi && x.Hi >= 0 && x.Lo <= end) || i > 0 && x.Lo < at[i-1].Lo {
			return Renewal{}, fmt.Errorf("checking arrivals: arrival %d is out of order or not within the %v observed", i+1, end)
		}
		if i > 0 {
			shortest[i-1], longest[i-1] = max(0, x.Lo-at[i-1].Hi), max(0, x.Hi-at[i-1].Lo)
		}
		u := (x.Lo + x.Hi) / 2 / end
		drift = max(drift, math.Abs(u-(float64(i)+0.5)/float64(n)))
	}
	r := Renewal{N: n, KS: beyond(shortest, longest, g.below), Drift: drift}
	r.KSP = kolmogorovP(r.KS, float64(n-1))
	r.DriftP = kolmogorovTail(r.Drift / cv * math.Sqrt(float64(n)))
	r.Fits = r.KSP >= 0.01 && r.DriftP >= 0.01
	return r, nil
}

const renewalNeed = 100

// beyond is how far the distribution f lies above what the gaps show at their
// shortest, or below what they show at their longest. It sorts both.
func beyond(shortest, longest []float64, f func(float64) float64) (d float64) {
	slices.Sort(shortest)
	slices.Sort(longest)
	n := float64(len(shortest))
	for i := range shortest {
		d = max(d, f(shortest[i])-float64(i)/n, float64(i+1)/n-f(longest[i]))
	}
	return d
}

// kolmogorovP is the p-value of a greatest distance d between the empirical
// distribution of n values and a continuous one (Stephens, JRSS B 32, 1970).
func kolmogorovP(d, n float64) float64 {
	return kolmogorovTail(d * (math.Sqrt(n) + 0.12 + 0.11/math.Sqrt(n)))
}

// kolmogorovTail is the probability that a Brownian bridge leaves [−x, x].
func kolmogorovTail(x float64) float64 {
	if x < 0.3 {
		return 1
	}
	p, sign := 0.0, 1.0
	for k := 1.0; k <= 100; k++ {
		p += sign * 2 * math.Exp(-2*k*k*x*x)
		sign = -sign
	}
	return max(0, min(1, p))
}
