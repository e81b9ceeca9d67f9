package screen

import (
	"fmt"
	"math"
	"slices"
)

// Fence is Tukey's fence around the next point of a series: from Q1-K*IQR to
// Q3+K*IQR of the points before.
//
// How often the next point of an unchanged series lies outside, with 72 points
// and K 1.5: 1.1 % of independent normal points; 4 % of lognormal ones with sigma
// 0.5 without Logs, 1.1 % with; 3 % of an AR(1) process of rho 0.9. A shift of 2
// standard deviations is found in 27 %, one of 3 in 62 %; with a daily cycle and
// without Period, hardly any. TestFenceErrorRates measures them.
type Fence struct {
	// K is the multiple of the interquartile range; 0 means 1.5.
	K float64
	// Logs fences the logarithms: for latencies and everything else that is
	// positive and has its tail on one side.
	Logs bool
	// Period is the number of points after which the series repeats itself: 168
	// for hours of the week. The median of each phase is taken away. 0 or 1: no
	// period.
	Period int
	// Least is how many points there must be; 0 means 24. With a Period there
	// must also be 5 of the next point's phase.
	Least int
}

const leastPhase = 5 // points that a median of a phase takes

// Bounds gives the fence for the point that follows the history, oldest first.
// It is an error if the history is too short for a fence: that is no alarm, and
// no all-clear either.
func (f Fence) Bounds(history []float64) (lo, hi float64, err error) {
	k, least, period := f.K, f.Least, max(f.Period, 1)
	if k == 0 {
		k = 1.5
	}
	if least <= 0 {
		least = 24
	}
	if len(history) < least {
		return math.Inf(-1), math.Inf(1), fmt.Errorf("fencing: %d points; it takes %d", len(history), least)
	}
	xs := make([]float64, len(history))
	phases := make([][]float64, period)
	for i, x := range history {
		if f.Logs {
			x = math.Log(x)
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return math.Inf(-1), math.Inf(1), fmt.Errorf("fencing: point %d is %v; points are finite, and positive for their logarithms", i, history[i])
		}
		xs[i] = x
		phases[i%period] = append(phases[i%period], x)
	}
	level := make([]float64, period)
	next := len(history) % period
	if period > 1 {
		if n := len(phases[next]); n < leastPhase {
			return math.Inf(-1), math.Inf(1), fmt.Errorf("fencing: %d points of the next one's phase in a period of %d; it takes %d", n, period, leastPhase)
		}
		for p, of := range phases {
			slices.Sort(of)
			level[p] = quartile(of, 0.5)
		}
		for i := range xs {
			xs[i] -= level[i%period]
		}
	}
	slices.Sort(xs)
	q1, q3 := quartile(xs, 0.25), quartile(xs, 0.75)
	w := k * (q3 - q1)
	if period > 1 {
		// A median of m points takes some of their scatter away, and the next
		// point's own distance from it is wider than theirs.
		w += (q3 - q1) * (widened(len(phases[next])) - 1) * (k + 0.5)
	}
	lo, hi = q1-w+level[next], q3+w+level[next]
	if f.Logs {
		lo, hi = math.Exp(lo), math.Exp(hi)
	}
	return lo, hi, nil
}

// widened is the ratio of a new point's distance from the median of m others to
// that of one of the m, for normal points: their variances are 1+v and 1-v
// roughly, with the variance v of a median.
func widened(m int) float64 {
	v := math.Min(math.Pi/2/float64(m), 0.6)
	return math.Sqrt((1 + v) / (1 - v))
}

// quartile is Hyndman and Fan's type 7 of sorted values.
func quartile(sorted []float64, p float64) float64 {
	h := p * float64(len(sorted)-1)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}
