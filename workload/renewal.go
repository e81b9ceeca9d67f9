package workload

import (
	"fmt"
	"math"
	"strconv"
)

// Renewal is a process of independent gaps that are not exponential. Exactly one
// of CV and Shape is set.
//
// A varying rate stretches time, not the gaps' distribution: arrivals are those of
// a process of rate 1, moved by the integral of the rate (the same time change as
// that of the Poisson process).
type Renewal struct {
	Rate  Rate    `yaml:"rate,required" doc:"mean rate, or a shape such as {ramp: …}"`
	CV    float64 `yaml:"cv" doc:"coefficient of variation of the gaps: 1 is poisson, 2 is bursty, 0.5 smoother; 0.02 to 50"`
	Shape float64 `yaml:"shape" doc:"shape parameter of the distribution instead of cv; below 1 is bursty"`
}

// The bounds of CV. Below, arrivals are constant to the eye; above, a plan of a
// million requests is a few dozen bursts.
const (
	minCV = 0.02
	maxCV = 50
)

// process places requests on the integral of a rate.
type process struct {
	kind  string  // constant, poisson, gamma or weibull
	shape float64 // of gamma and Weibull
	scale float64 // of the Weibull distribution of mean 1
	cv    float64
}

// String names the process: "Poisson", "gamma (CV 2)".
func (p process) String() string {
	switch p.kind {
	case "poisson":
		return "Poisson"
	case "gamma":
		return "gamma (CV " + strconv.FormatFloat(p.cv, 'g', 4, 64) + ")"
	case "weibull":
		return "Weibull (CV " + strconv.FormatFloat(p.cv, 'g', 4, 64) + ")"
	}
	return p.kind
}

// gammaProcess and weibullProcess are the processes of unit rate.
func gammaProcess(r *Renewal) process {
	k := r.Shape
	if r.CV > 0 {
		k = 1 / (r.CV * r.CV)
	}
	return process{kind: "gamma", shape: k, cv: 1 / math.Sqrt(k)}
}

func weibullProcess(r *Renewal) process {
	k := r.Shape
	if r.CV > 0 {
		k = weibullShape(r.CV)
	}
	return process{kind: "weibull", shape: k, scale: steady(1 / math.Gamma(1+1/k)), cv: weibullCV(k)}
}

// weibullCV is the coefficient of variation of a Weibull distribution:
// CV² = Γ(1+2/k)/Γ(1+1/k)² − 1.
func weibullCV(k float64) float64 {
	two, _ := math.Lgamma(1 + 2/k)
	one, _ := math.Lgamma(1 + 1/k)
	return math.Sqrt(math.Expm1(two - 2*one))
}

// weibullShape inverts weibullCV, which falls in k, by bisection on a grid of
// 2⁻⁴⁰, so that all processors find the same shape.
func weibullShape(cv float64) float64 {
	lo, hi := uint64(1<<35), uint64(100<<40) // 1/32 and 100
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; weibullCV(float64(mid)/(1<<40)) > cv {
			lo = mid
		} else {
			hi = mid
		}
	}
	return float64(hi) / (1 << 40)
}

// gap returns gap i of a process of rate 1 in units of 2⁻³³: a pure function of
// the stream and i.
//
// Gap 0 is the time from an instant that knows nothing of the process to its next
// arrival (the forward recurrence time of the stationary process), so that the
// expected number of arrivals in any stretch is the integral of its rate, from
// the first second on. A process that starts at an arrival would send (CV²−1)/2
// requests too many; for a CV of 13 these are 84.
func (p process) gap(gaps Stream, i int64) uint64 {
	x := 0.0
	switch p.kind {
	case "gamma":
		source := gaps.At(i)
		if i == 0 { // uniform part of a gap drawn by its length
			x = gammaVariate(&source, p.shape+1) * midpoint(source.Uint64())
		} else {
			x = gammaVariate(&source, p.shape)
		}
		x /= p.shape
	case "weibull":
		if i == 0 { // drawn by its length, the k-th power is a gamma variate of 1 + 1/k
			source := gaps.At(i)
			x = power(gammaVariate(&source, 1+1/p.shape), 1/p.shape) * midpoint(source.Uint64())
		} else {
			x = power(-ln(gaps.uniform(i)), 1/p.shape)
		}
		x *= p.scale
	default:
		return gaps.exponential(i)
	}
	return uint64(math.Round(min(x, longestGap) * unit))
}

// longestGap keeps the fixed point of one gap; it is 2²⁸ mean gaps.
const longestGap = 1 << 28

// gammaVariate draws from a gamma distribution of scale 1 by Marsaglia and Tsang,
// "A Simple Method for Generating Gamma Variables" (ACM TOMS 26, 2000); below a
// shape of 1 by their boost, G(k) = G(k+1)·U^(1/k). Rejections read on in the
// same sequence, which is the draw's own.
func gammaVariate(s *Source, k float64) float64 {
	if k < 1 {
		u := midpoint(s.Uint64())
		return gammaVariate(s, k+1) * power(u, 1/k)
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := normal(s)
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		u := midpoint(s.Uint64())
		half := float64(float64(x*x) / 2)
		if ln(u) < half+float64(d*(1-v))+float64(d*ln(v)) {
			return float64(d * v)
		}
	}
}

// normal draws a standard normal variate by Marsaglia's polar method, which needs
// no function that processors compute differently.
func normal(s *Source) float64 {
	for {
		a, b := 2*midpoint(s.Uint64())-1, 2*midpoint(s.Uint64())-1
		if q := float64(a*a) + float64(b*b); q < 1 && q > 0 {
			return a * math.Sqrt(float64(-2*ln(q))/q)
		}
	}
}

// midpoint turns a random number into one of the 2⁵² midpoints of (0, 1).
func midpoint(x uint64) float64 { return (float64(x>>12) + 0.5) / (1 << 52) }

// power returns x^y for x > 0; 0 where the result is below any gap.
func power(x, y float64) float64 { return exp(float64(y * ln(x))) }

// exp is e^x by the algorithm of FreeBSD's e_exp.c (error < 1 ulp), which package
// math uses where it has no assembly; see ln for why it stands here. Results
// below 10⁻³⁰⁰ are 0, those above 10³⁰⁰ are 10³⁰⁰.
func exp(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		p1    = 1.66666666666666657415e-01
		p2    = -2.77777777770155933842e-03
		p3    = 6.61375632143793436117e-05
		p4    = -1.65339022054652515390e-06
		p5    = 4.13813679705723846039e-08
	)
	switch {
	case x < -690:
		return 0
	case x > 690:
		return 1e300
	}
	k := math.Round(x / math.Ln2)
	hi, lo := x-float64(k*ln2Hi), float64(k*ln2Lo)
	r := hi - lo
	t := float64(r * r)
	c := r - float64(t*(p1+float64(t*(p2+float64(t*(p3+float64(t*(p4+float64(t*p5)))))))))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return math.Ldexp(y, int(k))
}

// open returns the process and the rate of an open loop; rate is nil for a
// closed one.
func (a *Arrivals) open() (p process, rate *Rate) {
	switch {
	case a.Poisson != nil:
		return process{kind: "poisson", cv: 1}, a.Poisson
	case a.Constant != nil:
		return process{kind: "constant"}, a.Constant
	case a.Gamma != nil:
		return gammaProcess(a.Gamma), &a.Gamma.Rate
	case a.Weibull != nil:
		return weibullProcess(a.Weibull), &a.Weibull.Rate
	}
	r := &Rate{Ramp: a.Ramp, Stairs: a.Stairs, Bursts: a.Bursts, Pulses: a.Pulses, Diurnal: a.Diurnal, MMPP: a.MMPP}
	if len(r.shapes()) == 0 {
		return process{}, nil
	}
	if a.Process == "constant" || a.Process == "" && a.Pulses != nil {
		return process{kind: "constant"}, r
	}
	return process{kind: "poisson", cv: 1}, r
}

// problem says what is wrong with how bursty the gaps are, and at which key; ""
// if nothing is.
func (r *Renewal) problem(kind string) (key, what, hint string) {
	cv := r.CV
	if r.Shape != 0 && r.CV == 0 {
		key = "shape"
		switch {
		case !(r.Shape > 0) || math.IsInf(r.Shape, 0):
			cv = math.NaN()
		case kind == "gamma":
			cv = 1 / math.Sqrt(r.Shape)
		case r.Shape > 100:
			cv = 0
		default:
			cv = weibullCV(max(r.Shape, 1.0/32))
		}
	}
	switch {
	case r.CV != 0 && r.Shape != 0:
		return "shape", "stands beside cv, which says the same", "keep one of them"
	case r.CV == 0 && r.Shape == 0:
		return "", "does not say how bursty the gaps are", "add cv: 2, or use poisson, whose cv is 1"
	case !(cv >= minCV && cv <= maxCV):
		if key == "" {
			return "cv", fmt.Sprintf("must be between %v and %v, got %v", minCV, maxCV, r.CV), "1 is poisson, 2 is bursty"
		}
		return key, fmt.Sprintf("makes a cv that is not between %v and %v", minCV, maxCV), "1 is poisson, 0.25 is bursty"
	}
	return "", "", ""
}
