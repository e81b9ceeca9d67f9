package workload

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mathext"

	"github.com/assay-llm/assay/config"
)

// momentsOf returns mean and coefficient of variation.
func momentsOf(xs []float64) (mean, cv float64) {
	n := float64(len(xs))
	for _, x := range xs {
		mean += x / n
	}
	variance := 0.0
	for _, x := range xs {
		variance += (x - mean) * (x - mean) / n
	}
	return mean, math.Sqrt(variance) / mean
}

// kolmogorov returns the p-value of a test of xs against a distribution.
func kolmogorov(xs []float64, cdf func(float64) float64) (p float64) {
	n := float64(len(xs))
	d := 0.0
	for i, x := range slices.Sorted(slices.Values(xs)) {
		f := cdf(x)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	x := d * math.Sqrt(n)
	for k := 1.0; k < 50; k++ {
		p += 2 * math.Pow(-1, k-1) * math.Exp(-2*k*k*x*x)
	}
	return min(p, 1)
}

// distribution is the distribution function of gaps of mean 1.
func (p process) distribution(x float64) float64 {
	if p.kind == "gamma" {
		return mathext.GammaIncReg(p.shape, x*p.shape)
	}
	return -math.Expm1(-math.Pow(x*math.Gamma(1+1/p.shape), p.shape))
}

// TestRenewalGaps holds 10⁵ gaps of each process to its distribution, to the mean
// and to the CV that was asked for.
func TestRenewalGaps(t *testing.T) {
	const n = 100_000
	for _, p := range []process{
		gammaProcess(&Renewal{CV: 0.3}), gammaProcess(&Renewal{CV: 1}), gammaProcess(&Renewal{CV: 2}), gammaProcess(&Renewal{Shape: 0.25}),
		weibullProcess(&Renewal{CV: 0.3}), weibullProcess(&Renewal{CV: 1}), weibullProcess(&Renewal{CV: 2}), weibullProcess(&Renewal{Shape: 0.6}),
	} {
		gaps := make([]float64, n)
		for i := range gaps {
			gaps[i] = float64(p.gap(NewStream(11, "w", p.kind), int64(i+1))) / unit
		}
		mean, cv := momentsOf(gaps)
		if math.Abs(mean-1) > 4*p.cv/math.Sqrt(n) {
			t.Errorf("%v: mean gap %.4f, want 1", p, mean)
		}
		if math.Abs(cv/p.cv-1) > 0.05 {
			t.Errorf("%v: the CV is %.4f", p, cv)
		}
		if ks := kolmogorov(gaps, p.distribution); ks < 0.001 {
			t.Errorf("%v: KS p = %.2g", p, ks)
		}
	}
}

// TestRenewalCVs: cv and shape say the same, by the closed forms of both
// distributions. The values of Weibull are of the table of its CV in Rinne, The
// Weibull Distribution (2008), 2.9.1: shape 0.5 has √5, shape 1 has 1.
func TestRenewalCVs(t *testing.T) {
	for _, tt := range []struct {
		p         process
		shape, cv float64
	}{
		{gammaProcess(&Renewal{CV: 2}), 0.25, 2},
		{gammaProcess(&Renewal{Shape: 4}), 4, 0.5},
		{weibullProcess(&Renewal{CV: math.Sqrt(5)}), 0.5, math.Sqrt(5)},
		{weibullProcess(&Renewal{Shape: 1}), 1, 1},
		{weibullProcess(&Renewal{CV: minCV}), weibullShape(minCV), minCV},
		{weibullProcess(&Renewal{CV: maxCV}), weibullShape(maxCV), maxCV},
	} {
		if math.Abs(tt.p.shape-tt.shape) > 1e-9*tt.shape || math.Abs(tt.p.cv-tt.cv) > 1e-6*tt.cv {
			t.Errorf("%v: shape %v, CV %v, want %v, %v", tt.p, tt.p.shape, tt.p.cv, tt.shape, tt.cv)
		}
	}
}

// TestRenewalIsStationary: the expected number of arrivals in the first seconds is
// the rate times their length. A process that starts at an arrival has
// (CV²−1)/2 more of them.
func TestRenewalIsStationary(t *testing.T) {
	const plans = 8_000
	for _, p := range []process{gammaProcess(&Renewal{CV: 3}), weibullProcess(&Renewal{CV: 3}), gammaProcess(&Renewal{CV: 0.5}), weibullProcess(&Renewal{CV: 0.5})} {
		for _, length := range []float64{0.5, 5} {
			counts := make([]float64, plans)
			for seed := range counts {
				gaps := NewStream(uint64(seed), "w", "arrivals")
				at := uint64(0)
				for i := int64(0); ; i++ {
					if at += p.gap(gaps, i); float64(at) >= length*unit {
						break
					}
					counts[seed]++
				}
			}
			mean, cv := momentsOf(counts)
			if se := mean * cv / math.Sqrt(plans); math.Abs(mean-length) > 4*se {
				t.Errorf("%v: %.4f arrivals in %v mean gaps, standard error %.4f", p, mean, length, se)
			}
		}
	}
}

// TestRenewalFollowsTheRate: after the time change, gaps under a varying rate are
// those of the process.
func TestRenewalFollowsTheRate(t *testing.T) {
	// Not burstier, since many gaps would be less than the nanosecond to which due
	// instants are rounded.
	r := Renewal{CV: 1.3, Rate: Rate{Bursts: &Bursts{Rate: 100, Base: 10, On: config.Duration(3 * time.Second), Off: config.Duration(7 * time.Second)}}}
	p := openPlan(t, Arrivals{Gamma: &r}, 2000*time.Second, 0, 5)
	var gaps []float64
	before := 0.0
	for i, due := range dues(p) {
		at := integral(r.Rate, 0, due.Seconds())
		if i > 0 {
			gaps = append(gaps, at-before)
		}
		before = at
	}
	mean, cv := momentsOf(gaps)
	if ks := kolmogorov(gaps, gammaProcess(&r).distribution); math.Abs(cv/1.3-1) > 0.05 || ks < 0.001 || math.Abs(mean-1) > 4*1.3/math.Sqrt(float64(len(gaps))) {
		t.Errorf("%d gaps: mean %.4f, CV %.4f, KS p %.2g", len(gaps), mean, cv, ks)
	}
}

func TestSumOfGapsDoesNotWrap(t *testing.T) {
	a := arrivals{process: gammaProcess(&Renewal{CV: 2}), limit: maxShots}
	if got := a.add(math.MaxUint64-1, 5); got != math.MaxUint64 && got > math.MaxUint64-1 {
		t.Errorf("the sum wraps to %d", got)
	}
	if got := a.add(math.MaxUint64, 7); got != math.MaxUint64 {
		t.Errorf("the sum goes back to %d", got)
	}
}

func TestExpIsExact(t *testing.T) {
	for _, x := range []float64{0, 1, -1, 0.1, -0.3, math.Ln2 / 2, -math.Ln2 / 2, 100, -100, 689.9, -689.9, 1e-12} {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 2*want*0x1p-52 {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if exp(-800) != 0 || exp(800) != 1e300 {
		t.Errorf("exp at the ends: %v, %v", exp(-800), exp(800))
	}
}

func TestShapesHaveExactTotals(t *testing.T) {
	day := &Diurnal{Mean: 8, Swing: 0.6, Period: config.Duration(24 * time.Minute)}
	tests := []struct {
		name   string
		rate   Rate
		length time.Duration
		want   int64
	}{
		{"bursts", Rate{Bursts: &Bursts{Rate: 50, Base: 2, On: config.Duration(5 * time.Second), Off: config.Duration(55 * time.Second)}}, 2 * time.Minute, 2 * (250 + 110)},
		{"bursts without base", Rate{Bursts: &Bursts{Rate: 50, On: config.Duration(5 * time.Second), Off: config.Duration(5 * time.Second)}}, 17 * time.Second, 2 * 250},
		{"pulses", Rate{Pulses: &Pulses{Requests: 20, Every: config.Duration(10 * time.Second)}}, time.Minute, 120},
		{"pulses over a base", Rate{Pulses: &Pulses{Requests: 20, Every: config.Duration(10 * time.Second), Base: 3}}, 35 * time.Second, 80 + 105},
		{"a day", Rate{Diurnal: day}, 24 * time.Minute, 8 * 24 * 60},
		// 8·720·(1+2/π) = 9426.9, less the area between 48 chords and their arcs.
		{"half a day around the peak", Rate{Diurnal: &Diurnal{Mean: 8, Swing: 1, Period: config.Duration(24 * time.Minute), Start: config.Duration(6 * time.Minute)}}, 12 * time.Minute, 9426},
		{"hours", Rate{Diurnal: &Diurnal{Rates: []config.Rate{0, 10}, Period: config.Duration(time.Minute)}}, 2 * time.Minute, 600},
	}
	for _, tt := range tests {
		p := openPlan(t, Arrivals{Constant: &tt.rate}, tt.length, 0, 1)
		all := dues(p)
		if int64(len(all)) != tt.want || p.Planned() != tt.want {
			t.Errorf("%s: %d arrivals, Planned %d, want %d", tt.name, len(all), p.Planned(), tt.want)
		}
		if got, want := tt.rate.shape().mean(float64(tt.length)), p.Rate(); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: mean %v, but Rate %v", tt.name, got, want)
		}
		if !slices.IsSorted(all) || all[len(all)-1] >= tt.length {
			t.Errorf("%s: not in order, or beyond the end", tt.name)
		}
	}
}

func TestPulsesAreDueAtOnce(t *testing.T) {
	p := openPlan(t, Arrivals{Pulses: &Pulses{Requests: 20, Every: config.Duration(10 * time.Second)}}, 30*time.Second, 0, 1)
	for i, due := range dues(p) {
		if want := time.Duration(i/20) * 10 * time.Second; due != want {
			t.Fatalf("request %d is due at %v, want %v", i, due, want)
		}
	}
	// With the process poisson, the size of a pulse is random.
	p = openPlan(t, Arrivals{Pulses: &Pulses{Requests: 20, Every: config.Duration(time.Second)}, Process: "poisson"}, 4000*time.Second, 0, 1)
	sizes := make([]float64, 4000)
	for _, due := range dues(p) {
		if due%time.Second != 0 {
			t.Fatalf("a request is due at %v, between pulses without a base", due)
		}
		sizes[due/time.Second]++
	}
	if mean, cv := momentsOf(sizes); math.Abs(mean-20) > 0.3 || math.Abs(cv*cv*mean-1) > 0.1 {
		t.Errorf("pulses of %.2f requests, index of dispersion %.2f", mean, cv*cv*mean)
	}
}

func TestDiurnalPeaksWhenToldTo(t *testing.T) {
	r := Rate{Diurnal: &Diurnal{Mean: 100, Swing: 0.9, Period: config.Duration(24 * time.Second), Peak: config.Duration(14 * time.Second), Start: config.Duration(8 * time.Second)}}
	var counts [24]int
	for _, due := range dues(openPlan(t, Arrivals{Constant: &r}, 240*time.Second, 0, 1)) {
		counts[(int(due/time.Second)+8)%24]++
	}
	for hour, n := range counts {
		up := math.Cos(2 * math.Pi * (float64(hour) + 0.5 - 14) / 24)
		if want := 1000 * (1 + 0.9*up); math.Abs(float64(n)-want) > 12 { // one a day
			t.Errorf("hour %d: %d requests, want %.1f", hour, n, want)
		}
	}
}

// TestMMPP: times in states are exponential with their means, all states are
// visited alike often, and the counts have the dispersion of the process.
func TestMMPP(t *testing.T) {
	sec := config.Duration(time.Second)
	m := &MMPP{States: []State{{Rate: 2, Dwell: 30 * sec}, {Rate: 40, Dwell: 5 * sec}, {Rate: 10, Dwell: 12 * sec}}}
	next := m.walk(0, NewStream(3, "w", "states"))
	times := map[float64][]float64{}
	before := -1.0
	for range 60_000 {
		p, ok := next()
		if !ok || p.rate == before {
			t.Fatalf("a state of %v/s follows itself, or the states end", p.rate)
		}
		before = p.rate
		times[p.rate] = append(times[p.rate], p.length/1e9)
	}
	for _, s := range m.States {
		xs, dwell := times[float64(s.Rate)], time.Duration(s.Dwell).Seconds()
		if math.Abs(float64(len(xs))-20_000) > 500 {
			t.Errorf("state of %v: %d visits of 60,000", s.Rate, len(xs))
		}
		if p := kolmogorov(xs, func(x float64) float64 { return -math.Expm1(-x / dwell) }); p < 0.001 {
			t.Errorf("state of %v: times are not exponential with mean %v, KS p %.2g", s.Rate, s.Dwell, p)
		}
	}
	// Two states of one mean time τ: the rate has variance d² = ((a−b)/2)² and
	// autocovariance d²·exp(−2t/τ), so the index of dispersion of counts tends to
	// 1 + d²τ/mean for long bins (Fischer and Meier-Hellstern 1993).
	pair := &MMPP{States: []State{{Rate: 10, Dwell: 2 * sec}, {Rate: 50, Dwell: 2 * sec}}}
	const bin, bins = 100, 4000
	counts := make([]float64, bins)
	for _, due := range dues(openPlan(t, Arrivals{MMPP: pair}, bin*bins*time.Second, 0, 9)) {
		counts[int(due.Seconds()/bin)]++
	}
	mean, cv := momentsOf(counts)
	// 1 + 20²·2/30 in the limit, less τ/(2·bin) of the excess.
	want := 1 + 20.0*20*2/30*(1-1.0/bin)
	if got := cv * cv * mean; math.Abs(mean/(30*bin)-1) > 0.01 || math.Abs(got/want-1) > 0.1 {
		t.Errorf("%.1f requests a bin, want %d; index of dispersion %.1f, want %.1f", mean, 30*bin, got, want)
	}
	// The first state is drawn by the share of its time.
	first := 0
	for seed := range uint64(10_000) {
		if p, _ := m.walk(0, NewStream(seed, "w", "states"))(); p.rate == 2 {
			first++
		}
	}
	if want := 10_000 * 30.0 / 47; math.Abs(float64(first)-want) > 4*math.Sqrt(want*17/47) {
		t.Errorf("%d of 10,000 start in the first state, want %.0f", first, want)
	}
}

func BenchmarkGammaArrivals(b *testing.B) {
	p := openPlan(b, Arrivals{Gamma: &Renewal{CV: 2, Rate: Rate{Fixed: 1000}}}, 0, maxShots, 1)
	b.ReportAllocs()
	n := 0
	for range p.arrivals.all() {
		if n++; n%1024 == 0 && !b.Loop() {
			break
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "arrivals/s")
}
