package anytime

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/stat"
)

// Under its hypothesis a mixture has the expectation 1 after any number of
// observations: summed over all outcomes, exactly.
func TestMixtureIsAMartingale(t *testing.T) {
	for _, p := range []float64{0.01, 0.3, 0.95} {
		w := newPair(p, 100, 0.05)
		for _, n := range []int{1, 7, 60} {
			more, less := 0.0, 0.0
			for k := range n + 1 {
				a, _ := math.Lgamma(float64(n + 1))
				b, _ := math.Lgamma(float64(k + 1))
				c, _ := math.Lgamma(float64(n - k + 1))
				log := a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
				more += math.Exp(log + w.more(float64(k), float64(n)))
				less += math.Exp(log + w.less(float64(k), float64(n)))
			}
			near(t, "expectation", more, 1, p)
			near(t, "expectation of the mirror image", less, 1, p)
		}
	}
}

// The search skips most of the range; it must not skip the minimum.
func TestLeastFindsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		step := rapid.SliceOfN(rapid.Float64Range(0, 5), n, n)
		up, down := step.Draw(t, "up"), step.Draw(t, "down")
		rises, falls := make([]float64, n), make([]float64, n)
		for i := 1; i < n; i++ {
			rises[i], falls[i] = rises[i-1]+up[i], falls[i-1]-down[i]
		}
		want := math.Inf(1)
		for i := range n {
			want = math.Min(want, rises[i]+falls[i])
		}
		if got := least(n, func(i int) float64 { return rises[i] }, func(i int) float64 { return falls[i] }); got != want {
			t.Fatalf("least = %v, want %v", got, want)
		}
	})
}

// By the definition on raw values, with no histogram and every x looked at: the
// evidence on buckets is never greater.
func TestQuantileAgreesWithItsDefinition(t *testing.T) {
	define := func(q Quantile, c, b []float64) Evidence {
		w := newPair(q.P, defaultHorizon, defaultAlpha)
		below := func(xs []float64, x float64, strictly bool) (n float64) {
			for _, v := range xs {
				if v < x || v == x && !strictly {
					n++
				}
			}
			return n
		}
		e := Evidence{math.Inf(1), math.Inf(1)}
		nc, nb := float64(len(c)), float64(len(b))
		points := []float64{0, math.Inf(1)}
		for _, v := range b {
			points = append(points, v, math.Nextafter(v, math.Inf(1)))
		}
		for _, v := range c {
			x := math.Max(0, (v-q.Shift)/q.Margin)
			points = append(points, x, math.Nextafter(x, math.Inf(1)), math.Nextafter(x, 0))
		}
		for _, x := range points {
			e.Fail = math.Min(e.Fail, w.less(below(c, q.Margin*x+q.Shift, false), nc)+w.more(below(b, x, true), nb))
			e.Pass = math.Min(e.Pass, w.more(below(c, q.Margin*x+q.Shift, true), nc)+w.less(below(b, x, false), nb))
		}
		return e
	}
	rapid.Check(t, func(t *rapid.T) {
		q := Quantile{P: rapid.SampledFrom([]float64{0.5, 0.9, 0.99}).Draw(t, "p"), Margin: rapid.SampledFrom([]float64{0.5, 1, 1.1, 2}).Draw(t, "margin"), Shift: rapid.SampledFrom([]float64{0, 0, 0.3, -0.2}).Draw(t, "shift")}
		value := rapid.Float64Range(0.01, 100)
		c := rapid.SliceOfN(value, 1, 80).Draw(t, "candidate")
		b := rapid.SliceOfN(value, 1, 80).Draw(t, "baseline")
		var hc, hb stat.Histogram
		for _, v := range c {
			add(&hc, v)
		}
		for _, v := range b {
			add(&hb, v)
		}
		got, want := must(q.Test(&hc, &hb)), define(q, c, b)
		if got.Fail > want.Fail+1e-9 || got.Pass > want.Pass+1e-9 {
			t.Fatalf("evidence on buckets %+v is greater than that of the values %+v", got, want)
		}
	})
}

// The search for the least evidence over all shares that are possible at all
// must not miss it.
func TestProportionFindsTheLeastEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Count {
			n := rapid.IntRange(0, 3000).Draw(t, name)
			return Count{float64(rapid.IntRange(0, n).Draw(t, name+" events")), float64(n)}
		}
		p := Proportion{Margin: rapid.SampledFrom([]float64{-0.1, 0, 0.005, 0.2}).Draw(t, "margin")}
		c, b := draw("candidate"), draw("baseline")
		got, want := must(p.Test(c, b)), Evidence{math.Inf(1), math.Inf(1)}
		within := p.bracket(c, b)
		const grid = 400
		for i := range grid {
			s := math.Sin(math.Pi / 2 * (float64(i) + 0.5) / grid)
			x := s * s
			if x+p.Margin <= 0 || x+p.Margin >= 1 || x < within[0] || x > within[1] {
				continue
			}
			wc, wb := newPair(x+p.Margin, defaultHorizon, defaultAlpha), newPair(x, defaultHorizon, defaultAlpha)
			want.Fail = math.Min(want.Fail, wc.more(c.Events, c.N)+wb.less(b.Events, b.N))
			want.Pass = math.Min(want.Pass, wc.less(c.Events, c.N)+wb.more(b.Events, b.N))
		}
		// Evidence below zero decides nothing, wherever its minimum lies.
		if got.Fail > math.Max(want.Fail, 0)+1e-6 || got.Pass > math.Max(want.Pass, 0)+1e-6 {
			t.Fatalf("%v against %v at %v: evidence %+v, but the grid finds less: %+v", c, b, p.Margin, got, want)
		}
	})
}

// Whatever the data: evidence is a number, both sides are never proved, and
// no data are no evidence.
func TestEvidenceIsCoherent(t *testing.T) {
	sound := func(t *rapid.T, what string, e Evidence) {
		if math.IsNaN(e.Fail) || math.IsNaN(e.Pass) || e.Fails(0.05) && e.Passes(0.05) {
			t.Fatalf("%s: evidence %+v", what, e)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(0, 5000).Draw(t, "n"), rapid.IntRange(0, 5000).Draw(t, "m")
		c := Count{float64(rapid.IntRange(0, n).Draw(t, "c")), float64(n)}
		b := Count{float64(rapid.IntRange(0, m).Draw(t, "b")), float64(m)}
		sound(t, "proportion", must(Proportion{Margin: 0.01}.Test(c, b)))
		sound(t, "exceedance", must(Exceedance{Margin: 1.2, Weight: 0.3}.Test(c.Events, b.Events)))
		var hc, hb stat.Histogram
		for range min(n, 200) {
			add(&hc, rapid.Float64Range(0, 1e6).Draw(t, "x"))
		}
		for range min(m, 200) {
			add(&hb, math.Exp(float64(m%7)))
		}
		sound(t, "quantile", must(Quantile{P: 0.95, Margin: 1.1}.Test(&hc, &hb)))
	})
	var h stat.Histogram
	for name, e := range map[string]Evidence{
		"quantile":   must(Quantile{P: 0.95, Margin: 1.1}.Test(&h, &h)),
		"proportion": must(Proportion{}.Test(Count{}, Count{})),
		"exceedance": must(Exceedance{Margin: 1, Weight: 0.5}.Test(0, 0)),
		"mean":       must(Mean{}.Test(&Moments{}, &Moments{}, 0)),
		"zero":       {},
	} {
		if e.Fail > 1e-9 || e.Pass > 1e-9 {
			t.Errorf("%s: no data give evidence %+v", name, e)
		}
	}
}

// A histogram split over replicas and merged gives the same evidence as one
// that saw everything, and moments likewise.
func TestReplicasMerge(t *testing.T) {
	r := seeded(60, 0)
	var whole, a, b stat.Histogram
	var mWhole, mA, mB Moments
	for i := range 2000 {
		x := math.Exp(r.NormFloat64())
		add(&whole, x, 2*x)
		h, m := &a, &mA
		if i%3 == 0 {
			h, m = &b, &mB
		}
		add(h, x, 2*x)
		for _, v := range []*Moments{&mWhole, m} {
			if err := v.Add(1e9+x, 1, x*x); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.Merge(&b); err != nil {
		t.Fatal(err)
	}
	mA.Merge(mB)
	q := Quantile{P: 0.9, Margin: 1.1}
	if got, want := must(q.Test(&a, &a)), must(q.Test(&whole, &whole)); got != want {
		t.Errorf("evidence of merged histograms %+v, of the whole %+v", got, want)
	}
	for i := range 3 {
		for j := range 3 {
			if got, want := mA.co[i][j], mWhole.co[i][j]; math.Abs(got-want) > 1e-6*math.Abs(want) {
				t.Errorf("merged moment %d, %d is %v, of the whole %v", i, j, got, want)
			}
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	var h stat.Histogram
	nan := math.NaN()
	for name, err := range map[string]error{
		"quantile 1":          second(Quantile{P: 1, Margin: 1}.Test(&h, &h)),
		"quantile NaN":        second(Quantile{P: nan, Margin: 1}.Test(&h, &h)),
		"quantile margin 0":   second(Quantile{P: 0.5}.Test(&h, &h)),
		"proportion margin 1": second(Proportion{Margin: 1}.Test(Count{}, Count{})),
		"more events":         second(Proportion{}.Test(Count{2, 1}, Count{})),
		"NaN events":          second(Proportion{}.Test(Count{}, Count{nan, 1})),
		"weight 1":            second(Exceedance{Margin: 1, Weight: 1}.Test(0, 0)),
		"negative events":     second(Exceedance{Margin: 1, Weight: 0.5}.Test(-1, 0)),
		"mean margin":         second(Mean{Relative: true}.Test(&Moments{}, &Moments{}, -1)),
		"moments":             new(Moments).Add(nan, 1, 0),
		"negative size":       new(Moments).Add(1, -1, 0),
		"paired margin":       second(NewPaired(1)),
		"one variant":         second(Mismatch([]int{1}, []float64{1})),
		"shares":              second(Mismatch([]int{1, 1}, []float64{0.5, 0.6})),
		"zero share":          second(Mismatch([]int{1, 1}, []float64{0, 1})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	p, err := NewPaired(0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Add(1.5) == nil || p.Add(nan) == nil || p.N() != 0 {
		t.Error("a difference outside [-1, 1] was counted")
	}
}

func second[T any](_ T, err error) error { return err }

// The interval and the evidence of a mean are the same test: whenever the
// interval excludes the margin, the evidence refutes it.
func TestMeanIntervalAgreesWithItsEvidence(t *testing.T) {
	decided := 0
	for i := range 300 {
		r := seeded(70, i)
		var c, b Moments
		for range 400 {
			if err := errorsOf(c.Add(10+2*r.NormFloat64()+float64(i%5)*0.3, 1, 0), b.Add(10+2*r.NormFloat64(), 1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range []struct {
			mean   Mean
			margin float64
		}{{Mean{}, 0.5}, {Mean{Relative: true}, 1.05}} {
			iv, e := m.mean.Estimate(&c, &b, 0.90), must(m.mean.Test(&c, &b, m.margin))
			if iv.Lo > m.margin && !e.Fails(0.05) || iv.Hi < m.margin && !e.Passes(0.05) {
				t.Fatalf("interval [%v, %v], margin %v, evidence %+v", iv.Lo, iv.Hi, m.margin, e)
			}
			if iv.Lo > m.margin || iv.Hi < m.margin {
				decided++
			}
		}
	}
	if decided < 100 {
		t.Errorf("only %d of 600 intervals exclude the margin; the test has no teeth", decided)
	}
	few := Mean{}.Estimate(&Moments{}, &Moments{}, 0.95)
	if few.Defined() || few.Estimable() || len(few.Warnings) == 0 {
		t.Errorf("no sessions give %+v", few)
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A covariate that explains 80 % of the variance narrows the interval by the
// square root of 5, and moves no estimate in expectation.
func TestCovariateNarrowsTheInterval(t *testing.T) {
	r := seeded(80, 0)
	var with, without [2]Moments
	for range 5000 {
		for k := range with {
			x, noise := r.NormFloat64(), r.NormFloat64()
			y := 100 + 2*x + noise
			if err := errorsOf(with[k].Add(y, 1, x), without[k].Add(y, 1, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, b := Mean{}.Estimate(&with[0], &with[1], 0.95), Mean{}.Estimate(&without[0], &without[1], 0.95)
	if got := (b.Hi - b.Lo) / (a.Hi - a.Lo); math.Abs(got-math.Sqrt(5)) > 0.1 {
		t.Errorf("the interval narrows by %.3f, want %.3f", got, math.Sqrt(5))
	}
}
