package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/stat"
)

// Holm adjusts p-values of several tests so that rejecting those of at most
// alpha rejects any true hypothesis with a probability of at most alpha (Holm,
// Scand. J. Statist. 6, 1979). NaN stays NaN, and counts as a test.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	last := func(x float64) float64 {
		if math.IsNaN(x) {
			return 2
		}
		return x
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := last(p[a]), last(p[b]); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	out := make([]float64, len(p))
	most := 0.0
	for rank, i := range order {
		if math.IsNaN(p[i]) {
			out[i] = math.NaN()
			continue
		}
		most = math.Max(most, math.Min(1, float64(len(p)-rank)*p[i]))
		out[i] = most
	}
	return out
}

// Standing says where a variant stands among others.
type Standing struct {
	// Front: no other variant is at least as good in every objective and better
	// in one, by the values.
	Front bool
	// Dominated is the probability, given the intervals of the estimates, that
	// some other variant is better in every objective. NaN: an estimate lacks a
	// value or a bound.
	Dominated float64
	// By lists the variants that dominate it by the values.
	By []int
}

// Pareto compares variants in several objectives at once without weighing them.
// Estimates[v][k] is variant v in objective k, independent of the others;
// less[k] says that less is better. Intervals count as normal, with a standard
// deviation of its own on each side of the value, in 4,096 seeded draws.
func Pareto(estimates [][]stat.Estimate, less []bool, seed uint64) ([]Standing, error) {
	for v, es := range estimates {
		if len(es) != len(less) || len(es) == 0 {
			return nil, fmt.Errorf("comparing variants: variant %d has %d objectives instead of %d", v, len(es), len(less))
		}
	}
	out := make([]Standing, len(estimates))
	values := make([][]float64, len(estimates))
	known, whole := make([]bool, len(estimates)), true
	for v, es := range estimates {
		known[v] = true
		for k, e := range es {
			values[v] = append(values[v], good(e.Value, less[k]))
			known[v] = known[v] && e.Defined()
			whole = whole && e.Defined() && e.Estimable()
		}
	}
	for v := range out {
		for w := range out {
			if v != w && known[v] && known[w] && dominates(values[w], values[v], false) {
				out[v].By = append(out[v].By, w)
			}
		}
		out[v].Front = known[v] && len(out[v].By) == 0
		out[v].Dominated = math.NaN()
	}
	if whole {
		drawDominated(out, estimates, less, seed)
	}
	return out, nil
}

// good turns an objective so that more is better.
func good(x float64, less bool) float64 {
	if less {
		return -x
	}
	return x
}

// dominates reports whether a is at least as good as b everywhere and better
// somewhere, or better everywhere.
func dominates(a, b []float64, everywhere bool) bool {
	better := 0
	for k := range a {
		switch {
		case a[k] < b[k]:
			return false
		case a[k] > b[k]:
			better++
		}
	}
	return better == len(a) || !everywhere && better > 0
}

func drawDominated(out []Standing, estimates [][]stat.Estimate, less []bool, seed uint64) {
	const draws = 4096
	r := rand.New(rand.NewPCG(seed, 0xfa1e))
	count := make([]int, len(out))
	drawn := make([][]float64, len(out))
	for v := range drawn {
		drawn[v] = make([]float64, len(less))
	}
	for range draws {
		for v, es := range estimates {
			for k, e := range es {
				z, sd := r.NormFloat64(), e.Hi-e.Value
				if z < 0 {
					sd = e.Value - e.Lo
				}
				drawn[v][k] = good(e.Value+z*sd/normal((1+e.Confidence)/2), less[k])
			}
		}
		for v := range out {
			for w := range out {
				if v != w && dominates(drawn[w], drawn[v], true) {
					count[v]++
					break
				}
			}
		}
	}
	for v := range out {
		out[v].Dominated = float64(count[v]) / draws
	}
}
