package workload

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/config"
)

// draws returns n sorted draws.
func draws[T config.Count | config.Duration](d Dist[T], n int) []float64 {
	s, draw := NewStream(42, "lengths"), d.sampler()
	all := make([]float64, n)
	for i := range all {
		all[i] = float64(draw(s.uniform(int64(i))))
	}
	slices.Sort(all)
	return all
}

func meanOf(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// TestDistributions compares mean, median and p99 of 10⁵ draws with theory.
func TestDistributions(t *testing.T) {
	e := math.Exp
	tests := []struct {
		name              string
		d                 Length
		mean, median, p99 float64
		tolerance         float64 // relative
	}{
		{"fixed", Fixed[config.Count](128), 128, 128, 128, 0},
		{"uniform", Length{Kind: "uniform", Min: 100, Max: 300}, 200, 200, 298, 0.01},
		{"one value", Length{Kind: "uniform", Min: 7, Max: 7}, 7, 7, 7, 0},
		{"normal", Length{Kind: "normal", Value: 512, Stddev: 100}, 512, 512, 512 + 2.3263*100, 0.01},
		{"lognormal", Length{Kind: "lognormal", Value: 400, Sigma: 0.8}, 400 * e(0.32), 400, 400 * e(2.3263*0.8), 0.03},
		// Truncated at its mean from below: the half-normal, mean μ + σ√(2/π),
		// median μ + 0.6745σ, p99 μ + 2.5758σ.
		{"half normal", Length{Kind: "normal", Value: 500, Stddev: 100, Min: 500}, 500 + 79.79, 500 + 67.45, 500 + 257.58, 0.01},
		// Truncated to [median, ∞): mean 2·m·e^(σ²/2)·Φ(σ), median and p99 at
		// normal quantiles 0.75 and 0.995.
		{"truncated lognormal", Length{Kind: "lognormal", Value: 400, Sigma: 0.8, Min: 400}, 2 * 400 * e(0.32) * 0.78814, 400 * e(0.6745*0.8), 400 * e(2.5758*0.8), 0.03},
		{"far tail", Length{Kind: "normal", Value: 100, Stddev: 10, Min: 140, Max: 200}, 141.9, 141.1, 149.4, 0.005},
		{"exponential", Length{Kind: "exponential", Value: 1000}, 1000, 1000 * math.Ln2, 1000 * math.Log(100), 0.02},
		// Mean α·m/(α−1), quantiles m·(1−p)^(−1/α).
		{"pareto", Length{Kind: "pareto", Min: 1000, Alpha: 3}, 1500, 1000 * math.Pow(2, 1./3), 1000 * math.Pow(100, 1./3), 0.02},
		// Truncated at 10·m: mean α·m/(α−1)·(1−10^(1−α))/(1−10^(−α)), and p99 where
		// (m/x)^α is 0.01 + 0.99·10^(−α).
		{"heavy tail", Length{Kind: "pareto", Min: 1000, Alpha: 1.5, Max: 10_000}, 3000 * (1 - math.Pow(10, -0.5)) / (1 - math.Pow(10, -1.5)), 1000 * math.Pow(0.5+0.5*math.Pow(10, -1.5), -1/1.5), 1000 * math.Pow(0.01+0.99*math.Pow(10, -1.5), -1/1.5), 0.02},
		{"alpha of one", Length{Kind: "pareto", Min: 1000, Alpha: 1, Max: 10_000}, 1000 * math.Log(10) / 0.9, 1000 / 0.55, 1000 / 0.109, 0.02},
		{"empirical", Length{Kind: "empirical", Values: []config.Count{10, 20, 4000}, Weights: []float64{6, 3.5, 0.5}}, 213, 10, 4000, 0.04},
		{"empirical, all alike", Length{Kind: "empirical", Values: []config.Count{3, 1, 2}}, 2, 2, 3, 0.01},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if what, _ := tt.d.problem(); what != "" {
				t.Fatal(what)
			}
			all := draws(tt.d, 100_000)
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > tt.tolerance*want {
					t.Errorf("%s = %v, want %v within %v", what, got, want, tt.tolerance)
				}
			}
			near("mean", meanOf(all), tt.mean)
			near("median", all[50_000], tt.median)
			near("p99", all[99_000], tt.p99)
			near("Mean", tt.d.Mean(), tt.mean)
		})
	}
}

func TestRoundingIsUnbiased(t *testing.T) {
	// Lengths of a few tokens: rounding down would lose half a token of four.
	d := Length{Kind: "normal", Value: 4, Stddev: 1}
	if got := meanOf(draws(d, 200_000)); math.Abs(got-4) > 0.02 {
		t.Errorf("mean of normal(4, 1) = %v", got)
	}
}

func genDist(t *rapid.T) Length {
	d := Length{
		Kind:  rapid.SampledFrom(distKinds).Draw(t, "kind"),
		Value: config.Count(rapid.Int64Range(-1, 3000).Draw(t, "value")), Stddev: config.Count(rapid.Int64Range(-1, 500).Draw(t, "stddev")),
		Sigma: rapid.Float64Range(-0.1, 5).Draw(t, "sigma"), Alpha: rapid.Float64Range(-0.1, 5).Draw(t, "alpha"),
		Min: config.Count(rapid.Int64Range(0, 4000).Draw(t, "min")), Max: config.Count(rapid.Int64Range(0, 4000).Draw(t, "max")),
	}
	if d.Kind == "empirical" {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		for range n {
			d.Values = append(d.Values, config.Count(rapid.Int64Range(0, 5000).Draw(t, "v")))
			d.Weights = append(d.Weights, rapid.Float64Range(-0.01, 9).Draw(t, "w"))
		}
	}
	return d
}

// TestSamplersAreMonotoneAndBounded: what no problem is found with is an inverse
// distribution function, up to the ends of (0, 1).
func TestSamplersAreMonotoneAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDist(t)
		if what, _ := d.problem(); what != "" {
			t.Skip(what)
		}
		lo, hi := d.bounds()
		draw := d.sampler()
		us := []float64{0x1p-53, 1e-9, 1 - 1e-9, 1 - 0x1p-53}
		for range 20 {
			us = append(us, rapid.Float64Range(1e-6, 1-1e-6).Draw(t, "u"))
		}
		slices.Sort(us)
		before := config.Count(math.MinInt64)
		for _, u := range us {
			x := draw(u)
			if d.Kind != "fixed" && d.Kind != "empirical" && (x < lo || x > hi) {
				t.Fatalf("%v: %v at %v is outside %v to %v", d, x, u, lo, hi)
			}
			if x < 1 || x > MaxTokens {
				t.Fatalf("%v: %v tokens", d, x)
			}
			if d.Kind != "empirical" && x < before {
				t.Fatalf("%v falls from %v to %v at %v", d, before, x, u)
			}
			before = x
		}
		if m := d.Mean(); !(m >= 0.99 && m <= MaxTokens) {
			t.Fatalf("%v has mean %v", d, m)
		}
	})
}

func TestPausesMayBeZero(t *testing.T) {
	d := Pause{Kind: "exponential", Value: config.Duration(2 * time.Second), Max: config.Duration(10 * time.Second)}
	all := draws(d, 100_000)
	// The mean of an exponential cut at five means is 1 − 5e⁻⁵/(1−e⁻⁵) of it.
	want := 2e9 * (1 - 5*math.Exp(-5)/(1-math.Exp(-5)))
	if got := meanOf(all); math.Abs(got-want) > 0.01*want || all[0] < 0 || all[len(all)-1] > 10e9 {
		t.Errorf("mean %v, want %v; range %v to %v", got, want, all[0], all[len(all)-1])
	}
	if what, _ := Fixed[config.Duration](0).problem(); what != "" {
		t.Errorf("a pause of 0s: %s", what)
	}
	if what, _ := Fixed[config.Count](0).problem(); what == "" {
		t.Error("a length of 0 tokens is no problem")
	}
}

func TestDistributionsDescribeThemselves(t *testing.T) {
	for want, d := range map[string]Length{
		"":                                     {},
		"512":                                  Fixed[config.Count](512),
		"uniform 1 to 9":                       {Kind: "uniform", Min: 1, Max: 9},
		"normal, mean 9, stddev 2, at least 5": {Kind: "normal", Value: 9, Stddev: 2, Min: 5},
		"lognormal, median 400, sigma 0.8, at most 4k": {Kind: "lognormal", Value: 400, Sigma: 0.8, Max: 4000},
		"exponential, mean 9":                          {Kind: "exponential", Value: 9},
		"3 values":                                     {Kind: "empirical", Values: []config.Count{1, 2, 3}},
	} {
		if got := d.String(); got != want {
			t.Errorf("%+v describes itself as %q, want %q", d, got, want)
		}
	}
}
