package screen

import (
	"fmt"
	"math"
	"slices"
)

// Changes finds where the level of a series changes: the indices at which a new
// segment begins, none if the level is one. Of all ways to cut the series it
// takes the one with the least sum of squared errors within segments plus
// penalty for each cut, exactly (PELT: Killick, Fearnhead & Eckley, JASA 107,
// 2012).
//
// A penalty of 0 stands for 3 (1+12/n) ln(n) times the variance, which is read
// robustly from the differences of neighbours: then at most 5 % of series of 30
// or more independent normal points without a change are cut. Points that depend on each
// other are cut more often. Values must be finite.
func Changes(series []float64, penalty float64) ([]int, error) {
	n := len(series)
	for i, x := range series {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("finding changes: point %d is %v; leave out what was not measured", i, x)
		}
	}
	if math.IsNaN(penalty) || penalty < 0 {
		return nil, fmt.Errorf("finding changes: penalty %v is negative", penalty)
	}
	if n < 2 {
		return nil, nil
	}
	if penalty == 0 {
		penalty = 3 * (1 + 12/float64(n)) * math.Log(float64(n)) * noise(series)
	}
	cost := squaredErrors(series)
	best := make([]float64, n+1) // of series[:i]
	from := make([]int, n+1)     // where its last segment begins
	best[0] = -penalty
	candidates := []int{0}
	for end := 1; end <= n; end++ {
		best[end] = math.Inf(1)
		for _, s := range candidates {
			if c := best[s] + cost(s, end) + penalty; c < best[end] {
				best[end], from[end] = c, s
			}
		}
		// What cannot win any more without a penalty never will.
		candidates = slices.DeleteFunc(candidates, func(s int) bool { return best[s]+cost(s, end) > best[end] })
		candidates = append(candidates, end)
	}
	var cuts []int
	for at := from[n]; at > 0; at = from[at] {
		cuts = append(cuts, at)
	}
	slices.Reverse(cuts)
	return cuts, nil
}

// squaredErrors gives the sum of squared deviations from the mean of
// series[from:to].
func squaredErrors(series []float64) func(from, to int) float64 {
	mean := 0.0
	for _, x := range series {
		mean += x / float64(len(series))
	}
	sum, square := make([]float64, len(series)+1), make([]float64, len(series)+1)
	for i, x := range series {
		x -= mean // keeps the difference of squares precise
		sum[i+1], square[i+1] = sum[i]+x, square[i]+x*x
	}
	return func(from, to int) float64 {
		s := sum[to] - sum[from]
		return math.Max(square[to]-square[from]-s*s/float64(to-from), 0)
	}
}

// noise is the variance without changes of level: half the squared, scaled
// median of the distances of neighbours. If more than half of them are equal it
// is half their mean square.
func noise(series []float64) float64 {
	d, square := make([]float64, len(series)-1), 0.0
	for i := range d {
		d[i] = math.Abs(series[i+1] - series[i])
		square += d[i] * d[i] / float64(len(d))
	}
	slices.Sort(d)
	if m := quartile(d, 0.5) * 1.4826; m > 0 {
		return m * m / 2
	}
	return square / 2
}

// Change is the likeliest place at which a share changed.
type Change struct {
	At      int       // the new share begins here
	Ratio   float64   // twice the logarithm of the likelihood ratio of a change there to none
	Profile []float64 // the same for a change at 1, 2, ...
	P       float64   // of a Ratio so great anywhere if the share never changed
}

// ShareChange looks for one change in a share: events[i] of sizes[i] trials had
// the event in period i. The p-value comes from 1,999 seeded random orders of
// all trials. Trials are independent: count sessions, or use [TrialChange].
func ShareChange(events, sizes []int, seed uint64) (Change, error) {
	if len(events) != len(sizes) || len(events) < 2 {
		return Change{}, fmt.Errorf("finding a change of share: %d and %d periods; give both counts for at least two", len(events), len(sizes))
	}
	var trials []Trial
	for i := range events {
		if events[i] < 0 || events[i] > sizes[i] || sizes[i] < 1 {
			return Change{}, fmt.Errorf("finding a change of share: %d of %d in period %d; events are among the trials, and each period has some", events[i], sizes[i], i)
		}
		for k := range sizes[i] {
			trials = append(trials, Trial{Period: i, Event: k < events[i]})
		}
	}
	return TrialChange(trials, len(events), seed)
}
