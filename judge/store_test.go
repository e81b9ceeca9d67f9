package judge

import (
	"bytes"
	"math"
	"testing"
)

// What is stored is what is read, of answers and of pairs, and what has no verdict
// has none then.
func TestStoredVerdictsAreReadBack(t *testing.T) {
	for _, c := range []struct {
		name      string
		labels    *Labels
		criterion *Criterion
	}{
		{"answers", planted(3, 60), rightness},
		{"pairs", plantedPairs(3, 60), &Builtin()[2]},
	} {
		var menu []string
		for _, level := range c.criterion.Levels {
			menu = append(menu, level.Verdict)
		}
		s, err := NewScale(c.labels, menu, nil)
		if err != nil {
			t.Fatal(err)
		}
		j := &Judge{Asker: &fake{t: t, seed: 3, noise: 0.1, first: 0.1, garbage: 0.4}, Seed: 3}
		asked, _, err := Measurement{Criterion: c.criterion, Parallel: 1}.Measure(t.Context(), j, c.labels, s)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := c.labels.Store(&file, s, asked); err != nil {
			t.Fatal(err)
		}
		read, err := ReadLabels("judged.csv", &file, Columns{})
		if err != nil {
			t.Fatal(err)
		}
		missing := 0
		for i, got := range read.Observe(s) {
			want := asked[i]
			if !same(got.Judge, want.Judge) || !same(got.Human, want.Human) || !s.Pairs && !same(got.Again, want.Again) {
				t.Errorf("%s: case %s is read back as %v, %v and %v, want %v, %v and %v", c.name, want.Case, got.Human, got.Judge, got.Again, want.Human, want.Judge, want.Again)
			}
			if r, l := read.Rows[i], c.labels.Rows[i]; r.Answer != l.Answer || r.Candidate != l.Candidate || r.Item != l.Item || r.Slices["variant"] != l.Slices["variant"] {
				t.Errorf("%s: row %+v, want %+v", c.name, r, l)
			}
			if math.IsNaN(want.Judge) {
				missing++
			}
		}
		if missing == 0 || missing == len(asked) {
			t.Errorf("%s: %d of %d have no verdict; the test needs some", c.name, missing, len(asked))
		}
		if err := c.labels.Store(&file, s, asked[1:]); err == nil {
			t.Errorf("%s: verdicts of fewer cases were stored", c.name)
		}
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
