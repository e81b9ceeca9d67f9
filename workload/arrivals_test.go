package workload

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/config"
)

func fixed(r config.Rate) *Rate { return &Rate{Fixed: r} }

func openPlan(t testing.TB, a Arrivals, length time.Duration, requests int64, seed uint64) *Plan {
	t.Helper()
	p, err := New("w", Spec{Arrivals: a, For: config.Duration(length), Requests: config.Count(requests), Prompts: Prompts{Synthetic: Fixed[config.Count](4)}}, nil, seed, "salt")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// dues returns the schedule alone, without making the shots.
func dues(p *Plan) []time.Duration {
	var all []time.Duration
	for _, due := range p.arrivals.all() {
		all = append(all, due)
	}
	return all
}

func TestConstantArrivalsHaveExactTotals(t *testing.T) {
	tests := []struct {
		rate   config.Rate
		length time.Duration
		want   int64
	}{
		{5, time.Minute, 300},
		{1, time.Second, 1},
		{3, time.Second, 3},
		{7, 100 * time.Second, 700},
		{0.1, time.Minute, 6},
		{1.0 / 3, 5 * time.Minute, 100},
		{200, time.Minute, 12_000},
		{999, 6 * time.Minute, 359_640},
		{1000, 6 * time.Minute, 360_000},
		{333.333, 1000 * time.Second, 333_333},
		{0.5, 3 * time.Second, 1}, // 1.5 rounds to half down: the arrival at the very end is outside
		{1e6, time.Second / 2, 500_000},
	}
	for _, tt := range tests {
		p := openPlan(t, Arrivals{Constant: fixed(tt.rate)}, tt.length, 0, 1)
		all := dues(p)
		if int64(len(all)) != tt.want || p.Planned() != tt.want {
			t.Errorf("%v for %v: %d arrivals, Planned %d, want %d", tt.rate, tt.length, len(all), p.Planned(), tt.want)
		}
		if last := all[len(all)-1]; last >= tt.length || !slices.IsSorted(all) {
			t.Errorf("%v for %v: last arrival at %v, sorted %t", tt.rate, tt.length, last, slices.IsSorted(all))
		}
	}
}

// TestArrivalsDoNotDrift compares late arrivals with exact rational arithmetic.
func TestArrivalsDoNotDrift(t *testing.T) {
	for _, rate := range []float64{3, 7.3, 999, 1.0 / 3} {
		p := newProfile(Rate{Fixed: config.Rate(rate)}, math.Inf(1), Stream{})
		for _, i := range []int64{0, 1, 1000, 9_999_999, 999_999_999} {
			walk := p.walk()
			got := walk.when(float64(i) + 0.5)
			exact := new(big.Rat).SetFrac64(2*i+1, 2)
			exact.Mul(exact, big.NewRat(1e9, 1)).Quo(exact, new(big.Rat).SetFloat64(rate))
			want, _ := exact.Float64()
			// One nanosecond for rounding, and the last bit of the result.
			if math.Abs(float64(got)-want) > 1+want*0x1p-52 {
				t.Errorf("arrival %d at %v/s is due %d ns, want %.1f", i, rate, got, want)
			}
		}
	}
}

// integral is Λ by its definition, independently of segments.
func integral(r Rate, length, at float64) float64 {
	switch {
	case r.Ramp != nil:
		from, to := float64(r.Ramp.From), float64(r.Ramp.To)
		return from*at + (to-from)*at*at/(2*length)
	case r.Stairs != nil:
		sum, every := 0.0, time.Duration(r.Stairs.Every).Seconds()
		for k := 0; float64(k)*every < at; k++ {
			rate := float64(r.Stairs.From) + float64(k)*float64(r.Stairs.Step)
			if r.Stairs.To < r.Stairs.From {
				rate = max(float64(r.Stairs.To), float64(r.Stairs.From)-float64(k)*float64(r.Stairs.Step))
			} else {
				rate = min(rate, float64(r.Stairs.To))
			}
			sum += rate * min(every, at-float64(k)*every)
		}
		return sum
	}
	switch {
	case r.Bursts != nil:
		on, off := time.Duration(r.Bursts.On).Seconds(), time.Duration(r.Bursts.Off).Seconds()
		whole, rest := math.Modf(at / (on + off))
		rest *= on + off
		return float64(r.Bursts.Rate)*(whole*on+min(rest, on)) + float64(r.Bursts.Base)*(whole*off+max(0, rest-on))
	case r.Diurnal != nil:
		// By the midpoint rule on a grid that every corner of the rate lies on.
		const grid = 0.125
		sum, start := 0.0, time.Duration(r.Diurnal.Start).Seconds()
		for x := 0.0; x < at; x += grid {
			width := min(grid, at-x)
			sum += tableRate(r.Diurnal, start+x+width/2) * width
		}
		return sum
	}
	return float64(r.Fixed) * at
}

// tableRate is the rate of a table at an instant, by its definition.
func tableRate(d *Diurnal, seconds float64) float64 {
	n := float64(len(d.Rates))
	x := math.Mod(seconds/time.Duration(d.Period).Seconds(), 1) * n
	k := int(x)
	from, to := float64(d.Rates[k%len(d.Rates)]), float64(d.Rates[(k+1)%len(d.Rates)])
	return from + (to-from)*(x-float64(k))
}

// TestConstantArrivalsFollowTheIntegral: at every arrival the count is Λ rounded,
// for any profile.
func TestConstantArrivalsFollowTheIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Float64Range(0.5, 100).Draw(t, "length")
		rate := func(name string) config.Rate { return config.Rate(rapid.Float64Range(0, 40).Draw(t, name)) }
		var r Rate
		switch rapid.IntRange(0, 4).Draw(t, "shape") {
		case 0:
			r.Fixed = rate("fixed")
		case 1:
			r.Ramp = &Ramp{From: rate("from"), To: rate("to")}
		case 2:
			r.Bursts = &Bursts{
				Rate: rate("on"), Base: rate("base"),
				On: config.Duration(rapid.Float64Range(0.1, 30).Draw(t, "on") * 1e9), Off: config.Duration(rapid.Float64Range(0.1, 30).Draw(t, "off") * 1e9),
			}
		case 3:
			n := rapid.IntRange(2, 6).Draw(t, "points")
			r.Diurnal = &Diurnal{Period: config.Duration(time.Duration(2*n) * time.Second), Start: config.Duration(time.Duration(rapid.IntRange(0, 16*n-1).Draw(t, "start")) * time.Second / 8)}
			for range n {
				r.Diurnal.Rates = append(r.Diurnal.Rates, rate("point"))
			}
		default:
			r.Stairs = &Stairs{
				From: rate("from"), To: rate("to"), Step: config.Rate(rapid.Float64Range(0.5, 20).Draw(t, "step")),
				Every: config.Duration(rapid.Float64Range(0.1, 30).Draw(t, "every") * 1e9),
			}
		}
		end := float64(time.Duration(length * 1e9))
		a := arrivals{profile: newProfile(r, end, Stream{}), process: process{kind: "constant"}, limit: maxShots}
		want := integral(r, end/1e9, end/1e9)
		if math.Abs(a.profile.total-want) > 1e-6*(1+want) {
			t.Fatalf("total = %v, want %v", a.profile.total, want)
		}
		n, last := int64(0), time.Duration(-1)
		for i, due := range a.all() {
			if i != n || due < last || float64(due) >= end {
				t.Fatalf("arrival %d is due %v after %v, end %v", i, due, last, end)
			}
			// A rate near 0 stretches a rounding error of Λ, so compare Λ, not times.
			if got := integral(r, end/1e9, due.Seconds()); math.Abs(got-(float64(i)+0.5)) > 1e-6*(1+got) {
				t.Fatalf("arrival %d is due %v, where the integral is %v", i, due, got)
			}
			n, last = n+1, due
		}
		if count, _, limited := a.count(); count != n || limited {
			t.Fatalf("count = %d, %t, but there are %d", count, limited, n)
		}
		if math.Abs(float64(n)-want) > 0.5+1e-6*(1+want) {
			t.Fatalf("%d arrivals, want %v rounded", n, want)
		}
	})
}

func TestRampAndStairsHaveExactTotals(t *testing.T) {
	tests := []struct {
		name   string
		rate   Rate
		length time.Duration
		want   int64
	}{
		{"ramp up", Rate{Ramp: &Ramp{From: 0, To: 10}}, time.Minute, 300},
		{"ramp down", Rate{Ramp: &Ramp{From: 10, To: 0}}, time.Minute, 300},
		{"flat ramp", Rate{Ramp: &Ramp{From: 4, To: 4}}, time.Minute, 240},
		{"stairs up", Rate{Stairs: &Stairs{From: 1, Step: 1, Every: config.Duration(30 * time.Second), To: 10}}, 5 * time.Minute, 1650},
		{"stairs down", Rate{Stairs: &Stairs{From: 10, Step: 1, Every: config.Duration(30 * time.Second), To: 1}}, 5 * time.Minute, 1650},
		{"stairs that stay at the top", Rate{Stairs: &Stairs{From: 1, Step: 4, Every: config.Duration(10 * time.Second), To: 10}}, time.Minute, 10 + 50 + 90 + 300},
		{"stairs cut short", Rate{Stairs: &Stairs{From: 2, Step: 2, Every: config.Duration(10 * time.Second), To: 10}}, 15 * time.Second, 40},
		{"stairs from nothing", Rate{Stairs: &Stairs{From: 0, Step: 5, Every: config.Duration(10 * time.Second), To: 5}}, 20 * time.Second, 50},
	}
	for _, tt := range tests {
		p := openPlan(t, Arrivals{Constant: &tt.rate}, tt.length, 0, 1)
		if got := int64(len(dues(p))); got != tt.want || p.Planned() != tt.want {
			t.Errorf("%s: %d arrivals, Planned %d, want %d", tt.name, got, p.Planned(), tt.want)
		}
		if got, want := p.Rate(), float64(tt.want)/tt.length.Seconds(); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: mean rate %v, want %v", tt.name, got, want)
		}
	}
}

// poissonStatistics returns the coefficient of variation of gaps, the p-value of
// a Kolmogorov-Smirnov test of them against the unit exponential, and the index
// of dispersion of counts in bins of ten mean gaps.
func poissonStatistics(gaps []float64) (cv, p, dispersion float64) {
	n := float64(len(gaps))
	mean, variance := 0.0, 0.0
	for _, g := range gaps {
		mean += g / n
	}
	for _, g := range gaps {
		variance += (g - mean) * (g - mean) / n
	}
	sorted := slices.Sorted(slices.Values(gaps))
	d := 0.0
	for i, g := range sorted {
		f := -math.Expm1(-g)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	x := d * math.Sqrt(n) // Kolmogorov's limit: 2 Σ (−1)^(k−1) exp(−2 k² x²)
	for k := 1.0; k < 50; k++ {
		p += 2 * math.Pow(-1, k-1) * math.Exp(-2*k*k*x*x)
	}
	const bin = 10
	counts := make([]float64, int(mean*n/bin))
	at := 0.0
	for _, g := range gaps {
		if at += g; int(at/bin) < len(counts) {
			counts[int(at/bin)]++
		}
	}
	m, v := 0.0, 0.0
	for _, c := range counts {
		m += c / float64(len(counts))
	}
	for _, c := range counts {
		v += (c - m) * (c - m) / float64(len(counts))
	}
	return math.Sqrt(variance) / mean, p, v / m
}

// TestPoissonArrivals holds 10⁵ arrivals of several seeds and shapes to the
// process that was asked for. Varying rates are brought back to 1 by Λ.
func TestPoissonArrivals(t *testing.T) {
	const n = 100_000
	shapes := map[string]Rate{
		"fixed":  {Fixed: 8},
		"ramp":   {Ramp: &Ramp{From: 1, To: 199}},
		"stairs": {Stairs: &Stairs{From: 50, Step: 10, Every: config.Duration(100 * time.Second), To: 150}},
	}
	for name, r := range shapes {
		for seed := range uint64(3) {
			length := time.Duration(0)
			if name == "ramp" {
				length = 1100 * time.Second
			}
			p := openPlan(t, Arrivals{Poisson: &r}, length, n, seed)
			all := dues(p)
			if len(all) != n {
				t.Fatalf("%s: %d arrivals", name, len(all))
			}
			gaps, before := make([]float64, n), 0.0
			for i, due := range all {
				at := integral(r, length.Seconds(), due.Seconds())
				gaps[i], before = at-before, at
			}
			cv, ks, dispersion := poissonStatistics(gaps)
			// The dispersion of 10⁴ bins has a standard error of √2/100.
			if math.Abs(cv-1) > 0.05 || ks < 0.01 || math.Abs(dispersion-1) > 4*math.Sqrt2/100 {
				t.Errorf("%s, seed %d: CV %.4f, KS p %.4f, dispersion %.4f", name, seed, cv, ks, dispersion)
			}
			// The sum of n unit exponentials is n ± √n.
			if mean := before / n; math.Abs(mean-1) > 4/math.Sqrt(n) {
				t.Errorf("%s, seed %d: mean gap %.5f of the asked one", name, seed, mean)
			}
		}
	}
}

func TestPoissonGapsAreIndependent(t *testing.T) {
	// Workers that share one seed repeat gaps: their lag-1 autocorrelation is ½
	// and more. Here it is 0 ± 4/√n, also for two workloads of one seed.
	gaps := func(s Stream) []float64 {
		g := make([]float64, 50_000)
		for i := range g {
			g[i] = float64(s.exponential(int64(i)))/unit - 1
		}
		return g
	}
	correlation := func(a, b []float64) float64 {
		sum := 0.0
		for i := range b {
			sum += a[i] * b[i]
		}
		return sum / float64(len(b))
	}
	chat, rag := gaps(NewStream(42, "chat", "arrivals")), gaps(NewStream(42, "rag", "arrivals"))
	for what, r := range map[string]float64{
		"lag 1": correlation(chat, chat[1:]), "lag 3": correlation(chat, chat[3:]), "two workloads": correlation(chat, rag),
	} {
		if math.Abs(r) > 4/math.Sqrt(50_000) {
			t.Errorf("%s: correlation %.4f", what, r)
		}
	}
}

func TestScheduleEnds(t *testing.T) {
	tests := []struct {
		name    string
		a       Arrivals
		length  time.Duration
		n       int64
		planned int64
		ends    time.Duration
	}{
		{"for", Arrivals{Constant: fixed(10)}, time.Minute, 0, 600, time.Minute},
		{"requests", Arrivals{Constant: fixed(10)}, 0, 20, 20, 1950*time.Millisecond + 1},
		{"requests first", Arrivals{Constant: fixed(10)}, time.Minute, 20, 20, 1950*time.Millisecond + 1},
		{"for first", Arrivals{Constant: fixed(10)}, time.Second, 20, 10, time.Second},
		{"largest plan", Arrivals{Constant: fixed(1000)}, 1_000_000 * time.Second, 0, 1_000_000_000, 1_000_000 * time.Second},
		{"closed loop for", Arrivals{Concurrency: 4}, time.Minute, 0, -1, time.Minute},
		{"closed loop requests", Arrivals{Concurrency: 4}, 0, 50, 50, 0},
		{"closed loop both", Arrivals{Concurrency: 4}, time.Minute, 50, -1, time.Minute},
	}
	for _, tt := range tests {
		p := openPlan(t, tt.a, tt.length, tt.n, 1)
		if p.Planned() != tt.planned || p.For() != tt.ends {
			t.Errorf("%s: Planned %d, For %v, want %d, %v", tt.name, p.Planned(), p.For(), tt.planned, tt.ends)
		}
	}
	p := openPlan(t, Arrivals{Poisson: fixed(100)}, 0, 5000, 3)
	all := dues(p)
	if p.Planned() != 5000 || p.For() != all[4999]+1 {
		t.Errorf("Poisson: Planned %d, For %v, want 5000, %v", p.Planned(), p.For(), all[4999]+1)
	}
	p = openPlan(t, Arrivals{Poisson: fixed(100)}, time.Minute, 0, 3)
	if got := int64(len(dues(p))); p.Planned() != got || p.For() != time.Minute || math.Abs(float64(got)-6000) > 4*math.Sqrt(6000) {
		t.Errorf("Poisson: Planned %d, %d arrivals, For %v", p.Planned(), got, p.For())
	}
}

func BenchmarkArrivals(b *testing.B) {
	p := openPlan(b, Arrivals{Poisson: fixed(1000)}, 0, maxShots, 1)
	b.ReportAllocs()
	n := 0
	for range p.arrivals.all() {
		if n++; n%1024 == 0 && !b.Loop() {
			break
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "arrivals/s")
}
