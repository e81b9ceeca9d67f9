package screen

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// probes makes n trials a period on 10 haystacks, with a share for each period.
func probes(r *rand.Rand, n int, share func(period, group int) float64, periods int) []Trial {
	var out []Trial
	for p := range periods {
		for i := range n {
			out = append(out, Trial{p, i % 10, r.Float64() < share(p, i%10)})
		}
	}
	return out
}

func fall(from, to float64, at int) func(int, int) float64 {
	return func(p, _ int) float64 {
		if p < at {
			return from
		}
		return to
	}
}

// TestPowerOfTrialChange reproduces published power and size, from several
// hundred simulations of another program, and how far the place is off.
func TestPowerOfTrialChange(t *testing.T) {
	seeds, slow := 40, os.Getenv("ASSAY_SLOW") != ""
	if slow {
		seeds = 200
	}
	for i, c := range []struct {
		periods, n int
		from, to   float64
		power      float64
	}{
		{16, 10, 0.95, 0.75, 0.84},
		{16, 20, 0.95, 0.75, 1},
		{16, 20, 0.95, 0.85, 0.75},
		{16, 40, 0.95, 0.85, 0.95},
		{24, 20, 0.95, 0.85, 0.88},
		{10, 20, 0.95, 0.85, 0.52},
		{16, 20, 0.9, 0.9, 0.04},
	} {
		if !slow && i%3 != 0 {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(i), 5))
		found, off := 0, 0.0
		for range seeds {
			got, err := TrialChange(probes(r, c.n, fall(c.from, c.to, c.periods/2), c.periods), c.periods, r.Uint64())
			if err != nil {
				t.Fatal(err)
			}
			if got.P <= 0.05 {
				found++
				off += math.Abs(float64(got.At - c.periods/2))
			}
		}
		share := float64(found) / float64(seeds)
		t.Logf("%d periods of %d, %v to %v: found in %.3f, want %.2f, off by %.2f periods", c.periods, c.n, c.from, c.to, share, c.power, off/float64(found))
		// 4 standard errors of ours, and 0.04 for the published ones, which are of
		// a few hundred simulations and rounded.
		if p := math.Min(c.power, 0.98); math.Abs(share-c.power) > 4*math.Sqrt(p*(1-p)/float64(seeds))+0.04 {
			t.Errorf("%d periods of %d, %v to %v: found in %v, want %v", c.periods, c.n, c.from, c.to, share, c.power)
		}
		if c.power == 1 && off/float64(found) > 0.6 {
			t.Errorf("the place is off by %v periods", off/float64(found))
		}
	}
}

// Groups that differ in their share, and were not tried at all periods alike, are
// no change.
func TestGroupsAreNoChange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	within, pooled, sag := 0, 0, 0
	const seeds = 30
	for range seeds {
		var trials []Trial
		events, sizes := make([]int, 10), make([]int, 10)
		for p := range 10 {
			for i := range 20 {
				// An easy group in the first periods, a hard one in the last.
				g := 0
				if i < 2*p {
					g = 1
				}
				e := r.Float64() < []float64{0.95, 0.6}[g]
				trials = append(trials, Trial{p, g, e})
				sizes[p]++
				if e {
					events[p]++
				}
			}
		}
		a, err := TrialChange(trials, 10, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		b, err := ShareChange(events, sizes, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		s, err := TrialSag(trials, 10, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			p float64
			n *int
		}{{a.P, &within}, {b.P, &pooled}, {s.P, &sag}} {
			if x.p <= 0.05 {
				*x.n++
			}
		}
	}
	if within > 6 || sag > 6 || pooled < 25 {
		t.Errorf("of %d, found a change in %d within groups, %d with all in one, a sag in %d", seeds, within, pooled, sag)
	}
}

func TestSagInTheMiddle(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	right, silent := 0, 0
	const seeds = 30
	for range seeds {
		trials := probes(r, 20, func(p, _ int) float64 {
			if p >= 5 && p < 9 {
				return 0.6
			}
			return 0.95
		}, 12)
		s, err := TrialSag(trials, 12, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		if s.P <= 0.05 && math.Abs(float64(s.From-5)) <= 1 && math.Abs(float64(s.To-9)) <= 1 {
			right++
		}
		if s, err = TrialSag(probes(r, 20, fall(0.9, 0.9, 0), 12), 12, r.Uint64()); err != nil {
			t.Fatal(err)
		}
		if s.P > 0.05 {
			silent++
		}
	}
	if right < seeds-3 || silent < seeds-5 {
		t.Errorf("of %d, found %d sags and was silent in %d without one", seeds, right, silent)
	}
}

func TestTrialsThatMakeNoSense(t *testing.T) {
	all := []Trial{{0, 0, true}, {1, 0, false}, {2, 0, true}}
	for _, c := range []struct {
		trials  []Trial
		periods int
	}{{nil, 3}, {all, 4}, {all, 2}, {all, 1}, {[]Trial{{-1, 0, true}}, 2}} {
		if _, err := TrialChange(c.trials, c.periods, 1); err == nil {
			t.Errorf("%v in %d periods have a change", c.trials, c.periods)
		}
		if _, err := TrialSag(c.trials, c.periods, 1); err == nil {
			t.Errorf("%v in %d periods have a sag", c.trials, c.periods)
		}
	}
	for _, lengths := range [][]float64{nil, {2, 1, 3}, {1, 1, 2}, {0, 1, 2}, {1, 2}} {
		if _, err := EffectiveLength(lengths, all, 0.5, 1); err == nil {
			t.Errorf("lengths %v are taken", lengths)
		}
	}
	if c, err := TrialChange([]Trial{{0, 0, true}, {1, 0, true}}, 2, 1); err != nil || c.P != 1 || c.Ratio != 0 {
		t.Errorf("all events alike are %+v, %v", c, err)
	}
}

func TestAntitonicAgreesWithPublished(t *testing.T) {
	data, err := os.ReadFile("testdata/changepoint.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Curves []struct{ Y, W, Antitonic []float64 } `json:"isotonic_decreasing"`
	}
	if err := json.Unmarshal(data, &g); err != nil || len(g.Curves) < 4 {
		t.Fatalf("%d curves, %v", len(g.Curves), err)
	}
	for _, c := range g.Curves {
		got, err := Antitonic(c.Y, c.W)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Antitonic, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
			t.Errorf("%v: %s", c.Y, d)
		}
	}
	for _, c := range [][2][]float64{{{1}, nil}, {{math.NaN()}, {1}}, {{1}, {0}}} {
		if _, err := Antitonic(c[0], c[1]); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
}

// The fit falls, keeps the weighted sum, and no falling series is closer.
func TestAntitonicIsClosest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "n")
		y := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(r, "y")
		w := rapid.SliceOfN(rapid.Float64Range(0.5, 9), n, n).Draw(r, "w")
		fit, err := Antitonic(y, w)
		if err != nil {
			r.Fatal(err)
		}
		other := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(r, "other")
		slices.Sort(other)
		slices.Reverse(other)
		mine, theirs, sum := 0.0, 0.0, 0.0
		for i := range y {
			mine += w[i] * (y[i] - fit[i]) * (y[i] - fit[i])
			theirs += w[i] * (y[i] - other[i]) * (y[i] - other[i])
			sum += w[i] * (y[i] - fit[i])
			if i > 0 && fit[i] > fit[i-1]+1e-12 {
				r.Errorf("%v rises", fit)
			}
		}
		if mine > theirs+1e-9 || math.Abs(sum) > 1e-9 {
			r.Errorf("%v is at %v from %v, and %v at %v", fit, mine, y, other, theirs)
		}
	})
}

// TestEffectiveLengthCoverage: the interval has the true length in at least
// 95 % of cases, with haystacks that differ.
func TestEffectiveLengthCoverage(t *testing.T) {
	seeds := 60
	if os.Getenv("ASSAY_SLOW") != "" {
		seeds = 400
	}
	lengths := []float64{1, 2, 4, 8, 16, 32, 64}
	curve := []float64{0.98, 0.97, 0.95, 0.9, 0.7, 0.5, 0.4} // at least 0.8 up to 8
	r := rand.New(rand.NewPCG(3, 3))
	covered, right := 0, 0
	for range seeds {
		var trials []Trial
		for g := range 30 {
			shift := 0.1 * (r.Float64() - 0.5)
			for p := range lengths {
				for range 2 {
					trials = append(trials, Trial{p, g, r.Float64() < curve[p]+shift})
				}
			}
		}
		of, err := EffectiveLength(lengths, trials, 0.8, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		e := of(0.95)
		if e.Lo <= 8 && e.Hi >= 8 {
			covered++
		}
		if e.Value == 8 {
			right++
		}
	}
	t.Logf("covered in %d of %d, right in %d", covered, seeds, right)
	if share := float64(covered) / float64(seeds); share < 0.95-4*math.Sqrt(0.95*0.05/float64(seeds)) || float64(right) < 0.8*float64(seeds) {
		t.Errorf("covered in %d of %d, right in %d", covered, seeds, right)
	}
}

func TestEffectiveLengthAtTheEnds(t *testing.T) {
	lengths := []float64{1, 2}
	some := func(groups int, first, second bool) []Trial {
		var out []Trial
		for g := range groups {
			out = append(out, Trial{0, g, first}, Trial{1, g, second})
		}
		return out
	}
	for _, c := range []struct {
		trials        []Trial
		value, lo, hi float64
		warnings      int
	}{
		// All ten right at both lengths do not show nine in ten; all wrong show less.
		{some(10, true, true), 2, 0, math.Inf(1), 1},
		{some(80, true, true), 2, 2, math.Inf(1), 1},
		{some(10, false, false), 0, 0, 0, 0},
		{some(10, true, false), 1, 0, 1, 0},
		{some(80, true, false), 1, 1, 1, 0},
		{some(9, true, false), 1, math.Inf(-1), math.Inf(1), 1},
	} {
		of, err := EffectiveLength(lengths, c.trials, 0.9, 1)
		if err != nil {
			t.Fatal(err)
		}
		e := of(0.95)
		if e.Value != c.value || e.Lo != c.lo || e.Hi != c.hi || len(e.Warnings) != c.warnings {
			t.Errorf("%+v, want %+v", e, c)
		}
		if wide := of(0.999); wide.Lo > e.Lo || wide.Hi < e.Hi {
			t.Errorf("at 99.9 %%: %v to %v, at 95 %%: %v to %v", wide.Lo, wide.Hi, e.Lo, e.Hi)
		}
	}
}
