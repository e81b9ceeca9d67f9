package stat

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestExactTestsKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"17 of 20 fair coins or more", ChanceAtLeast(17, 20, .5), 1351.0 / (1 << 20)},
		{"all of 12", ChanceAtLeast(12, 12, .5), 1.0 / (1 << 12)},
		{"5 of 20 or fewer", ChanceAtMost(5, 20, .5), 21700.0 / (1 << 20)},
		{"none of 10 at 0.1", ChanceAtMost(0, 10, .1), math.Pow(.9, 10)},
		{"no trial", ChanceAtLeast(0, 0, .3), 1},
		{"more than all", ChanceAtLeast(3, 2, .3), 0},
		// Fisher, The Design of Experiments (1935), chapter 2: eight cups of tea.
		{"one cup wrong", ChanceFewer(1, 4, 3, 4), 17.0 / 70},
		{"all cups right", ChanceFewer(0, 4, 4, 4), 1.0 / 70},
		{"0 of 8 beside 8 of 8", ChanceFewer(0, 8, 8, 8), 1.0 / 12870},
		{"equal groups", ChanceFewer(8, 8, 8, 8), 1},
		{"an empty group", ChanceFewer(0, 0, 4, 4), 1},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if p := ChanceAtLeast(1, 2, math.NaN()); !math.IsNaN(p) {
		t.Errorf("a chance of NaN gives %v", p)
	}
	// 0 of 10: the upper bound is 1 − 0.025^(1/10).
	if e := ExactShare(0, 10, .95); e.Value != 0 || e.Lo != 0 || math.Abs(e.Hi-(1-math.Pow(.025, .1))) > 1e-9 {
		t.Errorf("0 of 10: %+v", e)
	}
	if e := ExactShare(0, 0, .95); e.Defined() || e.Estimable() {
		t.Errorf("0 of 0: %+v", e)
	}
}

// TestChancesAreTails compares with sums of the terms, and the two tails with
// each other.
func TestChancesAreTails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		p := rapid.Float64Range(0.01, .99).Draw(t, "p")
		sum, term := 0.0, math.Pow(1-p, float64(n))
		for i := 0; i <= n; i++ {
			if i >= k {
				sum += term
			}
			term *= float64(n-i) / float64(i+1) * p / (1 - p)
		}
		if got := ChanceAtLeast(k, n, p); math.Abs(got-sum) > 1e-9 {
			t.Fatalf("ChanceAtLeast(%d, %d, %v) = %v, want %v", k, n, p, got, sum)
		}
		if both := ChanceAtLeast(k, n, p) + ChanceAtMost(k-1, n, p); math.Abs(both-1) > 1e-9 {
			t.Fatalf("the tails of %d, %d, %v add up to %v", k, n, p, both)
		}
		e := ExactShare(k, n, .9)
		if !(e.Lo <= e.Value && e.Value <= e.Hi) || k > 0 && math.Abs(ChanceAtLeast(k, n, e.Lo)-.05) > 1e-6 {
			t.Fatalf("%d of %d: %+v", k, n, e)
		}
	})
}
