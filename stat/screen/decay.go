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

const methodLength = "antitonic fit, bootstrap of groups"

// EffectiveLength estimates the greatest of the lengths, which rise, up to
// which the share of events is at least so much, if it only falls with length:
// the last at which the [Antitonic] curve is not below. A trial's Period is the
// index of its length. The interval draws whole groups 2,000 times, of which
// there must be 10, and takes percentiles.
//
// Lengths are steps: 0 stands for less than the shortest, and the bound above the
// longest is +Inf, since nobody tried.
func EffectiveLength(lengths []float64, trials []Trial, share, confidence float64, seed uint64) (stat.Estimate, error) {
	if len(lengths) == 0 {
		return stat.Estimate{}, errors.New("estimating an effective length: there is no length")
	}
	for i, l := range lengths {
		if !(l > 0) || i > 0 && !(l > lengths[i-1]) || math.IsInf(l, 0) {
			return stat.Estimate{}, fmt.Errorf("estimating an effective length: length %d is %v; give lengths above 0 that rise", i, l)
		}
	}
	if !(share > 0 && share <= 1) || !(confidence > 0 && confidence < 1) {
		return stat.Estimate{}, fmt.Errorf("estimating an effective length: share %v and confidence %v must lie between 0 and 1", share, confidence)
	}
	counts, err := byGroup(trials, len(lengths))
	if err != nil {
		return stat.Estimate{}, fmt.Errorf("estimating an effective length: %w", err)
	}
	drawn := make([]int, len(counts))
	for i := range drawn {
		drawn[i] = i
	}
	e := stat.Estimate{
		Value: longest(lengths, counts, drawn, share), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence,
		N: len(trials), Effective: float64(len(counts)), Method: methodLength,
	}
	if e.Value == lengths[len(lengths)-1] {
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeUndefined, Text: "the share is reached at the longest length, so that it may be reached beyond"})
	}
	const leastGroups, draws = 10, 2000
	if len(counts) < leastGroups {
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeFew, Text: fmt.Sprintf("%d groups are too few to draw from; it takes %d", len(counts), leastGroups)})
		return e, nil
	}
	r := rand.New(rand.NewPCG(seed, 0x1e4))
	values := make([]float64, draws)
	for i := range values {
		for k := range drawn {
			drawn[k] = r.IntN(len(counts))
		}
		values[i] = longest(lengths, counts, drawn, share)
	}
	slices.Sort(values)
	tail := int((1 - confidence) / 2 * draws)
	e.Lo, e.Hi = math.Min(values[tail], e.Value), math.Max(values[draws-1-tail], e.Value)
	if e.Hi == lengths[len(lengths)-1] {
		e.Hi = math.Inf(1)
	}
	return e, nil
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
