package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/assay-llm/assay/stat"
)

func parts(of, events []float64) (out []Part) {
	for i := range of {
		out = append(out, Part{events[i], of[i]})
	}
	return out
}

func TestRatio(t *testing.T) {
	of := []float64{1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0}
	events := []float64{1, 0, 1, 0, 2, 0, 1, 0, 0, 1, 0}
	e := Ratio(parts(of, events), .95)
	// By hand: r = 6/30, Σ(u−rm)² = 4; 10 clusters have chances, t(9) at 97.5 % is 2.262157162740992.
	half := math.Sqrt(10.0/9*4) / 30 * 2.262157162740992
	if math.Abs(e.Value-.2) > 1e-12 || math.Abs(e.Hi-.2-half) > 1e-9 || math.Abs(e.Value-e.Lo-half) > 1e-9 || e.N != 10 {
		t.Errorf("%+v; want 0.2 ± %v of 10", e, half)
	}
	d := RatioDifference(parts(of, events), parts(of, events), .95)
	if d.Value != 0 || d.Lo > -.25 || d.Hi < .25 {
		t.Errorf("of a ratio and itself: %+v, want 0 with a wide interval: that nothing differs is no precision", d)
	}
	for name, e := range map[string]stat.Estimate{
		"of nothing":        Ratio(nil, .95),
		"without chances":   Ratio(make([]Part, 20), .95),
		"not a number":      Ratio([]Part{{math.NaN(), 1}}, .95),
		"other clusters":    RatioDifference(make([]Part, 3), make([]Part, 2), .95),
		"one without":       RatioDifference(parts(of, events), make([]Part, len(of)), .95),
		"no such certainty": Ratio(parts(of, events), 1),
	} {
		if e.Defined() || e.Estimable() {
			t.Errorf("%s: %+v, want no value", name, e)
		}
	}
	// No event in 10 clusters: the exact bound 0.3085 of their share, times 5 chances of 3.
	if e := Ratio(parts(of, make([]float64, len(of))), .95); e.Value != 0 || e.Lo != 0 || math.Abs(e.Hi-.3084971078*5/3) > 1e-9 {
		t.Errorf("without events: %+v, want [0, 0.514]", e)
	}
	if e := Ratio(parts(of[:9], events[:9]), .95); e.Estimable() {
		t.Errorf("of nine clusters: %+v, want no interval", e)
	}
	if e := Ratio(parts(of, of), .95); e.Value != 1 || e.Estimable() {
		t.Errorf("of events alone: %+v, want no interval", e)
	}
}

// TestRatioCovers draws clusters whose number of claims goes with how many of them
// are unsupported, which a mean of ratios gets wrong.
func TestRatioCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	const runs, truth = 2000, (1*.02 + 6*.3) / 7
	ratio, mean := 0, 0
	for range runs {
		var ps []Part
		var shares []float64
		for i := range 80 {
			of, p := 1.0, .02
			if i%2 == 0 {
				of, p = 6, .3
			}
			u := 0.0
			for range int(of) {
				if r.Float64() < p {
					u++
				}
			}
			ps, shares = append(ps, Part{u, of}), append(shares, u/of)
		}
		if e := Ratio(ps, .95); e.Lo <= truth && truth <= e.Hi {
			ratio++
		}
		if e := Mean(Single(shares), .95); e.Lo <= truth && truth <= e.Hi {
			mean++
		}
	}
	if ratio < 1870 || ratio > 1945 {
		t.Errorf("the interval of the ratio covers %d of %d, want about 1,900", ratio, runs)
	}
	if mean > 1000 {
		t.Errorf("the mean of ratios covers %d of %d; the case shows nothing", mean, runs)
	}
}

// TestRatioDifferenceErrs measures how often the bounds of a difference at 95 % lie on
// the wrong side when nothing differs.
func TestRatioDifferenceErrs(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 5))
	const runs = 2000
	wrong := 0
	for range runs {
		var a, b []Part
		for range 60 {
			of := float64(r.IntN(4))
			draw := func() Part {
				p := Part{Of: of}
				for range int(of) {
					if r.Float64() < .15 {
						p.Events++
					}
				}
				return p
			}
			a, b = append(a, draw()), append(b, draw())
		}
		if e := RatioDifference(a, b, .95); e.Lo > 0 || e.Hi < 0 {
			wrong++
		}
	}
	if wrong < 60 || wrong > 140 {
		t.Errorf("%d of %d intervals miss 0, want about 100", wrong, runs)
	}
}

// TestRareRatios has so few events that the exact bounds count: they err no more often
// than they say.
func TestRareRatios(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	const runs, truth = 2000, .02
	missed, wrong := 0, 0
	for range runs {
		draw := func() (ps []Part) {
			for range 40 {
				p := Part{Of: 1 + float64(r.IntN(3))}
				for range int(p.Of) {
					if r.Float64() < truth {
						p.Events++
					}
				}
				ps = append(ps, p)
			}
			return ps
		}
		a, b := draw(), draw()
		if e := Ratio(a, .95); e.Lo > truth || e.Hi < truth {
			missed++
		}
		if e := RatioDifference(a, b, .95); e.Lo > 0 || e.Hi < 0 || !e.Estimable() {
			wrong++
		}
	}
	if missed > 130 || wrong > 130 {
		t.Errorf("%d intervals of %d miss the ratio, and %d the difference of 0; want at most about 100", missed, runs, wrong)
	}
}
