package anytime

import "math"

const (
	defaultAlpha   = 0.05
	defaultHorizon = 1000
)

// mixture is the one-sided beta-binomial mixture martingale (Howard & Ramdas,
// Sequential estimation of quantiles, Bernoulli 28, 2022, and their confseq) for
// the hypothesis that variables in [0, 1] have a mean of at most p: the
// likelihood of success probabilities above p, weighted by a beta distribution
// around p that is cut there, over the likelihood of p.
type mixture struct {
	p, a, b     float64
	prior       float64 // logarithm of the mass of the cut beta distribution, not normalised
	logP, log1P float64
}

// newMixture tunes the weights for decisions after about horizon observations.
func newMixture(p, horizon, alpha float64) mixture {
	v, l := p*(1-p), 2*math.Log(1/(2*alpha))
	r := math.Max(v*horizon/(l+math.Log1p(l))-v, 1e-3*v)
	m := mixture{p: p, a: r / (1 - p), b: r / p, logP: math.Log(p), log1P: math.Log1p(-p)}
	m.prior = m.logUpper(m.a, m.b)
	return m
}

// log is the logarithm of the martingale after n variables whose sum is s.
func (m mixture) log(s, n float64) float64 {
	s = math.Min(math.Max(s, 0), n)
	return m.logUpper(m.a+s, m.b+n-s) - m.prior - s*m.logP - (n-s)*m.log1P
}

// logUpper is the logarithm of the integral of t^(a-1) (1-t)^(b-1) from p to 1.
// It does not underflow.
func (m mixture) logUpper(a, b float64) float64 {
	front := a*m.logP + b*m.log1P
	if x := 1 - m.p; x < (b+1)/(a+b+2) {
		return front + math.Log(fraction(b, a, x)/b)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	whole := la + lb - lab
	lower := math.Exp(front + math.Log(fraction(a, b, m.p)/a) - whole)
	return whole + math.Log1p(-math.Min(lower, 1))
}

// fraction is the continued fraction of the incomplete beta function (DLMF
// 8.17.22) by Lentz's method; it converges fast for x < (a+1)/(a+b+2).
func fraction(a, b, x float64) float64 {
	const tiny, precise, most = 1e-300, 1e-13, 100_000
	c, d := 1.0, 1-(a+b)*x/(a+1)
	if math.Abs(d) < tiny {
		d = tiny
	}
	d = 1 / d
	h := d
	for k := 1.0; k < most; k++ {
		step := func(t float64) float64 {
			if d = 1 + t*d; math.Abs(d) < tiny {
				d = tiny
			}
			if c = 1 + t/c; math.Abs(c) < tiny {
				c = tiny
			}
			d = 1 / d
			return d * c
		}
		h *= step(k * (b - k) * x / ((a + 2*k - 1) * (a + 2*k)))
		delta := step(-(a + k) * (a + b + k) * x / ((a + 2*k) * (a + 2*k + 1)))
		h *= delta
		if math.Abs(delta-1) < precise {
			break
		}
	}
	return h
}

// pair holds both one-sided mixtures at p.
type pair struct{ above, below mixture }

func newPair(p, horizon, alpha float64) pair {
	return pair{newMixture(p, horizon, alpha), newMixture(1-p, horizon, alpha)}
}

// more is evidence that the mean is more than p, less that it is less.
func (w pair) more(s, n float64) float64 { return w.above.log(s, n) }
func (w pair) less(s, n float64) float64 { return w.below.log(n-s, n) }

// tuning fills in the defaults of a test.
func tuning(horizon int, alpha float64) (float64, float64) {
	if horizon <= 0 {
		horizon = defaultHorizon
	}
	if !(alpha > 0 && alpha < 0.5) {
		alpha = defaultAlpha
	}
	return float64(horizon), alpha
}
