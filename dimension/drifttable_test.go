package dimension

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/assay-llm/assay/stat/diverge"
)

// TestFloorsOfDrift makes the tables of docs/drift.md: how far samples of one
// distribution are apart, and how often drift is found.
func TestFloorsOfDrift(t *testing.T) {
	belief := []float64{0.70, 0.10, 0.10, 0.05, 0.05}
	draw := func(r *rand.Rand, p []float64, n int) []int {
		out := make([]int, len(p))
		for range n {
			x, k := r.Float64(), 0
			for ; k < len(p)-1 && x >= p[k]; k++ {
				x -= p[k]
			}
			out[k]++
		}
		return out
	}
	const draws = 4000
	t.Log("samples  1-cos+KL  JS  TV  SD of a case's excess")
	last := math.Inf(1)
	for _, n := range []int{3, 5, 10, 20, 50, 200} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		var composite, root, tv, sum, squares float64
		for range draws {
			var d [2]diverge.Distance
			p := diverge.Smooth(draw(r, belief, n))
			for i := range d {
				var err error
				if d[i], err = diverge.Between(p, diverge.Smooth(draw(r, belief, n))); err != nil {
					t.Fatal(err)
				}
			}
			x := d[1].Root() - d[0].Root()
			composite, root, tv, sum, squares = composite+d[0].Composite(), root+d[0].Root(), tv+d[0].TV, sum+x, squares+x*x
		}
		t.Logf("%d  %.3f  %.3f  %.3f  %.3f", n, composite/draws, root/draws, tv/draws, math.Sqrt(squares/draws))
		if c := composite / draws; c >= last || n == 5 && (c < 0.15 || c > 0.40) {
			t.Errorf("with %d samples 1 − cosine + KL of a model and itself is %.3f, after %.3f", n, c, last)
		} else {
			last = c
		}
		if mean := sum / draws; math.Abs(mean) > 4*math.Sqrt(squares)/draws {
			t.Errorf("with %d samples the excess of a model and itself is %.4f on average", n, mean)
		}
	}
	if os.Getenv("ASSAY_SLOW") == "" {
		return
	}
	turned := []float64{0.05, 0.70, 0.10, 0.10, 0.05}
	for _, n := range []int{3, 5, 10} {
		for _, share := range []float64{0, 0.1, 0.2, 0.3, 0.5} {
			found := 0
			const runs = 40
			for i := range runs {
				r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
				var clean, other [][]int
				for range 24 {
					q := belief
					if r.Float64() < share {
						q = turned
					}
					clean, other = append(clean, draw(r, belief, n)), append(other, draw(r, q, n))
				}
				e, err := diverge.Drift(clean, other, nil, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				found += int(yes(e.P <= 0.0125 && e.Value() > 0.05))
			}
			t.Logf("%d samples, %.0f %% of 24 cases turned: found in %.0f %%", n, 100*share, 100*float64(found)/runs)
			if share == 0 && found > 4 || share == 0.5 && n >= 5 && found < 34 {
				t.Errorf("%d samples, a share of %v turned: found in %d of %d", n, share, found, runs)
			}
		}
	}
}
