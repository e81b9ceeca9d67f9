package screen

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/stat"
)

// Antitonic is the series that never rises and is closest to the values, by the
// weighted sum of squares (pool adjacent violators: Ayer et al., Ann. Math.
// Statist. 26, 1955). Weights are positive.
func Antitonic(values, weights []float64) ([]float64, error) {
	if len(values) != len(weights) {
		return nil, fmt.Errorf("fitting a falling curve: %d values with %d weights; each value has one", len(values), len(weights))
	}
	type pool struct {
		sum, weight float64
		n           int
	}
	var pools []pool
	for i, v := range values {
		if w := weights[i]; math.IsNaN(v) || math.IsInf(v, 0) || !(w > 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("fitting a falling curve: value %d is %v with weight %v; leave out what was not measured", i, v, w)
		}
		p := pool{v * weights[i], weights[i], 1}
		for len(pools) > 0 {
			last := pools[len(pools)-1]
			if last.sum/last.weight >= p.sum/p.weight {
				break
			}
			p = pool{p.sum + last.sum, p.weight + last.weight, p.n + last.n}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, p)
	}
	out := make([]float64, 0, len(values))
	for _, p := range pools {
		for range p.n {
			out = append(out, p.sum/p.weight)
		}
	}
	return out, nil
}

const methodLength = "antitonic fit, bootstrap of groups and draws of the shares"

// EffectiveLength estimates the greatest of the lengths, which rise, up to
// which the share of events is at least so much, if it only falls with length:
// the last at which the [Antitonic] curve is not below. A trial's Period is the
// index of its length. The interval draws whole groups 2,000 times, of which
// there must be 10, and takes percentiles. Groups that agree in everything tell
// nothing that way of what a next one would do, so that the shares are drawn as
// well, each from its posterior by Jeffreys' prior, and fitted again; the interval
// holds both.
//
// Lengths are steps: 0 stands for less than the shortest, and the bound above the
// longest is +Inf, since nobody tried.
//
// It returns the estimate at any confidence, of which the draws are made once.
func EffectiveLength(lengths []float64, trials []Trial, share float64, seed uint64) (of func(confidence float64) stat.Estimate, err error) {
	if len(lengths) == 0 {
		return nil, errors.New("estimating an effective length: there is no length")
	}
	for i, l := range lengths {
		if !(l > 0) || i > 0 && !(l > lengths[i-1]) || math.IsInf(l, 0) {
			return nil, fmt.Errorf("estimating an effective length: length %d is %v; give lengths above 0 that rise", i, l)
		}
	}
	if !(share > 0 && share <= 1) {
		return nil, fmt.Errorf("estimating an effective length: share %v must lie between 0 and 1", share)
	}
	counts, err := byGroup(trials, len(lengths))
	if err != nil {
		return nil, fmt.Errorf("estimating an effective length: %w", err)
	}
	drawn := make([]int, len(counts))
	for i := range drawn {
		drawn[i] = i
	}
	value := longest(lengths, counts, drawn, share)
	var sorted [][]float64
	if len(counts) >= leastGroups {
		sorted = drawLengths(lengths, counts, share, seed)
	}
	return func(confidence float64) stat.Estimate {
		return lengthEstimate(lengths, value, sorted, stat.Estimate{Confidence: confidence, N: len(trials), Effective: float64(len(counts)), Method: methodLength})
	}, nil
}

const (
	leastGroups = 10
	lengthDraws = 2000
)

// drawLengths draws effective lengths in two ways, each in order.
func drawLengths(lengths []float64, counts [][][2]int, share float64, seed uint64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, 0x1e4))
	drawn := make([]int, len(counts))
	at, events, sizes := pooled(lengths, counts)
	shares := make([]float64, len(at))
	out := make([][]float64, 2)
	for range lengthDraws {
		for k := range drawn {
			drawn[k] = r.IntN(len(counts))
		}
		out[0] = append(out[0], longest(lengths, counts, drawn, share))
		for i := range shares {
			shares[i] = drawShare(r, events[i], sizes[i])
		}
		out[1] = append(out[1], lastAbove(at, shares, sizes, share))
	}
	for _, values := range out {
		slices.Sort(values)
	}
	return out
}

// lengthEstimate reads value and bounds off the draws.
func lengthEstimate(lengths []float64, value float64, sorted [][]float64, e stat.Estimate) stat.Estimate {
	e.Value, e.Lo, e.Hi = value, math.Inf(-1), math.Inf(1)
	if !(e.Confidence > 0 && e.Confidence < 1) {
		e.Value, e.Warnings = math.NaN(), []stat.Warning{{Code: stat.CodeUndefined, Text: fmt.Sprintf("the confidence %v must lie strictly between 0 and 1", e.Confidence)}}
		return e
	}
	if value == lengths[len(lengths)-1] {
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeUndefined, Text: "the share is reached at the longest length, so that it may be reached beyond"})
	}
	if sorted == nil {
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: fmt.Sprintf("%.0f groups are too few to draw from; it takes %d", e.Effective, leastGroups)})
		return e
	}
	e.Lo, e.Hi = value, value
	tail := int((1 - e.Confidence) / 2 * lengthDraws)
	for _, values := range sorted {
		e.Lo, e.Hi = math.Min(values[tail], e.Lo), math.Max(values[lengthDraws-1-tail], e.Hi)
	}
	if e.Hi == lengths[len(lengths)-1] {
		e.Hi = math.Inf(1)
	}
	return e
}

// byGroup counts events and trials of each group by period.
func byGroup(trials []Trial, periods int) ([][][2]int, error) {
	d, err := deal(trials, max(periods, 2), 0)
	if err != nil {
		return nil, err
	}
	index := map[int]int{}
	out := make([][][2]int, 0, len(d.groups))
	for _, t := range trials {
		g, ok := index[t.Group]
		if !ok {
			g = len(out)
			index[t.Group] = g
			out = append(out, make([][2]int, periods))
		}
		out[g][t.Period][1]++
		if t.Event {
			out[g][t.Period][0]++
		}
	}
	return out, nil
}

// pooled are the counts of all groups, at the lengths that some of them tried.
func pooled(lengths []float64, counts [][][2]int) (at []float64, events []int, sizes []float64) {
	for i, l := range lengths {
		k, n := 0, 0
		for _, g := range counts {
			k, n = k+g[i][0], n+g[i][1]
		}
		if n > 0 {
			at, events, sizes = append(at, l), append(events, k), append(sizes, float64(n))
		}
	}
	return at, events, sizes
}

// drawShare draws from the Beta distribution of k+1/2 and n-k+1/2: of two chi-squared
// numbers the one's part of both.
func drawShare(r *rand.Rand, k int, n float64) float64 {
	chi := func(pairs int) float64 {
		x := r.NormFloat64()
		sum := x * x
		for range pairs {
			sum += 2 * r.ExpFloat64()
		}
		return sum
	}
	events := chi(k)
	return events / (events + chi(int(n)-k))
}

// longest is the effective length in the drawn groups. Lengths that none of
// them tried tell nothing.
func longest(lengths []float64, counts [][][2]int, drawn []int, share float64) float64 {
	var at, values, weights []float64
	for i, l := range lengths {
		events, n := 0, 0
		for _, g := range drawn {
			events += counts[g][i][0]
			n += counts[g][i][1]
		}
		if n > 0 {
			at, values, weights = append(at, l), append(values, float64(events)/float64(n)), append(weights, float64(n))
		}
	}
	return lastAbove(at, values, weights, share)
}

// lastAbove is the last length at which the falling fit has the share; 0 if none.
func lastAbove(at, values, weights []float64, share float64) float64 {
	fit, err := Antitonic(values, weights)
	if err != nil {
		panic("screen: " + err.Error())
	}
	out := 0.0
	for i, l := range at {
		// A mean of shares may miss them by the last bit.
		if fit[i] >= share-1e-12 {
			out = l
		}
	}
	return out
}
