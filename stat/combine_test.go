package stat

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// of is an estimate with the bounds given.
func of(value, lo, hi float64) Estimate {
	return Estimate{Value: value, Lo: lo, Hi: hi, Confidence: 0.95, N: 10, Effective: 8, Method: "by hand"}
}

func TestMover(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name                       string
		candidate, baseline        Estimate
		ratio, ratioLo, ratioHi    float64
		difference, diffLo, diffHi float64
		ratioWarning, diffWarning  string
	}{
		// 3-4-5 triangles: distances 3 and 4 below and above add to 5; likewise
		// factors e^3 and e^4 to e^5.
		{
			"plain", of(20, 17, 24), of(10, 6, 14), 2, 2 * math.Exp(-math.Hypot(math.Log(20./17), math.Log(1.4))), 2 * math.Exp(math.Hypot(math.Log(1.2), math.Log(10./6))),
			10, 5, 10 + math.Hypot(4, 4), "", "",
		},
		{"logarithms", of(1, math.Exp(-3), math.Exp(4)), of(1, math.Exp(-3), math.Exp(4)), 1, math.Exp(-5), math.Exp(5), 0, nan, nan, "", ""},
		{"candidate without an upper bound", of(20, 17, inf), of(10, 6, 14), 2, 2 * math.Exp(-math.Hypot(math.Log(20./17), math.Log(1.4))), inf, 10, 5, inf, CodeUnbounded, CodeUnbounded},
		{"baseline without an upper bound", of(20, 17, 24), of(10, 6, inf), 2, -inf, nan, 10, -inf, nan, CodeUnbounded, CodeUnbounded},
		{"baseline without a lower bound", of(20, 17, 24), of(10, -inf, 14), 2, nan, inf, 10, 5, inf, CodeUnbounded, CodeUnbounded},
		{"baseline that may be zero", of(20, 17, 24), of(10, 0, 14), 2, nan, inf, 10, 5, 10 + math.Hypot(4, 10), CodeUnbounded, ""},
		{"baseline of zero", of(20, 17, 24), of(0, 0, 14), nan, -inf, inf, 20, 20 - math.Hypot(3, 14), 24, CodeUndefined, ""},
		{"nothing against something", of(0, 0, 3), of(10, 6, 14), 0, 0, 0.5, -10, -14, -10 + math.Hypot(3, 4), "", ""},
		{"candidate beyond any value", of(inf, 40, inf), of(10, 6, 14), inf, 40. / 14, inf, inf, 26, inf, CodeUnbounded, CodeUnbounded},
		{"candidate wholly beyond any value", of(inf, inf, inf), of(10, 6, 14), inf, inf, inf, inf, inf, inf, CodeUnbounded, CodeUnbounded},
		{"baseline beyond any value", of(20, 17, 24), of(inf, 40, inf), 0, -inf, 24. / 40, -inf, -inf, -16, CodeUnbounded, CodeUnbounded},
		{"both beyond any value", of(inf, 17, inf), of(inf, 40, inf), nan, -inf, inf, nan, -inf, inf, CodeUndefined, CodeUndefined},
		{"candidate undefined", of(nan, -inf, inf), of(10, 6, 14), nan, -inf, inf, nan, -inf, inf, CodeUndefined, CodeUndefined},
		{"baseline undefined", of(10, 6, 14), of(nan, -inf, inf), nan, -inf, inf, nan, -inf, inf, CodeUndefined, CodeUndefined},
		{"negative", of(-1, -2, 1), of(10, 6, 14), nan, -inf, inf, -11, -11 - math.Hypot(1, 4), -11 + math.Hypot(2, 4), CodeUndefined, ""},
	} {
		check := func(what string, e Estimate, value, lo, hi float64, warning string) {
			t.Helper()
			same := func(got, want float64) bool {
				return got == want || math.Abs(got-want) <= 1e-12*math.Abs(want)
			}
			if !same(e.Value, value) && !(math.IsNaN(e.Value) && math.IsNaN(value)) {
				t.Errorf("%s: %s = %v, want %v", c.name, what, e.Value, value)
			}
			// A bound that the case does not state is only known to be a number.
			if !math.IsNaN(lo) && !same(e.Lo, lo) || !math.IsNaN(hi) && !same(e.Hi, hi) || math.IsNaN(e.Lo) || math.IsNaN(e.Hi) {
				t.Errorf("%s: %s in [%v, %v], want [%v, %v]", c.name, what, e.Lo, e.Hi, lo, hi)
			}
			if codes(e) != warning {
				t.Errorf("%s: %s warns %q, want %q", c.name, what, codes(e), warning)
			}
		}
		check("ratio", Ratio(c.candidate, c.baseline), c.ratio, c.ratioLo, c.ratioHi, c.ratioWarning)
		check("difference", Difference(c.candidate, c.baseline), c.difference, c.diffLo, c.diffHi, c.diffWarning)
	}
}

func TestCombinedEstimatesKeepTheirHistory(t *testing.T) {
	c, b := of(2, 1, 3), of(1, 0.5, 2)
	c.Confidence, c.Over = 0.99, 3
	c.warn(CodeDependent, "they depend")
	b.warn(CodeFew, "they are few")
	e := Difference(c, b)
	if e.Confidence != 0.95 || e.N != 20 || e.Effective != 16 || e.Over != 3 {
		t.Errorf("%+v", e)
	}
	want := []Warning{{CodeDependent, "candidate: they depend"}, {CodeFew, "baseline: they are few"}, {CodeConfidence, "the two estimates have different confidences; the lower one holds"}}
	if !slices.Equal(e.Warnings, want) {
		t.Errorf("warnings %v, want %v", e.Warnings, want)
	}
}

func TestDetectable(t *testing.T) {
	z, power := distuv.UnitNormal.Quantile(0.975), distuv.UnitNormal.Quantile(0.8)
	d := Difference(of(5, 5-z, 5+z), of(5, 5, 5)) // a standard error of 1
	near(t, "the detectable difference at a standard error of 1", Detectable(d), z+power, 1e-9)
	r := Ratio(of(5, 5*math.Exp(-0.01*z), 5*math.Exp(0.01*z)), of(5, 5, 5)) // one of 1 % on the logarithms
	near(t, "the detectable relative change at 1 %", Detectable(r), math.Exp(0.01*(z+power))-1, 1e-9)
	for _, e := range []Estimate{of(1, 0, math.Inf(1)), of(math.NaN(), 0, 1), {}} {
		if got := Detectable(e); !math.IsInf(got, 1) {
			t.Errorf("Detectable(%+v) = %v, want +Inf", e, got)
		}
	}
}

// 1..20 and back in an order without visible dependence: mean 10.5, standard
// deviation 5.9161 (n-1), no skewness.
func TestMeanKnownAnswer(t *testing.T) {
	e := mustSample(shuffled(20), 0).Mean(0.95)
	if e.Effective != 20 {
		t.Fatalf("the shuffled series shows dependence: %v effective", e.Effective)
	}
	half := 2.093024054408263 * math.Sqrt(35) / math.Sqrt(20) // t(0.975, 19) of SciPy; the variance of 1..20 is 35
	near(t, "mean", e.Value, 10.5, 1e-12)
	near(t, "lower", e.Lo, 10.5-half, 1e-9)
	near(t, "upper", e.Hi, 10.5+half, 1e-9)
}

func TestMeanLeavesOutFailuresAndSaysSo(t *testing.T) {
	e := mustSample(shuffled(100), 7).Mean(0.95)
	if e.Value != 50.5 || e.N != 107 || e.Over != 7 || !strings.Contains(codes(e), CodeOver) || e.Effective > 100 {
		t.Errorf("%+v", e)
	}
	if c := mustSample(slices.Repeat([]float64{3}, 50), 0).Mean(0.95); c.Value != 3 || c.Lo != 3 || c.Hi != 3 || codes(c) != CodeConstant {
		t.Errorf("a constant: %+v", c)
	}
}

func TestShareIsNeverDegenerate(t *testing.T) {
	for _, n := range []int{1, 2, 29, 300} {
		none, all := Share(make([]float64, n), 0.95), Share(slices.Repeat([]float64{1}, n), 0.95)
		if none.Value != 0 || none.Lo != 0 || !(none.Hi > 0.5/float64(n)) || all.Value != 1 || all.Hi != 1 || math.Abs(1-all.Lo-none.Hi) > 1e-9 {
			t.Errorf("n=%d: none %+v, all %+v", n, none, all)
		}
		if small := strings.Contains(codes(none), CodeSmall); small != (n < 30) {
			t.Errorf("n=%d: warnings %v", n, none.Warnings)
		}
	}
	// The one-sided bound of no failure meets the sample size of a tail claim:
	// 1 % at 95 % takes 299.
	if a, b := Share(make([]float64, 298), 0.90).Hi, Share(make([]float64, 299), 0.90).Hi; !(a > 0.01 && b <= 0.01) {
		t.Errorf("upper bounds of 0/298 and 0/299: %v, %v; want 1 %% between them", a, b)
	}
	if e := Share([]float64{0, 0.5}, 0.95); e.Defined() || !strings.Contains(e.Warnings[0].Text, "observation 1 is 0.5") {
		t.Errorf("%+v", e)
	}
}

func TestRate(t *testing.T) {
	amounts, seconds := make([]float64, 60), make([]float64, 60)
	for i, x := range shuffled(60) {
		seconds[i] = 1 + float64(i%3)
		amounts[i] = 100*seconds[i] + x - 30.5
	}
	e := Rate(amounts, seconds, 0.95)
	near(t, "rate", e.Value, 100, 1e-12)
	if e.N != 60 || !e.Estimable() || e.Hi-e.Lo > 6 || e.Hi-e.Lo < 3 {
		t.Errorf("%+v, want an interval of about ±2.3", e)
	}
	for _, c := range []struct {
		amounts, seconds []float64
		want             string
	}{
		{nil, nil, "no slices"},
		{[]float64{1}, nil, "1 amounts but 0 durations"},
		{[]float64{1, 2}, []float64{0, 0}, "cover no time"},
		{[]float64{1, math.NaN()}, []float64{1, 1}, "slice 1 has amount NaN"},
		{[]float64{1, 1}, []float64{1, -1}, "over -1 seconds"},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, []float64{1, 1}, "too large"},
	} {
		if e := Rate(c.amounts, c.seconds, 0.95); e.Defined() || !strings.Contains(e.Warnings[0].Text, c.want) {
			t.Errorf("Rate(%v, %v) = %+v, want undefined: %q", c.amounts, c.seconds, e, c.want)
		}
	}
	if e := Rate([]float64{5}, []float64{2}, 0.95); e.Value != 2.5 || e.Estimable() {
		t.Errorf("one slice: %+v", e)
	}
}
