package contract

import (
	"slices"
	"strings"
	"testing"
)

// TestEachThresholdHasItsFourStreams: for every threshold of production-17 there is a stream
// on which it acts, and is taken back as it says; one on the safe side of its limit, with
// enough evidence to show that it is, on which it does nothing; and one without its data,
// which shows nothing.
func TestEachThresholdHasItsFourStreams(t *testing.T) {
	c := production(t)
	tests := thresholdTests(t)
	thresholds := map[string]bool{}
	for _, clause := range c.named() {
		number, _, _ := strings.Cut(clause.ID, "-")
		thresholds[number] = true
		test := tests[clause.ID]
		if test == nil {
			t.Errorf("%s has no test", clause.ID)
			continue
		}
		only := alone(c, clause.ID)
		var acts, recovers, safe, missing bool
		for _, tc := range test.Cases {
			if !slices.Contains(tc.Only, clause.ID) {
				t.Errorf("%s: %s is about %v", clause.ID, tc.Name, tc.Only)
			}
			var last look
			passed, did := false, []Phase(nil)
			replay(only, tc.history(tc.evidence()), tc.every(), func(_ string, l look) {
				last = l
				passed = passed || l.grade == Pass
			}, func(d Decision) { did = append(did, d.To) })
			switch {
			case slices.Contains(did, Acting):
				acts = true
				recovers = recovers || did[len(did)-1] == Quiet || clause.Live.Recover.By == "hand" && did[len(did)-1] == Acting
			case len(did) > 0:
				t.Errorf("%s: %s: %v", clause.ID, tc.Name, did)
			case tc.Name == "missing data":
				if missing = true; passed || !last.blind {
					t.Errorf("%s: on missing data it is %s (passed at a look: %v): %s", clause.ID, last.grade, passed, last.reason)
				}
			case passed:
				safe = true
			}
		}
		if !acts || !recovers || !safe || !missing {
			t.Errorf("%s: acts %v, recovers %v, is silent where it is shown to hold %v, has no data %v; all four are wanted", clause.ID, acts, recovers, safe, missing)
		}
	}
	if len(thresholds) != 17 {
		t.Errorf("%d thresholds, want 17", len(thresholds))
	}
}
