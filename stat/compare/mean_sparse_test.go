package compare

import (
	"math/rand/v2"
	"testing"
)

// TestMeanOfRareDifferences simulates what the t interval is too short for: documents
// of eight questions whose answers differ in 4 %, at a loss of 3 points.
func TestMeanOfRareDifferences(t *testing.T) {
	const runs, documents, loss, differ = 1500, 300, .03, .04
	rng := rand.New(rand.NewPCG(5, 6))
	answer := func() float64 {
		switch u := rng.Float64(); {
		case u < (differ-loss)/2:
			return 1
		case u < differ:
			return -1
		}
		return 0
	}
	above, below := 0, 0
	for range runs {
		clusters := make([][]float64, documents)
		for i := range clusters {
			whole := answer()
			clusters[i] = []float64{whole, 0, 0, 0, 0, 0, 0, 0}
			for k := 1; k < 8; k++ {
				if clusters[i][k] = whole; rng.Float64() < .5 {
					clusters[i][k] = answer()
				}
			}
		}
		e := Mean(clusters, .9)
		if e.Lo > -loss {
			above++
		}
		if e.Hi < -loss {
			below++
		}
	}
	// Of 1,500 runs at 5 %, 92 or more would come in 2.5 % of simulations. Student's
	// interval by itself gives 123.
	t.Logf("the bounds are wrong in %d and %d of %d runs", above, below, runs)
	if above >= 95 || below >= 95 {
		t.Errorf("one-sided bounds at 95 %% are wrong in %d and %d of %d runs; want below 95", above, below, runs)
	}
}
