package anytime

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

// Moments gathers what a comparison of means or ratios needs of the sessions of
// one variant, in constant memory. The zero Moments is empty and usable. It is a
// value; it must not be used by several goroutines at once while one changes
// it.
type Moments struct {
	n    float64
	mean [3]float64    // of amount, size, covariate
	co   [3][3]float64 // sums of products of deviations from the means
}

// Add counts one session. The mean or ratio is the sum of amounts over the sum
// of sizes: cost per session has size 1, tokens per second has the tokens as its
// amount and the seconds as its size. The covariate is something known before
// the variant was chosen, such as the length of the prompt, that the amount
// depends on; 0 if there is none. All three are finite, the size is not
// negative.
func (m *Moments) Add(amount, size, covariate float64) error {
	x := [3]float64{amount, size, covariate}
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("adding a session: %v; leave out what was not measured, and cap what is unbounded", v)
		}
	}
	if size < 0 {
		return fmt.Errorf("adding a session: size %v is negative", size)
	}
	m.Merge(Moments{n: 1, mean: x})
	return nil
}

// Merge adds the sessions of another one of the same variant and step.
func (m *Moments) Merge(o Moments) {
	// Chan, Golub & LeVeque, Updating formulae, 1979.
	n := m.n + o.n
	if o.n == 0 {
		return
	}
	var d [3]float64
	for i := range d {
		d[i] = o.mean[i] - m.mean[i]
	}
	for i := range d {
		for j := range d {
			m.co[i][j] += o.co[i][j] + d[i]*d[j]*m.n*o.n/n
		}
	}
	for i := range d {
		m.mean[i] += d[i] * o.n / n
	}
	m.n = n
}

// N is the number of sessions.
func (m *Moments) N() int { return int(m.n) }

// Ratio is the sum of amounts over the sum of sizes; NaN if there are none.
func (m *Moments) Ratio() float64 { return m.mean[0] / m.mean[1] }

// Mean compares means, or ratios of sums, of two variants at any time. The unit
// is the session: the ratio is linearised over sessions (delta method), and a
// covariate takes away the variance that it explains (CUPED: Deng et al., WSDM
// 2013), the same multiple in both variants.
//
// It rests on the central limit theorem, so it is the one test here that is
// valid only asymptotically: before Least sessions in each variant there are no
// bounds and no evidence. Cap (winsorise) what has a heavy tail, at a value that
// is chosen before the run.
//
// It is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha,
// Kennedy & Ramdas (Annals of Statistics 52, 2024), one-sided on each side.
type Mean struct {
	// Relative: compare by candidate over baseline instead of by the difference.
	// Both means must then be positive.
	Relative bool
	// Horizon is the number of sessions of both variants at which the interval
	// is tightest; 0 means 1,000.
	Horizon int
	// Least is how many sessions each variant must have; 0 means 200.
	Least int
}

const defaultLeast = 200

// effect is an estimate, approximately normal, and the sessions behind it.
type effect struct{ value, se, n float64 }

// effectOf gives the difference, or the logarithm of the ratio.
func (t Mean) effectOf(c, b *Moments) (effect, error) {
	least := t.Least
	if least <= 0 {
		least = defaultLeast
	}
	if min(c.N(), b.N()) < max(least, 2) {
		return effect{}, fmt.Errorf("%d and %d sessions; each variant needs %d", c.N(), b.N(), max(least, 2))
	}
	if c.mean[1] <= 0 || b.mean[1] <= 0 {
		return effect{}, errors.New("the sizes add up to nothing; there is no ratio")
	}
	rc, rb := c.mean[0]/c.mean[1], b.mean[0]/b.mean[1]
	theta := 0.0
	if xx := c.co[2][2] + b.co[2][2]; xx > 0 {
		theta = (c.covariance(rc) + b.covariance(rb)) / xx
	}
	all := (c.n*c.mean[2] + b.n*b.mean[2]) / (c.n + b.n)
	rc -= theta * (c.mean[2] - all)
	rb -= theta * (b.mean[2] - all)
	vc, vb := c.variance(theta)/c.n, b.variance(theta)/b.n
	if !t.Relative {
		return effect{rc - rb, math.Sqrt(vc + vb), c.n + b.n}, nil
	}
	if rc <= 0 || rb <= 0 {
		return effect{}, fmt.Errorf("means %v and %v; a ratio needs positive ones, so compare by the difference", rc, rb)
	}
	return effect{math.Log(rc / rb), math.Sqrt(vc/rc/rc + vb/rb/rb), c.n + b.n}, nil
}

// covariance is the sum of products of the linearised ratio's and the
// covariate's deviations.
func (m *Moments) covariance(ratio float64) float64 {
	return (m.co[0][2] - ratio*m.co[1][2]) / m.mean[1]
}

// variance is that of the linearised ratio less theta times the covariate.
func (m *Moments) variance(theta float64) float64 {
	r := m.mean[0] / m.mean[1]
	v := (m.co[0][0] - 2*r*m.co[0][1] + r*r*m.co[1][1]) / (m.mean[1] * m.mean[1])
	v += theta*theta*m.co[2][2] - 2*theta*m.covariance(r)
	return math.Max(v, 0) / (m.n - 1)
}

// Estimate gives the difference (or the ratio, when Relative) with bounds that
// hold at all times together: each side misses the truth, ever, with a
// probability of at most half of 1-confidence.
func (t Mean) Estimate(candidate, baseline *Moments, confidence float64) stat.Estimate {
	e := stat.Estimate{
		Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence,
		N: candidate.N() + baseline.N(), Effective: candidate.n + baseline.n, Method: "difference of means over sessions, asymptotic confidence sequence",
	}
	if t.Relative {
		e.Method = "ratio of means over sessions, asymptotic confidence sequence on logarithms"
	}
	f, err := t.effectOf(candidate, baseline)
	switch {
	case !(confidence > 0 && confidence < 1):
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeUndefined, Text: "the confidence must lie strictly between 0 and 1"})
		return e
	case err != nil:
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: err.Error()})
		return e
	case !(f.se > 0):
		e.Value = t.shown(f.value)
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeConstant, Text: "all sessions are equal, which is no evidence of precision"})
		return e
	}
	w := f.se * t.width(f.n, (1-confidence)/2)
	e.Value, e.Lo, e.Hi = t.shown(f.value), t.shown(f.value-w), t.shown(f.value+w)
	return e
}

// shown turns the scale of the test into that of the reader.
func (t Mean) shown(x float64) float64 {
	if t.Relative {
		return math.Exp(x)
	}
	return x
}

// Test gives the evidence on a margin: the difference (or the ratio, when
// Relative) of the two means may be at most margin. Where more is better,
// exchange the variants, and give 1/margin (or -margin).
func (t Mean) Test(candidate, baseline *Moments, margin float64) (Evidence, error) {
	if math.IsNaN(margin) || math.IsInf(margin, 0) || t.Relative && margin <= 0 {
		return Evidence{}, fmt.Errorf("testing a mean: margin = %v; a ratio needs a positive one, a difference a finite one", margin)
	}
	f, err := t.effectOf(candidate, baseline)
	if err != nil || !(f.se > 0) {
		return Evidence{}, nil //nolint:nilerr // too little to say anything is no evidence, not a mistake
	}
	if t.Relative {
		margin = math.Log(margin)
	}
	z := (f.value - margin) / f.se
	return Evidence{Fail: t.wealth(z, f.n), Pass: t.wealth(-z, f.n)}, nil
}

// scale is rho squared times n.
func (t Mean) scale(n float64) float64 {
	horizon, alpha := tuning(t.Horizon, 0)
	l := -2 * math.Log(alpha)
	return (l + math.Log1p(l)) / horizon * n
}

// wealth is the logarithm of the one-sided normal mixture martingale at a
// standard score z after n sessions.
func (t Mean) wealth(z, n float64) float64 {
	s := t.scale(n)
	k := math.Sqrt(s / (s + 1))
	return math.Ln2 - math.Log1p(s)/2 + k*k*z*z/2 + logNormal(k*z)
}

// width is the distance of a bound in standard errors: where wealth reaches
// 1/tail, solved for z with the normal distribution function replaced by a
// bound, as in the reference.
func (t Mean) width(n, tail float64) float64 {
	s := t.scale(n)
	return math.Sqrt(2 * (s + 1) / s * math.Log1p(math.Sqrt(s+1)/(2*tail)))
}

// logNormal is the logarithm of the normal distribution function.
func logNormal(z float64) float64 {
	if z > -30 {
		return math.Log(distuv.UnitNormal.CDF(z))
	}
	// Its asymptotic series, DLMF 7.12.1.
	w := 1 / (z * z)
	return -z*z/2 - math.Log(-z) - math.Log(2*math.Pi)/2 + math.Log1p(-w*(1-w*(3-15*w)))
}
