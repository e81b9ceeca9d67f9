package stat

import (
	"math"
	"math/rand/v2"
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

// The interval of a bounded mean misses on either side no more often than its tail
// says, for numbers of any shape, and is Clopper and Pearson's where there is nothing but
// zeros.
func TestBoundedMeanCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, tc := range map[string]struct {
		draw  func() float64
		truth float64
	}{
		"yes or no": {func() float64 { return float64(r.IntN(10) / 9) }, 0.1},
		"even":      {r.Float64, 0.5},
		"mostly 1":  {func() float64 { return 1 - float64(r.IntN(3)/2)*r.Float64() }, 1 - 1./6},
		"thirds":    {func() float64 { return float64(r.IntN(4)) / 3 }, 0.5},
	} {
		for _, n := range []int{5, 20, 100} {
			const runs = 4000
			low, high := 0, 0
			for range runs {
				sum := 0.0
				for range n {
					sum += tc.draw()
				}
				e := BoundedMean(min(sum/float64(n), 1), n, 0.9)
				if e.Lo > tc.truth {
					high++
				}
				if e.Hi < tc.truth {
					low++
				}
				if !(e.Lo <= e.Value && e.Value <= e.Hi && e.Lo >= 0 && e.Hi <= 1) {
					t.Fatalf("%v [%v, %v]", e.Value, e.Lo, e.Hi)
				}
			}
			if most := runs * 5 / 100; low > most || high > most {
				t.Errorf("%s, %d: %d below and %d above of %d; want at most %d", name, n, low, high, runs, most)
			}
		}
	}
	for _, n := range []int{1, 20, 300} {
		if got, want := BoundedMean(0, n, 0.9).Hi, 1-math.Pow(0.05, 1/float64(n)); math.Abs(got-want) > 1e-9 {
			t.Errorf("none of %d: up to %v, want %v", n, got, want)
		}
	}
	if e := BoundedMean(1, 20, 0.9); e.Hi != 1 || e.Lo < 0.86 {
		t.Errorf("all of 20: [%v, %v]", e.Lo, e.Hi)
	}
	if BoundedMean(1.1, 3, 0.9).Defined() || BoundedMean(0.5, 0, 0.9).Defined() || BoundedMean(0.5, 3, 1).Defined() {
		t.Error("there is an estimate of nothing")
	}
}
