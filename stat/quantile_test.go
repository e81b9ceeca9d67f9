package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// shuffled gives 1..n in a seeded random order, so that dependence does not show.
func shuffled(n int) []float64 {
	x := make([]float64, n)
	for i, k := range rand.New(rand.NewPCG(1, uint64(n))).Perm(n) {
		x[i] = float64(k + 1)
	}
	return x
}

func codes(e Estimate) string {
	var c []string
	for _, w := range e.Warnings {
		c = append(c, w.Code)
	}
	return strings.Join(c, " ")
}

// Known answers of numpy.quantile (its default, linear, is type 7).
func TestQuantileIsType7(t *testing.T) {
	x := []float64{15, 20, 35, 40, 50}
	for _, c := range []struct{ p, want float64 }{{0, 15}, {0.05, 16}, {0.3, 23}, {0.4, 29}, {0.5, 35}, {0.95, 48}, {1, 50}} {
		if got := mustSample(x, 0).Quantile(c.p, 0.95).Value; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("the %v-quantile of %v = %v, want %v", c.p, x, got, c.want)
		}
	}
}

func TestQuantileBoundsAreOrderStatistics(t *testing.T) {
	for _, c := range []struct {
		n          int
		p          float64
		confidence float64
		lo, hi     float64 // R: qbinom-based ranks, as published for n = 100 and 1,000
	}{
		{100, 0.5, 0.95, 40, 61},
		{100, 0.9, 0.95, 84, 96},
		{100, 0.95, 0.95, 90, 100},
		{1000, 0.95, 0.95, 936, 964},
		{1000, 0.99, 0.95, 983, 997},
		{299, 0.99, 0.90, 293, 299},
	} {
		e := mustSample(shuffled(c.n), 0).Quantile(c.p, c.confidence)
		if e.Effective != float64(c.n) {
			t.Fatalf("n=%d: the shuffled series shows dependence (%v effective); choose another seed", c.n, e.Effective)
		}
		if e.Lo != c.lo || e.Hi != c.hi {
			t.Errorf("n=%d p=%v: [%v, %v], want [%v, %v]", c.n, c.p, e.Lo, e.Hi, c.lo, c.hi)
		}
	}
}

// Where no rank exists there is no bound: the maximum must not stand in for it.
func TestQuantileIsNotEstimableBelowTheNeededSize(t *testing.T) {
	for _, c := range []struct {
		p, confidence float64
		need          int
	}{{0.99, 0.95, 368}, {0.99, 0.90, 299}, {0.95, 0.90, 59}, {0.5, 0.95, 6}} {
		if got := NeedAbove(c.p, c.confidence); got != c.need {
			t.Fatalf("NeedAbove(%v, %v) = %d, want %d", c.p, c.confidence, got, c.need)
		}
		short := mustSample(shuffled(c.need-1), 0).Quantile(c.p, c.confidence)
		if !math.IsInf(short.Hi, 1) || short.Estimable() || !short.Defined() {
			t.Errorf("p=%v with %d observations: Hi = %v, want +Inf", c.p, c.need-1, short.Hi)
		}
		if want := fmt.Sprintf("needs n ≥ %d", c.need); !strings.Contains(fmt.Sprint(short.Warnings), want) || !strings.Contains(codes(short), CodeFew) {
			t.Errorf("p=%v: warnings %v, want one with %q", c.p, short.Warnings, want)
		}
		enough := mustSample(shuffled(c.need), 0).Quantile(c.p, c.confidence)
		if enough.Effective == float64(c.need) && enough.Hi != float64(c.need) {
			t.Errorf("p=%v with %d observations: Hi = %v, want the maximum", c.p, c.need, enough.Hi)
		}
		low := mustSample(shuffled(c.need-1), 0).Quantile(1-c.p, c.confidence)
		if !math.IsInf(low.Lo, -1) || !strings.Contains(fmt.Sprint(low.Warnings), "lower bound not estimable") {
			t.Errorf("p=%v: Lo = %v, want -Inf with a warning; got %v", 1-c.p, low.Lo, low.Warnings)
		}
	}
}

func TestQuantileCountsObservationsBeyondAnyValue(t *testing.T) {
	inf := math.Inf(1)
	x := shuffled(980)
	for _, c := range []struct {
		over        int
		value       float64 // of p99 by hand: 1 + (n-1)*0.99 is the place of the quantile
		finiteHi    bool
		lo          float64
		wantWarning string
	}{
		{0, 970.21, true, 964, ""},
		{5, 975.16, false, 969, CodeOver}, // the upper rank of 985 lies beyond the 980 values
		{20, inf, false, inf, CodeOver},   // the lower rank of 1,000 is 983: even that is beyond any value
		{980, inf, false, inf, CodeOver},
	} {
		e := mustSample(x, c.over).Quantile(0.99, 0.95)
		if e.Over != c.over || e.N != 980+c.over || !e.Defined() {
			t.Errorf("over=%d: Over = %d, N = %d, Value = %v", c.over, e.Over, e.N, e.Value)
		}
		if e.Value != c.value && !(math.Abs(e.Value-c.value) < 1e-9) {
			t.Errorf("over=%d: Value = %v, want %v", c.over, e.Value, c.value)
		}
		if e.Lo != c.lo || !math.IsInf(e.Hi, 1) != c.finiteHi || codes(e) != c.wantWarning {
			t.Errorf("over=%d: [%v, %v], warnings %v", c.over, e.Lo, e.Hi, e.Warnings)
		}
	}
}

func TestFailuresInARowCountForLess(t *testing.T) {
	x := shuffled(2000)
	spreadOut := mustSample(x, 20).Quantile(0.98, 0.95)
	burst := slices.Concat(x[:1000], slices.Repeat([]float64{math.Inf(1)}, 20), x[1000:])
	inARow := mustSample(burst, 0).Quantile(0.98, 0.95)
	if inARow.Over != 20 || inARow.N != 2020 {
		t.Errorf("Over, N = %d, %d, want 20, 2020", inARow.Over, inARow.N)
	}
	if !(inARow.Effective < spreadOut.Effective/2) {
		t.Errorf("20 failures in a row leave %.0f effective observations, spread out %.0f", inARow.Effective, spreadOut.Effective)
	}
}

func TestSpreadIsEvenAndComplete(t *testing.T) {
	for _, c := range []struct{ n, over int }{{0, 3}, {10, 0}, {10, 3}, {3, 10}, {97, 13}, {1, 1}} {
		values := shuffled(c.n)
		got := spread(values, c.over)
		var kept []float64
		gap, longest := 0, 0
		for _, x := range got {
			if math.IsInf(x, 1) {
				gap = 0
				continue
			}
			gap++
			longest = max(longest, gap)
			kept = append(kept, x)
		}
		if len(got) != c.n+c.over || !slices.Equal(kept, values[:len(kept)]) || len(kept) != c.n {
			t.Errorf("spread(%d, %d) = %v", c.n, c.over, got)
		}
		if limit := (c.n + c.over) / max(1, c.over); c.over > 0 && longest > limit+1 {
			t.Errorf("spread(%d, %d) leaves %d values in a row, want at most %d", c.n, c.over, longest, limit+1)
		}
	}
}

func TestNewSampleRefusesWhatIsNotAnObservation(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		over int
		want string
	}{
		{[]float64{1, math.NaN()}, 0, "observation 1 is NaN"},
		{[]float64{math.Inf(-1)}, 0, "observation 0 is -Inf"},
		{nil, -1, "-1 observations beyond any value"},
	} {
		if _, err := NewSample(c.x, c.over); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewSample(%v, %d) = %v, want %q", c.x, c.over, err, c.want)
		}
	}
	x := []float64{3, 1, 2}
	s := mustSample(x, 0)
	if s.Max() != 3 || s.Min() != 1 || !slices.Equal(x, []float64{3, 1, 2}) {
		t.Error("NewSample must leave its input in the order of time")
	}
}

func TestTinySamplesGiveNoFalsePrecision(t *testing.T) {
	var zero Sample
	for name, s := range map[string]*Sample{"zero value": &zero, "none": mustSample(nil, 0), "one": mustSample([]float64{5}, 0), "two": mustSample([]float64{5, 6}, 0), "only failures": mustSample(nil, 7)} {
		for _, p := range []float64{0, 0.5, 0.99, 1} {
			e := s.Quantile(p, 0.95)
			if e.Estimable() || len(e.Warnings) == 0 {
				t.Errorf("%s p%v: %+v, want no closed interval and a warning", name, 100*p, e)
			}
		}
		if e := s.Mean(0.95); s.N() < 2 && e.Estimable() || len(e.Warnings) == 0 {
			t.Errorf("%s mean: %+v", name, e)
		}
	}
	for _, confidence := range []float64{0, 1, -1, math.NaN(), 2} {
		for _, e := range []Estimate{
			mustSample(shuffled(50), 0).Quantile(0.5, confidence), mustSample(shuffled(50), 0).Mean(confidence),
			Share(make([]float64, 50), confidence), Rate(shuffled(50), shuffled(50), confidence),
		} {
			if e.Defined() || e.Estimable() || codes(e) != CodeUndefined {
				t.Errorf("confidence %v gives %+v, want an undefined estimate", confidence, e)
			}
		}
	}
	if e := mustSample(shuffled(50), 0).Quantile(1.5, 0.95); e.Defined() {
		t.Errorf("Quantile(1.5) = %v", e.Value)
	}
}

func TestDriftIsNotJudged(t *testing.T) {
	x := make([]float64, 1000)
	for i := range x {
		x[i] = float64(i) // a queue that grows through the whole run
	}
	e := mustSample(x, 0).Quantile(0.95, 0.95)
	if e.Estimable() || !strings.Contains(codes(e), CodeFewBatches) || e.Effective > 20 {
		t.Errorf("a pure trend gives %+v, want no bounds", e)
	}
}

func TestLongMemoryIsReadInBoundedTime(t *testing.T) {
	x := autoregressive(0.999, 0.5).draw(rand.New(rand.NewPCG(9, 9)), 200_000)
	start := time.Now()
	d, span := memory(centre(x))
	// The inflation of a lognormal AR(1) of small sigma is near (1+rho)/(1-rho)
	// = 1999.
	if d < 800 || d > 4000 || span < 500 {
		t.Errorf("inflation %v over a span of %d, want about 2000 over thousands", d, span)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("200,000 values took %v", took)
	}
}

func BenchmarkQuantile(b *testing.B) {
	for _, rho := range []float64{0, 0.9} {
		x := autoregressive(rho, 0.5).draw(rand.New(rand.NewPCG(1, 1)), 1_000_000)
		b.Run(fmt.Sprintf("first/rho=%v", rho), func(b *testing.B) {
			for b.Loop() {
				mustSample(x, 0).Quantile(0.99, 0.95)
			}
			b.ReportMetric(float64(len(x))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
		s := mustSample(x, 0)
		b.Run(fmt.Sprintf("again/rho=%v", rho), func(b *testing.B) {
			for b.Loop() {
				s.Quantile(0.95, 0.95)
			}
		})
	}
}
