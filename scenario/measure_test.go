package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestConsistencyHasKnownAnswers(t *testing.T) {
	s := read(t, "{plan: {kind: enum, values: [A, B]}}", `
      - {user: a, sets: {plan: A}, expect: {mentions: {plan: A}}}
      - {user: b, implies: {plan: {from: plan}}}
      - {user: c, sets: {plan: B}, expect: {mentions: {plan: B}, not: {plan: A}}}
      - {user: d}
      - {user: e, implies: {plan: {from: plan, as_of: 1}}}
`)
	alike := func(a, b int) float64 { return map[int]float64{1: .6, 2: .3}[b-a] }
	replies := []string{"It is A now, as you wish.", "Your plan is A.", "Now it is B.", "Thanks.", "It is B."}
	w := s.Windows(replies, alike)
	// The fourth turn has nothing to assert, so windows end at the third and the fifth.
	if len(w) != 2 || w[0].Turn != 2 || w[1].Turn != 4 || w[0].Retention != 1 || w[1].Retention != 0 || math.Abs(w[0].Similarity-.5) > 1e-9 {
		t.Fatalf("%+v", w)
	}
	got, ok := Consistency(w, .3, 1)
	if !ok || math.Abs(got.Mean-(.3*.5+.7+.3*.5)/2) > 1e-9 || math.Abs(got.Least-.15) > 1e-9 {
		t.Errorf("%+v", got)
	}
	if got, _ := Consistency(w, .3, .2); math.Abs(got.Mean-(.3*.2*2+.7)/2) > 1e-9 {
		t.Errorf("capped: %+v", got)
	}
	if _, ok := Consistency(s.Windows(replies[:2], alike), .3, 1); ok {
		t.Error("two replies have a score")
	}
	if got := Quantile95(w); math.Abs(got-.5) > 1e-9 {
		t.Errorf("the 95th percentile: %v", got)
	}
	if Quantile95(nil) != 1 {
		t.Error("nothing caps at nothing")
	}
	if got := distinctPairs([]string{"a b c", "a b c"}); got != .5 {
		t.Errorf("said twice: %v", got)
	}
	if got := distinctPairs([]string{"好的好的"}); math.Abs(got-2./3) > 1e-9 {
		t.Errorf("in Chinese: %v", got)
	}
	if distinctPairs([]string{"Yes."}) != 1 {
		t.Error("a word has no pair")
	}
}

// TestARepeatingModelIsNotConsistent: the published score is 1 for a model that always
// says the same; this one has no similarity from repetition.
func TestARepeatingModelIsNotConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Generate(Spec{N: 8}, rapid.Uint64().Draw(t, "seed"))[rapid.IntRange(0, 7).Draw(t, "which")]
		replies := make([]string, len(s.Turns))
		text := rapid.SampledFrom([]string{"Certainly, I will.", s.Turns[0].Assistant, s.Turns[len(s.Turns)-1].Assistant}).Draw(t, "text")
		for i := range replies {
			replies[i] = text
		}
		w := s.Windows(replies, func(int, int) float64 { return 1 })
		got, ok := Consistency(w, .3, 1)
		if ok && (got.Mean > .7+1e-9 || got.Distinct > .5) {
			t.Fatalf("%q again and again: %+v", text, got)
		}
		for _, x := range w {
			if x.Similarity != 0 {
				t.Fatalf("similar by repetition: %+v", x)
			}
		}
	})
}

func TestResiduesHaveNoValues(t *testing.T) {
	s := example(t)[0]
	a, b := s.Residue("The plan is Plus, with 12 seats."), s.Residue("The plan is Pro, with 40 seats.")
	if strings.Join(wordsOf(a), " ") != "the plan is with seats" || strings.Join(wordsOf(a), " ") != strings.Join(wordsOf(b), " ") {
		t.Errorf("%q and %q", a, b)
	}
	if got := s.Residue("Plus."); squash(got) == "" {
		t.Error("nothing is left of a reply that is nothing but a value")
	}
}

// reaches draws values of depths 1 to 7 whose chance to be used right falls with it.
func reaches(r *rand.Rand, scenarios int, a, b, mood float64) (out []Reach) {
	for i := range scenarios {
		m := mood * r.NormFloat64()
		for range 1 + r.IntN(3) {
			d := 1 + r.IntN(7)
			p := 1 / (1 + math.Exp(-(a + m + b*float64(d))))
			out = append(out, Reach{Cluster: fmt.Sprint(i), Depth: d, Right: r.Float64() < p})
		}
	}
	return out
}

func TestTheDepthAtWhichValuesAreLostIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := FitDepth(reaches(r, 4000, 4.197, -.5, 0), .9) // log odds of 0.9 are 2.197: at depth 4
	if d.At == nil || math.Abs(*d.At-4) > .15 || d.Low == nil || d.High == nil || *d.Low > 4 || *d.High < 4 {
		t.Errorf("%+v", d)
	}
	for name, c := range map[string]struct {
		reaches []Reach
		why     string
	}{
		"never lost":       {reaches(r, 100, 60, 0, 0), "all"},
		"lost at once":     {reaches(r, 400, 0, 0, 0), "below 90 % already at depth 1"},
		"not within reach": {reaches(r, 4000, 4, -.1, 0), "does not fall to 90 % down to depth 7"},
		"too few":          {reaches(r, 3, 1, 0, 0), "too few"},
	} {
		if d := FitDepth(c.reaches, .9); d.At != nil || !strings.Contains(d.Why, c.why) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	// All right: 60 scenarios reach depth 3 and 20 depth 7, of which the exact bounds at
	// 95 % are .94 and .83.
	var right []Reach
	for i := range 60 {
		right = append(right, Reach{fmt.Sprint(i), 3, true})
		if i < 20 {
			right = append(right, Reach{fmt.Sprint(i), 7, true})
		}
	}
	d = FitDepth(right, .9)
	if e := d.Estimate(.95); e.Value != 7 || e.Lo != 3 || !math.IsInf(e.Hi, 1) {
		t.Errorf("all right: %+v", e)
	}
	d = FitDepth(right[:20], .9)
	if e := d.Estimate(.95); e.Lo != 0 {
		t.Errorf("a few, all right: %+v", e)
	}
	d = FitDepth(reaches(r, 400, 0, 0, 0), .9)
	if e := d.Estimate(.95); e.Value != 0 || e.Lo != 0 || e.Hi > 1 {
		t.Errorf("lost at once: %+v", e)
	}
	if d := FitDepth([]Reach{{"a", 1, true}, {"a", 2, false}}, .9); len(d.Count) != 2 || d.Count[1].N != 1 || d.Mean != 1.5 {
		t.Errorf("%+v", d)
	}
}

// TestTheIntervalOfTheDepthCovers: in dialogues that have moods of their own, the
// interval holds the true depth as often as it says, less what 4 standard errors allow.
func TestTheIntervalOfTheDepthCovers(t *testing.T) {
	runs := 300
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 2000
	}
	r := rand.New(rand.NewPCG(3, 4))
	covered, tight := 0, 0
	for range runs {
		d := FitDepth(reaches(r, 80, 3.697, -.5, 0), .9) // at depth 3
		if (d.Low == nil || *d.Low <= 3) && (d.High == nil || *d.High >= 3) {
			covered++
		}
		if d.Low != nil && d.High != nil {
			tight++
		}
	}
	if got := float64(covered) / float64(runs); got < .95-4*math.Sqrt(.95*.05/float64(runs)) {
		t.Errorf("covers in %.3f", got)
	}
	if tight < runs/4 {
		t.Errorf("both ends in %d of %d", tight, runs)
	}
	t.Logf("covered %d, both ends %d of %d", covered, tight, runs)
}

func TestALossIsPlacedAtItsTurn(t *testing.T) {
	var seen []Seen
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 20 {
		for turn := 1; turn <= 3+r.IntN(6); turn++ {
			seen = append(seen, Seen{Cluster: fmt.Sprint(i), Slot: "plan", Turn: turn, Baseline: r.Float64() < .96, Candidate: turn < 4 && r.Float64() < .96})
		}
	}
	loss, ok := LocateLoss(seen)
	if !ok || loss.Turn != 4 || loss.After.Candidate != 0 || loss.Before.Candidate < 50 || loss.Before.N != 60 {
		t.Errorf("%+v %v", loss, ok)
	}
	for i := range seen {
		seen[i].Candidate = seen[i].Baseline
	}
	if loss, ok := LocateLoss(seen); ok {
		t.Errorf("nothing is lost: %+v", loss)
	}
	if _, ok := LocateLoss(nil); ok {
		t.Error("nothing was seen, and lost")
	}
}

func TestStudentsQuantile(t *testing.T) {
	for freedom, want := range map[int]float64{5: 2.5706, 10: 2.2281, 30: 2.0423, 1000: 1.9623} {
		if got := quantile(.95, float64(freedom)); math.Abs(got/want-1) > .005 {
			t.Errorf("%d: %v, want %v", freedom, got, want)
		}
	}
}
