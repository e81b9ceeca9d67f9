package agree

import (
	"math"
	"math/rand/v2"
	"testing"
)

// shifted are labels of one population, and a judge's marks of another in which people
// say yes at another rate, by a judge of the same sensitivity and specificity.
func shifted(r *rand.Rand, known, asked population, labels, n int) [][]Pair {
	return append(known.draw(r, labels, labels), asked.draw(r, 0, n)...)
}

// Of answers that are worse than the labelled ones the calibrated share is right in 93
// to 98 % of the samples; that of PPI++, which takes them for alike, hardly ever.
func TestCalibrateCoversWhereTheLabelledAreOthers(t *testing.T) {
	n := rounds(600, 6000)
	slack := 3 * math.Sqrt(0.95*0.05/float64(n))
	for i, tc := range []struct {
		known, asked population
		labels, n    int
	}{
		{population{0.8, 0.9, 0.9, 1, 0}, population{0.3, 0.9, 0.9, 1, 0}, 200, 200},
		{population{0.6, 0.7, 0.96, 1, 0}, population{0.2, 0.7, 0.96, 1, 0}, 200, 300},
		{population{0.5, 0.97, 0.98, 1, 0}, population{0.9, 0.97, 0.98, 1, 0}, 150, 100},
		{population{0.6, 0.9, 0.85, 4, 0.5}, population{0.4, 0.9, 0.85, 4, 0.5}, 200, 400},
		{population{0.5, 0.8, 0.8, 1, 0}, population{0.5, 0.8, 0.8, 1, 0}, 100, 200},
	} {
		r := rand.New(rand.NewPCG(uint64(i), 17))
		covered, high, naive := 0, 0, 0
		for range n {
			cases := shifted(r, tc.known, tc.asked, tc.labels, tc.n)
			e := Calibrate(cases, 0.95)
			if e.Lo <= tc.asked.share && tc.asked.share <= e.Hi {
				covered++
			}
			if e.Lo > tc.asked.share { // too good
				high++
			}
			if p := PPI(cases, 0.95); p.Lo <= tc.asked.share && tc.asked.share <= p.Hi {
				naive++
			}
		}
		got := float64(covered) / float64(n)
		t.Logf("%+v: covers %.3f, too good %.3f; PPI++ %.3f", tc, got, float64(high)/float64(n), float64(naive)/float64(n))
		if got < 0.93-slack || got > 0.985+slack {
			t.Errorf("%+v: covers %.3f of %d, want 0.93 to 0.985", tc, got, n)
		}
		if tc.known.share != tc.asked.share && float64(naive) > 0.5*float64(n) {
			t.Errorf("%+v: PPI++ covers %d of %d, as if they were alike", tc, naive, n)
		}
	}
}

// Marks on a scale that the judge shifts and squeezes.
func TestCalibrateReadsAScale(t *testing.T) {
	n := rounds(600, 6000)
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(mean float64) (human, judge float64) {
		human = min(max(math.Round((mean+0.25*r.NormFloat64())*4)/4, 0), 1)
		return human, 0.3 + 0.6*human + 0.1*r.NormFloat64()
	}
	truth := 0.0
	for range 200000 {
		human, _ := draw(0.35)
		truth += human / 200000
	}
	covered := 0
	for range n {
		var all [][]Pair
		for range 150 {
			human, judge := draw(0.7)
			all = append(all, []Pair{{human, judge}})
		}
		for range 200 {
			_, judge := draw(0.35)
			all = append(all, []Pair{{math.NaN(), judge}})
		}
		if e := Calibrate(all, 0.95); e.Lo <= truth && truth <= e.Hi {
			covered++
		}
	}
	if got := float64(covered) / float64(n); got < 0.93-3*math.Sqrt(0.95*0.05/float64(n)) || got > 0.985 {
		t.Errorf("covers %.3f of %d, want 0.93 to 0.985", got, n)
	}
}

func TestCalibrateNeedsAJudgeThatTells(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	coin := population{0.5, 0.5, 0.5, 1, 0}
	undefined := 0
	for range 200 {
		if e := Calibrate(shifted(r, coin, coin, 100, 100), 0.95); !e.Defined() {
			undefined++
		}
	}
	if undefined < 180 {
		t.Errorf("a coin was believed in %d of 200", 200-undefined)
	}
	perfect := population{0.5, 1, 1, 1, 0}
	if e := Calibrate(shifted(r, perfect, perfect, 100, 100), 0.95); !e.Estimable() || e.Hi-e.Lo < 0.1 {
		t.Errorf("a judge that erred nowhere is read as [%v, %v]", e.Lo, e.Hi)
	}
	for name, cases := range map[string][][]Pair{
		"nothing":       nil,
		"labels alone":  population{0.5, 0.9, 0.9, 1, 0}.draw(r, 100, 100),
		"marks alone":   population{0.5, 0.9, 0.9, 1, 0}.draw(r, 0, 100),
		"labels of yes": shifted(r, population{1, 0.9, 0.9, 1, 0}, coin, 100, 100),
		"few":           shifted(r, population{0.5, 0.9, 0.9, 1, 0}, coin, 8, 100),
		"no number":     {{{1, math.NaN()}}},
	} {
		if e := Calibrate(cases, 0.95); e.Defined() || !math.IsInf(e.Lo, -1) {
			t.Errorf("%s gives %v [%v, %v]", name, e.Value, e.Lo, e.Hi)
		}
	}
	if Calibrate(shifted(r, perfect, perfect, 50, 50), 1).Defined() {
		t.Error("there is an estimate at a confidence of 1")
	}
}

// Of yes and no the value is Rogan and Gladen's.
func TestCalibrateIsRoganAndGladens(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		cases := shifted(r, population{0.6, 0.85, 0.8, 1, 0}, population{0.5, 0.85, 0.8, 1, 0}, 200, 300)
		var a Accuracy
		said, of := 0, 0
		for _, c := range cases {
			switch x := c[0]; {
			case math.IsNaN(x.Human):
				of++
				said += int(x.Judge)
			case x.Human == 1:
				a.Positives++
				a.TruePositives += int(x.Judge)
			default:
				a.Negatives++
				a.TrueNegatives += 1 - int(x.Judge)
			}
		}
		if got, want := Calibrate(cases, 0.95).Value, RoganGladen(said, of, a, 0.95, 1).Value; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v; want %v", got, want)
		}
	}
}
