package overlap

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/stat"
)

// A Comparison says how the scores of two systems differ on the same segments.
type Comparison struct {
	// Difference is candidate minus baseline, with an interval from drawing
	// clusters anew, the same for both.
	Difference stat.Estimate
	// P is the two-sided p-value of approximate randomisation, and Error its
	// standard error, from drawing only Trials of all exchanges; 0 when P is exact.
	P, Error float64
	Trials   int
}

// Compare tests whether two systems score alike. If they do, it makes no
// difference which of them wrote which cluster of segments: so it exchanges
// them at random, and P is how often the scores then differ by at least as much
// as they do: (r+1)/(trials+1) for r of so many trials (Noreen,
// Computer-intensive methods, 1989). Up to 12 clusters all exchanges are tried
// and P is exact.
//
// Note: sacrebleu counts only those that differ by more, which for scores with
// few values makes p too small, and its paired bootstrap rejects in 11 % of
// pairs that do not differ instead of 5.
func Compare(candidate, baseline *Tally, r Resampling) (Comparison, error) {
	a, err := candidate.Score()
	if err != nil {
		return Comparison{}, fmt.Errorf("candidate: %w", err)
	}
	b, err := baseline.Score()
	if err != nil {
		return Comparison{}, fmt.Errorf("baseline: %w", err)
	}
	m := candidate.metric
	switch {
	case m.Name() != baseline.metric.Name() || candidate.Signature() != baseline.Signature():
		return Comparison{}, fmt.Errorf("%s with %s and %s with %s are different scores; compare like with like",
			m.Name(), candidate.Signature(), baseline.metric.Name(), baseline.Signature())
	case !slices.Equal(candidate.counts, baseline.counts):
		return Comparison{}, errors.New("candidate and baseline have other segments or clusters; a paired test wants the same for both")
	}
	w := m.width()
	parts := make([][]float64, len(candidate.counts))
	for i := range parts {
		parts[i] = slices.Concat(candidate.sums[i*w:(i+1)*w], baseline.sums[i*w:(i+1)*w])
	}
	sum := make([]float64, 2*w)
	c := Comparison{Difference: bootstrap(r, a-b, candidate.segments, parts, func(values []float64) float64 {
		clear(sum)
		addAll(sum, values)
		return m.Score(sum[:w]) - m.Score(sum[w:])
	})}
	c.P, c.Error, c.Trials = randomise(m, candidate, baseline, math.Abs(a-b), r)
	return c, nil
}

const mostExact = 12

// randomise exchanges clusters, and counts differences of at least so much.
func randomise(m Metric, candidate, baseline *Tally, observed float64, r Resampling) (p, se float64, trials int) {
	// What the last bits of a sum decide is a tie.
	least := observed - 1e-9
	w, n := m.width(), len(candidate.counts)
	diff := make([]float64, len(candidate.sums))
	for i := range diff {
		diff[i] = candidate.sums[i] - baseline.sums[i]
	}
	sums := [2][]float64{make([]float64, w), make([]float64, w)}
	a, b := candidate.Statistics(), baseline.Statistics()
	extreme := func(draw func() uint64) bool {
		copy(sums[0], a)
		copy(sums[1], b)
		for i := 0; i < n; i += 64 {
			x := draw()
			if n-i < 64 {
				x &= 1<<(n-i) - 1
			}
			for ; x != 0; x &= x - 1 {
				k := i + bits.TrailingZeros64(x)
				for j, d := range diff[k*w : (k+1)*w] {
					sums[0][j] -= d
					sums[1][j] += d
				}
			}
		}
		return math.Abs(m.Score(sums[0])-m.Score(sums[1])) >= least
	}
	count := 0
	if n <= mostExact {
		trials = 1 << n
		for x := range uint64(trials) {
			if extreme(func() uint64 { return x }) {
				count++
			}
		}
		return float64(count) / float64(trials), 0, trials
	}
	if trials = r.Trials; trials <= 0 {
		trials = 10_000
	}
	rng := rand.New(rand.NewPCG(r.Seed, uint64(n)))
	for range trials {
		if extreme(rng.Uint64) {
			count++
		}
	}
	p = float64(count+1) / float64(trials+1)
	return p, math.Sqrt(p * (1 - p) / float64(trials+1)), trials
}
