package dimension

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/perturb"
)

// TestMadeCases holds what the checks rely on of the cases that they make.
func TestMadeCases(t *testing.T) {
	for name, makes := range map[string]func(r *rand.Rand, n int, languages []string) []closed{"noise": utterances, "drift": matters} {
		list := makes(rand.New(rand.NewPCG(1, 2)), 300, []string{"en", "zh"})
		if again := makes(rand.New(rand.NewPCG(1, 2)), 300, []string{"en", "zh"}); again[299].text != list[299].text {
			t.Errorf("%s: the same seed made %q and %q", name, again[299].text, list[299].text)
		}
		ids, first := make(map[string]bool), make(map[string]bool)
		for i, c := range list {
			if ids[c.id] || strings.ContainsAny(c.text, "{}|") || strings.ContainsAny(strings.Join(c.options, ""), "{}|") {
				t.Errorf("%s: case %+v has a name twice, or places that are not filled", name, c)
			}
			ids[c.id] = true
			if i < 32 {
				if first[c.template] {
					t.Errorf("%s: the template %s came twice within 32 cases", name, c.template)
				}
				first[c.template] = true
			}
			if o := slices.Clone(c.options); len(o) < 3 || len(slices.Compact(slices.Sorted(slices.Values(o)))) != len(o) {
				t.Errorf("%s: case %s has the options %q", name, c.id, c.options)
			}
			if (c.right < 0) != (c.line != nil) || c.line != nil && len(c.line) != len(c.options) {
				t.Errorf("%s: case %s has neither a right answer nor a policy line, or both: %+v", name, c.id, c)
			}
			for j, o := range c.options {
				for _, said := range []string{letter(j), letter(j) + ") " + o, "(" + letter(j) + ")", o} {
					if got := c.read(said); got != j {
						t.Errorf("%s: %q of %q reads as option %d, want %d", name, said, c.options, got, j)
					}
				}
			}
			if got := c.read("That is hard to say."); got != -1 {
				t.Errorf("%s: an answer that names none reads as option %d", name, got)
			}
		}
	}
}

// TestFamiliesFitTheMadeCases counts for how many of the cases that a check makes each
// of its families has a text.
func TestFamiliesFitTheMadeCases(t *testing.T) {
	for _, tc := range []struct {
		list     []closed
		families []string
		least    int // of a hundred
	}{
		{utterances(rand.New(rand.NewPCG(1, 2)), 100, []string{"en", "zh"}), new(NoiseConfig).families(), 45},
		{matters(rand.New(rand.NewPCG(1, 2)), 100, []string{"en", "zh"}), new(DriftConfig).families(), 45},
	} {
		for _, f := range tc.families {
			n := 0
			for _, c := range tc.list {
				if perturb.Apply(perturb.Family(f), c.text, 1, c.id, perturb.Options{}).Valid {
					n++
				}
			}
			if n < tc.least {
				t.Errorf("%s has a text for %d of 100 cases, want %d", f, n, tc.least)
			}
		}
	}
}

func TestRewritingRefuses(t *testing.T) {
	for _, tc := range []struct {
		c          *check.Check
		text, want string
	}{
		{Drift, "families: [typo]", `there is no family "typo"`},
		{Drift, "languages: [fr]", `"fr" is no language`},
		{Drift, "options: [a]", "one option is no choice"},
		{Drift, "options: [a, b]\npermit: [c]", `"c" lies on a side of the policy line`},
		{Drift, "samples: 1", "samples"},
		{Drift, "score: cosine", "score"},
		{Noise, "families: [none]", `there is no family "none"`},
		{Noise, "tolerated: 2", "tolerated"},
		{Noise, "samples: 3", "samples"},
	} {
		err := config.Decode("c.yaml", []byte(tc.text+"\n"), tc.c.Config())
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %q: %v; want %q", tc.c.Name, tc.text, err, tc.want)
		}
		if err := config.Decode("c.yaml", []byte("{}\n"), tc.c.Config()); err != nil {
			t.Errorf("%s without settings: %v", tc.c.Name, err)
		}
	}
}
