package workload

import (
	"math"

	"github.com/assay-llm/assay/config"
)

// presetNames are the values of Spec.Preset.
var presetNames = []string{"chat", "rag-qa", "code-completion", "agent", "long-tail", "batch"}

// preset returns what a named workload fills in; false: there is no such name.
// Lengths are quantiles of public traces (their figures, not their rows); see
// docs/workloads.md for where each comes from.
func preset(name string) (s Spec, source string, ok bool) {
	drawn := func(values ...config.Count) Length {
		return Length{Kind: "quantiles", Percents: traceQuantiles, Values: values}
	}
	between := func(lo, hi config.Count) Length { return Length{Kind: "uniform", Min: lo, Max: hi} }
	switch name {
	case "chat":
		s.Arrivals.Gamma = &Renewal{Rate: Rate{Fixed: 5.53}, CV: 1.094}
		s.Prompts.Synthetic = drawn(2, 29, 120, 181, 207, 372, 387, 396, 403, 414, 703, 984, 1020, 1045, 1071, 1097, 1130, 1189, 1315, 1876, 2734, 4075, 4083, 4090, 4098, 4142, 4831, 6179, 14050)
		s.Output = drawn(7, 16, 28, 41, 54, 67, 77, 85, 91, 96, 103, 113, 129, 151, 177, 217, 384, 395, 400, 411, 424, 430, 451, 509, 540, 601, 643, 954, 1000)
		s.Correlation = 0.073
		source = "Azure LLM inference trace, Microsoft Azure, CC-BY-4.0"
	case "rag-qa":
		s.Arrivals.Concurrency = 128
		s.Prompts.Synthetic, s.Output = between(12_288, 32_768), between(128, 512)
	case "code-completion":
		s.Arrivals.Concurrency = 256
		s.Prompts.Synthetic, s.Output = between(512, 2048), between(64, 256)
	case "agent":
		s.Arrivals.Poisson = &Rate{Fixed: 3.907}
		s.Prompts.Synthetic = drawn(13, 16, 19, 22, 30, 45, 88, 277, 913, 2777, 4365, 6657, 11587, 14724, 16290, 17642, 19409, 23175, 28425, 34319, 38611, 41325, 48905, 54833, 56631, 66456, 76328, 191373, 191378)
		s.Output = drawn(1, 2, 2, 2, 4, 6, 8, 11, 16, 22, 32, 49, 69, 92, 126, 169, 210, 250, 289, 332, 389, 444, 519, 609, 689, 768, 782, 813, 893)
		s.Correlation = -0.517
		s.Prefix = Prefix{Share: 0.86, Groups: 64, Reuse: 16}
		source = "Mooncake trace, Moonshot AI, Apache-2.0"
	case "long-tail":
		s.Arrivals.Gamma = &Renewal{Rate: Rate{Fixed: 3.401}, CV: 2}
		s.Prompts.Synthetic = drawn(891, 894, 896, 901, 964, 1261, 1662, 2306, 3263, 4251, 4993, 5870, 6909, 8187, 9570, 11238, 13196, 15367, 17869, 21464, 27367, 31519, 39550, 52215, 66449, 85400, 100810, 121301, 126195)
		s.Output = drawn(1, 3, 3, 10, 24, 46, 100, 156, 213, 256, 291, 322, 350, 375, 399, 423, 447, 472, 504, 543, 597, 639, 698, 800, 892, 1119, 1568, 2000, 2000)
		s.Correlation = 0.072
		s.Prefix = Prefix{Share: 0.66, Groups: 256, Reuse: 8}
		source = "Mooncake trace, Moonshot AI, Apache-2.0"
	case "batch":
		s.Arrivals.Concurrency = 256
		s.Prompts.Synthetic = drawn(1, 73, 331, 749, 1242, 1564, 1802, 1986, 2150, 2308, 2453, 2596, 2730, 2861, 2996, 3127, 3249, 3370, 3490, 3597, 3702, 3759, 3813, 3863, 3892, 3933, 3963, 4012, 4054)
		s.Output = drawn(5, 36, 48, 60, 78, 92, 104, 115, 125, 135, 145, 156, 167, 179, 192, 206, 222, 242, 268, 304, 372, 438, 736, 2200, 2775, 3271, 3582, 3844, 4056)
		s.Correlation = -0.11
		source = "arXiv summarization lengths, Etalon, Apache-2.0"
	default:
		return s, "", false
	}
	return s, source, true
}

// traceQuantiles are the percents at which the presets' lengths are given.
var traceQuantiles = []float64{0, 1, 2.5, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 92.5, 95, 97, 98, 99, 99.5, 99.9, 100}

// resolved returns the spec with what its preset fills in. What the spec says
// itself stays: arrivals; prompts, with which the preset's prefix and correlation
// go too; output, with which its correlation goes.
func (s Spec) resolved() Spec {
	p, _, ok := preset(s.Preset)
	if !ok {
		return s
	}
	own := s.Prompts.File != "" || s.Prompts.Synthetic.Set()
	if forms, _ := s.Arrivals.forms(); len(forms) == 0 && !s.Arrivals.Think.Set() && s.Arrivals.Stagger == nil && s.Arrivals.Process == "" {
		s.Arrivals = p.Arrivals
	}
	if !own && s.Correlation == 0 && !s.Output.Set() {
		s.Correlation = p.Correlation
	}
	if !own && s.Prefix == (Prefix{}) {
		s.Prefix = p.Prefix
	}
	if !own {
		s.Prompts = p.Prompts
	}
	if !s.Output.Set() {
		s.Output = p.Output
	}
	return s
}

// copula couples two uniform numbers so that what is drawn with them has a
// Spearman correlation of about rho, whatever the distributions: by a Gaussian
// copula, whose parameter is 2·sin(π·rho/6) (Pearson 1907).
func copula(rho float64) func(u, v float64) float64 {
	r := 2 * math.Sin(math.Pi*rho/6)
	rest := math.Sqrt(1 - r*r)
	return func(u, v float64) float64 {
		z := r*math.Sqrt2*math.Erfinv(2*u-1) + rest*math.Sqrt2*math.Erfinv(2*v-1)
		// Not 0 or 1, which are no draws.
		return min(max(0.5*math.Erfc(-z/math.Sqrt2), 0x1p-53), 1-0x1p-53)
	}
}
