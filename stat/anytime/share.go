package anytime

import (
	"fmt"
	"math"
	"slices"
)

// Count is how many of N sessions had an event: an error, an answer beyond a
// limit, a complaint. Events may be a sum of fractions, one in [0, 1] for each
// session.
type Count struct{ Events, N float64 }

func (c Count) check() error {
	if !(c.Events >= 0 && c.Events <= c.N) || math.IsInf(c.N, 1) {
		return fmt.Errorf("%v events in %v sessions; count sessions with an event, at most one each", c.Events, c.N)
	}
	return nil
}

// Exceedance compares how often a bad event happens in two variants that run
// side by side, by the share of all bad events that is the candidate's: its rate
// may be at most Margin times the baseline's. Whatever changes both rates alike,
// as a wave of load does, cancels. It is the test of Lindon & Malek (Anytime-
// valid inference for multinomial count data, NeurIPS 2022).
//
// Sessions with at least one event count once. For an event that takes time to
// show, such as "no answer within 10 s", see [Exceeding].
type Exceedance struct {
	// Margin is the ratio of the rates that is allowed, greater than 0: 1.5.
	Margin float64
	// Weight is the candidate's share of the sessions by assignment, strictly
	// between 0 and 1. It must be constant while events are counted: when it
	// changes, start anew and multiply (see [Evidence.Times]).
	Weight float64
	// Horizon is the number of events for which the test is tuned; 0 means 100.
	Horizon int
}

// Test gives the evidence of the numbers of sessions with an event.
func (t Exceedance) Test(candidateEvents, baselineEvents float64) (Evidence, error) {
	if !(t.Margin > 0) || math.IsInf(t.Margin, 1) || !(t.Weight > 0 && t.Weight < 1) {
		return Evidence{}, fmt.Errorf("testing exceedances: margin = %v and weight = %v; the margin is a positive factor, and the weight lies strictly between 0 and 1", t.Margin, t.Weight)
	}
	c, n := candidateEvents, candidateEvents+baselineEvents
	if !(c >= 0 && baselineEvents >= 0) || math.IsInf(n, 1) {
		return Evidence{}, fmt.Errorf("testing exceedances: %v and %v events; counts are not negative", candidateEvents, baselineEvents)
	}
	if t.Horizon <= 0 {
		t.Horizon = 100
	}
	horizon, alpha := tuning(t.Horizon, 0)
	share := t.Margin * t.Weight / (t.Margin*t.Weight + 1 - t.Weight)
	w := newPair(share, horizon, alpha)
	return Evidence{Fail: w.more(c, n), Pass: w.less(c, n)}, nil
}

// Exceeding counts the sessions of which at least one request took longer than
// limit. For a request that has ended give its latency, for one in flight its
// age: it exceeds the limit the moment its age does, just as it would have
// counted had it ended later. So a hang is seen although nothing ends, and
// requests in flight bias nothing.
func Exceeding(limit float64, latenciesOrAges [][]float64) int {
	n := 0
	for _, session := range latenciesOrAges {
		for _, x := range session {
			if x > limit {
				n++
				break
			}
		}
	}
	return n
}

// Proportion compares the shares of sessions with a bad event, with an additive
// margin: the candidate's share may be at most Margin above the baseline's. It
// fits gates on rates that may be 0.
//
// For each share of the baseline that the hypothesis allows, the product of a
// martingale for each variant bounds the evidence; the evidence is the least
// over all of them.
type Proportion struct {
	// Margin in (-1, 1): 0.005 allows half a percentage point more.
	Margin float64
	// Horizon is the number of sessions of both variants for which the test is
	// tuned; 0 means 1,000.
	Horizon int
}

// Test gives the evidence after all sessions so far.
func (t Proportion) Test(candidate, baseline Count) (Evidence, error) {
	if !(t.Margin > -1 && t.Margin < 1) {
		return Evidence{}, fmt.Errorf("testing a proportion: margin = %v; it lies strictly between -1 and 1, 0.005 for half a percentage point", t.Margin)
	}
	if err := candidate.check(); err != nil {
		return Evidence{}, fmt.Errorf("testing a proportion: candidate: %w", err)
	}
	if err := baseline.check(); err != nil {
		return Evidence{}, fmt.Errorf("testing a proportion: baseline: %w", err)
	}
	return t.test(candidate, baseline), nil
}

func (t Proportion) test(candidate, baseline Count) Evidence {
	const edge = 1e-9 // probabilities stay within (0, 1)
	horizon, alpha := tuning(t.Horizon, 0)
	lo, hi := math.Max(edge, edge-t.Margin), math.Min(1-edge, 1-edge-t.Margin)
	at := func(p float64) (c, b pair) {
		return newPair(p+t.Margin, horizon, alpha), newPair(p, horizon, alpha)
	}
	return Evidence{
		Fail: lowest(lo, hi, t.bracket(candidate, baseline), func(p float64) float64 {
			c, b := at(p)
			return c.more(candidate.Events, candidate.N) + b.less(baseline.Events, baseline.N)
		}),
		Pass: lowest(lo, hi, t.bracket(candidate, baseline), func(p float64) float64 {
			c, b := at(p)
			return c.less(candidate.Events, candidate.N) + b.more(baseline.Events, baseline.N)
		}),
	}
}

// bracket gives the shares of the baseline that are possible: from what either
// variant suggests, six standard errors to each side. The true share is outside
// with a probability of 1e-9 or so, and only there could the evidence be less
// than what its search finds.
func (t Proportion) bracket(candidate, baseline Count) [2]float64 {
	of := func(c Count, shift float64) (lo, hi float64) {
		if c.N == 0 {
			return math.Inf(-1), math.Inf(1)
		}
		// Agresti and Coull's interval, which has a width at 0 and 1 as well.
		const z = 6
		p := (c.Events + z*z/2) / (c.N + z*z)
		d := z * math.Sqrt(p*(1-p)/(c.N+z*z))
		return p - d + shift, p + d + shift
	}
	cl, ch := of(candidate, -t.Margin)
	bl, bh := of(baseline, 0)
	return [2]float64{math.Min(cl, bl), math.Max(ch, bh)}
}

// lowest is the minimum of f on [lo, hi]. It looks at a grid that is even in
// the arcsine of the square root, on which the standard error of a share is the
// same everywhere, and then closer around each point that is no greater than its
// neighbours: what the two variants suggest may be far apart, and a minimum near
// either.
func lowest(lo, hi float64, within [2]float64, f func(float64) float64) float64 {
	const points = 96
	angle := func(p float64) float64 { return math.Asin(math.Sqrt(math.Min(math.Max(p, lo), hi))) }
	at := func(a float64) float64 { s := math.Sin(a); return f(math.Min(math.Max(s*s, lo), hi)) }
	from, to := angle(within[0]), angle(within[1])
	step := (to - from) / points
	var y [points + 1]float64
	for i := range y {
		y[i] = at(from + step*float64(i))
	}
	best := slices.Min(y[:])
	for i := range y {
		left, right := max(i-1, 0), min(i+1, points)
		if y[i] <= y[left] && y[i] <= y[right] {
			best = math.Min(best, golden(from+step*float64(left), from+step*float64(right), at))
		}
	}
	return best
}

// golden is the minimum of f on [a, b] by the golden section, which is exact when
// there is one minimum.
func golden(a, b float64, f func(float64) float64) float64 {
	const section = 0.6180339887498949
	x, y := b-section*(b-a), a+section*(b-a)
	fx, fy := f(x), f(y)
	for range 24 {
		if fx < fy {
			b, y, fy = y, x, fx
			x = b - section*(b-a)
			fx = f(x)
		} else {
			a, x, fx = x, y, fy
			y = a + section*(b-a)
			fy = f(y)
		}
	}
	return math.Min(fx, fy)
}
