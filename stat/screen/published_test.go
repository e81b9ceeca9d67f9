package screen

import (
	"math"
	"testing"
)

// What is published finds a rise, and cannot tell none from one at the beginning.
func TestSteepRiseAsPublished(t *testing.T) {
	even := make([]float64, 50) // entropy of even attention to the keys up to each position
	for i := range even {
		even[i] = math.Log(float64(i + 1))
	}
	for name, c := range map[string]struct {
		series []float64
		want   int
	}{
		"a rise at 3":           {[]float64{1, 1, 1, 1, 2, 2}, 3},
		"none":                  {[]float64{1, 1, 1, 1}, 0},
		"one at the beginning":  {[]float64{1, 2, 2, 2}, 0},
		"even attention":        {even, 0},
		"one point":             {[]float64{1}, 0},
		"nothing":               {nil, 0},
		"a fall, and then more": {[]float64{3, 1, 1, 1.05, 9}, 3},
	} {
		if got := SteepRise(c.series, 0.2); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestFellAsPublished(t *testing.T) {
	for _, c := range []struct {
		events, sizes []int
		want          bool
	}{
		{[]int{20, 17, 20}, []int{20, 20, 20}, false}, // by 0.15 exactly
		{[]int{20, 20, 16}, []int{20, 20, 20}, true},
		{[]int{10, 20}, []int{20, 20}, false}, // it rises
		{nil, nil, false},
	} {
		if got := Fell(c.events, c.sizes, 0.15); got != c.want {
			t.Errorf("%v of %v: %v", c.events, c.sizes, got)
		}
	}
}
