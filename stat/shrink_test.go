package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestShrinkDrawsSmallGroups(t *testing.T) {
	hits, of := []int{1, 2, 3, 40, 0, 4}, []int{2, 40, 40, 400, 40, 40}
	got := Shrink(hits, of, 0.95)
	if v := got[0].Value; v > 0.3 || v < 0.07 {
		t.Errorf("1 of 2 is shrunk to %v; the others show about a tenth", v)
	}
	if v := got[3].Value; math.Abs(v-0.1) > 0.01 {
		t.Errorf("40 of 400 is shrunk to %v", v)
	}
	if v := got[4]; !(v.Value > 0) || !(v.Hi < 0.15) {
		t.Errorf("0 of 40 is %v [%v, %v]", v.Value, v.Lo, v.Hi)
	}
	for _, e := range Shrink([]int{0, 0, 0}, []int{10, 10, 10}, 0.95) {
		if !(e.Value > 0 && e.Value < 0.05 && e.Hi > e.Value) {
			t.Errorf("nothing anywhere: %v [%v, %v]", e.Value, e.Lo, e.Hi)
		}
	}
	for name, e := range map[string]Estimate{
		"no trial":      Shrink([]int{0, 1, 1, 1}, []int{0, 2, 2, 2}, 0.95)[0],
		"too many hits": Shrink([]int{3}, []int{2}, 0.95)[0],
		"no size":       Shrink([]int{3}, nil, 0.95)[0],
		"confidence":    Shrink([]int{1}, []int{2}, 1)[0],
	} {
		if e.Defined() {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// TestShrinkIsNearer draws the chances of forty groups of ten from a beta of its own: the
// shrunk shares are nearer to them than the raw ones.
func TestShrinkIsNearer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	raw, shrunk := 0.0, 0.0
	for range 200 {
		chance, hits, of := make([]float64, 40), make([]int, 40), make([]int, 40)
		for i := range chance {
			chance[i] = (rng.Float64() + rng.Float64()) / 4
			of[i] = 10
			for range of[i] {
				if rng.Float64() < chance[i] {
					hits[i]++
				}
			}
		}
		for i, e := range Shrink(hits, of, 0.95) {
			raw += math.Pow(float64(hits[i])/10-chance[i], 2)
			shrunk += math.Pow(e.Value-chance[i], 2)
		}
	}
	if ratio := shrunk / raw; ratio > 0.8 {
		t.Errorf("squared errors are %.2f of the raw ones; want under 0.8", ratio)
	}
}

func TestShrinkStaysWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SliceOfN(rapid.IntRange(1, 50), 1, 12).Draw(t, "of")
		hits := make([]int, len(of))
		for i, n := range of {
			hits[i] = rapid.IntRange(0, n).Draw(t, "hits")
		}
		for i, e := range Shrink(hits, of, 0.95) {
			if !(e.Lo >= 0 && e.Lo <= e.Value && e.Value <= e.Hi && e.Hi <= 1) {
				t.Fatalf("%d of %d: %v [%v, %v]", hits[i], of[i], e.Value, e.Lo, e.Hi)
			}
		}
	})
}
