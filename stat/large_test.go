package stat

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLargeSamplesHaveTheSameRanks holds that a sample too large for places ranks as one
// with places does.
func TestLargeSamplesHaveTheSameRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float64, 20_000)
	for i := range x {
		x[i] = float64(rng.IntN(5000)) // with ties
	}
	s := mustSample(x, 0)
	if s.place == nil {
		t.Fatal("a small sample has no places")
	}
	want := s.ranks(make([]float64, len(x)))
	s.place = nil
	if !slices.Equal(s.ranks(make([]float64, len(x))), want) {
		t.Error("without places the ranks are others")
	}
	big := make([]float64, mostPlaced+1)
	for i := range big {
		big[i] = x[i%len(x)]
	}
	if sorted, place := ordered(big); place != nil || !slices.IsSorted(sorted) {
		t.Error("a large series has places, or is not sorted")
	}
}
