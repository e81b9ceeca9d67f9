package anytime

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// TestGolden compares with values that testdata/golden.py computes from the
// definitions at 50 digits.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Mixture  []struct{ S, N, P, Horizon, Alpha, Log float64 }
		Normal   []struct{ Z, N, Log float64 }
		Mismatch []struct {
			Counts []int
			Shares []float64
			Log    float64
		}
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Mixture) == 0 || len(g.Normal) == 0 || len(g.Mismatch) == 0 {
		t.Fatal("testdata/golden.json lacks a section")
	}
	for _, c := range g.Mixture {
		w := newPair(c.P, c.Horizon, c.Alpha)
		near(t, "mixture", w.more(c.S, c.N), c.Log, c)
		// The mirror image is the same martingale for failures.
		near(t, "mirrored mixture", newPair(1-c.P, c.Horizon, c.Alpha).less(c.N-c.S, c.N), c.Log, c)
	}
	for _, c := range g.Normal {
		near(t, "normal mixture", Mean{}.wealth(c.Z, c.N), c.Log, c)
	}
	for _, c := range g.Mismatch {
		got, err := Mismatch(c.Counts, c.Shares)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "mismatch", got, c.Log, c)
	}
}

func near(t *testing.T, what string, got, want float64, of any) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-7*math.Max(1, math.Abs(want))) {
		t.Errorf("%s of %+v = %.12g, want %.12g", what, of, got, want)
	}
}

// The table of the betting test in its source: pairs of right and wrong answers
// of which a share differs, error rate 5 %, at most 3,000 pairs. Pass or fail
// within them, and the mean number that it took.
func TestPairedDecidesAsPublished(t *testing.T) {
	for _, c := range []struct {
		discordance, margin, difference, decides, mean float64
		pass                                           bool
	}{
		{0.1, 0.03, 0, 0.986, 893, true},
		{0.1, 0.03, 0.01, 1, 469, true},
		{0.1, 0.03, -0.06, 0.997, 749, false},
		{0.1, 0.05, 0, 1, 305, true},
		{0.1, 0.05, -0.1, 1, 198, false},
		{0.2, 0.05, 0, 1, 639, true},
		{0.2, 0.05, -0.1, 1, 560, false},
	} {
		const runs = 150
		decided, used := 0, 0
		for i := range runs {
			r := seeded(11, i)
			p, err := NewPaired(c.margin)
			if err != nil {
				t.Fatal(err)
			}
			for p.N() < 3000 {
				if err := p.Add(discordant(r, c.discordance, c.difference)); err != nil {
					t.Fatal(err)
				}
				if e := p.Evidence(); c.pass && e.Passes(0.05) || !c.pass && e.Fails(0.05) {
					decided++
					break
				}
			}
			used += p.N()
		}
		share, mean := float64(decided)/runs, float64(used)/runs
		t.Logf("discordance %v, margin %v, difference %v: %.3f decided, %.0f pairs on average (published: %v, %v)", c.discordance, c.margin, c.difference, share, mean, c.decides, c.mean)
		if share < c.decides-0.03 || mean > 1.25*c.mean {
			t.Errorf("discordance %v, margin %v, difference %v: %.3f decided with %.0f pairs on average, want about %v with %v", c.discordance, c.margin, c.difference, share, mean, c.decides, c.mean)
		}
	}
}
