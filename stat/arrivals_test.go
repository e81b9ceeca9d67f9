package stat

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// renewal draws arrivals with the gaps of next until duration is over.
func renewal(duration float64, next func() float64) []float64 {
	var at []float64
	for t := next(); t <= duration; t += next() {
		at = append(at, t)
	}
	return at
}

// gammaGap is a gap of mean 1 and coefficient of variation cv, for cv = 2
// (shape 1/4) by Marsaglia and Tsang's method.
func gammaGap(r *rand.Rand, shape float64) float64 {
	boost := math.Pow(r.Float64(), 1/shape)
	d := shape + 1 - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v * boost / shape
		}
	}
}

// TestPoissonStaysInItsBands measures the error rates of all three looks.
func TestPoissonStaysInItsBands(t *testing.T) {
	for _, c := range []struct{ n, quick, long int }{{20, 2000, 20000}, {50, 2000, 20000}, {500, 1000, 20000}, {2000, 400, 10000}, {20000, 100, 2000}} {
		runs := repetitions(c.quick, c.long)
		cv, dispersion, ks, all := 0, 0, 0, 0
		for i := range runs {
			r := rand.New(rand.NewPCG(11, uint64(i)))
			duration := float64(c.n) * 1.2
			at := renewal(duration, r.ExpFloat64)
			for len(at) < minArrivals { // given their number, arrivals are no less Poisson
				at = renewal(duration, r.ExpFloat64)
			}
			a, err := CheckArrivals(at, duration)
			if err != nil {
				t.Fatal(err)
			}
			if a.CV < a.CVLo || a.CV > a.CVHi {
				cv++
			}
			if a.Dispersion < a.DispersionLo || a.Dispersion > a.DispersionHi {
				dispersion++
			}
			if a.KSP < 0.01 {
				ks++
			}
			if !a.Poisson {
				all++
			}
		}
		within(t, "CV out of its band", cv, runs, 0.01)
		within(t, "dispersion out of its band", dispersion, runs, 0.01)
		within(t, "Kolmogorov-Smirnov", ks, runs, 0.01)
		within(t, "not Poisson", all, runs, 0.03)
		t.Logf("about %d arrivals: CV out %.2f %%, dispersion out %.2f %%, KS %.2f %%, not Poisson %.2f %% of %d", c.n,
			100*float64(cv)/float64(runs), 100*float64(dispersion)/float64(runs), 100*float64(ks)/float64(runs), 100*float64(all)/float64(runs), runs)
		if runs >= 10000 && cv+dispersion == 0 {
			t.Error("no run out of 10,000 left a 99 % band; the bands are too wide")
		}
	}
}

func TestOtherArrivalsAreToldApart(t *testing.T) {
	runs := repetitions(50, 500)
	for _, c := range []struct {
		name string
		draw func(r *rand.Rand) (at []float64, duration float64)
		by   func(a Arrivals) bool // the look that must see it
	}{
		{"a metronome", func(*rand.Rand) ([]float64, float64) {
			return renewal(500, func() float64 { return 1 }), 500
		}, func(a Arrivals) bool { return a.CV < 0.001 && a.CV < a.CVLo && a.Dispersion < a.DispersionLo }},
		{"a metronome with 20 % jitter", func(r *rand.Rand) ([]float64, float64) {
			at := renewal(500, func() float64 { return 1 })
			for i := range at {
				at[i] += 0.2 * (r.Float64() - 0.5)
			}
			return at[:len(at)-1], 500
		}, func(a Arrivals) bool { return a.CV < a.CVLo }},
		{"gamma gaps of CV 2", func(r *rand.Rand) ([]float64, float64) {
			return renewal(500, func() float64 { return gammaGap(r, 0.25) }), 500
		}, func(a Arrivals) bool { return a.CV > a.CVHi && a.Dispersion > a.DispersionHi }},
		{"a rate that doubles", func(r *rand.Rand) ([]float64, float64) {
			at := renewal(1500, r.ExpFloat64)
			for i, x := range at { // unit rate seen through the inverse of t + t²/2000
				at[i] = 1000 * (math.Sqrt(1+2*x/1000) - 1)
			}
			return at, 1000
		}, func(a Arrivals) bool { return a.KSP < 0.01 }},
		{"bursts of 20 s", func(r *rand.Rand) ([]float64, float64) {
			at := renewal(2000, r.ExpFloat64)
			for i, x := range at { // every second 10 s pass at twice, every other at a third of the speed
				whole, rest := math.Floor(x/20), math.Mod(x, 20)
				at[i] = whole*20 + min(rest, 15)*2/3 + max(0, rest-15)*2
			}
			return at, 2000
		}, func(a Arrivals) bool { return a.Dispersion > a.DispersionHi }},
	} {
		missed, wrongLook := 0, 0
		for i := range runs {
			at, duration := c.draw(rand.New(rand.NewPCG(12, uint64(i))))
			a, err := CheckArrivals(at, duration)
			if err != nil {
				t.Fatal(err)
			}
			if a.Poisson {
				missed++
			}
			if !c.by(a) {
				wrongLook++
			}
		}
		if missed > runs/50 || wrongLook > runs/20 {
			t.Errorf("%s: taken for Poisson in %d of %d runs, not seen by the look that should in %d", c.name, missed, runs, wrongLook)
		}
	}
}

func TestCheckArrivalsRefusesWhatItCannotJudge(t *testing.T) {
	ok := make([]float64, 20)
	for i := range ok {
		ok[i] = float64(20 - i)
	}
	if a, err := CheckArrivals(ok, 20); err != nil || a.N != 20 || a.Rate != 1 || ok[0] != 20 {
		t.Errorf("20 unsorted arrivals: %+v, %v", a, err)
	}
	bad := func(x float64) []float64 {
		at := append([]float64(nil), ok...)
		at[7] = x
		return at
	}
	for _, c := range []struct {
		name     string
		at       []float64
		duration float64
		want     string
	}{
		{"19 arrivals", ok[:19], 20, "at least 20 are needed"},
		{"no duration", ok, 0, "must be positive"},
		{"NaN duration", ok, math.NaN(), "must be positive"},
		{"endless", ok, math.Inf(1), "must be positive"},
		{"NaN", bad(math.NaN()), 20, "not within"},
		{"late", bad(21), 20, "not within"},
		{"early", bad(-1), 20, "not within"},
	} {
		if _, err := CheckArrivals(c.at, c.duration); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	// All at one instant: nothing divides by zero.
	if a, err := CheckArrivals(make([]float64, 20), 20); err != nil || a.Poisson || math.IsNaN(a.CV+a.Dispersion+a.KS+a.KSP) {
		t.Errorf("all at once: %+v, %v", a, err)
	}
}

// Known answers: the Kolmogorov distribution has P(K > 1.3581) = 0.05 and P(K >
// 1.6276) = 0.01.
func TestKolmogorovTail(t *testing.T) {
	const n = 1_000_000
	at := make([]float64, n)
	for _, c := range []struct{ x, want float64 }{{1.3581, 0.05}, {1.6276, 0.01}, {0.8276, 0.5}} {
		shift := c.x / math.Sqrt(n)
		for i := range at {
			at[i] = math.Min(1, float64(i+1)/n*(1-shift)+shift) // the distance from uniform is shift at the left end
		}
		if _, p := uniformKS(at, 1); math.Abs(p-c.want) > 0.002 {
			t.Errorf("P(K > %v) = %v, want %v", c.x, p, c.want)
		}
	}
}
