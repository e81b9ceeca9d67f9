package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var (
	confidences = rapid.SampledFrom([]float64{0.5, 0.8, 0.9, 0.95, 0.99, 0.9999})
	levels      = rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.01, 0.5, 0.95, 0.99, 0.999, 1}))
)

// series draws any finite values: huge, tiny, repeated, constant, trending.
func series(t *rapid.T, least int, label string) []float64 {
	element := rapid.SampledFrom([]*rapid.Generator[float64]{
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.Float64Range(0, 1), rapid.Float64Range(1e-320, 1e-300),
		rapid.SampledFrom([]float64{0, 1}), rapid.Just(7.5), rapid.Float64Range(1, 1+1e-12),
	}).Draw(t, label+" kind")
	x := rapid.SliceOfN(element, least, 200).Draw(t, label)
	if rapid.Bool().Draw(t, label+" sorted") {
		slices.Sort(x)
	}
	return x
}

// sound fails unless the bounds are numbers in their order around the value.
func sound(t *rapid.T, what string, e Estimate) {
	t.Helper()
	if math.IsNaN(e.Lo) || math.IsNaN(e.Hi) {
		t.Fatalf("%s: a bound is NaN: %+v", what, e)
	}
	if e.Defined() && !(e.Lo <= e.Value && e.Value <= e.Hi) {
		t.Fatalf("%s: the value is outside of its bounds: %+v", what, e)
	}
	if !e.Defined() && (e.Estimable() || len(e.Warnings) == 0) {
		t.Fatalf("%s: no value, but bounds or no warning: %+v", what, e)
	}
	if math.IsNaN(e.Effective) || e.Effective < 0 || e.Effective > float64(e.N) || e.Over > e.N || e.Method == "" {
		t.Fatalf("%s: %+v", what, e)
	}
	for _, w := range e.Warnings {
		if w.Code == "" || w.Text == "" {
			t.Fatalf("%s: an empty warning: %+v", what, e)
		}
	}
	if d := Detectable(e); math.IsNaN(d) || d < 0 {
		t.Fatalf("%s: detectable effect %v of %+v", what, d, e)
	}
}

// anyEstimate draws an estimate of any kind, sound or hopeless.
func anyEstimate(t *rapid.T, label string) Estimate {
	confidence := confidences.Draw(t, label+" confidence")
	x := series(t, 0, label)
	switch rapid.IntRange(0, 3).Draw(t, label+" estimator") {
	case 0:
		return mustSample(x, rapid.IntRange(0, 50).Draw(t, label+" over")).Quantile(levels.Draw(t, label+" p"), confidence)
	case 1:
		return mustSample(x, rapid.IntRange(0, 3).Draw(t, label+" over")).Mean(confidence)
	case 2:
		for i := range x {
			x[i] = math.Round(math.Mod(math.Abs(x[i]), 1))
		}
		return Share(x, confidence)
	default:
		return Rate(x, rapid.SliceOfN(rapid.Float64Range(0, 10), len(x), len(x)).Draw(t, label+" seconds"), confidence)
	}
}

func TestEstimatesAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, b := anyEstimate(t, "candidate"), anyEstimate(t, "baseline")
		sound(t, "candidate", c)
		sound(t, "baseline", b)
		sound(t, "ratio", Ratio(c, b))
		sound(t, "difference", Difference(c, b))
		sound(t, "ratio of ratios", Ratio(Ratio(c, b), Ratio(b, c)))
	})
}

func TestComparisonsAreAntisymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, b := anyEstimate(t, "candidate"), anyEstimate(t, "baseline")
		there, back := Difference(c, b), Difference(b, c)
		if there.Defined() != back.Defined() || there.Defined() && (there.Value != -back.Value || there.Lo != -back.Hi || there.Hi != -back.Lo) {
			t.Fatalf("c-b = %+v\nb-c = %+v", there, back)
		}
		r, s := Ratio(c, b), Ratio(b, c)
		if !r.Estimable() || !s.Estimable() || r.Lo <= 0 || s.Lo <= 0 || c.Lo < 1e-150 || b.Lo < 1e-150 || c.Hi > 1e150 || b.Hi > 1e150 {
			return
		}
		for _, p := range [][2]float64{{r.Value, s.Value}, {r.Lo, s.Hi}, {r.Hi, s.Lo}} {
			if math.Abs(p[0]*p[1]-1) > 1e-9 {
				t.Fatalf("c/b = %+v\nb/c = %+v", r, s)
			}
		}
	})
}

// Quantiles and means move with a change of unit. Powers of two and whole
// numbers keep the arithmetic exact.
func TestEquivariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.SliceOfN(rapid.IntRange(-1000, 1000), 1, 300).Draw(t, "x")
		scale := math.Ldexp(1, rapid.IntRange(-10, 10).Draw(t, "log2 of the scale"))
		shift := float64(rapid.IntRange(-1000, 1000).Draw(t, "shift"))
		over := rapid.IntRange(0, 20).Draw(t, "over")
		x, y := make([]float64, len(whole)), make([]float64, len(whole))
		for i, k := range whole {
			x[i], y[i] = float64(k), float64(k)*scale+shift*scale
		}
		p, confidence := levels.Draw(t, "p"), confidences.Draw(t, "confidence")
		same := func(what string, a, b Estimate) {
			for _, v := range [][2]float64{{a.Value, b.Value}, {a.Lo, b.Lo}, {a.Hi, b.Hi}} {
				want := (v[0] + shift) * scale
				if math.IsNaN(want) && math.IsNaN(v[1]) || want == v[1] || math.Abs(want-v[1]) <= 1e-9*scale*2000 {
					continue
				}
				t.Fatalf("%s: %+v scaled by %v and shifted by %v gives %+v", what, a, scale, shift, b)
			}
			if math.Abs(a.Effective-b.Effective) > 1e-6*a.Effective {
				t.Fatalf("%s: effective %v and %v", what, a.Effective, b.Effective)
			}
		}
		same("quantile", mustSample(x, over).Quantile(p, confidence), mustSample(y, over).Quantile(p, confidence))
		same("mean", mustSample(x, 0).Mean(confidence), mustSample(y, 0).Mean(confidence))
	})
}

// A permutation leaves the point estimate alone, and no order of the same
// values makes an interval narrower than the one of independent observations.
func TestPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(0, 100), 2, 300).Draw(t, "x")
		y := rapid.Permutation(x).Draw(t, "y")
		p, confidence := levels.Draw(t, "p"), confidences.Draw(t, "confidence")
		a, b := mustSample(x, 0), mustSample(y, 0)
		qa, qb := a.Quantile(p, confidence), b.Quantile(p, confidence)
		if qa.Value != qb.Value || a.Min() != b.Min() || a.Max() != b.Max() || math.Abs(a.Mean(confidence).Value-b.Mean(confidence).Value) > 1e-9 {
			t.Fatalf("a permutation changes a point estimate: %+v, %+v", qa, qb)
		}
		tail, _ := tails(confidence)
		lo, hi := ranks(len(x), p, tail)
		for _, e := range []Estimate{qa, qb} {
			if lo == 0 && !math.IsInf(e.Lo, -1) || lo > 0 && e.Lo > a.sorted[lo-1] {
				t.Fatalf("Lo %v is above rank %d of independent observations", e.Lo, lo)
			}
			if hi > len(x) && !math.IsInf(e.Hi, 1) || hi <= len(x) && e.Hi < a.sorted[hi-1] {
				t.Fatalf("Hi %v is below rank %d of independent observations", e.Hi, hi)
			}
		}
	})
}

// More confidence never gives a narrower interval.
func TestConfidenceWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := series(t, 2, "x")
		s, p := mustSample(x, rapid.IntRange(0, 5).Draw(t, "over")), levels.Draw(t, "p")
		for _, f := range []func(confidence float64) Estimate{
			func(c float64) Estimate { return s.Quantile(p, c) },
			func(c float64) Estimate { return s.Mean(c) },
			func(c float64) Estimate { return Share(evenly(len(x)/3, len(x)), c) },
		} {
			narrow, wide := f(0.8), f(0.95)
			if wide.Lo > narrow.Lo || wide.Hi < narrow.Hi {
				t.Fatalf("80 %%: %+v\n95 %%: %+v", narrow, wide)
			}
		}
	})
}

// The ranks are the tightest whose tails keep their probability, by summing the
// binomial distribution itself.
func TestRanksAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		p := rapid.Float64Range(0.001, 0.999).Draw(t, "p")
		tail := rapid.SampledFrom([]float64{0.25, 0.05, 0.025, 0.005}).Draw(t, "tail")
		lo, hi := ranks(n, p, tail)
		cumulative := make([]float64, n+2) // P(binomial < k)
		for k := 0; k <= n; k++ {
			a, _ := math.Lgamma(float64(n + 1))
			b, _ := math.Lgamma(float64(k + 1))
			c, _ := math.Lgamma(float64(n - k + 1))
			cumulative[k+1] = cumulative[k] + math.Exp(a-b-c+float64(k)*math.Log(p)+float64(n-k)*math.Log1p(-p))
		}
		const rounding = 1e-9
		if lo > 0 && cumulative[lo] > tail+rounding || lo < n && cumulative[lo+1] < tail-rounding {
			t.Fatalf("n=%d p=%v: lower rank %d: P(< it) = %v, P(< next) = %v, tail %v", n, p, lo, cumulative[lo], cumulative[lo+1], tail)
		}
		if hi <= n && 1-cumulative[hi] > tail+rounding || hi > 1 && 1-cumulative[hi-1] < tail-rounding {
			t.Fatalf("n=%d p=%v: upper rank %d: P(>= it) = %v, tail %v", n, p, hi, 1-cumulative[hi], tail)
		}
		if (hi > n) != (n < NeedAbove(p, 1-2*tail)) {
			t.Fatalf("n=%d p=%v tail=%v: upper rank %d but NeedAbove = %d", n, p, tail, hi, NeedAbove(p, 1-2*tail))
		}
	})
}

// TestRanks: sorting by digits and by comparisons finds the ranks that counting
// finds.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 50, leastByDigits - 1, leastByDigits, 3 * leastByDigits}).Draw(t, "n")
		kinds := rapid.IntRange(1, 3000).Draw(t, "kinds")
		seed := rapid.Uint64().Draw(t, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(rng.IntN(kinds)-kinds/2) / 7
		}
		s, err := NewSample(values, rapid.IntRange(0, 3).Draw(t, "over"))
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range s.ranks(make([]float64, s.N())) {
			below, same := 0, 0
			for _, x := range s.series {
				switch {
				case x < s.series[i]:
					below++
				case x == s.series[i]:
					same++
				}
			}
			if want := float64(2*below+same) / 2; got != want {
				t.Fatalf("rank of observation %d is %v, want %v", i, got, want)
			}
			if i > 20 {
				break
			}
		}
	})
}
