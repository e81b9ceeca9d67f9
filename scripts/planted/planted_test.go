package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
)

// TestFaultsAreFound plays each fault with a few seeds, and with ASSAY_SLOW some
// more; docs/planted-faults.md is of a hundred.
func TestFaultsAreFound(t *testing.T) {
	seeds := 3
	if os.Getenv("ASSAY_SLOW") != "" {
		seeds = 10
	}
	for _, f := range faults() {
		t.Run(f.check+"/"+f.name, func(t *testing.T) {
			r, err := f.measure(t.Context(), seeds)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("found %d, placed %d, silent %d of %d", r.found, r.placed, r.silent, seeds)
			// A rate of 5 % gives two misses of three in 0.7 % and three of ten in 1.2 %.
			most := seeds/5 + 1
			if r.found < seeds-most || r.silent < seeds-most || r.where != "" && r.placed < seeds-most-1 {
				t.Errorf("found %d, placed %d, silent %d of %d", r.found, r.placed, r.silent, seeds)
			}
		})
	}
}

// TestTheProgramSaysWhatItMissed plays a fault that nobody finds.
func TestTheProgramSaysWhatItMissed(t *testing.T) {
	deaf := fault{check: "exact", name: "unheard", where: "the case", play: func(context.Context, uint64, bool) (told, error) { return told{}, nil }}
	r, err := deaf.measure(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if bad := missed([]row{r}); len(bad) != 2 || r.silent != 4 {
		t.Errorf("missed: %q, silent %d", bad, r.silent)
	}
	var page strings.Builder
	render(&page, []row{r}, 4)
	if !strings.Contains(page.String(), "| exact | unheard |  | 0 [0.0, 60.2] | the case | 0 [0.0, 60.2] | 100 [39.8, 100.0] |") {
		t.Errorf("the page:\n%s", &page)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-seeds", "0"}, {"more"}, {"-only", "nothing"}, {"-what"}} {
		var out, errs strings.Builder
		if code := measure(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: status %d, %s", args, code, &errs)
		}
	}
}

func TestOnlyWarningsOfTheCandidateAreFindings(t *testing.T) {
	of := func(variant string, s check.Severity) []*check.Outcome {
		return []*check.Outcome{{Findings: []check.Finding{{Severity: s, Code: "lost", Variant: variant}}}}
	}
	for want, list := range map[bool][][]*check.Outcome{
		true:  {of("candidate", check.Warning), of("", check.Alarm)},
		false: {of("candidate", check.Info), of("baseline", check.Alarm), nil},
	} {
		for _, o := range list {
			if _, ok := finding(o, "lost"); ok != want {
				t.Errorf("%v: %v", o, ok)
			}
		}
	}
}
