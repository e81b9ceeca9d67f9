package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/assay-llm/assay/stat"
)

func studentSurvival(z, df float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: df}.Survival(z)
}

func estimates(values [][]float64, width float64) [][]stat.Estimate {
	var out [][]stat.Estimate
	for _, vs := range values {
		var es []stat.Estimate
		for _, v := range vs {
			es = append(es, stat.Estimate{Value: v, Lo: v - width, Hi: v + width, Confidence: 0.95})
		}
		out = append(out, es)
	}
	return out
}

func clustersOf(t *rapid.T, name string, least int) [][]float64 {
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 5), least, 40).Draw(t, name)
}

// Exchanging the variants mirrors every result.
func TestExchangeMirrors(t *testing.T) {
	same := func(t *rapid.T, what string, a, b float64) {
		if math.Abs(a-b) > 1e-9*math.Max(1, math.Abs(a)) && !(math.IsNaN(a) && math.IsNaN(b)) {
			t.Fatalf("%s: %v and %v", what, a, b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		b := rapid.IntRange(0, n).Draw(t, "better")
		c := rapid.IntRange(0, n-b).Draw(t, "worse")
		x, y := Tango(b, c, n, 0.9), Tango(c, b, n, 0.9)
		same(t, "Tango", x.Lo, -y.Hi)
		same(t, "McNemar", McNemar(b, c, false).Greater, McNemar(c, b, false).Less)
		p, q := Proportions(b, n, c, n, 0.9), Proportions(c, n, b, n, 0.9)
		same(t, "Proportions", p.Lo, -q.Hi)
		if !(p.Lo <= p.Value && p.Value <= p.Hi && p.Lo >= -1 && p.Hi <= 1) || !(x.Lo <= x.Value && x.Value <= x.Hi) {
			t.Fatalf("bounds out of order: %+v, %+v", p, x)
		}
		cand, base := clustersOf(t, "candidate", 2), clustersOf(t, "baseline", 2)
		u, e := MannWhitney(cand, base, 0.9)
		v, f := MannWhitney(base, cand, 0.9)
		same(t, "U", u.Greater, v.Less)
		same(t, "effect", e.Lo, 1-f.Hi)
		same(t, "D", KolmogorovSmirnov(cand, base, 1).Statistic, KolmogorovSmirnov(base, cand, 1).Statistic)
	})
}

// A session counts once, however often its value is repeated.
func TestRepetitionAddsNoEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-10, 10), 12, 40).Draw(t, "x")
		y := rapid.SliceOfN(rapid.Float64Range(-10, 10), 12, 40).Draw(t, "y")
		four := func(xs []float64) (out [][]float64) {
			for _, v := range xs {
				out = append(out, []float64{v, v, v, v})
			}
			return out
		}
		once, often := Mean(Single(x), 0.9), Mean(four(x), 0.9)
		if math.Abs(once.Lo-often.Lo) > 1e-9 || math.Abs(once.Hi-often.Hi) > 1e-9 {
			t.Fatalf("Mean: [%v, %v] once, [%v, %v] four times", once.Lo, once.Hi, often.Lo, often.Hi)
		}
		_, e := MannWhitney(Single(x), Single(y), 0.9)
		_, f := MannWhitney(four(x), four(y), 0.9)
		if math.Abs(e.Lo-f.Lo) > 1e-9 || math.Abs(e.Hi-f.Hi) > 1e-9 {
			t.Fatalf("MannWhitney: [%v, %v] once, [%v, %v] four times", e.Lo, e.Hi, f.Lo, f.Hi)
		}
		if a, b := Randomise(Single(x), 0, 3), Randomise(four(x), 0, 3); a.P != b.P {
			t.Fatalf("Randomise: %v once, %v four times", a.P, b.P)
		}
	})
}

// What the data do not allow has no bounds and a warning.
func TestNothingIsNoEvidence(t *testing.T) {
	ones := make([]float64, 50)
	for i := range ones {
		ones[i] = 1
	}
	half := append([]float64(nil), ones...)
	for i := range 20 {
		half[i] = 0
	}
	median := func(x []float64) float64 { return x[0] }
	for name, e := range map[string]stat.Estimate{
		"mean of nothing":        Mean(nil, 0.95),
		"mean of one cluster":    Mean([][]float64{{1, 2, 3}}, 0.95),
		"mean of five clusters":  Mean(Single([]float64{1, 2, 3, 4, 5}), 0.95),
		"mean of equals":         Mean(Single(ones), 0.95),
		"mean of NaN":            Mean(Single([]float64{math.NaN()}), 0.95),
		"mean of infinity":       Mean(Single([]float64{1, math.Inf(1)}), 0.95),
		"confidence 1":           Mean(Single(half), 1),
		"bootstrap of few":       Bootstrap{}.Clusters(Single([]float64{1, 2, 3}), median, 0.95),
		"bootstrap of zero-ones": Bootstrap{}.Clusters(Single(half), average, 0.95),
		"bootstrap of equals":    Bootstrap{}.Blocks(ones, 1, average, 0.95),
		"few draws":              Bootstrap{Repeats: 50}.Blocks(series(100), 1, average, 0.95),
		"no length":              Bootstrap{}.Blocks(series(100), 0, average, 0.95),
		"no pairs":               Tango(0, 0, 0, 0.95),
		"more pairs than pairs":  Tango(3, 3, 5, 0.95),
		"no group":               Proportions(0, 0, 1, 5, 0.95),
	} {
		if e.Estimable() || len(e.Warnings) == 0 {
			t.Errorf("%s: [%v, %v] with warnings %v", name, e.Lo, e.Hi, e.Warnings)
		}
	}
	for name, r := range map[string]Test{
		"no pair differs":    McNemar(0, 0, false),
		"no difference":      Randomise(nil, 0, 0),
		"NaN":                Randomise(Single([]float64{math.NaN()}), 0, 0),
		"nothing to compare": KolmogorovSmirnov(nil, nil, 0),
		"few clusters":       KolmogorovSmirnov([][]float64{{1, 2}}, [][]float64{{3, 4}}, 0),
	} {
		if r.P < 1 || len(r.Warnings) == 0 {
			t.Errorf("%s: p = %v with warnings %v", name, r.P, r.Warnings)
		}
	}
	if u, e := MannWhitney(Single(ones), Single(ones), 0.95); u.P != 1 || e.Hi-e.Lo != 1 || len(e.Warnings) == 0 {
		t.Errorf("all equal: %+v, %+v", u, e)
	}
	if _, e := MannWhitney(Single([]float64{3, 4, 5}), Single([]float64{1, 1, 2}), 0.9); e.Lo > 0.4 || e.Hi != 1 {
		t.Errorf("three above three: %+v", e)
	}
}

func series(n int) []float64 {
	r := rand.New(rand.NewPCG(1, 1))
	out := make([]float64, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

// Signs of a few clusters are all tried: the p-value is the share of patterns,
// counted one by one.
func TestRandomiseTriesAllSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d []float64
		for _, k := range rapid.SliceOfN(rapid.IntRange(-20, 20), 1, 9).Draw(t, "d") {
			d = append(d, float64(k)/4)
		}
		null := float64(rapid.IntRange(-4, 4).Draw(t, "null")) / 4
		seen, greater := 0.0, 0
		for _, x := range d {
			seen += x - null
		}
		for pattern := range 1 << len(d) {
			s := 0.0
			for i, x := range d {
				if pattern>>i&1 == 1 {
					s -= x - null
				} else {
					s += x - null
				}
			}
			if s >= seen-1e-9 {
				greater++
			}
		}
		if got, want := Randomise(Single(d), null, 0).Greater, float64(greater)/math.Ldexp(1, len(d)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("p = %v, want %v", got, want)
		}
	})
}

func TestLeastEffectInvertsTheNeed(t *testing.T) {
	d := Design{Turns: 8, Correlation: 0.3}
	for _, n := range []int{100, 3000} {
		e := stat.LeastEffect(n, 0, 0.9, func(x float64) int { return d.Proportions(0.1, x) })
		if d.Proportions(0.1, e) > n || d.Proportions(0.1, e*0.99) <= n {
			t.Errorf("n = %d: effect %v needs %d", n, e, d.Proportions(0.1, e))
		}
	}
	if e := stat.LeastEffect(3, 0, 0.01, d.Ranks); !math.IsNaN(e) {
		t.Errorf("three cases detect %v", e)
	}
	power := stat.LeastEffect((Design{}).Pairs(0.1, 0.03), 0.9999, 0.01, func(p float64) int { return Design{Power: p}.Pairs(0.1, 0.03) })
	if math.Abs(power-0.8) > 0.001 {
		t.Errorf("the number for a power of 80 %% has a power of %v", power)
	}
	if n := d.Ranks(0); n != math.MaxInt {
		t.Errorf("no effect is found with %d", n)
	}
}
