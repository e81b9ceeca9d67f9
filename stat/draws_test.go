package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDrawsGiveThePercentilesOfTheirRanks(t *testing.T) {
	draws := make([]float64, 999)
	for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(len(draws)) {
		draws[i] = float64(k + 1) // the draw of rank k is k
	}
	for _, tc := range []struct{ confidence, lo, hi float64 }{
		{0.9, 50, 950}, {0.95, 25, 975}, {0.98, 10, 990}, {0.998, 1, 999}, {0.9985, math.Inf(-1), math.Inf(1)},
	} {
		if e := Draws(500, draws, 10)(tc.confidence); e.Lo != tc.lo || e.Hi != tc.hi || e.Value != 500 || e.N != 10 {
			t.Errorf("at %v: %v [%v, %v]; want 500 [%v, %v]", tc.confidence, e.Value, e.Lo, e.Hi, tc.lo, tc.hi)
		}
	}
	if e := Draws(2000, draws, 10)(0.9); e.Hi != 2000 || e.Lo != 50 {
		t.Errorf("[%v, %v] does not hold the value 2000", e.Lo, e.Hi)
	}
}

func TestDrawsWithoutAnIntervalHaveNone(t *testing.T) {
	inf := math.Inf(1)
	for name, tc := range map[string]struct {
		value   float64
		draws   []float64
		defined bool
		lo, hi  float64
	}{
		"none":               {1, nil, false, -inf, inf},
		"undefined":          {1, []float64{1, math.NaN(), 2}, false, -inf, inf},
		"no value":           {math.NaN(), []float64{1, 2, 3}, false, -inf, inf},
		"all equal":          {1, make([]float64, 100), true, -inf, inf},
		"beyond what exists": {5, append(make([]float64, 90), inf, inf, inf, inf, inf, inf, inf, inf, inf, inf), true, 0, inf},
	} {
		if e := Draws(tc.value, tc.draws, 3)(0.9); e.Defined() != tc.defined || e.Lo != tc.lo || e.Hi != tc.hi {
			t.Errorf("%s: %v [%v, %v]; want [%v, %v]", name, e.Value, e.Lo, e.Hi, tc.lo, tc.hi)
		}
	}
	if e := Draws(1, []float64{1, 2}, 3)(2); e.Defined() {
		t.Error("there is an estimate at a confidence of 2")
	}
}

func TestStudentIsOfAnyConfidence(t *testing.T) {
	// t(0.95, 9) = 1.8331, z(0.95) = 1.6449: any table.
	if e := Student(10, 2, 9, 10)(0.9); math.Abs(e.Hi-10-2*1.8331) > 1e-3 || math.Abs(e.Lo-10+2*1.8331) > 1e-3 {
		t.Errorf("[%v, %v]; want 10 ± 3.666", e.Lo, e.Hi)
	}
	for _, freedom := range []float64{0, math.Inf(1)} {
		if e := Student(10, 2, freedom, 10)(0.9); math.Abs(e.Hi-10-2*1.6449) > 1e-3 {
			t.Errorf("of %v degrees of freedom up to %v; want 13.290", freedom, e.Hi)
		}
	}
	for _, se := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if e := Student(10, se, 9, 10)(0.9); !e.Defined() || !math.IsInf(e.Hi, 1) || !math.IsInf(e.Lo, -1) {
			t.Errorf("with a standard error of %v: [%v, %v]; want no bounds", se, e.Lo, e.Hi)
		}
	}
	if Student(math.NaN(), 1, 0, 1)(0.9).Defined() || Student(1, 1, 0, 1)(0).Defined() {
		t.Error("there is a value out of nothing")
	}
}
