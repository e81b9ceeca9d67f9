package anytime

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-llm/assay/stat"
)

// Plan says what a comparison is planned for. Its zero value plans for an error
// rate of 5 %, a power of 80 % and variants of equal size.
//
// The numbers that the Need functions give are of the total of both variants by
// which the comparison has decided with the planned power. They come from the
// evidence that the expected data give, widened for chance; simulations find
// the power at that number between 0.7 and 0.95 (see docs/error-rates.md). They
// are math.MaxInt where no number decides, as for an effect that equals the
// margin. [stat.LeastEffect] turns each into the least effect that a given number
// detects.
type Plan struct {
	Alpha float64 // error rate of the decision; 0 means 0.05
	Power float64 // probability of the decision; 0 means 0.8
	Share float64 // of the sessions that are the candidate's; 0 means 0.5
}

func (p Plan) filled() Plan {
	if !(p.Alpha > 0 && p.Alpha < 1) {
		p.Alpha = defaultAlpha
	}
	if !(p.Power > 0 && p.Power < 1) {
		p.Power = 0.8
	}
	if !(p.Share > 0 && p.Share < 1) {
		p.Share = 0.5
	}
	return p
}

// need finds the n at which the evidence of the expected data decides, and
// enlarges it for the power: evidence grows as the square of a standard score,
// from which chance takes away up to the power's quantile.
func (p Plan) need(expected func(n float64) float64) int {
	const most = 1 << 40
	enough := -math.Log(p.Alpha)
	lo, hi := 0.0, 1.0
	for ; !(expected(hi) >= enough); hi *= 2 {
		if lo = hi; hi > most {
			return math.MaxInt
		}
	}
	for hi-lo > 1 && hi-lo > hi/1e4 {
		if mid := (lo + hi) / 2; expected(mid) >= enough {
			hi = mid
		} else {
			lo = mid
		}
	}
	z := distuv.UnitNormal.Quantile(p.Power)
	grow := 1 + math.Max(z, -1)/math.Sqrt(2*(enough+1))
	return int(math.Ceil(hi * grow * grow))
}

// Need gives the number of sessions that a true ratio of the quantiles needs, to
// pass when it is less than the margin, to fail when it is greater. The pilot
// is what is known of the baseline; fewer than some hundred sessions make it
// rough.
func (t Quantile) Need(pilot *stat.Histogram, ratio float64, plan Plan) int {
	p := plan.filled()
	if t.check() != nil || !(ratio > 0) || pilot.N() == 0 {
		return math.MaxInt
	}
	// Moving the candidate by a ratio is moving the margin by its inverse.
	s := newStairs(pilot, pilot, func(x float64) float64 { return t.within(x) / ratio })
	q := pilot.Quantile(t.P)
	return p.need(func(n float64) float64 {
		e := t.test(s, n*(1-p.Share)/pilot.N(), n*p.Share/pilot.N())
		if ratio*q < t.within(q) {
			return e.Pass
		}
		return e.Fail
	})
}

// Need gives the number of events, of both variants together, that a true ratio
// of the rates needs. Its Share is not used: t.Weight is.
func (t Exceedance) Need(ratio float64, plan Plan) int {
	p := plan.filled()
	w := ratio * t.Weight / (ratio*t.Weight + 1 - t.Weight)
	return p.need(func(n float64) float64 {
		e, err := t.Test(w*n, (1-w)*n)
		switch {
		case err != nil:
			return math.NaN()
		case ratio < t.Margin:
			return e.Pass
		}
		return e.Fail
	})
}

// Need gives the number of sessions that a true difference needs when the
// baseline's share is known roughly.
func (t Proportion) Need(baseline, difference float64, plan Plan) int {
	p := plan.filled()
	return p.need(func(n float64) float64 {
		nc, nb := n*p.Share, n*(1-p.Share)
		e, err := t.Test(Count{(baseline + difference) * nc, nc}, Count{baseline * nb, nb})
		switch {
		case err != nil:
			return math.NaN()
		case difference < t.Margin:
			return e.Pass
		}
		return e.Fail
	})
}

// Need gives the number of sessions that it takes when the true effect is a
// distance away from the margin, on either side. Deviation is the standard
// deviation between sessions; when Relative, both are relative to the mean.
func (t Mean) Need(deviation, distance float64, plan Plan) int {
	p := plan.filled()
	if !(deviation >= 0) || math.IsNaN(distance) {
		return math.MaxInt
	}
	if t.Relative {
		distance = math.Log1p(distance)
	}
	least := t.Least
	if least <= 0 {
		least = defaultLeast
	}
	start := math.Ceil(float64(least) / math.Min(p.Share, 1-p.Share))
	n := p.need(func(n float64) float64 {
		return t.wealth(math.Abs(distance)/deviation*math.Sqrt(n*p.Share*(1-p.Share)), n)
	})
	return max(n, int(start))
}

// NeedPaired gives the number of pairs for a [Paired] test with a margin.
// Deviation is the standard deviation of the differences (for right and wrong
// answers about the square root of the share of pairs that differ), difference
// the true mean, candidate minus baseline.
func NeedPaired(margin, deviation, difference float64, plan Plan) int {
	p := plan.filled()
	// Three points with this mean and deviation stand for the distribution.
	apart := math.Min(deviation*deviation+difference*difference, 1)
	up, down := (apart+difference)/2, (apart-difference)/2
	if _, err := NewPaired(margin); err != nil || !(up >= 0 && down >= 0) {
		return math.MaxInt
	}
	growth := func(sign, most float64) (g [bets]float64) {
		for i := range g {
			l := sign * bet(i, most)
			g[i] = up*math.Log1p(l*(1+margin)) + down*math.Log1p(l*(margin-1)) + (1-up-down)*math.Log1p(l*margin)
		}
		return g
	}
	g := growth(1, 1/(1-margin))
	if difference < -margin {
		g = growth(-1, 1/(1+margin))
	}
	return p.need(func(n float64) float64 {
		grown := g
		for i := range grown {
			grown[i] *= n
		}
		return logMean(grown[:])
	})
}
